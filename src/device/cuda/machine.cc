#include "device/cuda/machine.h"

#include <algorithm>
#include <array>

#include "device/cuda/cupti.h"
#include "device/cuda/graph.h"
#include "device/cuda/stream.h"

namespace kiln::device::cuda {
namespace {

// The supported architectures. PTX for one of them runs on all later GPUs, too.
constexpr std::array<int, 5> kArchitectures = {75, 80, 86, 89, 90};

Status Ask(const Driver& driver, DeviceHandle device, DeviceAttribute attribute, int* value) {
  const auto& function = driver.api().DeviceGetAttribute;
  if (Error error = function.call(value, attribute, device); error != Error::kSuccess) {
    return driver.Failed(error, function.name);
  }
  return OkStatus();
}

std::string GibText(size_t bytes) {
  // One decimal.
  const size_t tenths = (bytes * 10 + (size_t{1} << 29)) >> 30;
  return Cat(tenths / 10, ".", tenths % 10, " GiB");
}

}  // namespace

CudaMachine::CudaMachine(target::Target target, std::string description,
                         std::shared_ptr<Context> context, int sm, bool has_pools,
                         const CudaOptions& options)
    : GpuMachine(std::move(target), std::move(description)),
      context_(std::move(context)),
      memory_(std::make_shared<cuda::Memory>(context_, has_pools, options.memory_limit_bytes)),
      code_cache_(context_, sm, options.cache),
      cupti_library_(options.cupti_library),
      conditions_(std::make_shared<Conditions>(context_)),
      loops_on_device_(options.loops_on_device && conditions_->are_there()),
      gemm_library_(options.gemm_library) {}

Result<std::unique_ptr<CudaMachine>> CudaMachine::Make(std::shared_ptr<const Driver> driver,
                                                       int ordinal, const CudaOptions& options) {
  const Functions& api = driver->api();
  auto check = [&](Error error, const char* function) {
    return error == Error::kSuccess ? OkStatus() : driver->Failed(error, function);
  };
  DeviceHandle device = 0;
  KILN_RETURN_IF_ERROR(check(api.DeviceGet.call(&device, ordinal), api.DeviceGet.name));
  char name[256] = "";
  KILN_RETURN_IF_ERROR(
      check(api.DeviceGetName.call(name, sizeof(name) - 1, device), api.DeviceGetName.name));
  size_t memory_bytes = 0;
  KILN_RETURN_IF_ERROR(
      check(api.DeviceTotalMem.call(&memory_bytes, device), api.DeviceTotalMem.name));
  auto ask = [&](DeviceAttribute attribute) -> Result<int> {
    int value = 0;
    KILN_RETURN_IF_ERROR(Ask(*driver, device, attribute, &value));
    return value;
  };
  KILN_ASSIGN_OR_RETURN(const int major, ask(DeviceAttribute::kComputeCapabilityMajor));
  KILN_ASSIGN_OR_RETURN(const int minor, ask(DeviceAttribute::kComputeCapabilityMinor));
  KILN_ASSIGN_OR_RETURN(const int warp_size, ask(DeviceAttribute::kWarpSize));
  KILN_ASSIGN_OR_RETURN(const int multiprocessors, ask(DeviceAttribute::kMultiprocessorCount));
  KILN_ASSIGN_OR_RETURN(const int threads, ask(DeviceAttribute::kMaxThreadsPerBlock));
  KILN_ASSIGN_OR_RETURN(const int shared, ask(DeviceAttribute::kMaxSharedMemoryPerBlockOptin));
  KILN_ASSIGN_OR_RETURN(const int has_pools, ask(DeviceAttribute::kMemoryPoolsSupported));

  const int sm = 10 * major + minor;
  if (sm < kArchitectures.front()) {
    return FailedPrecondition(name, " is sm_", sm, ", and the least that is supported is sm_",
                              kArchitectures.front());
  }
  if (warp_size != 32) {
    return FailedPrecondition(name, " has warps of ", warp_size, " threads");
  }
  const int newest = options.architecture > 0 ? std::min(options.architecture, sm) : sm;
  if (newest < kArchitectures.front()) {
    return InvalidArgument("code for sm_", newest, " cannot be made");
  }
  const int architecture =
      *std::prev(std::upper_bound(kArchitectures.begin(), kArchitectures.end(), newest));
  KILN_ASSIGN_OR_RETURN(target::Target target, target::NvidiaGpu(architecture));
  target.gpu.warp_size = warp_size;
  target.gpu.multiprocessors = multiprocessors;
  target.gpu.max_threads_per_block = threads;
  target.gpu.shared_bytes_per_block = shared;
  std::string description = Cat(name, " (sm_", sm, ", ", multiprocessors, " multiprocessors, ",
                                GibText(memory_bytes), ")");
  return std::unique_ptr<CudaMachine>(new CudaMachine(
      std::move(target), std::move(description), std::make_shared<Context>(driver, ordinal, device),
      sm, has_pools != 0, options));
}

Result<std::byte*> CudaMachine::Allocate(int64_t bytes, GpuStream& stream) {
  return memory_->Allocate(bytes, static_cast<CudaStream&>(stream));
}

void CudaMachine::Free(std::byte* memory, int64_t bytes, GpuStream& stream) noexcept {
  memory_->Free(memory, bytes, static_cast<CudaStream&>(stream));
}

Result<GpuMemory> CudaMachine::Memory() { return memory_->Info(); }

Status CudaMachine::Register(std::byte* memory, int64_t bytes) {
  // For unknown attributes the driver returns 0.
  unsigned type = 0, is_managed = 0;
  int ordinal = -1;
  std::array attributes = {PointerAttribute::kMemoryType, PointerAttribute::kIsManaged,
                           PointerAttribute::kDeviceOrdinal};
  std::array<void*, 3> values = {&type, &is_managed, &ordinal};
  auto ask = [&](const std::byte* address) {
    return context_->Call(context_->api().PointerGetAttributes, unsigned{attributes.size()},
                          attributes.data(), values.data(),
                          reinterpret_cast<DevicePointer>(address));
  };
  // The first byte and the last.
  for (const std::byte* address : {memory, memory + std::max<int64_t>(bytes, 1) - 1}) {
    KILN_RETURN_IF_ERROR(ask(address));
    if (is_managed != 0) continue;
    if (static_cast<MemoryType>(type) != MemoryType::kDevice) {
      return InvalidArgument("memory that is given to GPU ", context_->ordinal(), " is ",
                             static_cast<MemoryType>(type) == MemoryType::kHost
                                 ? "the host's"
                                 : "unknown to the CUDA driver");
    }
    if (ordinal != context_->device()) {
      return InvalidArgument("memory that is given to GPU ", context_->ordinal(),
                             " belongs to CUDA device ", ordinal);
    }
  }
  return OkStatus();
}

Result<std::byte*> CudaMachine::AllocatePinned(int64_t bytes) {
  void* memory = nullptr;
  const Status status = context_->Call(context_->api().MemAllocHost, &memory,
                                       static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (!status.ok()) return status.WithContext(Cat(bytes, " bytes of pinned host memory"));
  return static_cast<std::byte*>(memory);
}

void CudaMachine::FreePinned(std::byte* memory, int64_t bytes) noexcept {
  if (memory != nullptr) {
    context_->GiveBack(context_->api().MemFreeHost, static_cast<void*>(memory));
  }
}

Result<std::unique_ptr<GpuStream>> CudaMachine::MakeStream() {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuStream> stream, CudaStream::Make(context_, memory_));
  return stream;
}

Result<std::unique_ptr<GpuStream>> CudaMachine::WrapStream(void* native) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuStream> stream,
                        CudaStream::Wrap(context_, memory_, static_cast<StreamHandle>(native)));
  return stream;
}

