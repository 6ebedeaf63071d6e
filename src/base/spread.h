// Where in their pages arrays begin.
#pragma once

#include <cstdint>

#include "base/integers.h"

namespace kiln {

// Arrays of whole pages would all begin at the same place of a page. The same elements of several
// arrays then share the few ways of a set of the first cache, and a load waits for stores before it
// whose addresses have the same lower bits. So arrays are spread by a few lines.
inline constexpr int64_t kSpreadPageBytes = 4096, kSpreadBytes = 5 * 64;

// From the beginning of an array of so many bytes to that of the next one, both at multiples of the
// alignment, which divides kSpreadBytes.
constexpr int64_t SpreadDistance(int64_t bytes, int64_t alignment) {
  const int64_t distance = RoundUp(bytes, alignment);
  return distance + (distance > 0 && distance % kSpreadPageBytes == 0 ? kSpreadBytes : 0);
}

}  // namespace kiln
