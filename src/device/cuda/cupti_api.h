// Declarations of the used part of CUPTI's activity API, as for the driver (api.h). Records are
// read up to the last needed field. The offsets of these fields are the same from CUDA 11.1's CUPTI
// to the newest known one; a test checks them against NVIDIA's header if available. Their
// documentation is NVIDIA's "CUPTI" manual.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/api.h"

namespace kiln::device::cuda {

enum class CuptiResult : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,
  kUnknown = 999,
};

enum class ActivityKind : int {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kConcurrentKernel = 10,
};

constexpr unsigned kFlushForced = 1;
constexpr size_t kActivityAlignment = 8;

// Versions are counted up to CUDA 12.9, and 10000 times the major one from 13.0 on.
constexpr unsigned kLeastCuptiVersion = 19;  // CUDA 12.0
constexpr unsigned kPastCuptiVersion = 140000;

// CUpti_Activity.
struct ActivityRecord {
  ActivityKind kind;
};

// The common beginning of CUpti_ActivityKernel7, 8, 9 and 10.
struct KernelRecord {
  ActivityKind kind;
  uint8_t cache_config, shared_memory_config;
  uint16_t registers;
  int32_t partitioned_requested, partitioned_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared_bytes, dynamic_shared_bytes;
  uint32_t local_bytes_per_thread, local_bytes;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, shared_memory_carveout_requested, shared_memory_carveout, padding[1];
  uint32_t shared_bytes_executed;
  uint64_t graph_node;
  uint32_t shared_memory_limit_config;
  uint32_t graph;
};

// The common beginning of CUpti_ActivityMemcpy5 and 6.
struct CopyRecord {
  ActivityKind kind;
  uint8_t copy_kind, from_kind, to_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

// The common beginning of CUpti_ActivityMemset3 and 4.
struct FillRecord {
  ActivityKind kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

using ActivityBufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using ActivityBufferCompleted = void (*)(ContextHandle context, uint32_t stream, uint8_t* buffer,
                                         size_t bytes, size_t valid_bytes);

// A function of CUPTI by its exported name.
template <typename... Parameters>
struct CuptiFunction {
  CuptiResult (*call)(Parameters...) = nullptr;
};

// All used functions: member, exported name, parameters. clang-format off
#define KILN_CUPTI_FUNCTIONS(X)                                                         \
  X(GetVersion, cuptiGetVersion, uint32_t*)                                             \
  X(GetTimestamp, cuptiGetTimestamp, uint64_t*)                                         \
  X(GetContextId, cuptiGetContextId, ContextHandle, uint32_t*)                          \
  X(GetStreamIdEx, cuptiGetStreamIdEx, ContextHandle, StreamHandle, uint8_t, uint32_t*) \
  X(ActivityRegisterCallbacks, cuptiActivityRegisterCallbacks, ActivityBufferRequested, \
    ActivityBufferCompleted)                                                            \
  X(ActivityEnable, cuptiActivityEnable, ActivityKind)                                  \
  X(ActivityDisable, cuptiActivityDisable, ActivityKind)                                \
  X(ActivityFlushAll, cuptiActivityFlushAll, uint32_t)                                  \
  X(ActivityGetNextRecord, cuptiActivityGetNextRecord, uint8_t*, size_t, ActivityRecord**)
// clang-format on

struct CuptiFunctions {
#define KILN_CUPTI_MEMBER(member, symbol, ...) CuptiFunction<__VA_ARGS__> member;
  KILN_CUPTI_FUNCTIONS(KILN_CUPTI_MEMBER)
#undef KILN_CUPTI_MEMBER
};

}  // namespace kiln::device::cuda
