// The loops of eigenvalues and singular values of real matrices, once for each vector width of
// processors. Matrices are in column-major order; a stride is the distance of two columns, in
// elements.
#pragma once

#include <cstdint>

namespace kiln::runtime::lib::linear {

// Rotations of neighbouring columns, in this order: of `first` and `first` + 1, then of the next
// pair; or with `backward` from the last pair to the first.
struct Sweep {
  int64_t first, count;
  bool backward;
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
};

// The loops for the vectors of a kind; null where the machine has none.
enum class LoopVectors { kBase, kAvx2, kAvx512 };
template <typename T>
const Loops<T>* LoopsOf(LoopVectors vectors);

// The loops with the widest vectors of this machine.
template <typename T>
const Loops<T>& LoopsOfMachine();

}  // namespace kiln::runtime::lib::linear
