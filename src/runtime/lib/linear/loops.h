// The loops of decompositions of real matrices, once for each vector width of processors. Matrices
// are in column-major order; a stride is the distance of two columns, in elements.
#pragma once

#include <cstdint>

#include "runtime/lib/linear/lanes.h"

namespace kiln::runtime::lib::linear {

// Rotations of neighbouring columns, in this order: of `first` and `first` + 1, then of the next
// pair; or with `backward` from the last pair to the first.
struct Sweep {
  int64_t first, count;
  bool backward;
};

// The blocks of a product that are packed at once, in elements.
struct ProductBlocks {
  static constexpr int64_t kRows = 192, kColumns = 256, kDepth = 256;
  // The elements of `work` for a product of such a depth.
  static constexpr int64_t WorkOf(int64_t depth) {
    return (kRows + kColumns) * (depth < kDepth ? depth : kDepth);
  }
};

template <typename T>
struct Loops {
  // Columns must have memory for so many rows: `rows` is a multiple of this.
  int64_t row_multiple;
  // Columns x and y become c x + s y and c y - s x. Cosines and sines are those of all sweeps in
  // the order of columns.
  void (*rotate)(T* z, int64_t stride, int64_t rows, const Sweep* sweeps, int64_t count,
                 const T* cosines, const T* sines);
  double (*square)(const T* x, int64_t n);  // the sum of squares
  T (*dot)(const T* x, const T* y, int64_t n);
  // a = (I - tau v v^T) a.
  void (*reflect_columns)(T* a, int64_t stride, int64_t rows, int64_t columns, const T* v, T tau);
  // a = a (I - tau v v^T); `work` has place for a column.
  void (*reflect_rows)(T* a, int64_t stride, int64_t rows, int64_t columns, const T* v, T tau,
                       T* work);
  // Of the lower triangle of a symmetric matrix: a -= v w^T + w v^T, then product = a u.
  void (*update_and_multiply)(T* a, int64_t stride, int64_t n, const T* v, const T* w, const T* u,
                              T* product);

  // c -= a b, of `depth` columns of a. Element (k, j) of b is at b[k * b_row + j * b_column];
  // strides may be negative. `work` has ProductBlocks::WorkOf(depth) elements.
  void (*subtract_product)(T* c, int64_t c_stride, int64_t rows, int64_t columns, int64_t depth,
                           const T* a, int64_t a_stride, const T* b, int64_t b_row,
                           int64_t b_column, T* work);
  // x = l^-1 x for n rows of x, which are `stride` apart, of contiguous elements; l is lower
  // triangular, with ones on its diagonal if `unit`, and element (i, j) at l[i * l_row + j *
  // l_column].
  void (*solve_rows)(const T* l, int64_t l_row, int64_t l_column, int64_t n, bool unit, T* x,
                     int64_t stride, int64_t columns);
  // a -= x y^T.
  void (*subtract_outer)(T* a, int64_t stride, int64_t rows, int64_t columns, const T* x,
                         const T* y, int64_t y_stride);
  // The first of the elements of largest magnitude, NaNs apart; 0 if all are NaN.
  int64_t (*largest)(const T* x, int64_t n);
  // Element j of row i becomes element i of row j.
  void (*transpose)(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                    int64_t to_stride);

  Lanes<T> lanes;
};

// The loops for the vectors of a kind; null where the machine has none.
enum class LoopVectors { kBase, kAvx2, kAvx512 };
template <typename T>
const Loops<T>* LoopsOf(LoopVectors vectors);

// The loops with the widest vectors of this machine.
template <typename T>
const Loops<T>& LoopsOfMachine();

}  // namespace kiln::runtime::lib::linear
