#include "device/cuda/stream.h"

#include "device/cuda/blas.h"
#include "device/cuda/graph.h"
#include "device/cuda/module.h"

namespace kiln::device::cuda {
namespace {

DevicePointer AsDevice(const std::byte* address) {
  return reinterpret_cast<DevicePointer>(address);
}

}  // namespace

Result<std::unique_ptr<CudaEvent>> CudaEvent::Make(std::shared_ptr<Context> context, bool timed) {
  EventHandle handle = nullptr;
  KILN_RETURN_IF_ERROR(context->Call(context->api().EventCreate, &handle,
                                     timed ? kEventDefault : kEventDisableTiming));
  return std::unique_ptr<CudaEvent>(new CudaEvent(std::move(context), handle));
}

CudaEvent::~CudaEvent() { context_->GiveBack(context_->api().EventDestroy, handle_); }

Result<bool> CudaEvent::IsDone() {
  Context::Scope scope(*context_);
  if (!scope.ok()) return scope.status();
  const auto& query = context_->api().EventQuery;
  const Error error = query.call(handle_);
  if (error == Error::kNotReady) return false;
  KILN_RETURN_IF_ERROR(context_->Check(error, query.name));
  return true;
}

Status CudaEvent::Wait() { return context_->Call(context_->api().EventSynchronize, handle_); }

CudaStream::CudaStream(std::shared_ptr<Context> context, std::shared_ptr<Memory> memory,
                       StreamHandle handle, bool owned)
    : context_(std::move(context)),
      memory_(std::move(memory)),
      handle_(handle),
      owned_(owned),
      id_(memory_->NameStream()) {}

Result<std::unique_ptr<CudaStream>> CudaStream::Make(std::shared_ptr<Context> context,
                                                     std::shared_ptr<Memory> memory) {
  StreamHandle handle = nullptr;
  KILN_RETURN_IF_ERROR(context->Call(context->api().StreamCreate, &handle, kStreamNonBlocking));
  return std::unique_ptr<CudaStream>(
      new CudaStream(std::move(context), std::move(memory), handle, true));
}

Result<std::unique_ptr<CudaStream>> CudaStream::Wrap(std::shared_ptr<Context> context,
                                                     std::shared_ptr<Memory> memory,
                                                     StreamHandle handle) {
  const Functions& api = context->api();
  Context::Scope scope(*context);
  if (!scope.ok()) return scope.status();
  // For the default streams this is the current context, ours.
  ContextHandle owner = nullptr;
  const Error error = api.StreamGetCtx.call(handle, &owner);
  if (error == Error::kInvalidHandle || error == Error::kInvalidValue) {
    return InvalidArgument("what is given as a stream of GPU ", context->ordinal(),
                           " is none: ", context->driver().Describe(error));
  }
  KILN_RETURN_IF_ERROR(context->Check(error, api.StreamGetCtx.name));
  if (owner != context->handle()) {
    DeviceHandle device = -1;
    KILN_RETURN_IF_ERROR(context->Check(api.CtxPushCurrent.call(owner), api.CtxPushCurrent.name));
    const Error asked = api.CtxGetDevice.call(&device);
    ContextHandle popped = nullptr;
    if (Error refused = api.CtxPopCurrent.call(&popped); refused != Error::kSuccess) {
      context->Notice(refused, api.CtxPopCurrent.name);
      if (!context->lost()) api.CtxPopCurrent.call(&popped);
    }
    KILN_RETURN_IF_ERROR(context->Check(asked, api.CtxGetDevice.name));
    if (device != context->device()) {
      return InvalidArgument("the stream belongs to CUDA device ", device, ", not to GPU ",
                             context->ordinal());
    }
    return Unimplemented("the stream belongs to a CUDA context that is not the primary one of GPU ",
                         context->ordinal());
  }
  return std::unique_ptr<CudaStream>(
      new CudaStream(std::move(context), std::move(memory), handle, false));
}

CudaStream::~CudaStream() {
  if (!owned_) return;
  context_->GiveBack(context_->api().StreamSynchronize, handle_);
  memory_->StreamEnds(id_);
  context_->GiveBack(context_->api().StreamDestroy, handle_);
}

Status CudaStream::Launch(GpuKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args) {
  auto& cuda_kernel = static_cast<CudaKernel&>(kernel);
  KILN_ASSIGN_OR_RETURN(LaunchParameters launch, LaunchParameters::Make(cuda_kernel, grid, args));
  return context_->Call(context_->api().LaunchKernel, cuda_kernel.handle(), launch.blocks(), 1u, 1u,
                        launch.threads(), 1u, 1u, launch.shared_bytes(), handle_, launch.pointers(),
                        nullptr);
}

Status CudaStream::Launch(GpuGraph& graph) {
  return static_cast<CudaGraph&>(graph).LaunchOn(handle_);
}

Status CudaStream::Launch(GpuLibraryGemm& gemm, std::span<const GpuSpan> args) {
  return static_cast<BlasGemm&>(gemm).LaunchOn(handle_, args);
}

Status CudaStream::Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  return context_->Call(context_->api().MemcpyDtoDAsync, AsDevice(to), AsDevice(from),
                        static_cast<size_t>(bytes), handle_);
}

Status CudaStream::CopyFromHost(std::byte* to, const void* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  return context_->Call(context_->api().MemcpyHtoDAsync, AsDevice(to), from,
                        static_cast<size_t>(bytes), handle_);
}

Status CudaStream::CopyToHost(void* to, const std::byte* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  return context_->Call(context_->api().MemcpyDtoHAsync, to, AsDevice(from),
                        static_cast<size_t>(bytes), handle_);
}

Status CudaStream::Fill(std::byte* to, uint8_t value, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  return context_->Call(context_->api().MemsetD8Async, AsDevice(to), value,
                        static_cast<size_t>(bytes), handle_);
}

Status CudaStream::Record(GpuEvent& event) {
  return context_->Call(context_->api().EventRecord, static_cast<CudaEvent&>(event).handle(),
                        handle_);
}

Status CudaStream::WaitFor(GpuEvent& event) {
  return context_->Call(context_->api().StreamWaitEvent, handle_,
                        static_cast<CudaEvent&>(event).handle(), 0u);
}

Status CudaStream::Synchronise() {
  return context_->Call(context_->api().StreamSynchronize, handle_);
}

}  // namespace kiln::device::cuda
