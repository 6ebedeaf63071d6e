// A device's primary context, shared with the CUDA runtime and other libraries of the process.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "device/cuda/driver.h"

namespace kiln::device::cuda {

// Retained from its first use, because creation is slow and takes much memory, until this ends. All
// objects in it keep it alive.
//
// After a fatal failure of the GPU's work, every call returns that failure without a call of the
// driver, and only the context is released.
class Context {
 public:
  Context(std::shared_ptr<const Driver> driver, int ordinal, DeviceHandle device)
      : driver_(std::move(driver)), ordinal_(ordinal), device_(device) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  const Driver& driver() const { return *driver_; }
  const Functions& api() const { return driver_->api(); }
  int ordinal() const { return ordinal_; }
  DeviceHandle device() const { return device_; }
  // Within a scope.
  ContextHandle handle() const { return handle_.load(); }
  bool lost() const { return lost_.load() != Error::kSuccess; }
  // OK, or the cause of its loss.
  Status status() const;

  // Makes it the thread's current context, and restores the previous one.
  class Scope {
   public:
    explicit Scope(Context& context) noexcept;
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
    bool ok() const { return error_ == Error::kSuccess; }
    Status status() const;

   private:
    Context& context_;
    Error error_ = Error::kSuccess;
    const char* function_ = "";
  };

  // One call of the driver, in the context.
  template <typename... Parameters, typename... Args>
  Status Call(const Function<Parameters...>& function, Args... args) {
    Scope scope(*this);
    if (!scope.ok()) return scope.status();
    return Check(function.call(args...), function.name);
  }

  // The same for releases. A failed call has not done its work, and is tried once more; with a lost
  // context it does not matter. False if it failed again.
  template <typename... Parameters, typename... Args>
  bool GiveBack(const Function<Parameters...>& function, Args... args) noexcept {
    for (int attempt = 0; attempt < 2; ++attempt) {
      Scope scope(*this);
      if (lost()) return true;
      if (!scope.ok()) continue;
      const Error error = function.call(args...);
      Notice(error, function.name);
      if (error == Error::kSuccess || lost()) return true;
    }
    return false;
  }

  // The result of a driver's call as a status.
  Status Check(Error error, const char* function);
  // Remembers a loss.
  void Notice(Error error, const char* function) noexcept;

 private:
  Error Retain() noexcept;

  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  DeviceHandle device_;
  std::mutex retaining_;
  std::atomic<ContextHandle> handle_ = nullptr;
  std::atomic<Error> lost_ = Error::kSuccess;
  std::atomic<const char*> lost_in_ = "";
};

}  // namespace kiln::device::cuda
