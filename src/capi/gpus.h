// Which GPUs a context has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/gpu/library_choices.h"
#include "device/gpu/machine.h"
#include "kiln/context.h"
#include "runtime/arena.h"
#include "runtime/thread_pool.h"

namespace kiln::capi {

struct Gpus {
  std::vector<std::shared_ptr<device::GpuMachine>> machines;
  // By what their products of matrices go; null for our kernels alone.
  std::shared_ptr<device::LibraryChoices> library_choices;
  // Why there are none, or not all that one might expect; a line each.
  std::string notes;
};

// By the options and the environment: KILN_EMULATE_GPU is 0, 1 or the architecture that is emulated
// (75, 80, 86, 89, 90), KILN_CUDA_LIBRARY the driver in the place of libcuda.so.1, KILN_GPU_LOOPS
// is host where loops are not to be the device's, KILN_GPU_LIBRARY says where the options do not
// when products go by cuBLASLt, and KILN_CUBLASLT_LIBRARY names its file. An emulated GPU uses the
// pool and the allocator, which must outlive it.
Result<Gpus> FindGpus(const kiln_context_options& options, std::string_view cache_folder,
                      runtime::ThreadPool& pool, runtime::Allocator& allocator);

}  // namespace kiln::capi
