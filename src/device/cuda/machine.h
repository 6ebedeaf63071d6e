// A GPU of the CUDA driver.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "device/cuda/blas.h"
#include "device/cuda/code_cache.h"
#include "device/cuda/conditions.h"
#include "device/cuda/context.h"
#include "device/cuda/memory.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

struct CudaOptions {
  std::string library = kDriverLibrary;
  int64_t memory_limit_bytes = 0;  // of each GPU; 0: all that it has
  DiskCache* cache = nullptr;      // where assembled code is kept; outlives the machine
  int architecture = 0;            // that PTX is made for where the GPU runs it; 0: the GPU's own
  // CUPTI, for the times of timelines. Empty: searched by the first timeline; "off": events only.
  std::string cupti_library;
  bool loops_on_device = true;  // where the driver has conditional nodes of graphs
  std::string gemm_library;     // cuBLASLt's file; empty: where the loader finds one
};

class CudaMachine final : public GpuMachine {
 public:
  // Reads the device's attributes, and creates nothing on it. FAILED_PRECONDITION for an
  // unsupported architecture.
  static Result<std::unique_ptr<CudaMachine>> Make(std::shared_ptr<const Driver> driver,
                                                   int ordinal, const CudaOptions& options);

  std::string driver() const override {
    return "CUDA " + VersionText(context_->driver().version());
  }
  int cuda_ordinal() const override { return context_->ordinal(); }

  Result<std::byte*> Allocate(int64_t bytes, GpuStream& stream) override;
  void Free(std::byte* memory, int64_t bytes, GpuStream& stream) noexcept override;
  Result<GpuMemory> Memory() override;
  // Memory of this device, or managed memory.
  Status Register(std::byte* memory, int64_t bytes) override;
  void Unregister(std::byte*, int64_t) noexcept override {}
  Result<std::byte*> AllocatePinned(int64_t bytes) override;
  void FreePinned(std::byte* memory, int64_t bytes) noexcept override;
  Result<std::unique_ptr<GpuStream>> MakeStream() override;
  Result<std::unique_ptr<GpuStream>> WrapStream(void* native) override;
  bool takes_streams() const override { return true; }
  Result<std::unique_ptr<GpuEvent>> MakeEvent() override;
  Result<std::unique_ptr<GpuEvent>> MakeTimedEvent() override;
  Result<double> ElapsedMicroseconds(GpuEvent& from, GpuEvent& to) override;
  // CUPTI's, if available.
  std::unique_ptr<GpuActivities> ListenToActivities() override;
  Result<std::unique_ptr<GpuGraph>> MakeGraph() override;
  bool loops_on_device() const override { return loops_on_device_; }
  Result<std::unique_ptr<GpuModule>> Load(const std::string& code,
                                          std::string_view image = {}) override;
  std::string architecture() const override { return code_cache_.architecture(); }
  Result<std::string> Assemble(const std::string& code) override {
    return code_cache_.Assembled(code);
  }
  Result<std::string> GemmLibrary() override;
  Result<std::unique_ptr<GpuLibraryGemm>> FindLibraryGemm(
      const program::LibraryGemm& gemm) override;

  CodeCache& code_cache() { return code_cache_; }

 private:
  CudaMachine(target::Target target, std::string description, std::shared_ptr<Context> context,
              int sm, bool has_pools, const CudaOptions& options);

  std::shared_ptr<Context> context_;
  std::shared_ptr<cuda::Memory> memory_;
  CodeCache code_cache_;
  const std::string cupti_library_;
  std::shared_ptr<Conditions> conditions_;
  bool loops_on_device_;
  const std::string gemm_library_;
  std::mutex blas_mutex_;
  std::shared_ptr<const BlasLibrary> blas_library_;
  Status no_blas_;  // why there is no library
  std::shared_ptr<Blas> blas_;
};

struct CudaDevices {
  std::vector<std::unique_ptr<CudaMachine>> machines;
  // The reasons for missing GPUs.
  std::vector<std::string> notes;
};

// Never fails. Creates no context: the first use of a machine does.
CudaDevices Discover(const CudaOptions& options = {});

}  // namespace kiln::device::cuda
