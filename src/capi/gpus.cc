#include "capi/gpus.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/strings.h"
#include "device/cuda/machine.h"
#include "device/emulated/machine.h"

namespace kiln::capi {
namespace {

constexpr int kDefaultArchitecture = 80;

// The architecture that is to be emulated; 0 for none.
Result<int> EmulatedArchitecture(kiln_gpu_mode mode) {
  const char* text = std::getenv("KILN_EMULATE_GPU");
  std::string_view value = text ? text : "";
  if (mode == KILN_GPU_OFF) return 0;
  if (value.empty() || value == "0") return mode == KILN_GPU_EMULATED ? kDefaultArchitecture : 0;
  if (value == "1") return kDefaultArchitecture;
  int sm = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), sm);
  if (error != std::errc() || end != value.data() + value.size()) {
    return InvalidArgument("the environment variable KILN_EMULATE_GPU is '", value,
                           "'; expected 0, 1 or an architecture such as 80");
  }
  return sm;
}

// Whether loops may be the device's.
Result<bool> LoopsOnDevice() {
  const char* text = std::getenv("KILN_GPU_LOOPS");
  std::string_view value = text ? text : "";
  if (value.empty() || value == "device") return true;
  if (value == "host") return false;
  return InvalidArgument("the environment variable KILN_GPU_LOOPS is '", value,
                         "'; expected host or device");
}

// When products of matrices go by a library. The environment says so where the option does not.
Result<device::GpuLibraryUse> LibraryUse(kiln_gpu_library option) {
  if (option == KILN_GPU_LIBRARY_AUTO) return device::GpuLibraryUse::kAuto;
  if (option == KILN_GPU_LIBRARY_NEVER) return device::GpuLibraryUse::kNever;
  if (option == KILN_GPU_LIBRARY_ALWAYS) return device::GpuLibraryUse::kAlways;
  const char* text = std::getenv("KILN_GPU_LIBRARY");
  std::string_view value = text ? text : "";
  if (value.empty() || value == "auto") return device::GpuLibraryUse::kAuto;
  if (value == "never") return device::GpuLibraryUse::kNever;
  if (value == "always") return device::GpuLibraryUse::kAlways;
  return InvalidArgument("the environment variable KILN_GPU_LIBRARY is '", value,
                         "'; expected auto, never or always");
}

}  // namespace

Result<Gpus> FindGpus(const kiln_context_options& options, std::string_view cache_folder,
                      runtime::ThreadPool& pool, runtime::Allocator& allocator) {
  Gpus gpus;
  if (options.gpu == KILN_GPU_OFF) return gpus;
  KILN_ASSIGN_OR_RETURN(int sm, EmulatedArchitecture(options.gpu));
  KILN_ASSIGN_OR_RETURN(bool loops_on_device, LoopsOnDevice());
  KILN_ASSIGN_OR_RETURN(device::GpuLibraryUse library_use, LibraryUse(options.gpu_library));
  if (sm != 0) {
    KILN_ASSIGN_OR_RETURN(target::Target target, target::EmulatedGpu(sm));
    device::EmulatedMachine::Options emulated;
    emulated.loops_on_device = loops_on_device;
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<device::GpuMachine> machine,
                          device::EmulatedMachine::Create(target, pool, allocator, emulated));
    gpus.machines.push_back(std::move(machine));
    return gpus;
  }
  device::cuda::CudaOptions cuda;
  if (const char* library = std::getenv("KILN_CUDA_LIBRARY"); library && *library) {
    cuda.library = library;
  }
  if (const char* library = std::getenv("KILN_CUPTI_LIBRARY")) cuda.cupti_library = library;
  if (const char* library = std::getenv("KILN_CUBLASLT_LIBRARY"); library && *library) {
    cuda.product_library = library;
  }
  cuda.code_folder = cache_folder;
  cuda.loops_on_device = loops_on_device;
  device::cuda::CudaDevices found = device::cuda::Discover(cuda);
  for (auto& machine : found.machines) gpus.machines.push_back(std::move(machine));
  gpus.library_choices =
      std::make_shared<device::LibraryChoices>(library_use, std::string(cache_folder));
  gpus.notes = Join(found.notes, "\n");
  return gpus;
}

}  // namespace kiln::capi
