// Our declarations of CUPTI against cupti.h, where the build found one. The compiler checks all of
// it.

#ifdef KILN_TEST_HAS_CUPTI_H

#include <cupti.h>

#include <cstddef>
#include <type_traits>

#include "device/cuda/cupti_api.h"

namespace kiln::device::cuda {
namespace {

#define KILN_SAME(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
KILN_SAME(CuptiResult::kSuccess, CUPTI_SUCCESS);
KILN_SAME(CuptiResult::kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
KILN_SAME(CuptiResult::kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
KILN_SAME(CuptiResult::kUnknown, CUPTI_ERROR_UNKNOWN);
KILN_SAME(ActivityKind::kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
KILN_SAME(ActivityKind::kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
KILN_SAME(ActivityKind::kKernel, CUPTI_ACTIVITY_KIND_KERNEL);
KILN_SAME(ActivityKind::kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
KILN_SAME(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
KILN_SAME(kActivityAlignment, ACTIVITY_RECORD_ALIGNMENT);
static_assert(CUPTI_API_VERSION >= kLeastCuptiVersion && CUPTI_API_VERSION < kPastCuptiVersion);

// Fields: place and size.
#define KILN_SAME_FIELD(Ours, ours, Theirs, theirs)                \
  static_assert(offsetof(Ours, ours) == offsetof(Theirs, theirs)); \
  static_assert(sizeof(Ours::ours) == sizeof(Theirs::theirs))
#define KILN_SAME_KERNEL(Theirs)                                        \
  KILN_SAME_FIELD(KernelRecord, kind, Theirs, kind);                    \
  KILN_SAME_FIELD(KernelRecord, registers, Theirs, registersPerThread); \
  KILN_SAME_FIELD(KernelRecord, start, Theirs, start);                  \
  KILN_SAME_FIELD(KernelRecord, end, Theirs, end);                      \
  KILN_SAME_FIELD(KernelRecord, context, Theirs, contextId);            \
  KILN_SAME_FIELD(KernelRecord, stream, Theirs, streamId);              \
  KILN_SAME_FIELD(KernelRecord, correlation, Theirs, correlationId);    \
  KILN_SAME_FIELD(KernelRecord, name, Theirs, name);                    \
  KILN_SAME_FIELD(KernelRecord, graph_node, Theirs, graphNodeId);       \
  KILN_SAME_FIELD(KernelRecord, graph, Theirs, graphId);                \
  static_assert(sizeof(KernelRecord) <= sizeof(Theirs))
KILN_SAME_KERNEL(CUpti_ActivityKernel7);
KILN_SAME_KERNEL(CUpti_ActivityKernel8);
KILN_SAME_KERNEL(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
KILN_SAME_KERNEL(CUpti_ActivityKernel10);
#endif

#define KILN_SAME_TRANSFER(Ours, Theirs)                     \
  KILN_SAME_FIELD(Ours, kind, Theirs, kind);                 \
  KILN_SAME_FIELD(Ours, bytes, Theirs, bytes);               \
  KILN_SAME_FIELD(Ours, start, Theirs, start);               \
  KILN_SAME_FIELD(Ours, end, Theirs, end);                   \
  KILN_SAME_FIELD(Ours, context, Theirs, contextId);         \
  KILN_SAME_FIELD(Ours, stream, Theirs, streamId);           \
  KILN_SAME_FIELD(Ours, correlation, Theirs, correlationId); \
  KILN_SAME_FIELD(Ours, graph_node, Theirs, graphNodeId);    \
  KILN_SAME_FIELD(Ours, graph, Theirs, graphId);             \
  static_assert(sizeof(Ours) <= sizeof(Theirs))
KILN_SAME_TRANSFER(CopyRecord, CUpti_ActivityMemcpy5);
KILN_SAME_TRANSFER(FillRecord, CUpti_ActivityMemset3);
#if CUPTI_API_VERSION >= 130000
KILN_SAME_TRANSFER(CopyRecord, CUpti_ActivityMemcpy6);
KILN_SAME_TRANSFER(FillRecord, CUpti_ActivityMemset4);
#endif

// Functions: the parameters are as large, and pointers where theirs are.
template <typename Ours, typename Theirs>
constexpr bool kSameParameter =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
template <typename... Ours, typename... Theirs>
constexpr bool Same(CuptiFunction<Ours...>, CUptiResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return (kSameParameter<Ours, Theirs> && ...);
  }
  return false;
}
#define KILN_SAME_FUNCTION(member, symbol, ...) \
  static_assert(Same(decltype(CuptiFunctions::member)(), &::symbol));
KILN_CUPTI_FUNCTIONS(KILN_SAME_FUNCTION)

}  // namespace
}  // namespace kiln::device::cuda

#endif
