// Lists of dimensions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attributes.h"

namespace kiln {

// The dimensions of an array of this rank that are not among these, in order.
inline Ints OtherDimensions(int64_t rank, const Ints& some) {
  Ints others;
  for (int64_t d = 0; d < rank; ++d) {
    if (!std::ranges::count(some, d)) others.push_back(d);
  }
  return others;
}

}  // namespace kiln
