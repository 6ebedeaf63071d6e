// The stand-in's driver, devices and contexts.
#include <cstdio>
#include <cstring>

#include "state.h"

namespace kiln::device::cuda {
namespace {

struct Name {
  Error error;
  const char* name;
  const char* text;
};

constexpr Name kNames[] = {
    {Error::kSuccess, "CUDA_SUCCESS", "no error"},
    {Error::kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {Error::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {Error::kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {Error::kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {Error::kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {Error::kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {Error::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {Error::kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {Error::kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {Error::kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {Error::kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {Error::kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {Error::kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {Error::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {Error::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {Error::kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {Error::kSystemDriverMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {Error::kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Name* Find(Error error) {
  for (const Name& name : kNames) {
    if (name.error == error) return &name;
  }
  return nullptr;
}

bool IsDevice(const State& state, DeviceHandle device) {
  return device >= 0 && device < state.settings.devices;
}

}  // namespace

// Of each of these there is one in the driver, too, that works before cuInit.
KILN_STANDIN_EXPORT Error cuDriverGetVersion(int* version) {
  KILN_STANDIN_CALL(cuDriverGetVersion, kNothing);
  *version = static_cast<int>(call.state.settings.driver_version);
  return Error::kSuccess;
}

Error cuGetErrorName(Error error, const char** text) {
  const Name* name = Find(error);
  *text = name != nullptr ? name->name : nullptr;
  return name != nullptr ? Error::kSuccess : Error::kInvalidValue;
}

Error cuGetErrorString(Error error, const char** text) {
  const Name* name = Find(error);
  *text = name != nullptr ? name->text : nullptr;
  return name != nullptr ? Error::kSuccess : Error::kInvalidValue;
}

Error cuInit(unsigned flags) {
  KILN_STANDIN_CALL(cuInit, kNothing);
  if (flags != 0) return Error::kInvalidValue;
  const auto error = static_cast<Error>(call.state.settings.init_error);
  if (error == Error::kSuccess) call.state.initialised = true;
  return error;
}

Error cuDeviceGetCount(int* count) {
  KILN_STANDIN_CALL(cuDeviceGetCount, kDriver);
  *count = static_cast<int>(call.state.settings.devices);
  return Error::kSuccess;
}

Error cuDeviceGet(DeviceHandle* device, int ordinal) {
  KILN_STANDIN_CALL(cuDeviceGet, kDriver);
  if (!IsDevice(call.state, ordinal)) return Error::kInvalidDevice;
  *device = ordinal;
  return Error::kSuccess;
}

Error cuDeviceGetName(char* name, int bytes, DeviceHandle device) {
  KILN_STANDIN_CALL(cuDeviceGetName, kDriver);
  if (!IsDevice(call.state, device)) return Error::kInvalidDevice;
  std::snprintf(name, static_cast<size_t>(bytes), "Stand-in %d", device);
  return Error::kSuccess;
}

Error cuDeviceTotalMem_v2(size_t* bytes, DeviceHandle device) {
  KILN_STANDIN_CALL(cuDeviceTotalMem_v2, kDriver);
  if (!IsDevice(call.state, device)) return Error::kInvalidDevice;
  *bytes = static_cast<size_t>(call.state.settings.memory_bytes);
  return Error::kSuccess;
}

Error cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceHandle device) {
  KILN_STANDIN_CALL(cuDeviceGetAttribute, kDriver);
  if (!IsDevice(call.state, device)) return Error::kInvalidDevice;
  const Settings& settings = call.state.settings;
  switch (attribute) {
    case DeviceAttribute::kMaxThreadsPerBlock:
      *value = 1024;
      return Error::kSuccess;
    case DeviceAttribute::kWarpSize:
      *value = 32;
      return Error::kSuccess;
    case DeviceAttribute::kMultiprocessorCount:
      *value = static_cast<int>(settings.multiprocessors);
      return Error::kSuccess;
    case DeviceAttribute::kComputeCapabilityMajor:
      *value = static_cast<int>(settings.sm / 10);
      return Error::kSuccess;
    case DeviceAttribute::kComputeCapabilityMinor:
      *value = static_cast<int>(settings.sm % 10);
      return Error::kSuccess;
    case DeviceAttribute::kMaxSharedMemoryPerBlockOptin:
      *value = 99 << 10;
      return Error::kSuccess;
    case DeviceAttribute::kMemoryPoolsSupported:
      *value = static_cast<int>(settings.pools);
      return Error::kSuccess;
  }
  return Error::kInvalidValue;
}

Error cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceHandle device) {
  KILN_STANDIN_CALL(cuDevicePrimaryCtxRetain, kDriver);
  if (!IsDevice(call.state, device)) return Error::kInvalidDevice;
  *context = call.state.MakePrimary(device);
  return Error::kSuccess;
}

Error cuDevicePrimaryCtxRelease_v2(DeviceHandle device) {
  KILN_STANDIN_CALL(cuDevicePrimaryCtxRelease_v2, kDriver);
  auto primary = call.state.primaries.find(device);
  if (primary == call.state.primaries.end()) {
    ++call.state.misuses;
    return Error::kInvalidContext;
  }
  if (--primary->second->retained == 0) {
    ContextObject* context = primary->second;
    call.state.primaries.erase(primary);
    call.state.EndContext(context);
  }
  return Error::kSuccess;
}

Error cuCtxPushCurrent_v2(ContextHandle context) {
  KILN_STANDIN_CALL(cuCtxPushCurrent_v2, kDriver);
  if (call.state.Check(context) == nullptr) return Error::kInvalidContext;
  ContextStack().push_back(context);
  ++call.state.depth;
  return Error::kSuccess;
}

Error cuCtxPopCurrent_v2(ContextHandle* context) {
  KILN_STANDIN_CALL(cuCtxPopCurrent_v2, kAnyContext);
  if (context != nullptr) *context = ContextStack().back();
  ContextStack().pop_back();
  --call.state.depth;
  return Error::kSuccess;
}

Error cuCtxGetDevice(DeviceHandle* device) {
  KILN_STANDIN_CALL(cuCtxGetDevice, kAnyContext);
  *device = call.context->device;
  return Error::kSuccess;
}

Error cuCtxSynchronize() {
  KILN_STANDIN_CALL(cuCtxSynchronize, kContext);
  call.state.RunAll();
  return call.context->lost;
}

}  // namespace kiln::device::cuda
