// Gemms that a library's function could make as well as a kernel: factors are arrays as they are,
// and the sum is stored as it is.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/element_type.h"

namespace kiln::program {

// A matrix in one of the launch's arguments. Elements are next to each other along one of its two
// dimensions, and `stride` apart along the other.
struct LibraryMatrix {
  int argument = -1;
  int64_t offset = 0;        // of the first element, in elements
  int64_t stride = 0;        // in elements
  int64_t batch_stride = 0;  // from matrix to matrix, in elements
  bool along_k = false;      // of a factor: neighbours are along k
  int64_t alignment = 1;     // in bytes, of the first element of every matrix of the batch, where
                             // the argument's is kAlignment
  bool operator==(const LibraryMatrix&) const = default;
};

//   out[b, i, j] = sum over k of x[b, i, k] * y[b, j, k]
//
// Neighbours in `out` are along j.
struct LibraryGemm {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  ElementType factor = ElementType::kInvalid;  // of both
  ElementType sum = ElementType::kInvalid;
  ElementType out = ElementType::kInvalid;
  bool tf32 = false;  // factors of f32 may lose all but 10 bits of their mantissa
  LibraryMatrix x, y, out_matrix;

  // All but where the arrays are: equal text, equal work.
  std::string ToString() const;
};

}  // namespace kiln::program
