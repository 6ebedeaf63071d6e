// The elements inside a window.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/window.h"

namespace kiln::interp {

// The positions, along a dimension of `size` elements, inside a window, in order, without padding
// and holes. The time is bounded by the number of elements or the size of the window, whichever is
// smaller: windows may be almost all padding.
inline std::vector<int64_t> PositionsSeen(const WindowDimension& w, int64_t size, int64_t place) {
  std::vector<int64_t> positions;
  const int64_t first = place * w.stride - w.low;
  if (w.size <= size) {
    for (int64_t k = 0; k < w.size; ++k) {
      const int64_t at = first + k * w.window_dilation;
      if (at < 0 || at % w.base_dilation != 0 || at / w.base_dilation >= size) continue;
      positions.push_back(at / w.base_dilation);
    }
    return positions;
  }
  for (int64_t position = 0; position < size; ++position) {
    const int64_t ahead = position * w.base_dilation - first;
    if (ahead < 0 || ahead % w.window_dilation != 0) continue;
    if (ahead / w.window_dilation >= w.size) break;
    positions.push_back(position);
  }
  return positions;
}

}  // namespace kiln::interp
