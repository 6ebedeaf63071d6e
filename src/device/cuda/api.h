// Declarations of the used part of the CUDA driver API: cuda.h may be missing at build time, and
// the library at run time. Names and numbers are the driver's ABI; a test checks them against
// cuda.h if available. Their documentation is NVIDIA's "CUDA Driver API" manual.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::device::cuda {

enum class Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kCallRequiresNewerDriver = 36,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kDeviceNotLicensed = 102,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kJitCompilationDisabled = 223,
  kContained = 226,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupportedOnDevice = 804,
  kMpsConnectionFailed = 805,
  kMpsServerNotReady = 807,
  kMpsClientTerminated = 810,
  kStreamCaptureUnsupported = 900,
  kGraphExecUpdateFailure = 910,
  kExternalDevice = 911,
  kUnknown = 999,
};

enum class DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMemoryPoolsSupported = 115,
};

enum class FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedBytes = 8,
};

enum class JitOption : int {
  kInfoLogBuffer = 3,
  kInfoLogBufferBytes = 4,
  kErrorLogBuffer = 5,
  kErrorLogBufferBytes = 6,
};

enum class JitInput : int { kPtx = 1 };

enum class PoolAttribute : int {
  kReleaseThreshold = 4,
  kReservedBytes = 5,
  kUsedBytes = 7,
};

enum class MemoryType : int { kHost = 1, kDevice = 2 };

enum class PointerAttribute : int { kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9 };

constexpr int kAllocationTypePinned = 1;
constexpr int kLocationTypeDevice = 1;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kEventDisableTiming = 2;
constexpr int kNodeTypeConditional = 13;

enum class ConditionalType : int { kIf = 0, kWhile = 1, kSwitch = 2 };

using DeviceHandle = int;
using DevicePointer = unsigned long long;
using ContextHandle = struct ContextObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using KernelHandle = struct KernelObject*;
using LinkHandle = struct LinkObject*;
using PoolHandle = struct PoolObject*;
using ArrayHandle = struct ArrayObject*;
using GraphHandle = struct GraphObject*;
using GraphNodeHandle = struct GraphNodeObject*;
using GraphExecHandle = struct GraphExecObject*;
using ConditionalHandle = unsigned long long;

using HostFunction = void (*)(void*);

// CUmemPoolProps.
struct PoolProperties {
  int allocation_type = kAllocationTypePinned;
  int handle_types = 0;
  int location_type = kLocationTypeDevice;
  int location_id = 0;
  void* win32_security = nullptr;
  size_t max_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  FunctionHandle function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  KernelHandle kernel = nullptr;
  ContextHandle context = nullptr;
};

// CUDA_MEMCPY3D.
struct CopyNode {
  size_t from_x = 0, from_y = 0, from_z = 0, from_lod = 0;
  MemoryType from_type = MemoryType::kDevice;
  const void* from_host = nullptr;
  DevicePointer from_device = 0;
  ArrayHandle from_array = nullptr;
  void* reserved0 = nullptr;
  size_t from_pitch = 0, from_height = 0;
  size_t to_x = 0, to_y = 0, to_z = 0, to_lod = 0;
  MemoryType to_type = MemoryType::kDevice;
  void* to_host = nullptr;
  DevicePointer to_device = 0;
  ArrayHandle to_array = nullptr;
  void* reserved1 = nullptr;
  size_t to_pitch = 0, to_height = 0;
  size_t bytes = 0, height = 1, depth = 1;
};

// CUgraphNodeParams with CUDA_CONDITIONAL_NODE_PARAMS in it.
struct ConditionalNode {
  int node_type = kNodeTypeConditional;
  int reserved0[3] = {};
  ConditionalHandle handle = 0;
  ConditionalType type = ConditionalType::kIf;
  unsigned bodies = 1;
  GraphHandle* body = nullptr;  // of each, by the driver, which keeps the array
  ContextHandle context = nullptr;
  long long reserved1[25] = {};
  long long reserved2 = 0;
};
struct GraphEdge;  // CUgraphEdgeData

