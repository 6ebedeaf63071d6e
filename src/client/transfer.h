// Copies of arrays: from the host, to it, and between devices, now or in a device's queue. Each is
// an event of the category "transfer" in the client's trace, or in the one given.
#pragma once

#include <memory>

#include "base/ref.h"
#include "base/status.h"
#include "base/trace.h"
#include "client/buffer.h"
#include "client/event.h"
#include "tensor/shape.h"

namespace kiln::client {

// Synchronous copies. They wait for the buffer's value.
//
// `given`, if not null, receives the copy: INVALID_ARGUMENT unless it is on the device, of the
// shape, and may be written.
Result<Ref<Buffer>> CopyFromHost(Device& device, const Shape& shape, const void* data,
                                 Buffer* given = nullptr, TraceSink* trace = nullptr);
Status CopyToHost(Buffer& buffer, void* data, TraceSink* trace = nullptr);
Result<Ref<Buffer>> CopyToDevice(Buffer& buffer, Device& device);

// An asynchronous copy, and its event. Until its end other work can wait for the buffer, and the
// host's memory must stay unchanged. A failure is the event's. If the client allows no asynchronous
// work, it is over when the call returns.
struct Transfer {
  Ref<Buffer> buffer;
  Ref<Event> event;
};
// In the queue of the device.
Result<Transfer> StartCopyFromHost(Device& device, const Shape& shape, const void* data);
// Of `bytes` bytes from `offset` on; in the queue of the buffer's device.
Result<Ref<Event>> StartCopyToHost(Buffer& buffer, int64_t offset, void* data, int64_t bytes);
// Into a part of a buffer. It waits for no use of the buffer, and none waits for it.
Result<Ref<Event>> StartWrite(Buffer& buffer, int64_t offset, const void* data, int64_t bytes);
Result<Transfer> StartCopyToDevice(Buffer& buffer, Device& device,
                                   std::shared_ptr<TraceSink> trace = nullptr);

}  // namespace kiln::client
