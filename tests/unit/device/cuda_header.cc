// Our declarations of the CUDA driver API against cuda.h, where the build found one. The
// compiler checks all of it.

#ifdef KILN_TEST_HAS_CUDA_H

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "device/cuda/api.h"

namespace kiln::device::cuda {
namespace {

// Numbers: ours are the header's.
#define KILN_SAME(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
KILN_SAME(Error::kSuccess, CUDA_SUCCESS);
KILN_SAME(Error::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
KILN_SAME(Error::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
KILN_SAME(Error::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
KILN_SAME(Error::kDeinitialized, CUDA_ERROR_DEINITIALIZED);
KILN_SAME(Error::kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
KILN_SAME(Error::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
KILN_SAME(Error::kNoDevice, CUDA_ERROR_NO_DEVICE);
KILN_SAME(Error::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
KILN_SAME(Error::kDeviceNotLicensed, CUDA_ERROR_DEVICE_NOT_LICENSED);
KILN_SAME(Error::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
KILN_SAME(Error::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
KILN_SAME(Error::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
KILN_SAME(Error::kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
KILN_SAME(Error::kInvalidPtx, CUDA_ERROR_INVALID_PTX);
KILN_SAME(Error::kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
KILN_SAME(Error::kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
KILN_SAME(Error::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
KILN_SAME(Error::kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED);
KILN_SAME(Error::kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
KILN_SAME(Error::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
KILN_SAME(Error::kNotFound, CUDA_ERROR_NOT_FOUND);
KILN_SAME(Error::kNotReady, CUDA_ERROR_NOT_READY);
KILN_SAME(Error::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
KILN_SAME(Error::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
KILN_SAME(Error::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
KILN_SAME(Error::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
KILN_SAME(Error::kAssert, CUDA_ERROR_ASSERT);
KILN_SAME(Error::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
KILN_SAME(Error::kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
KILN_SAME(Error::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
KILN_SAME(Error::kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
KILN_SAME(Error::kInvalidPc, CUDA_ERROR_INVALID_PC);
KILN_SAME(Error::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
KILN_SAME(Error::kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
KILN_SAME(Error::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
KILN_SAME(Error::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
KILN_SAME(Error::kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
KILN_SAME(Error::kCompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
KILN_SAME(Error::kMpsConnectionFailed, CUDA_ERROR_MPS_CONNECTION_FAILED);
KILN_SAME(Error::kMpsServerNotReady, CUDA_ERROR_MPS_SERVER_NOT_READY);
KILN_SAME(Error::kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
KILN_SAME(Error::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
KILN_SAME(Error::kGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
KILN_SAME(Error::kExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE);
KILN_SAME(Error::kUnknown, CUDA_ERROR_UNKNOWN);
#if CUDA_VERSION >= 12080
KILN_SAME(Error::kCallRequiresNewerDriver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
KILN_SAME(Error::kContained, CUDA_ERROR_CONTAINED);
KILN_SAME(Error::kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif
KILN_SAME(DeviceAttribute::kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
KILN_SAME(DeviceAttribute::kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
KILN_SAME(DeviceAttribute::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
KILN_SAME(DeviceAttribute::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
KILN_SAME(DeviceAttribute::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
KILN_SAME(DeviceAttribute::kMaxSharedMemoryPerBlockOptin,
          CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
KILN_SAME(DeviceAttribute::kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
KILN_SAME(FunctionAttribute::kMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
KILN_SAME(FunctionAttribute::kSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
KILN_SAME(FunctionAttribute::kLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
KILN_SAME(FunctionAttribute::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
KILN_SAME(FunctionAttribute::kMaxDynamicSharedBytes,
          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
KILN_SAME(JitOption::kInfoLogBuffer, CU_JIT_INFO_LOG_BUFFER);
KILN_SAME(JitOption::kInfoLogBufferBytes, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
KILN_SAME(JitOption::kErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
KILN_SAME(JitOption::kErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
KILN_SAME(JitInput::kPtx, CU_JIT_INPUT_PTX);
KILN_SAME(PoolAttribute::kReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
KILN_SAME(PoolAttribute::kReservedBytes, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
KILN_SAME(PoolAttribute::kUsedBytes, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
KILN_SAME(MemoryType::kHost, CU_MEMORYTYPE_HOST);
KILN_SAME(MemoryType::kDevice, CU_MEMORYTYPE_DEVICE);
KILN_SAME(PointerAttribute::kMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
KILN_SAME(PointerAttribute::kIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
KILN_SAME(PointerAttribute::kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
KILN_SAME(kAllocationTypePinned, CU_MEM_ALLOCATION_TYPE_PINNED);
KILN_SAME(kLocationTypeDevice, CU_MEM_LOCATION_TYPE_DEVICE);
KILN_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
KILN_SAME(kEventDefault, CU_EVENT_DEFAULT);
KILN_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);

#if CUDA_VERSION >= 12030
KILN_SAME(kNodeTypeConditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
KILN_SAME(ConditionalType::kIf, CU_GRAPH_COND_TYPE_IF);
KILN_SAME(ConditionalType::kWhile, CU_GRAPH_COND_TYPE_WHILE);
#endif
#if CUDA_VERSION >= 12080
KILN_SAME(ConditionalType::kSwitch, CU_GRAPH_COND_TYPE_SWITCH);
#endif

// Structures: each member lies where the header's does, and is as large.
#define KILN_MEMBER(Ours, member, Theirs, their_member)                    \
  static_assert(offsetof(Ours, member) == offsetof(Theirs, their_member)); \
  static_assert(sizeof(Ours::member) == sizeof(Theirs::their_member))
static_assert(sizeof(PoolProperties) == sizeof(CUmemPoolProps));
KILN_MEMBER(PoolProperties, allocation_type, CUmemPoolProps, allocType);
KILN_MEMBER(PoolProperties, handle_types, CUmemPoolProps, handleTypes);
KILN_MEMBER(PoolProperties, location_type, CUmemPoolProps, location.type);
KILN_MEMBER(PoolProperties, location_id, CUmemPoolProps, location.id);
KILN_MEMBER(PoolProperties, win32_security, CUmemPoolProps, win32SecurityAttributes);
// Both were reserved, and zero, in CUDA 12.0.
#if CUDA_VERSION >= 12050
KILN_MEMBER(PoolProperties, max_bytes, CUmemPoolProps, maxSize);
KILN_MEMBER(PoolProperties, usage, CUmemPoolProps, usage);
#endif
using TheirKernelNode = CUDA_KERNEL_NODE_PARAMS_v2;
static_assert(sizeof(KernelNode) == sizeof(TheirKernelNode));
KILN_MEMBER(KernelNode, function, TheirKernelNode, func);
KILN_MEMBER(KernelNode, grid_x, TheirKernelNode, gridDimX);
KILN_MEMBER(KernelNode, grid_y, TheirKernelNode, gridDimY);
KILN_MEMBER(KernelNode, grid_z, TheirKernelNode, gridDimZ);
KILN_MEMBER(KernelNode, block_x, TheirKernelNode, blockDimX);
KILN_MEMBER(KernelNode, block_y, TheirKernelNode, blockDimY);
KILN_MEMBER(KernelNode, block_z, TheirKernelNode, blockDimZ);
KILN_MEMBER(KernelNode, shared_bytes, TheirKernelNode, sharedMemBytes);
KILN_MEMBER(KernelNode, parameters, TheirKernelNode, kernelParams);
KILN_MEMBER(KernelNode, extra, TheirKernelNode, extra);
KILN_MEMBER(KernelNode, kernel, TheirKernelNode, kern);
KILN_MEMBER(KernelNode, context, TheirKernelNode, ctx);
static_assert(sizeof(CopyNode) == sizeof(CUDA_MEMCPY3D));
KILN_MEMBER(CopyNode, from_x, CUDA_MEMCPY3D, srcXInBytes);
KILN_MEMBER(CopyNode, from_lod, CUDA_MEMCPY3D, srcLOD);
KILN_MEMBER(CopyNode, from_type, CUDA_MEMCPY3D, srcMemoryType);
KILN_MEMBER(CopyNode, from_host, CUDA_MEMCPY3D, srcHost);
KILN_MEMBER(CopyNode, from_device, CUDA_MEMCPY3D, srcDevice);
KILN_MEMBER(CopyNode, from_array, CUDA_MEMCPY3D, srcArray);
KILN_MEMBER(CopyNode, reserved0, CUDA_MEMCPY3D, reserved0);
KILN_MEMBER(CopyNode, from_pitch, CUDA_MEMCPY3D, srcPitch);
KILN_MEMBER(CopyNode, from_height, CUDA_MEMCPY3D, srcHeight);
KILN_MEMBER(CopyNode, to_x, CUDA_MEMCPY3D, dstXInBytes);
KILN_MEMBER(CopyNode, to_lod, CUDA_MEMCPY3D, dstLOD);
KILN_MEMBER(CopyNode, to_type, CUDA_MEMCPY3D, dstMemoryType);
KILN_MEMBER(CopyNode, to_host, CUDA_MEMCPY3D, dstHost);
KILN_MEMBER(CopyNode, to_device, CUDA_MEMCPY3D, dstDevice);
KILN_MEMBER(CopyNode, to_array, CUDA_MEMCPY3D, dstArray);
KILN_MEMBER(CopyNode, reserved1, CUDA_MEMCPY3D, reserved1);
KILN_MEMBER(CopyNode, to_pitch, CUDA_MEMCPY3D, dstPitch);
KILN_MEMBER(CopyNode, to_height, CUDA_MEMCPY3D, dstHeight);
KILN_MEMBER(CopyNode, bytes, CUDA_MEMCPY3D, WidthInBytes);
KILN_MEMBER(CopyNode, height, CUDA_MEMCPY3D, Height);
KILN_MEMBER(CopyNode, depth, CUDA_MEMCPY3D, Depth);

#if CUDA_VERSION >= 12030
static_assert(sizeof(ConditionalNode) == sizeof(CUgraphNodeParams));
KILN_MEMBER(ConditionalNode, node_type, CUgraphNodeParams, type);
KILN_MEMBER(ConditionalNode, reserved0, CUgraphNodeParams, reserved0);
KILN_MEMBER(ConditionalNode, handle, CUgraphNodeParams, conditional.handle);
KILN_MEMBER(ConditionalNode, type, CUgraphNodeParams, conditional.type);
KILN_MEMBER(ConditionalNode, bodies, CUgraphNodeParams, conditional.size);
KILN_MEMBER(ConditionalNode, body, CUgraphNodeParams, conditional.phGraph_out);
KILN_MEMBER(ConditionalNode, context, CUgraphNodeParams, conditional.ctx);
KILN_MEMBER(ConditionalNode, reserved2, CUgraphNodeParams, reserved2);
#endif

// Functions: as many parameters, and each goes where the header's goes: pointers, and numbers and
// enumerations of one size. What pointers point to has the same constness and, but for structures,
// the same size.
template <typename Ours, typename Theirs>
constexpr bool SameParameter() {
  if constexpr (std::is_pointer_v<Ours> != std::is_pointer_v<Theirs>) {
    return false;
  } else if constexpr (!std::is_pointer_v<Ours>) {
    return sizeof(Ours) == sizeof(Theirs);
  } else {
    using OursTo = std::remove_pointer_t<Ours>;
    using TheirsTo = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_const_v<OursTo> != std::is_const_v<TheirsTo>) {
      return false;
    } else if constexpr (std::is_scalar_v<OursTo>) {
      return std::is_scalar_v<TheirsTo> && sizeof(OursTo) == sizeof(TheirsTo);
    } else {
      return std::is_class_v<OursTo> == std::is_class_v<TheirsTo>;
    }
  }
}

template <typename Theirs, typename... Ours>
struct SameFunction : std::false_type {};
template <typename... Theirs, typename... Ours>
requires(sizeof...(Theirs) == sizeof...(Ours)) struct SameFunction<CUresult(Theirs...), Ours...>
    : std::bool_constant<(SameParameter<Ours, Theirs>() && ...)> {
};

static_assert(sizeof(Error) == sizeof(CUresult));
#define KILN_CUDA_SAME(member, symbol, ...) \
  static_assert(SameFunction<decltype(::symbol) __VA_OPT__(, ) __VA_ARGS__>::value, #symbol);
KILN_CUDA_FUNCTIONS(KILN_CUDA_SAME)
// cuGraphAddNode_v2 is the header's cuGraphAddNode from here on.
#if CUDA_VERSION >= 13000
KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_CUDA_SAME)
#endif
#undef KILN_CUDA_SAME
static_assert(SameFunction<decltype(::cuDriverGetVersion), int*>::value);
// The check tells functions apart.
static_assert(!SameFunction<decltype(::cuDriverGetVersion), int>::value);
static_assert(!SameFunction<decltype(::cuDriverGetVersion), const int*>::value);
static_assert(!SameFunction<decltype(::cuDriverGetVersion), int*, int>::value);

}  // namespace
}  // namespace kiln::device::cuda

#endif  // KILN_TEST_HAS_CUDA_H
