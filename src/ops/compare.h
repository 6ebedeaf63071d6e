// The predicate of a compare.
#pragma once

#include "ops/attributes.h"

namespace kiln {

// Whether the comparison of x and y holds: with a NaN only NE is true.
template <typename T>
bool Compare(Direction direction, T x, T y) {
  switch (direction) {
    case Direction::kEq:
      return x == y;
    case Direction::kNe:
      return x != y;
    case Direction::kGe:
      return x >= y;
    case Direction::kGt:
      return x > y;
    case Direction::kLe:
      return x <= y;
    case Direction::kLt:
      return x < y;
  }
  return false;
}

}  // namespace kiln
