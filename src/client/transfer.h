// Copies of arrays: from the host, to it, and between devices, now or in a device's queue.
#pragma once

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/event.h"
#include "tensor/shape.h"

namespace kiln::client {

// Those that are over when the call returns. They wait for the buffer's value.
Result<Ref<Buffer>> CopyFromHost(Device& device, const Shape& shape, const void* data);
Status CopyToHost(Buffer& buffer, void* data);
Result<Ref<Buffer>> CopyToDevice(Buffer& buffer, Device& device);

// A copy that may go on, and its end. Until then the buffer is there for other work to wait for,
// and the host's memory stays as it is. A failure is the event's. Where the client does nothing
// behind the user's back, it is over when the call returns.
struct Transfer {
  Ref<Buffer> buffer;
  Ref<Event> event;
};
// In the queue of the device.
Result<Transfer> StartCopyFromHost(Device& device, const Shape& shape, const void* data);
// In the queue of the buffer's device.
Result<Ref<Event>> StartCopyToHost(Buffer& buffer, void* data);
Result<Transfer> StartCopyToDevice(Buffer& buffer, Device& device);

}  // namespace kiln::client
