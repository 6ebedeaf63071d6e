// Decompositions of real matrices block by block, so that most of the work is products. Matrices
// are in row-major order, `stride` is the distance of two rows. A cancelled run skips the rest.
// Functions may throw bad_alloc.
#pragma once

#include <cstdint>
#include <memory>

#include "frame/frame.h"
#include "runtime/lib/linear/loops.h"

namespace kiln::runtime::lib::linear {

// A triangular matrix: element (i, j) is at data[i * row + j * column].
template <typename T>
struct Lower {
  const T* data = nullptr;
  int64_t row = 0, column = 0;
  bool unit = false;  // ones on the diagonal

  const T* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
  // The lower one in which an upper one's rows and columns are in reverse order.
  static Lower Reversed(const T* upper, int64_t n, int64_t row, int64_t column, bool unit) {
    return {upper + (n - 1) * (row + column), -row, -column, unit};
  }
};

template <typename T>
class Blocked {
 public:
  explicit Blocked(const kiln_frame* frame, const Loops<T>& loops = LoopsOfMachine<T>())
      : frame_(frame), loops_(loops) {}

  const Loops<T>& loops() const { return loops_; }
  // c -= b^T a, where a has `depth` rows, c has a row for each column of b, and element (k, j) of b
  // is at b[k * b_row + j * b_column].
  void Subtract(T* c, int64_t c_stride, int64_t rows, int64_t columns, const T* a, int64_t a_stride,
                int64_t depth, const T* b, int64_t b_row, int64_t b_column);
  // x = l^-1 x, for n rows of x.
  void Solve(const Lower<T>& l, int64_t n, T* x, int64_t stride, int64_t columns);
  // A = U^T U of the upper triangle; the lower one is neither read nor written. False if A is not
  // positive definite.
  bool Cholesky(T* a, int64_t stride, int64_t n);
  // P A = L U with partial pivoting; pivots[i] is the row that was swapped with row i.
  void Lu(T* a, int64_t stride, int64_t m, int64_t n, int32_t* pivots);

 private:
  void LuOfPanel(T* a, int64_t stride, int64_t m, int64_t n, int32_t* pivots);
  T* Work(int64_t depth);

  const kiln_frame* const frame_;
  const Loops<T>& loops_;
  std::unique_ptr<T[]> work_, panel_;
  int64_t work_size_ = 0;
};

}  // namespace kiln::runtime::lib::linear