// A function of the driver by its exported name, which fixes its parameters for good, so no version
// is requested.
template <typename... Parameters>
struct Function {
  Error (*call)(Parameters...) = nullptr;
  const char* name = "";
};

// All used functions: member, exported name, parameters. clang-format off
#define KILN_CUDA_FUNCTIONS(X)                                                                 \
  X(Init, cuInit, unsigned)                                                                    \
  X(GetErrorName, cuGetErrorName, Error, const char**)                                         \
  X(GetErrorString, cuGetErrorString, Error, const char**)                                     \
  X(DeviceGetCount, cuDeviceGetCount, int*)                                                    \
  X(DeviceGet, cuDeviceGet, DeviceHandle*, int)                                                \
  X(DeviceGetName, cuDeviceGetName, char*, int, DeviceHandle)                                  \
  X(DeviceTotalMem, cuDeviceTotalMem_v2, size_t*, DeviceHandle)                                \
  X(DeviceGetAttribute, cuDeviceGetAttribute, int*, DeviceAttribute, DeviceHandle)             \
  X(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, ContextHandle*, DeviceHandle)                  \
  X(PrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, DeviceHandle)                             \
  X(CtxPushCurrent, cuCtxPushCurrent_v2, ContextHandle)                                        \
  X(CtxPopCurrent, cuCtxPopCurrent_v2, ContextHandle*)                                         \
  X(CtxGetDevice, cuCtxGetDevice, DeviceHandle*)                                               \
  X(CtxSynchronize, cuCtxSynchronize)                                                          \
  X(MemGetInfo, cuMemGetInfo_v2, size_t*, size_t*)                                             \
  X(PointerGetAttributes, cuPointerGetAttributes, unsigned, PointerAttribute*, void**,         \
    DevicePointer)                                                                             \
  X(MemAlloc, cuMemAlloc_v2, DevicePointer*, size_t)                                           \
  X(MemFree, cuMemFree_v2, DevicePointer)                                                      \
  X(MemAllocHost, cuMemAllocHost_v2, void**, size_t)                                           \
  X(MemFreeHost, cuMemFreeHost, void*)                                                         \
  X(MemPoolCreate, cuMemPoolCreate, PoolHandle*, const PoolProperties*)                        \
  X(MemPoolDestroy, cuMemPoolDestroy, PoolHandle)                                              \
  X(MemPoolSetAttribute, cuMemPoolSetAttribute, PoolHandle, PoolAttribute, void*)              \
  X(MemPoolGetAttribute, cuMemPoolGetAttribute, PoolHandle, PoolAttribute, void*)              \
  X(MemPoolTrimTo, cuMemPoolTrimTo, PoolHandle, size_t)                                        \
  X(MemAllocFromPoolAsync, cuMemAllocFromPoolAsync, DevicePointer*, size_t, PoolHandle,        \
    StreamHandle)                                                                              \
  X(MemFreeAsync, cuMemFreeAsync, DevicePointer, StreamHandle)                                 \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, DevicePointer, const void*, size_t, StreamHandle)   \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void*, DevicePointer, size_t, StreamHandle)         \
  X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, DevicePointer, DevicePointer, size_t, StreamHandle) \
  X(MemsetD8Async, cuMemsetD8Async, DevicePointer, unsigned char, size_t, StreamHandle)        \
  X(StreamCreate, cuStreamCreate, StreamHandle*, unsigned)                                     \
  X(StreamDestroy, cuStreamDestroy_v2, StreamHandle)                                           \
  X(StreamSynchronize, cuStreamSynchronize, StreamHandle)                                      \
  X(StreamWaitEvent, cuStreamWaitEvent, StreamHandle, EventHandle, unsigned)                   \
  X(StreamGetCtx, cuStreamGetCtx, StreamHandle, ContextHandle*)                                \
  X(EventCreate, cuEventCreate, EventHandle*, unsigned)                                        \
  X(EventDestroy, cuEventDestroy_v2, EventHandle)                                              \
  X(EventRecord, cuEventRecord, EventHandle, StreamHandle)                                     \
  X(EventQuery, cuEventQuery, EventHandle)                                                     \
  X(EventSynchronize, cuEventSynchronize, EventHandle)                                         \
  X(EventElapsedTime, cuEventElapsedTime, float*, EventHandle, EventHandle)                    \
  X(ModuleLoadDataEx, cuModuleLoadDataEx, ModuleHandle*, const void*, unsigned, JitOption*,    \
    void**)                                                                                    \
  X(ModuleUnload, cuModuleUnload, ModuleHandle)                                                \
  X(ModuleGetFunction, cuModuleGetFunction, FunctionHandle*, ModuleHandle, const char*)        \
  X(FuncGetAttribute, cuFuncGetAttribute, int*, FunctionAttribute, FunctionHandle)             \
  X(FuncSetAttribute, cuFuncSetAttribute, FunctionHandle, FunctionAttribute, int)              \
  X(LaunchKernel, cuLaunchKernel, FunctionHandle, unsigned, unsigned, unsigned, unsigned,      \
    unsigned, unsigned, unsigned, StreamHandle, void**, void**)                                \
  X(LaunchHostFunc, cuLaunchHostFunc, StreamHandle, HostFunction, void*)                       \
  X(LinkCreate, cuLinkCreate_v2, unsigned, JitOption*, void**, LinkHandle*)                    \
  X(LinkAddData, cuLinkAddData_v2, LinkHandle, JitInput, void*, size_t, const char*, unsigned, \
    JitOption*, void**)                                                                        \
  X(LinkComplete, cuLinkComplete, LinkHandle, void**, size_t*)                                 \
  X(LinkDestroy, cuLinkDestroy, LinkHandle)                                                    \
  X(GraphCreate, cuGraphCreate, GraphHandle*, unsigned)                                        \
  X(GraphDestroy, cuGraphDestroy, GraphHandle)                                                 \
  X(GraphAddKernelNode, cuGraphAddKernelNode_v2, GraphNodeHandle*, GraphHandle,                \
    const GraphNodeHandle*, size_t, const KernelNode*)                                         \
  X(GraphAddMemcpyNode, cuGraphAddMemcpyNode, GraphNodeHandle*, GraphHandle,                   \
    const GraphNodeHandle*, size_t, const CopyNode*, ContextHandle)                            \
  X(GraphInstantiate, cuGraphInstantiateWithFlags, GraphExecHandle*, GraphHandle,              \
    unsigned long long)                                                                        \
  X(GraphExecDestroy, cuGraphExecDestroy, GraphExecHandle)                                     \
  X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, GraphExecHandle,          \
    GraphNodeHandle, const KernelNode*)                                                        \
  X(GraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, GraphExecHandle,             \
    GraphNodeHandle, const CopyNode*, ContextHandle)                                           \
  X(GraphLaunch, cuGraphLaunch, GraphExecHandle, StreamHandle)
// Functions that a driver may lack.
#define KILN_CUDA_OPTIONAL_FUNCTIONS(X)                                                            \
  X(GraphConditionalHandleCreate, cuGraphConditionalHandleCreate, ConditionalHandle*, GraphHandle, \
    ContextHandle, unsigned, unsigned)                                                             \
  X(GraphAddNode, cuGraphAddNode_v2, GraphNodeHandle*, GraphHandle, const GraphNodeHandle*,        \
    const GraphEdge*, size_t, ConditionalNode*)
// clang-format on

// Called first: an old driver lacks some of the functions above.
constexpr char kDriverGetVersion[] = "cuDriverGetVersion";
using DriverGetVersionFunction = Error (*)(int*);

#define KILN_CUDA_MEMBER(member, symbol, ...) Function<__VA_ARGS__> member;
struct Functions {
  KILN_CUDA_FUNCTIONS(KILN_CUDA_MEMBER)
};
struct OptionalFunctions {
  KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_CUDA_MEMBER)
};
#undef KILN_CUDA_MEMBER

}  // namespace kiln::device::cuda
