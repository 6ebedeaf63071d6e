// The devices of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/client.h"

namespace kiln::client {

// Which GPUs there are.
enum class GpuMode { kAuto, kEmulated, kOff };
// The use of a library for a GPU's matrix products; kDefault: by the environment.
enum class GpuLibraryMode { kDefault, kAuto, kNever, kAlways };

struct GpuOptions {
  GpuMode mode = GpuMode::kAuto;
  GpuLibraryMode library = GpuLibraryMode::kDefault;
  // The limit on each device's memory; 0: none.
  int64_t memory_bytes = 0;
  // The folder of assembled code and autotuning results, shared with other processes; empty: none.
  std::string cache_folder;
};

// CPU:0, XLA_CPU:0 and REFERENCE:0, and GPU:n and XLA_GPU:n by the options and the environment.
// KILN_EMULATE_GPU is 0, 1 or the emulated architecture (75, 80, 86, 89, 90). KILN_CUDA_LIBRARY
// replaces libcuda.so.1. KILN_GPU_LOOPS=host keeps loops on the host. KILN_GPU_LIBRARY decides on
// cuBLASLt if the options do not, and KILN_CUBLASLT_LIBRARY names its file.
Status AddDevices(Client& client, const GpuOptions& options);

}  // namespace kiln::client
