// The context: what everything made from it shares.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/fork.h"
#include "base/status.h"
#include "base/trace.h"
#include "capi/deferred.h"
#include "capi/handle.h"
#include "capi/queue.h"
#include "kiln/context.h"
#include "kiln/device.h"
#include "runtime/arena.h"
#include "runtime/calls.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

// It lives as long as its context, and its references are the context's.
struct kiln_device {
  kiln_context* owner;
  std::unique_ptr<kiln::runtime::Device> device;
  std::string description;
  // Whether its memory is the host's, so that buffers are shared without a copy.
  bool shares_host_memory;

  kiln_context& context() const { return *owner; }
  const std::string& name() const { return device->name(); }
};

struct kiln_context : kiln::capi::Counted<kiln_context> {
 public:
  // `options` are complete and have been checked.
  explicit kiln_context(const kiln_context_options& options, int threads);
  ~kiln_context();
  // Before the context is used: the GPUs that there are.
  kiln::Status AddGpus(std::string_view cache_folder);
  // What has not been handed over tells nobody of its end.
  void ForgetDestroyCallbacks() { options_.allocator_destroy = options_.log_destroy = nullptr; }

  kiln_context& context() { return *this; }
  const kiln_context& context() const { return *this; }
  // Whether this process is a child of the one that made the context.
  bool is_before_fork() const { return fork_generation_ != kiln::ForkGeneration(); }
  kiln::capi::Ref<kiln_context> Share() { return kiln::capi::Ref<kiln_context>::Share(this); }

  // References in the user's hands, of any object of the context.
  void AddUser() { users_.fetch_add(1, std::memory_order_relaxed); }
  void DropUser() noexcept;

  kiln::runtime::Allocator& allocator() { return allocator_; }
  const kiln::runtime::Allocator& allocator() const { return allocator_; }
  int threads() const { return pool_.threads(); }
  std::vector<kiln_device>& devices() { return devices_; }
  const std::vector<kiln_device>& devices() const { return devices_; }
  const std::string& device_notes() const { return device_notes_; }
  kiln::capi::Queue& queue() { return queue_; }
  // The functions that programs call by name.
  kiln::runtime::CallRegistry& calls() { return calls_; }
  int64_t NextModuleNumber() { return modules_.fetch_add(1, std::memory_order_relaxed); }

  bool callbacks_from_any_thread() const { return options_.callbacks_from_any_thread != 0; }
  // Whether executions may go on after the call that asks for them: not where that would take a
  // thread that is not there, or a callback on a thread that may not make it.
  bool runs_asynchronously() const {
    return threads() > 1 && (!options_.allocate || callbacks_from_any_thread());
  }

  // Calls at once where this thread may, else with the next call of the user's. A function that
  // gives back what leads to another such call makes it wait for its own end, so that a chain of
  // them takes no stack.
  void CallOrDefer(std::unique_ptr<kiln::capi::Deferred> call) noexcept;
  // Makes the calls that have been put off; on the user's threads only.
  void RunDeferred() noexcept;
  void Log(kiln_log_level level, std::string_view message) noexcept;

  // The recording that is going on, or null.
  std::shared_ptr<kiln::TraceSink> trace() const;
  kiln::Status StartTrace(std::shared_ptr<kiln::TraceSink> trace);
  void StopTrace(const kiln::TraceSink* trace) noexcept;

 private:
  // On this thread, now or after the call that is going on here.
  void CallInTurn(std::unique_ptr<kiln::capi::Deferred> call) noexcept;
  void AddDevice(std::unique_ptr<kiln::runtime::Device> device, std::string description,
                 bool shares_host_memory);

  // Those that there are in the process.
  class Alive {
   public:
    Alive();
    ~Alive();
    Alive(const Alive&) = delete;
    Alive& operator=(const Alive&) = delete;
  };

  // The first member: the last to go.
  const Alive alive_;
  const uint32_t fork_generation_ = kiln::ForkGeneration();
  kiln_context_options options_;
  kiln::runtime::Allocator allocator_;
  kiln::runtime::ThreadPool pool_;
  kiln::runtime::CallRegistry calls_;
  std::vector<kiln_device> devices_;
  std::string device_notes_;
  std::atomic<int64_t> users_{0}, modules_{1};
  bool is_ending_ = false;

  std::atomic<bool> has_deferred_{false};
  std::mutex deferred_mutex_, log_mutex_;
  kiln::capi::DeferredList deferred_;

  std::atomic<bool> is_tracing_{false};
  mutable std::mutex trace_mutex_;
  std::shared_ptr<kiln::TraceSink> trace_;

  // The last member: its jobs are done before the rest goes.
  kiln::capi::Queue queue_;
};
