// The devices of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/client.h"

namespace kiln::client {

// Which GPUs there are.
enum class GpuMode { kAuto, kEmulated, kOff };
// The use of a library for a GPU's gemms; kDefault: by the environment.
enum class GpuLibraryMode { kDefault, kAuto, kNever, kAlways };

struct GpuOptions {
  GpuMode mode = GpuMode::kAuto;
  GpuLibraryMode library = GpuLibraryMode::kDefault;
  // The limit on each device's memory; 0: none.
  int64_t memory_bytes = 0;
};

// The number of devices that the host is: as requested, or with 0 by the environment variable
// KILN_CPU_DEVICES, which without a value means 1. INVALID_ARGUMENT for more than kMostCpuDevices.
constexpr int kMostCpuDevices = 1024;
Result<int> CpuDevicesOf(int requested);

// CPU:n and XLA_CPU:n for each of the host's devices, REFERENCE:0, and GPU:n and XLA_GPU:n by the
// options and the environment. Of the host's threads, XLA_CPU:n has the share of CPU:n, REFERENCE:0
// and GPUs the share of CPU:0.
//
// KILN_EMULATE_GPU is 0, 1 or the emulated architecture (75, 80, 86, 89, 90). KILN_CUDA_LIBRARY
// replaces libcuda.so.1. KILN_GPU_LOOPS=host keeps loops on the host. KILN_GPU_LIBRARY decides on
// cuBLASLt if the options do not, and KILN_CUBLASLT_LIBRARY names its file.
Status AddDevices(Client& client, const GpuOptions& options);

}  // namespace kiln::client
