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
  std::vector<int64_t> index(dims.size());
  size_t next = 0;
  do {
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d) at += index[d] * strides[d];
    f(next, static_cast<size_t>(at) * width, width);
    next += width;
  } while (NextIndex(dims, index));
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
