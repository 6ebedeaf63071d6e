#include "client/devices.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/strings.h"
#include "device/cpu/device.h"
#include "device/cuda/machine.h"
#include "device/emulated/machine.h"
#include "device/gpu/autotune_results.h"
#include "device/gpu/device.h"
#include "device/reference/device.h"

namespace kiln::client {
namespace {

constexpr int kDefaultArchitecture = 80;

// The emulated architecture; 0 for none.
Result<int> EmulatedArchitecture(GpuMode mode) {
  const char* text = std::getenv("KILN_EMULATE_GPU");
  std::string_view value = text ? text : "";
  if (mode == GpuMode::kOff) return 0;
  if (value.empty() || value == "0") return mode == GpuMode::kEmulated ? kDefaultArchitecture : 0;
  if (value == "1") return kDefaultArchitecture;
  int sm = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), sm);
  if (error != std::errc() || end != value.data() + value.size()) {
    return InvalidArgument("the environment variable KILN_EMULATE_GPU is '", value,
                           "'; expected 0, 1 or an architecture such as 80");
  }
  return sm;
}

// Whether the device may run loops.
Result<bool> LoopsOnDevice() {
  const char* text = std::getenv("KILN_GPU_LOOPS");
  std::string_view value = text ? text : "";
  if (value.empty() || value == "device") return true;
  if (value == "host") return false;
  return InvalidArgument("the environment variable KILN_GPU_LOOPS is '", value,
                         "'; expected host or device");
}

// The environment decides if the mode does not.
Result<device::GpuLibraryUse> LibraryUse(GpuLibraryMode mode) {
  if (mode == GpuLibraryMode::kAuto) return device::GpuLibraryUse::kAuto;
  if (mode == GpuLibraryMode::kNever) return device::GpuLibraryUse::kNever;
  if (mode == GpuLibraryMode::kAlways) return device::GpuLibraryUse::kAlways;
  const char* text = std::getenv("KILN_GPU_LIBRARY");
  std::string_view value = text ? text : "";
  if (value.empty() || value == "auto") return device::GpuLibraryUse::kAuto;
  if (value == "never") return device::GpuLibraryUse::kNever;
  if (value == "always") return device::GpuLibraryUse::kAlways;
  return InvalidArgument("the environment variable KILN_GPU_LIBRARY is '", value,
                         "'; expected auto, never or always");
}

struct Gpus {
  std::vector<std::shared_ptr<device::GpuMachine>> machines;
  // The library of their gemms; null for our kernels only.
  std::shared_ptr<device::AutotuneResults> autotune_results;
  std::string notes;
};

// An emulated GPU uses the allocator and the first pool of the client.
Result<Gpus> FindGpus(Client& client, const GpuOptions& options) {
  Gpus gpus;
  if (options.mode == GpuMode::kOff) return gpus;
  KILN_ASSIGN_OR_RETURN(int sm, EmulatedArchitecture(options.mode));
  KILN_ASSIGN_OR_RETURN(bool loops_on_device, LoopsOnDevice());
  KILN_ASSIGN_OR_RETURN(device::GpuLibraryUse library_use, LibraryUse(options.library));
  if (sm != 0) {
    KILN_ASSIGN_OR_RETURN(target::Target target, target::EmulatedGpu(sm));
    device::EmulatedMachine::Options emulated;
    emulated.loops_on_device = loops_on_device;
    KILN_ASSIGN_OR_RETURN(
        std::unique_ptr<device::GpuMachine> machine,
        device::EmulatedMachine::Create(target, client.pool(0), client.allocator(), emulated));
    gpus.machines.push_back(std::move(machine));
    return gpus;
  }
  device::cuda::CudaOptions cuda;
  if (const char* library = std::getenv("KILN_CUDA_LIBRARY"); library && *library) {
    cuda.library = library;
  }
  if (const char* library = std::getenv("KILN_CUPTI_LIBRARY")) cuda.cupti_library = library;
  if (const char* library = std::getenv("KILN_CUBLASLT_LIBRARY"); library && *library) {
    cuda.gemm_library = library;
  }
  cuda.cache = client.cache();
  cuda.loops_on_device = loops_on_device;
  device::cuda::CudaDevices found = device::cuda::Discover(cuda);
  for (auto& machine : found.machines) gpus.machines.push_back(std::move(machine));
  const std::string folder = client.cache() ? client.cache()->folder() : "";
  gpus.autotune_results = std::make_shared<device::AutotuneResults>(library_use, folder);
  gpus.notes = Join(found.notes, "\n");
  return gpus;
}

void AddHostDevices(Client& client) {
  runtime::Allocator& allocator = client.allocator();
  auto add = [&](std::unique_ptr<runtime::Device> device, bool shares_host_memory,
                 runtime::ThreadPool& pool, std::string share) {
    std::string description = Cat(device->target().ToString(), share);
    client.AddDevice(std::move(device), std::move(description), shares_host_memory, pool);
  };
  for (const bool is_xla : {false, true}) {
    for (int i = 0; i < client.cpu_devices(); ++i) {
      runtime::ThreadPool& pool = client.pool(i);
      std::string name = Cat(is_xla ? "XLA_CPU:" : "CPU:", i);
      add(std::make_unique<device::CpuDevice>(std::move(name), allocator, pool), !is_xla, pool,
          client.cpu_devices() == 1
              ? ""
              : Cat(", ", pool.threads(), " of ", client.threads(), " threads"));
    }
  }
  add(std::make_unique<device::ReferenceDevice>("REFERENCE:0", allocator), true, client.pool(0),
      "");
}

}  // namespace

Result<int> CpuDevicesOf(int requested) {
  auto check = [](std::string_view name, auto value, bool is_valid) {
    return is_valid ? OkStatus()
                    : InvalidArgument(name, " is ", value, "; expected 1 to ", kMostCpuDevices);
  };
  if (requested != 0) {
    KILN_RETURN_IF_ERROR(check("kiln_context_options.cpu_devices", requested,
                               requested > 0 && requested <= kMostCpuDevices));
    return requested;
  }
  const char* text = std::getenv("KILN_CPU_DEVICES");
  std::string_view value = text ? text : "";
  if (value.empty()) return 1;
  const int64_t number = ParseInt(value).value_or(0);
  KILN_RETURN_IF_ERROR(check("the environment variable KILN_CPU_DEVICES", Cat("'", value, "'"),
                             number > 0 && number <= kMostCpuDevices));
  return static_cast<int>(number);
}

Status AddDevices(Client& client, const GpuOptions& options) {
  AddHostDevices(client);

  KILN_ASSIGN_OR_RETURN(Gpus gpus, FindGpus(client, options));
  client.set_device_notes(std::move(gpus.notes));
  for (const char* kind : {"GPU:", "XLA_GPU:"}) {
    for (size_t i = 0; i < gpus.machines.size(); ++i) {
      const auto& machine = gpus.machines[i];
      auto device =
          std::make_unique<device::GpuDevice>(Cat(kind, i), machine, options.memory_bytes);
      device->set_on_note([&client](std::string_view text) { client.Log(LogLevel::kInfo, text); });
      device->set_autotune_results(gpus.autotune_results);
      client.AddDevice(std::move(device), machine->description(), false, client.pool(0));
    }
  }
  return OkStatus();
}

}  // namespace kiln::client
