// The client, as in PJRT: the devices, and the resources shared by their objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk_cache.h"
#include "base/fork.h"
#include "base/ref.h"
#include "base/status.h"
#include "base/trace.h"
#include "client/call_gradient.h"
#include "client/deferred.h"
#include "client/device.h"
#include "client/time_limit.h"
#include "flags/flags.h"
#include "runtime/arena.h"
#include "runtime/custom_calls.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

namespace kiln::client {

enum class LogLevel : int32_t { kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

// The options of a client. The functions are the user's: they are called on threads inside a call
// of the user, unless `callbacks_from_any_thread`.
struct ClientOptions {
  int threads = 1;  // that run kernels, the caller's included
  // The number of devices that the host is: each has its share of the threads, as equal as
  // possible, and at least one.
  int cpu_devices = 1;
  bool callbacks_from_any_thread = false;
  runtime::AllocatorHooks allocator;
  runtime::UsersPool pool;  // in place of threads of the library's own that run kernels
  void (*log)(void* user_data, int32_t level, const char* message, size_t length) = nullptr;
  void* log_user_data = nullptr;
  LogLevel log_level = LogLevel::kWarning;  // messages below it are dropped
  flags::Flags flags;                       // of the environment
  // The folder of the disk cache, and the bound on its bytes; an empty folder: no cache.
  std::string cache_folder;
  int64_t cache_bytes = DiskCache::kDefaultLimitBytes;
};

class Client : public Counted<Client> {
 public:
  explicit Client(const ClientOptions& options);
  ~Client();

  Client& client() { return *this; }
  const Client& client() const { return *this; }
  // Called in this order after the end of the client, if its creation succeeded.
  void AtEnd(std::unique_ptr<Deferred> call) { at_end_.Append(std::move(call)); }
  // Whether this process is a child of the client's process.
  bool is_before_fork() const { return fork_generation_ != ForkGeneration(); }

  // The user's references to all objects of the client. An object counts all references to it; the
  // client also counts the user's. The release of the last one waits for queued work, so that the
  // client ends on the user's thread.
  void AddUser() { users_.fetch_add(1, std::memory_order_relaxed); }
  void DropUser() noexcept;

  runtime::Allocator& allocator() { return allocator_; }
  const runtime::Allocator& allocator() const { return allocator_; }
  int threads() const { return options_.threads; }
  int cpu_devices() const { return options_.cpu_devices; }
  // The threads of one of the host's devices.
  runtime::ThreadPool& pool(int cpu_device) { return *pools_[static_cast<size_t>(cpu_device)]; }

  // Before the client is used. The pool is one of the client's.
  Device& AddDevice(std::unique_ptr<runtime::Device> device, std::string description,
                    bool shares_host_memory, runtime::ThreadPool& pool);
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // The reasons for missing GPUs; a line each.
  const std::string& device_notes() const { return device_notes_; }
  void set_device_notes(std::string notes) { device_notes_ = std::move(notes); }

  // The functions called by programs by name.
  const runtime::CustomCallRegistry& calls() const { return calls_; }
  // Adds a function of the user, as CustomCallRegistry::Add; INVALID_ARGUMENT for markers, which
  // are never called.
  Status RegisterCustomCall(std::string_view target, runtime::CustomCallRegistry::Maker& make);
  // The same for the derivatives of a target's calls.
  Status RegisterGradient(std::string_view target, std::shared_ptr<const CallGradient> gradient);
  // Null: it has none.
  std::shared_ptr<const CallGradient> FindGradient(std::string_view target) const;
  const flags::Flags& flags() const { return options_.flags; }
  // Null: there is none.
  DiskCache* cache() const { return cache_.get(); }
  int64_t NextModuleNumber() { return modules_.fetch_add(1, std::memory_order_relaxed); }
  // Of hlo_graph_N.dot, from 0.
  int64_t NextGraphNumber() { return graphs_.fetch_add(1, std::memory_order_relaxed); }

  // Of executions.
  TimeLimits& time_limits() { return time_limits_; }

  bool callbacks_from_any_thread() const { return options_.callbacks_from_any_thread; }
  // Whether work may be asynchronous: not without a thread for it, or with callbacks not allowed on
  // that thread.
  bool runs_asynchronously() const {
    return threads() > 1 &&
           ((!options_.allocator.allocate && !options_.pool.run) || callbacks_from_any_thread());
  }

  // Calls the function at once if this thread may, otherwise during the user's next call. A nested
  // call waits for the end of the current one, so that a sequence of them needs no stack.
  void CallOrDefer(std::unique_ptr<Deferred> call) noexcept;
  // Makes the deferred calls; only on the user's threads.
  void RunDeferred() noexcept;
  void Log(LogLevel level, std::string_view message) noexcept;
  // Logs an information that a flag asks for, unless the log is off.
  void Announce(std::string_view message) noexcept;
  // Logs whatever the client's level is.
  void Emit(LogLevel level, std::string_view message) noexcept;

  // The current recording, or null.
  std::shared_ptr<TraceSink> trace() const;
  Status StartTrace(std::shared_ptr<TraceSink> trace);
  void StopTrace(const TraceSink* trace) noexcept;

 private:
  // On this thread, now or after the current call.
  void CallInTurn(std::unique_ptr<Deferred> call) noexcept;

  // The clients of the process.
  class Alive {
   public:
    Alive();
    ~Alive();
    Alive(const Alive&) = delete;
    Alive& operator=(const Alive&) = delete;
  };

  // The first member: destroyed last.
  const Alive alive_;
  const uint32_t fork_generation_ = ForkGeneration();
  const ClientOptions options_;
  runtime::Allocator allocator_;
  const std::vector<std::unique_ptr<runtime::ThreadPool>> pools_;  // by the host's devices
  runtime::CustomCallRegistry calls_;
  mutable std::mutex gradients_mutex_;
  std::map<std::string, std::shared_ptr<const CallGradient>, std::less<>> gradients_;
  std::string device_notes_;
  std::atomic<int64_t> users_{0}, modules_{1}, graphs_{0};
  bool is_ending_ = false;
  DeferredList at_end_;

  std::atomic<bool> has_deferred_{false};
  std::mutex deferred_mutex_, log_mutex_;
  DeferredList deferred_;

  std::atomic<bool> is_tracing_{false};
  mutable std::mutex trace_mutex_;
  std::shared_ptr<TraceSink> trace_;

  TimeLimits time_limits_;
  std::unique_ptr<DiskCache> cache_;
  // The last member: the jobs of their queues are done before the rest goes.
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace kiln::client
