// The client: the devices, and what all that is made for them shares. PJRT's notion of that name.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/fork.h"
#include "base/ref.h"
#include "base/status.h"
#include "base/trace.h"
#include "client/deferred.h"
#include "client/device.h"
#include "runtime/arena.h"
#include "runtime/custom_calls.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

namespace kiln::client {

enum class LogLevel : int32_t { kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

// What a client is made with. The functions are the user's: they are called on threads that are
// inside a call of his, unless `callbacks_from_any_thread`.
struct ClientOptions {
  int threads = 1;  // that run kernels, the caller's included
  bool callbacks_from_any_thread = false;
  runtime::AllocatorHooks allocator;
  void (*log)(void* user_data, int32_t level, const char* message, size_t length) = nullptr;
  void* log_user_data = nullptr;
  LogLevel log_level = LogLevel::kWarning;  // messages below it are dropped
};

class Client : public Counted<Client> {
 public:
  explicit Client(const ClientOptions& options);
  ~Client();

  Client& client() { return *this; }
  const Client& client() const { return *this; }
  // Called when the client has gone, in this order; once it has been handed over.
  void AtEnd(std::unique_ptr<Deferred> call) { at_end_.Append(std::move(call)); }
  // Whether this process is a child of the one that made the client.
  bool is_before_fork() const { return fork_generation_ != ForkGeneration(); }

  // References in the user's hands, of any object of the client. An object counts all references to
  // it; the client counts these, too: the call that gives back the last one waits for the work that
  // is still queued, so that the rest goes on the user's thread and not behind his back.
  void AddUser() { users_.fetch_add(1, std::memory_order_relaxed); }
  void DropUser() noexcept;

  runtime::Allocator& allocator() { return allocator_; }
  const runtime::Allocator& allocator() const { return allocator_; }
  runtime::ThreadPool& pool() { return pool_; }
  int threads() const { return pool_.threads(); }

  // Before the client is used.
  Device& AddDevice(std::unique_ptr<runtime::Device> device, std::string description,
                    bool shares_host_memory);
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // Why there are no GPUs, or not all that one might expect; a line each.
  const std::string& device_notes() const { return device_notes_; }
  void set_device_notes(std::string notes) { device_notes_ = std::move(notes); }

  // The functions that programs call by name.
  const runtime::CustomCallRegistry& calls() const { return calls_; }
  // Adds one of the user's, as CustomCallRegistry::Add; INVALID_ARGUMENT for markers, which are
  // never called.
  Status RegisterCustomCall(std::string_view target, runtime::CustomCallRegistry::Maker& make);
  int64_t NextModuleNumber() { return modules_.fetch_add(1, std::memory_order_relaxed); }

  bool callbacks_from_any_thread() const { return options_.callbacks_from_any_thread; }
  // Whether work may go on after the call that asks for it: not where that would take a thread that
  // is not there, or a callback on a thread that may not make it.
  bool runs_asynchronously() const {
    return threads() > 1 && (!options_.allocator.allocate || callbacks_from_any_thread());
  }

  // Calls at once where this thread may, else with the next call of the user's. A function that
  // gives back what leads to another such call makes it wait for its own end, so that a chain of
  // them takes no stack.
  void CallOrDefer(std::unique_ptr<Deferred> call) noexcept;
  // Makes the deferred calls; on the user's threads only.
  void RunDeferred() noexcept;
  void Log(LogLevel level, std::string_view message) noexcept;

  // The recording that is going on, or null.
  std::shared_ptr<TraceSink> trace() const;
  Status StartTrace(std::shared_ptr<TraceSink> trace);
  void StopTrace(const TraceSink* trace) noexcept;

 private:
  // On this thread, now or after the call that is going on here.
  void CallInTurn(std::unique_ptr<Deferred> call) noexcept;

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
  const uint32_t fork_generation_ = ForkGeneration();
  const ClientOptions options_;
  runtime::Allocator allocator_;
  runtime::ThreadPool pool_;
  runtime::CustomCallRegistry calls_;
  std::string device_notes_;
  std::atomic<int64_t> users_{0}, modules_{1};
  bool is_ending_ = false;
  DeferredList at_end_;

  std::atomic<bool> has_deferred_{false};
  std::mutex deferred_mutex_, log_mutex_;
  DeferredList deferred_;

  std::atomic<bool> is_tracing_{false};
  mutable std::mutex trace_mutex_;
  std::shared_ptr<TraceSink> trace_;

  // The last member: the jobs of their queues are done before the rest goes.
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace kiln::client
