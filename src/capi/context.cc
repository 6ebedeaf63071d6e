#include "capi/context.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <thread>

#include "base/stack.h"
#include "base/strings.h"
#include "capi/error.h"
#include "capi/exit.h"
#include "capi/gpus.h"
#include "capi/options.h"
#include "device/cpu/device.h"
#include "device/gpu/device.h"
#include "device/reference/device.h"
#include "device/reference/grid_calls.h"

using kiln::Cat;
using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Result;
using kiln::Status;
using kiln::capi::Deferred;
using kiln::capi::DeferredList;
using kiln::capi::Guard;
using kiln::capi::NotNull;
using kiln::capi::Queue;

namespace {

constexpr int kMaxThreads = 1024;

kiln::runtime::AllocatorHooks HooksOf(const kiln_context_options& options) {
  return {options.allocate, options.deallocate, options.allocator_user_data};
}

int AvailableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<int> ThreadsOf(const kiln_context_options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument("kiln_context_options.threads is ", options.threads,
                           "; expected 0 (for all) to ", kMaxThreads);
  }
  return options.threads == 0 ? std::min(AvailableProcessors(), kMaxThreads) : options.threads;
}

Status Check(const kiln_context_options& options) {
  if (!options.allocate != !options.deallocate) {
    return InvalidArgument(
        "kiln_context_options has one of allocate and deallocate; both or neither must be set");
  }
  if (options.log_level < KILN_LOG_DEFAULT || options.log_level > KILN_LOG_OFF) {
    return InvalidArgument("kiln_context_options.log_level is ", options.log_level,
                           ", which is none");
  }
  if (options.gpu < KILN_GPU_AUTO || options.gpu > KILN_GPU_OFF) {
    return InvalidArgument("kiln_context_options.gpu is ", options.gpu, ", which is none");
  }
  if (options.gpu_library < KILN_GPU_LIBRARY_DEFAULT ||
      options.gpu_library > KILN_GPU_LIBRARY_ALWAYS) {
    return InvalidArgument("kiln_context_options.gpu_library is ", options.gpu_library,
                           ", which is none");
  }
  if (options.reserved != 0) return InvalidArgument("kiln_context_options.reserved is not 0");
  if (options.gpu_memory_bytes < 0) {
    return InvalidArgument("kiln_context_options.gpu_memory_bytes is ", options.gpu_memory_bytes);
  }
  return OkStatus();
}

class DeferredLog : public Deferred {
 public:
  DeferredLog(kiln_context& context, kiln_log_level level, std::string_view message)
      : context_(context), level_(level), message_(message) {}
  void Call() noexcept override { context_.Log(level_, message_); }

 private:
  kiln_context& context_;
  kiln_log_level level_;
  std::string message_;
};

}  // namespace

Deferred::Deferred() = default;
Deferred::~Deferred() = default;

kiln_context::Alive::Alive() { kiln::capi::CountContexts(1); }
kiln_context::Alive::~Alive() { kiln::capi::CountContexts(-1); }

kiln_context::kiln_context(const kiln_context_options& options, int threads)
    : options_(options), allocator_(HooksOf(options)), pool_(threads) {
  // The registry is new: no function has the name yet.
  (void)kiln::device::AddGridCalls(calls_, {&calls_, &pool_});
  auto add = [&](std::unique_ptr<kiln::runtime::Device> device, bool shares_host_memory) {
    std::string description = device->target().ToString();
    AddDevice(std::move(device), std::move(description), shares_host_memory);
  };
  add(std::make_unique<kiln::device::CpuDevice>("CPU:0", allocator_, pool_), true);
  add(std::make_unique<kiln::device::CpuDevice>("XLA_CPU:0", allocator_, pool_), false);
  add(std::make_unique<kiln::device::ReferenceDevice>("REFERENCE:0", allocator_), true);
}

void kiln_context::AddDevice(std::unique_ptr<kiln::runtime::Device> device, std::string description,
                             bool shares_host_memory) {
  device->set_call_host({&calls_, &pool_});
  devices_.push_back({this, std::move(device), std::move(description), shares_host_memory});
}

Status kiln_context::AddGpus(std::string_view cache_folder) {
  KILN_ASSIGN_OR_RETURN(kiln::capi::Gpus gpus,
                        kiln::capi::FindGpus(options_, cache_folder, pool_, allocator_));
  device_notes_ = std::move(gpus.notes);
  for (const char* kind : {"GPU:", "XLA_GPU:"}) {
    for (size_t i = 0; i < gpus.machines.size(); ++i) {
      const auto& machine = gpus.machines[i];
      auto device = std::make_unique<kiln::device::GpuDevice>(Cat(kind, i), machine,
                                                              options_.gpu_memory_bytes);
      device->set_on_note([this](std::string_view text) { Log(KILN_LOG_INFO, text); });
      device->set_library_choices(gpus.library_choices);
      AddDevice(std::move(device), machine->description(), false);
    }
  }
  return OkStatus();
}

