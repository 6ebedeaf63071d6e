// Streams and events of the driver.
#pragma once

#include <memory>

#include "device/cuda/context.h"
#include "device/cuda/memory.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

class CudaEvent final : public GpuEvent {
 public:
  static Result<std::unique_ptr<CudaEvent>> Make(std::shared_ptr<Context> context, bool timed);
  ~CudaEvent() override;

  Result<bool> IsDone() override;
  Status Wait() override;

  EventHandle handle() const { return handle_; }

 private:
  CudaEvent(std::shared_ptr<Context> context, EventHandle handle)
      : context_(std::move(context)), handle_(handle) {}

  std::shared_ptr<Context> context_;
  EventHandle handle_;
};

class CudaStream final : public GpuStream {
 public:
  // A non-blocking stream.
  static Result<std::unique_ptr<CudaStream>> Make(std::shared_ptr<Context> context,
                                                  std::shared_ptr<Memory> memory);
  // INVALID_ARGUMENT for a stream of another device, UNIMPLEMENTED for a context other than the
  // device's primary one.
  static Result<std::unique_ptr<CudaStream>> Wrap(std::shared_ptr<Context> context,
                                                  std::shared_ptr<Memory> memory,
                                                  StreamHandle handle);
  ~CudaStream() override;

  Status Launch(GpuKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args) override;
  Status Launch(GpuGraph& graph) override;
  Status Launch(GpuLibraryGemm& gemm, std::span<const GpuSpan> args) override;
  Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) override;
  Status CopyToHost(void* to, const std::byte* from, int64_t bytes) override;
  Status Fill(std::byte* to, uint8_t value, int64_t bytes) override;
  Status Record(GpuEvent& event) override;
  Status WaitFor(GpuEvent& event) override;
  Status Synchronise() override;

  StreamHandle handle() const { return handle_; }
  // Memory::NameStream's.
  uint64_t id() const { return id_; }

 private:
  CudaStream(std::shared_ptr<Context> context, std::shared_ptr<Memory> memory, StreamHandle handle,
             bool owned);

  std::shared_ptr<Context> context_;
  std::shared_ptr<Memory> memory_;
  StreamHandle handle_;
  bool owned_;
  uint64_t id_;
};

}  // namespace kiln::device::cuda
