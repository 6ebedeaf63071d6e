#include "client/transfer.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exception.h"
#include "base/strings.h"
#include "client/buffer_checks.h"
#include "client/dependencies.h"

namespace kiln::client {
namespace {

constexpr std::string_view kHost = "host";

// The time of a copy, from here to the end of the scope.
class TransferSpan {
 public:
  // A trace of the caller's, or null.
  TransferSpan(const Client& client, TraceSink* trace, std::string_view from, std::string_view to,
               int64_t bytes)
      : clients_(trace ? nullptr : client.trace()), trace_(trace ? trace : clients_.get()) {
    if (!trace_) return;
    span_.emplace(&trace_->ForDevice(std::string(from == kHost ? to : from)), Cat(from, " to ", to),
                  "transfer");
    span_->AddArg("bytes", bytes);
  }

 private:
  const std::shared_ptr<TraceSink> clients_;
  TraceSink* const trace_;
  std::optional<TraceSpan> span_;
};

// In its scope no execution of another thread takes the buffer.
class Reading {
 public:
  explicit Reading(Buffer& buffer) : buffer_(buffer) {}
  ~Reading() {
    if (is_pinned_) buffer_.Unpin();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // FAILED_PRECONDITION if the buffer has been donated.
  Status Begin() {
    // A donation can be taken back.
    while (!buffer_.Pin()) KILN_RETURN_IF_ERROR(buffer_.CheckNotDonated());
    is_pinned_ = true;
    return OkStatus();
  }

 private:
  Buffer& buffer_;
  bool is_pinned_ = false;
};

// Through the host if neither device's memory is the host's. The value is ready.
Status CopyElements(const Buffer& from, Buffer& to, TraceSink* trace) {
  const TransferSpan span(from.client(), trace, from.device().name(), to.device().name(),
                          from.bytes());
  runtime::Device& source = from.device().runtime();
  runtime::Device& target = to.device().runtime();
  if (source.has_host_memory()) return target.CopyFromHost(to.data(), from.data(), from.bytes());
  if (&source == &target) {
    KILN_RETURN_IF_ERROR(source.Copy(to.data(), from.data(), from.bytes()));
    // The device itself tracks the use of memory that it allocated.
    return from.storage().is_callers() ? source.Synchronise() : OkStatus();
  }
  if (target.has_host_memory()) return source.CopyToHost(to.data(), from.data(), from.bytes());
  std::vector<std::byte> host(static_cast<size_t>(from.bytes()));
  KILN_RETURN_IF_ERROR(source.CopyToHost(host.data(), from.data(), from.bytes()));
  return target.CopyFromHost(to.data(), host.data(), from.bytes());
}

// A copy in a queue. The event outlives the rest, and keeps the client alive.
class QueuedTransfer : public Queue::Job {
 public:
  QueuedTransfer(Device& device, Ref<Buffer> from, Ref<Buffer> to, std::function<Status()> copy)
      : event_(MakeRef<Event>(device.client(), &device.queue())),
        from_(std::move(from)),
        to_(std::move(to)),
        copy_(std::move(copy)),
        dependencies_(device.queue()) {
    if (from_) dependencies_.Read(*from_);
    for (Buffer* buffer : {from_.get(), to_.get()}) {
      if (buffer) buffer->PrepareUse();
    }
  }

  const Ref<Event>& event() const { return event_; }
  void Announce() const {
    if (from_) from_->AddUse(event_, false);
    if (to_) to_->AddUse(event_, true);
  }

  // On this thread, to the end, without the queue.
  void RunHere() noexcept {
    (void)Try([&] { return dependencies_.Finish(); });
    Announce();
    if (Run()) Finish();
  }

  Ref<Event> Blocker() noexcept override { return dependencies_.Blocker(); }

  bool Run() noexcept override {
    Status status = Try([&]() -> Status {
      KILN_RETURN_IF_ERROR(dependencies_.Start());
      return copy_();
    });
    if (status.ok() && !dependencies_.inputs_are_ready()) {
      event_->SetStarted();
      return true;
    }
    if (status.ok()) status = Try([&] { return dependencies_.Finish(); });
    End(std::move(status));
    return false;
  }

  void Finish() noexcept override {
    End(Try([&] { return dependencies_.Finish(); }));
  }

 private:
  void End(Status status) noexcept {
    // Everything is released before the event is ready.
    copy_ = nullptr;
    dependencies_.Clear();
    from_ = to_ = {};
    event_->Finish(std::move(status));
  }

