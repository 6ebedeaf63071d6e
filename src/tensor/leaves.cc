#include "tensor/leaves.h"

namespace kiln {

int64_t LeafCount(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t n = 0;
  for (const Shape& element : shape.elements()) n += LeafCount(element);
  return n;
}

int64_t LeafOffset(const Shape& tuple, int64_t index) {
  int64_t n = 0;
  for (int64_t i = 0; i < index; ++i) n += LeafCount(tuple.elements()[static_cast<size_t>(i)]);
  return n;
}

int64_t LeafAt(const Shape& shape, std::span<const int64_t> path) {
  const Shape* at = &shape;
  int64_t leaf = 0;
  for (int64_t i : path) {
    leaf += LeafOffset(*at, i);
    at = &at->elements()[static_cast<size_t>(i)];
  }
  return leaf;
}

const Shape* PartAt(const Shape& shape, std::span<const int64_t> path) {
  const Shape* at = &shape;
  for (int64_t i : path) {
    if (!at->is_tuple() || i < 0 || i >= std::ssize(at->elements())) return nullptr;
    at = &at->elements()[static_cast<size_t>(i)];
  }
  return at;
}

}  // namespace kiln