kiln_context::~kiln_context() {
  is_ending_ = true;
  calls_.Clear();
  RunDeferred();
  if (options_.allocator_destroy) options_.allocator_destroy(options_.allocator_user_data);
  if (options_.log_destroy) options_.log_destroy(options_.log_user_data);
}

void kiln_context::DropUser() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) queue_.Drain();
  RunDeferred();
}

void kiln_context::CallOrDefer(std::unique_ptr<Deferred> call) noexcept {
  if (!Queue::OnThread() || callbacks_from_any_thread()) {
    CallInTurn(std::move(call));
    return;
  }
  std::lock_guard lock(deferred_mutex_);
  deferred_.Append(std::move(call));
  has_deferred_.store(true, std::memory_order_release);
}

void kiln_context::CallInTurn(std::unique_ptr<Deferred> call) noexcept {
  // The calls of this thread that wait for one that is going on.
  static thread_local DeferredList* waiting = nullptr;
  if (is_ending_) {
    kiln::OnCallersStack([&] { call->Call(); });
    return;
  }
  if (waiting) {
    call->context = Share();
    waiting->Append(std::move(call));
    return;
  }
  DeferredList list;
  waiting = &list;
  for (; call; call = list.TakeFirst()) {
    kiln::OnCallersStack([&] { call->Call(); });
    call.reset();
  }
  waiting = nullptr;
}

void kiln_context::RunDeferred() noexcept {
  if (!has_deferred_.load(std::memory_order_acquire) || Queue::OnThread()) return;
  DeferredList list;
  {
    std::lock_guard lock(deferred_mutex_);
    list.Swap(deferred_);
    has_deferred_.store(false, std::memory_order_release);
  }
  while (std::unique_ptr<Deferred> call = list.TakeFirst()) CallInTurn(std::move(call));
}

void kiln_context::Log(kiln_log_level level, std::string_view message) noexcept {
  kiln_log_level least =
      options_.log_level == KILN_LOG_DEFAULT ? KILN_LOG_WARNING : options_.log_level;
  if (level < least) return;
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
    kiln::OnCallersStack(
        [&] { options_.log(options_.log_user_data, level, message.data(), message.size()); });
  } else {
    std::fprintf(stderr, "kiln: %.*s\n", static_cast<int>(message.size()), message.data());
  }
}

std::shared_ptr<kiln::TraceSink> kiln_context::trace() const {
  if (!is_tracing_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(trace_mutex_);
  return trace_;
}

Status kiln_context::StartTrace(std::shared_ptr<kiln::TraceSink> trace) {
  std::lock_guard lock(trace_mutex_);
  if (trace_) return kiln::FailedPrecondition("another trace of the context is recording");
  trace_ = std::move(trace);
  for (kiln_device& d : devices_) d.device->SetTrace(trace_);
  is_tracing_.store(true, std::memory_order_release);
  return OkStatus();
}

void kiln_context::StopTrace(const kiln::TraceSink* trace) noexcept {
  std::lock_guard lock(trace_mutex_);
  if (trace_.get() != trace) return;
  is_tracing_.store(false, std::memory_order_release);
  try {
    for (kiln_device& d : devices_) d.device->SetTrace(nullptr);
  } catch (const std::bad_alloc&) {
    // No memory for what is still to be shown: it is left out.
  }
  trace_.reset();
}

void kiln_context_options_init(kiln_context_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_context_create(const kiln_context_options* options, kiln_context** context) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_context_create", {{"context", context}}));
    KILN_ASSIGN_OR_RETURN(kiln_context_options read,
                          kiln::capi::ReadOptions("kiln_context_options", options));
    KILN_RETURN_IF_ERROR(Check(read));
    KILN_ASSIGN_OR_RETURN(int threads, ThreadsOf(read));
    KILN_ASSIGN_OR_RETURN(std::string_view cache_folder,
                          kiln::capi::TextOf("kiln_context_options.cache_folder", read.cache_folder,
                                             read.cache_folder_length));
    auto made = kiln::capi::MakeRef<kiln_context>(read, threads);
    if (Status status = made->AddGpus(cache_folder); !status.ok()) {
      made->ForgetDestroyCallbacks();
      return status;
    }
    *context = HandOver(std::move(made));
    return OkStatus();
  });
}

void kiln_context_retain(kiln_context* context) { kiln::capi::RetainHandle(context); }

void kiln_context_release(kiln_context* context) { kiln::capi::ReleaseHandle(context); }

int32_t kiln_context_threads(const kiln_context* context) {
  return context ? context->threads() : 0;
}

kiln_error* kiln_context_memory(const kiln_context* context, kiln_memory_info* info) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_context_memory", {{"context", context}, {"info", info}}));
    kiln_memory_info now = KILN_MEMORY_INFO_INIT;
    now.live_bytes = context->allocator().live_bytes();
    // A thread that allocates tells the peak last.
    now.peak_bytes = std::max(context->allocator().peak_bytes(), now.live_bytes);
    return kiln::capi::WriteStruct("kiln_memory_info", now, info);
  });
}
