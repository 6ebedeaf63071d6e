// Walks over the elements of arrays by strides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/shape.h"

namespace kiln::interp {

// Calls f(offset) for every index of `dims` in row-major order; offset is the sum of the index's
// positions times `strides`. Strides of dimensions of size 1 are never used.
template <typename F>
void ForEachOffset(std::span<const int64_t> dims, std::span<const int64_t> strides, F&& f) {
  if (dims.empty()) {
    f(int64_t{0});
    return;
  }
  for (int64_t d : dims) {
    if (d == 0) return;
  }
  size_t last = dims.size() - 1;
  std::vector<int64_t> index(last, 0);
  int64_t base = 0;
  while (true) {
    int64_t offset = base;
    for (int64_t k = 0; k + 1 < dims[last]; ++k, offset += strides[last]) f(offset);
    f(offset);
    size_t d = last;
    for (; d > 0; --d) {
      if (++index[d - 1] < dims[d - 1]) {
        base += strides[d - 1];
        break;
      }
      index[d - 1] = 0;
      if (dims[d - 1] > 1) base -= strides[d - 1] * (dims[d - 1] - 1);
    }
    if (d == 0) return;
  }
}

// The same for two arrays, row by row: calls f(x, y) with the offsets of the first element of each
// row along the last dimension. There is one, and no row is empty.
template <typename F>
void ForEachRow(std::span<const int64_t> dims, std::span<const int64_t> x_strides,
                std::span<const int64_t> y_strides, F&& f) {
  const size_t outer = dims.size() - 1;
  std::vector<int64_t> index(outer);
  int64_t x = 0, y = 0;
  while (true) {
    f(x, y);
    size_t d = outer;
    for (; d > 0; --d) {
      const int64_t last = dims[d - 1] - 1;
      if (index[d - 1] < last) {
        ++index[d - 1];
        x += x_strides[d - 1];
        y += y_strides[d - 1];
        break;
      }
      index[d - 1] = 0;
      if (last > 0) {
        x -= x_strides[d - 1] * last;
        y -= y_strides[d - 1] * last;
      }
    }
    if (d == 0) return;
  }
}

inline std::vector<int64_t> OffsetsOf(std::span<const int64_t> dims,
                                      std::span<const int64_t> strides) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(kiln::Product(dims)));
  ForEachOffset(dims, strides, [&](int64_t offset) { offsets.push_back(offset); });
  return offsets;
}

}  // namespace kiln::interp
