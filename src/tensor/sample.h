// Seeded values of a shape, for tests and tools that run programs on made-up arguments.
#pragma once

#include <cstdint>

#include "tensor/literal.h"
#include "tensor/shape.h"

namespace kiln {

// The range of the elements of an array. The defaults suit functions of any kind.
struct SampleRange {
  // Integers are in [low, high], as far as their type goes.
  int64_t low = -9, high = 9;
  // As indices: groups of so many consecutive elements are the components of a vector.
  int64_t components = 1;
  bool sorted = false;    // the vectors are in ascending order
  bool distinct = false;  // no vector is there twice, if there are enough of them
  // Floats are in [-magnitude, magnitude), or in (0, magnitude] if positive.
  double magnitude = 2;
  bool positive = false;
  // Matrices, the last two dimensions, have a diagonal larger than the sum of its row and column.
  bool dominant_diagonal = false;

  bool operator==(const SampleRange&) const = default;
};

// The same values for the same seed on every machine. Without ranges of its own an array has floats
// in [-2, 2), a few of them 0 and 1, and integers in [-9, 9]; of types without a sign those that
// have the same bits. A tuple's arrays have seeds of their own.
Literal SampleLiteral(const Shape& shape, uint64_t seed, const SampleRange& range = {});

}  // namespace kiln
