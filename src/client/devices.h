// The devices of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/client.h"

namespace kiln::client {

// Which GPUs there are.
enum class GpuMode { kAuto, kEmulated, kOff };
// When a GPU's products of matrices go by a library; kDefault: as the environment says.
enum class GpuLibraryMode { kDefault, kAuto, kNever, kAlways };

struct GpuOptions {
  GpuMode mode = GpuMode::kAuto;
  GpuLibraryMode library = GpuLibraryMode::kDefault;
  // The most that is given out of each device's memory; 0: all that it has.
  int64_t memory_bytes = 0;
  // Where assembled code and measurements are kept for other processes; empty: nowhere.
  std::string cache_folder;
};

// CPU:0, XLA_CPU:0 and REFERENCE:0, and GPU:n and XLA_GPU:n by the options and the environment:
// KILN_EMULATE_GPU is 0, 1 or the architecture that is emulated (75, 80, 86, 89, 90),
// KILN_CUDA_LIBRARY the driver in the place of libcuda.so.1, KILN_GPU_LOOPS is host where loops are
// not to be the device's, KILN_GPU_LIBRARY says where the options do not when products go by
// cuBLASLt, and KILN_CUBLASLT_LIBRARY names its file.
Status AddDevices(Client& client, const GpuOptions& options);

}  // namespace kiln::client
