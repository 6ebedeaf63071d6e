// A device's primary context, which the CUDA runtime and other libraries of the process share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "device/cuda/driver.h"

namespace kiln::device::cuda {

// Retained from its first use on, as making one takes long and much memory, until this ends. All
// that is made in it keeps it alive.
//
// Once the GPU's work has failed in a way that the context does not survive, every call returns
// that failure without asking the driver, and nothing but the context is given back.
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
  // OK, or by what it was lost.
  Status status() const;

  // The thread's current context while this lives; afterwards it is again what it was.
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

  // The same for what gives something back. A call that is refused has not done its work, and is
  // made once more; whether one that tells of a lost context has does not matter. False where it
  // was refused again.
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

  // What a driver's call returned, as a status.
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
