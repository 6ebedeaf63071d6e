// The leaves of a shape: its arrays and tokens, in order. Paths are indices into tuples within
// tuples, as {1,0}.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/shape.h"

namespace kiln {

int64_t LeafCount(const Shape& shape);
// The number of leaves before element `index` of a tuple.
int64_t LeafOffset(const Shape& tuple, int64_t index);
// The number of leaves before the part at a path, which must exist.
int64_t LeafAt(const Shape& shape, std::span<const int64_t> path);
// The part at a path; null if there is none.
const Shape* PartAt(const Shape& shape, std::span<const int64_t> path);

}  // namespace kiln