Result<std::unique_ptr<GpuEvent>> CudaMachine::MakeEvent() {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuEvent> event, CudaEvent::Make(context_, false));
  return event;
}

Result<std::unique_ptr<GpuEvent>> CudaMachine::MakeTimedEvent() {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuEvent> event, CudaEvent::Make(context_, true));
  return event;
}

Result<double> CudaMachine::ElapsedMicroseconds(GpuEvent& from, GpuEvent& to) {
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(context_->Call(context_->api().EventElapsedTime, &milliseconds,
                                      static_cast<CudaEvent&>(from).handle(),
                                      static_cast<CudaEvent&>(to).handle()));
  return 1000.0 * milliseconds;
}

std::unique_ptr<GpuActivities> CudaMachine::ListenToActivities() {
  return Listen(context_, cupti_library_);
}

Result<std::unique_ptr<GpuGraph>> CudaMachine::MakeGraph() {
  return std::unique_ptr<GpuGraph>(std::make_unique<CudaGraph>(context_, conditions_));
}

Result<std::unique_ptr<GpuModule>> CudaMachine::Load(const std::string& code,
                                                     std::string_view image) {
  KILN_ASSIGN_OR_RETURN(auto loaded, code_cache_.Load(code, image));
  return std::unique_ptr<GpuModule>(std::make_unique<CudaModule>(std::move(loaded)));
}

Result<std::string> CudaMachine::GemmLibrary() {
  std::lock_guard lock(blas_mutex_);
  if (!blas_library_ && no_blas_.ok()) {
    auto library = BlasLibrary::Load(gemm_library_, context_->driver().version());
    if (library.ok()) {
      blas_library_ = *std::move(library);
    } else {
      no_blas_ = library.status();
    }
  }
  if (!no_blas_.ok()) return no_blas_;
  return blas_library_->name();
}

Result<std::unique_ptr<GpuLibraryGemm>> CudaMachine::FindLibraryGemm(
    const program::LibraryGemm& gemm) {
  KILN_RETURN_IF_ERROR(GemmLibrary().status());
  std::shared_ptr<Blas> blas;
  {
    std::lock_guard lock(blas_mutex_);
    if (!blas_) {
      KILN_ASSIGN_OR_RETURN(blas_, Blas::Make(context_, blas_library_));
    }
    blas = blas_;
  }
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuLibraryGemm> found,
                        BlasGemm::Make(std::move(blas), gemm));
  return found;
}

CudaDevices Discover(const CudaOptions& options) {
  CudaDevices devices;
  auto note = [&](const Status& status) {
    devices.notes.emplace_back(status.message());
    return std::move(devices);
  };
  auto driver = LoadDriver(options.library);
  if (!driver.ok()) return note(driver.status());
  const auto& get_count = (*driver)->api().DeviceGetCount;
  int count = 0;
  if (Error error = get_count.call(&count); error != Error::kSuccess) {
    return note((*driver)->Failed(error, get_count.name));
  }
  if (count == 0) return note(NotFound("the CUDA driver knows of no GPU"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto machine = CudaMachine::Make(*driver, ordinal, options);
    if (machine.ok()) {
      devices.machines.push_back(*std::move(machine));
    } else {
      devices.notes.push_back(
          Cat("CUDA device ", ordinal, " is not used: ", machine.status().message()));
    }
  }
  return devices;
}

}  // namespace kiln::device::cuda
