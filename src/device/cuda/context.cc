#include "device/cuda/context.h"

namespace kiln::device::cuda {

Context::~Context() {
  if (handle_.load() == nullptr) return;
  if (api().PrimaryCtxRelease.call(device_) != Error::kSuccess && !lost()) {
    api().PrimaryCtxRelease.call(device_);
  }
}

Error Context::Retain() noexcept {
  if (handle_.load() != nullptr) return Error::kSuccess;
  std::lock_guard lock(retaining_);
  if (handle_.load() != nullptr) return Error::kSuccess;
  ContextHandle handle = nullptr;
  const Error error = api().PrimaryCtxRetain.call(&handle, device_);
  if (error == Error::kSuccess) handle_.store(handle);
  return error;
}

Context::Scope::Scope(Context& context) noexcept : context_(context) {
  error_ = context_.lost_.load();
  if (error_ != Error::kSuccess) return;
  error_ = context_.Retain();
  function_ = context_.api().PrimaryCtxRetain.name;
  if (error_ == Error::kSuccess) {
    error_ = context_.api().CtxPushCurrent.call(context_.handle());
    function_ = context_.api().CtxPushCurrent.name;
  }
  context_.Notice(error_, function_);
}

Context::Scope::~Scope() {
  if (error_ != Error::kSuccess) return;
  // A foreign context left on a thread's stack would do harm far away: a failure is fatal.
  ContextHandle popped = nullptr;
  const Error error = context_.api().CtxPopCurrent.call(&popped);
  if (error == Error::kSuccess) return;
  context_.Notice(error, context_.api().CtxPopCurrent.name);
  if (!context_.lost()) context_.api().CtxPopCurrent.call(&popped);
}

Status Context::Scope::status() const {
  return ok() ? OkStatus() : context_.Check(error_, function_);
}

void Context::Notice(Error error, const char* function) noexcept {
  if (!LosesContext(error) || lost()) return;
  lost_in_.store(function);
  lost_.store(error);
}

Status Context::status() const {
  if (!lost()) return OkStatus();
  return driver_->Failed(lost_.load(), lost_in_.load())
      .WithContext(Cat("GPU ", ordinal_,
                       ": the device context is lost with all that was in it; the process must be "
                       "started anew to use this GPU"));
}

Status Context::Check(Error error, const char* function) {
  if (error == Error::kSuccess) return OkStatus();
  Notice(error, function);
  if (lost()) return status();
  return driver_->Failed(error, function).WithContext(Cat("GPU ", ordinal_));
}

}  // namespace kiln::device::cuda
