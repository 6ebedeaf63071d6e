#include "base/heap.h"

#include <malloc.h>

namespace kiln {

void TrimHeap(int64_t freed_bytes) {
  // Trimming takes some milliseconds, about as much as touching such an array again.
  constexpr int64_t kWorthTrimming = 16 << 20;
#ifdef __GLIBC__
  if (freed_bytes >= kWorthTrimming) (void)malloc_trim(0);
#endif
}

}  // namespace kiln
