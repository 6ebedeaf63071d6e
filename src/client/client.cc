#include "client/client.h"

#include <cstdio>
#include <new>

#include "base/stack.h"
#include "base/strings.h"
#include "client/exit.h"
#include "device/reference/grid_calls.h"
#include "ir/analysis/effects.h"

namespace kiln::client {
namespace {

class DeferredLog : public Deferred {
 public:
  DeferredLog(Client& logger, LogLevel level, std::string_view message)
      : logger_(logger), level_(level), message_(message) {}
  void Call() noexcept override { logger_.Emit(level_, message_); }

 private:
  Client& logger_;
  LogLevel level_;
  std::string message_;
};

// With several devices the threads are named after theirs.
std::vector<std::unique_ptr<runtime::ThreadPool>> MakePools(const ClientOptions& options) {
  std::vector<std::unique_ptr<runtime::ThreadPool>> pools;
  for (int i = 0; i < options.cpu_devices; ++i) {
    const runtime::Range share = runtime::PieceOf(options.threads, options.cpu_devices, i);
    pools.push_back(std::make_unique<runtime::ThreadPool>(
        static_cast<int>(share.end - share.begin),
        options.cpu_devices > 1 ? Cat("CPU:", i, " worker") : "worker", options.pool));
  }
  return pools;
}

}  // namespace

Deferred::Deferred() = default;
Deferred::~Deferred() = default;

Client::Alive::Alive() { CountClients(1); }
Client::Alive::~Alive() { CountClients(-1); }

Client::Client(const ClientOptions& options)
    : options_(options), allocator_(options.allocator), pools_(MakePools(options)) {
  // The registry is new: the names are free.
  (void)device::AddGridCalls(calls_, calls_);
  if (!options_.cache_folder.empty()) {
    cache_ = std::make_unique<DiskCache>(
        options_.cache_folder, options_.cache_bytes,
        [this](std::string_view problem) { Log(LogLevel::kWarning, problem); });
  }
}

Client::~Client() {
  is_ending_ = true;
  calls_.Clear();
  gradients_.clear();
  RunDeferred();
  devices_.clear();
  while (std::unique_ptr<Deferred> call = at_end_.TakeFirst()) CallInTurn(std::move(call));
}

Device& Client::AddDevice(std::unique_ptr<runtime::Device> device, std::string description,
                          bool shares_host_memory, runtime::ThreadPool& pool) {
  device->set_call_host({&calls_, &pool});
  std::string queue_name = cpu_devices() > 1 ? Cat(device->name(), " queue") : "queue";
  devices_.push_back(std::make_unique<Device>(*this, static_cast<int>(devices_.size()),
                                              std::move(device), std::move(description),
                                              shares_host_memory, pool, std::move(queue_name)));
  return *devices_.back();
}

Status Client::RegisterCustomCall(std::string_view target,
                                  runtime::CustomCallRegistry::Maker& make) {
  if (ir::IsMarkerTarget(target)) {
    return InvalidArgument("the target '", target, "' is a marker, which is never called");
  }
  return calls_.Add(target, make);
}

Status Client::RegisterGradient(std::string_view target,
                                std::shared_ptr<const CallGradient> gradient) {
  if (target.empty()) return InvalidArgument("the target is empty");
  if (ir::IsMarkerTarget(target)) {
    return InvalidArgument("the target '", target, "' is a marker, which is never called");
  }
  std::lock_guard lock(gradients_mutex_);
  if (gradients_.contains(target)) {
    return AlreadyExists("the target '", target, "' has a derivative already");
  }
  gradients_.emplace(target, std::move(gradient));
  return OkStatus();
}

std::shared_ptr<const CallGradient> Client::FindGradient(std::string_view target) const {
  std::lock_guard lock(gradients_mutex_);
  const auto found = gradients_.find(target);
  return found == gradients_.end() ? nullptr : found->second;
}

void Client::DropUser() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    for (const auto& device : devices_) device->queue().Drain();
  }
  RunDeferred();
}

void Client::CallOrDefer(std::unique_ptr<Deferred> call) noexcept {
  if (!Queue::OnThread() || callbacks_from_any_thread()) {
    CallInTurn(std::move(call));
    return;
  }
  std::lock_guard lock(deferred_mutex_);
  deferred_.Append(std::move(call));
  has_deferred_.store(true, std::memory_order_release);
}

void Client::CallInTurn(std::unique_ptr<Deferred> call) noexcept {
  // The calls of this thread that wait for the current one.
  static thread_local DeferredList* waiting = nullptr;
  if (is_ending_) {
    OnCallersStack([&] { call->Call(); });
    return;
  }
  if (waiting) {
    call->client = Ref<Client>::Share(this);
    waiting->Append(std::move(call));
    return;
  }
  DeferredList list;
  waiting = &list;
  for (; call; call = list.TakeFirst()) {
    OnCallersStack([&] { call->Call(); });
    call.reset();
  }
  waiting = nullptr;
}

void Client::RunDeferred() noexcept {
  if (!has_deferred_.load(std::memory_order_acquire) || Queue::OnThread()) return;
  DeferredList list;
  {
    std::lock_guard lock(deferred_mutex_);
    list.Swap(deferred_);
    has_deferred_.store(false, std::memory_order_release);
  }
  while (std::unique_ptr<Deferred> call = list.TakeFirst()) CallInTurn(std::move(call));
}

void Client::Log(LogLevel level, std::string_view message) noexcept {
  if (level >= options_.log_level) Emit(level, message);
}

void Client::Announce(std::string_view message) noexcept {
  if (options_.log_level != LogLevel::kOff) Emit(LogLevel::kInfo, message);
}

void Client::Emit(LogLevel level, std::string_view message) noexcept {
  if (options_.log && Queue::OnThread() && !callbacks_from_any_thread()) {
    try {
      CallOrDefer(std::make_unique<DeferredLog>(*this, level, message));
    } catch (...) {
      // No memory to keep the message in: it is lost.
    }
    return;
  }
  std::lock_guard lock(log_mutex_);
  if (options_.log) {
    OnCallersStack([&] {
      options_.log(options_.log_user_data, static_cast<int32_t>(level), message.data(),
                   message.size());
    });
  } else {
    std::fprintf(stderr, "kiln: %.*s\n", static_cast<int>(message.size()), message.data());
  }
}

std::shared_ptr<TraceSink> Client::trace() const {
  if (!is_tracing_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(trace_mutex_);
  return trace_;
}

Status Client::StartTrace(std::shared_ptr<TraceSink> trace) {
  std::lock_guard lock(trace_mutex_);
  if (trace_) return FailedPrecondition("another trace of the context is recording");
  trace_ = std::move(trace);
  for (const auto& device : devices_) {
    device->runtime().SetTrace({trace_, &trace_->ForDevice(device->name())});
  }
  is_tracing_.store(true, std::memory_order_release);
  return OkStatus();
}

void Client::StopTrace(const TraceSink* trace) noexcept {
  std::lock_guard lock(trace_mutex_);
  if (trace_.get() != trace) return;
  is_tracing_.store(false, std::memory_order_release);
  try {
    for (const auto& device : devices_) device->runtime().SetTrace(nullptr);
  } catch (const std::bad_alloc&) {
    // No memory for the remaining messages: they are lost.
  }
  trace_.reset();
}

}  // namespace kiln::client
