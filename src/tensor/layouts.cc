#include "tensor/layouts.h"

#include <cstring>
#include <vector>

namespace kiln {
namespace {

// Calls f(place in row-major order, place in the layout, bytes) for each element, or for all.
template <typename F>
void ForEachPlace(const Shape& shape, F f) {
  if (shape.num_elements() == 0) return;
  if (shape.is_row_major()) return f(0, 0, static_cast<size_t>(shape.byte_size()));
  const std::vector<int64_t> dims = shape.dims(), strides = shape.strides();
  const auto width = static_cast<size_t>(ByteWidth(shape.type()));
  // Row by row along the last dimension.
  const std::span<const int64_t> outer(dims.data(), dims.size() - 1);
  const auto step = static_cast<size_t>(strides.back()) * width;
  std::vector<int64_t> index(outer.size());
  size_t next = 0;
  do {
    int64_t row = 0;
    for (size_t d = 0; d < outer.size(); ++d) row += index[d] * strides[d];
    size_t at = static_cast<size_t>(row) * width;
    for (int64_t k = 0; k < dims.back(); ++k, next += width, at += step) f(next, at, width);
  } while (NextIndex(outer, index));
}

}  // namespace

bool IsPermutation(std::span<const int64_t> order, int64_t rank) {
  if (static_cast<int64_t>(order.size()) != rank) return false;
  std::vector<bool> seen(order.size());
  for (int64_t d : order) {
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]) return false;
    seen[static_cast<size_t>(d)] = true;
  }
  return true;
}

void CopyToLayout(const Shape& shape, const std::byte* row_major, std::byte* memory) {
  ForEachPlace(shape, [&](size_t from, size_t to, size_t bytes) {
    std::memcpy(memory + to, row_major + from, bytes);
  });
}

void CopyFromLayout(const Shape& shape, const std::byte* memory, std::byte* row_major) {
  ForEachPlace(shape, [&](size_t to, size_t from, size_t bytes) {
    std::memcpy(row_major + to, memory + from, bytes);
  });
}

}  // namespace kiln
