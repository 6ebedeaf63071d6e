// Code on a GPU.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/context.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

class CudaKernel final : public GpuKernel {
 public:
  CudaKernel(Context& context, FunctionHandle handle, std::string symbol, GpuResources resources)
      : context_(context), handle_(handle), symbol_(std::move(symbol)), resources_(resources) {}

  const std::string& symbol() const override { return symbol_; }
  GpuResources resources() const override { return resources_; }
  FunctionHandle handle() const { return handle_; }
  // Before a launch with this much dynamic shared memory: more than 48 KiB per block needs an
  // attribute of the kernel.
  Status AllowShared(int64_t bytes);

 private:
  static constexpr int64_t kAllowedAtFirst = 48 << 10;

  Context& context_;
  FunctionHandle handle_;
  std::string symbol_;
  GpuResources resources_;
  std::mutex mutex_;
  int64_t allowed_bytes_ = kAllowedAtFirst;
};

// A launch in the driver's form. Has pointers into its spans.
class LaunchParameters {
 public:
  // INVALID_ARGUMENT for a grid beyond the limits of all GPUs.
  static Result<LaunchParameters> Make(CudaKernel& kernel, const GpuGrid& grid,
                                       std::span<const GpuSpan> args);
  unsigned blocks() const { return blocks_; }
  unsigned threads() const { return threads_; }
  unsigned shared_bytes() const { return shared_bytes_; }
  void** pointers() { return more_.empty() ? few_.data() : more_.data(); }

 private:
  unsigned blocks_ = 0, threads_ = 0, shared_bytes_ = 0;
  std::array<void*, 24> few_ = {};
  std::vector<void*> more_;
};

// A module of the driver and its kernels.
class LoadedCode {
 public:
  // `image` is PTX or a cubin. Errors include the messages of the driver's assembler.
  static Result<std::shared_ptr<LoadedCode>> Load(std::shared_ptr<Context> context,
                                                  const std::string& image);
  LoadedCode(std::shared_ptr<Context> context, ModuleHandle handle, int64_t bytes)
      : context_(std::move(context)), handle_(handle), bytes_(bytes) {}
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  ~LoadedCode();

  Result<GpuKernel*> Find(const std::string& symbol);
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Context> context_;
  ModuleHandle handle_;
  int64_t bytes_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<CudaKernel>, std::less<>> kernels_;
};

// PTX to a cubin for the context's device, by the driver's assembler.
Result<std::string> Assemble(Context& context, const std::string& ptx);

class CudaModule final : public GpuModule {
 public:
  explicit CudaModule(std::shared_ptr<LoadedCode> code) : code_(std::move(code)) {}
  Result<GpuKernel*> Find(const std::string& symbol) override { return code_->Find(symbol); }
  // The size of the PTX if the driver assembled it itself, because it does not report the code's
  // size.
  int64_t code_bytes() const override { return code_->bytes(); }

 private:
  std::shared_ptr<LoadedCode> code_;
};

}  // namespace kiln::device::cuda