  const Ref<Event> event_;
  Ref<Buffer> from_, to_;  // null: the host
  std::function<Status()> copy_;
  Dependencies dependencies_;
};

Ref<Event> Start(Device& device, std::unique_ptr<QueuedTransfer> transfer, bool here = false) {
  Ref<Event> event = transfer->event();
  if (here || !device.client().runs_asynchronously()) {
    transfer->RunHere();
    return event;
  }
  const QueuedTransfer& announced = *transfer;
  device.queue().Push(std::move(transfer), Queue::Order::kFirst, [&] { announced.Announce(); });
  return event;
}

Status CheckPart(const Buffer& buffer, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
    return OutOfRange("the part of ", bytes, " bytes at ", offset, " is not in ", buffer.shape(),
                      ", which has ", buffer.bytes());
  }
  return OkStatus();
}

}  // namespace

Result<Ref<Buffer>> CopyFromHost(Device& device, const Shape& shape, const void* data,
                                 Buffer* given, TraceSink* trace) {
  if (!given) {
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> buffer, Buffer::Allocate(device, shape));
    const TransferSpan span(device.client(), trace, kHost, device.name(), buffer->bytes());
    KILN_RETURN_IF_ERROR(device.runtime().CopyFromHost(buffer->data(), data, buffer->bytes()));
    return buffer;
  }
  KILN_RETURN_IF_ERROR(CheckBuffer(given, device, shape, Access::kWrite,
                                   [] { return "the buffer for the result"; }));
  given->WaitForUses();
  const TransferSpan span(device.client(), trace, kHost, device.name(), given->bytes());
  KILN_ASSIGN_OR_RETURN(std::byte * memory, given->Materialise());
  KILN_RETURN_IF_ERROR(device.runtime().CopyFromHost(memory, data, given->bytes()));
  given->SetWritten();
  return Ref<Buffer>::Share(given);
}

Status CopyToHost(Buffer& buffer, void* data, TraceSink* trace) {
  KILN_RETURN_IF_ERROR(buffer.WaitForValue());
  Reading reading(buffer);
  KILN_RETURN_IF_ERROR(reading.Begin());
  const TransferSpan span(buffer.client(), trace, buffer.device().name(), kHost, buffer.bytes());
  return buffer.device().runtime().CopyToHost(data, buffer.data(), buffer.bytes());
}

Result<Ref<Buffer>> CopyToDevice(Buffer& buffer, Device& device) {
  KILN_RETURN_IF_ERROR(buffer.WaitForValue());
  Reading reading(buffer);
  KILN_RETURN_IF_ERROR(reading.Begin());
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> copy, Buffer::Allocate(device, buffer.shape()));
  KILN_RETURN_IF_ERROR(CopyElements(buffer, *copy, nullptr));
  return copy;
}

Result<Transfer> StartCopyFromHost(Device& device, const Shape& shape, const void* data) {
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> buffer, Buffer::Allocate(device, shape));
  Buffer& to = *buffer;
  Ref<Event> event =
      Start(device, std::make_unique<QueuedTransfer>(device, Ref<Buffer>(), buffer, [&to, data] {
              const TransferSpan span(to.client(), nullptr, kHost, to.device().name(), to.bytes());
              return to.device().runtime().CopyFromHost(to.data(), data, to.bytes());
            }));
  return Transfer{std::move(buffer), std::move(event)};
}

Result<Ref<Event>> StartCopyToHost(Buffer& buffer, int64_t offset, void* data, int64_t bytes) {
  KILN_RETURN_IF_ERROR(CheckPart(buffer, offset, bytes));
  Reading reading(buffer);
  KILN_RETURN_IF_ERROR(reading.Begin());
  Device& device = buffer.device();
  auto copy = [&buffer, offset, data, bytes] {
    const TransferSpan span(buffer.client(), nullptr, buffer.device().name(), kHost, bytes);
    return buffer.device().runtime().CopyToHost(data, buffer.data() + offset, bytes);
  };
  return Start(device, std::make_unique<QueuedTransfer>(device, Ref<Buffer>::Share(&buffer),
                                                        Ref<Buffer>(), std::move(copy)));
}

Result<Ref<Event>> StartWrite(Buffer& buffer, int64_t offset, const void* data, int64_t bytes) {
  KILN_RETURN_IF_ERROR(CheckPart(buffer, offset, bytes));
  // A donated one may be waiting for this write.
  KILN_RETURN_IF_ERROR(CheckWritable(buffer, [] { return "the buffer to be written"; }));
  Device& device = buffer.device();
  auto copy = [to = Ref<Buffer>::Share(&buffer), offset, data, bytes]() -> Status {
    const TransferSpan span(to->client(), nullptr, kHost, to->device().name(), bytes);
    KILN_ASSIGN_OR_RETURN(std::byte * memory, to->Materialise());
    return to->device().runtime().CopyFromHost(memory + offset, data, bytes);
  };
  return Start(device, std::make_unique<QueuedTransfer>(device, Ref<Buffer>(), Ref<Buffer>(),
                                                        std::move(copy)));
}

Result<Transfer> StartCopyToDevice(Buffer& buffer, Device& device,
                                   std::shared_ptr<TraceSink> trace) {
  Reading reading(buffer);
  KILN_RETURN_IF_ERROR(reading.Begin());
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> copy, Buffer::Allocate(device, buffer.shape()));
  Buffer& to = *copy;
  Device& from = buffer.device();
  // Queues work for their own client only: another client could end on their threads.
  const bool here = &device.client() != &buffer.client();
  Ref<Event> event =
      Start(from,
            std::make_unique<QueuedTransfer>(from, Ref<Buffer>::Share(&buffer), copy,
                                             [&buffer, &to, trace = std::move(trace)] {
                                               return CopyElements(buffer, to, trace.get());
                                             }),
            here);
  return Transfer{std::move(copy), std::move(event)};
}

}  // namespace kiln::client
