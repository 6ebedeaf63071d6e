// Iterations for eigenvalues of symmetric tridiagonal matrices and singular values of bidiagonal
// ones, and their rotations, which are applied many sweeps at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/lib/linear/loops.h"

namespace kiln::runtime::lib::linear {

// A matrix in column-major order, whose columns begin at multiples of 64 bytes from each other.
template <typename T>
class Columns {
 public:
  Columns() = default;
  Columns(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), stride_((rows + kMultiple - 1) / kMultiple * kMultiple) {
    // Columns that share their place in the caches push each other out.
    if (stride_ * static_cast<int64_t>(sizeof(T)) % 1024 == 0) stride_ += kMultiple;
    data_.resize(static_cast<size_t>(stride_ * columns));
  }
  static Columns Identity(int64_t rows, int64_t columns) {
    Columns made(rows, columns);
    for (int64_t i = 0; i < rows && i < columns; ++i) made(i, i) = 1;
    return made;
  }

  T& operator()(int64_t i, int64_t j) { return data_[static_cast<size_t>(i + j * stride_)]; }
  T operator()(int64_t i, int64_t j) const { return data_[static_cast<size_t>(i + j * stride_)]; }
  T* at(int64_t i, int64_t j) { return data_.data() + i + j * stride_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t stride() const { return stride_; }

 private:
  static constexpr int64_t kMultiple = 64 / sizeof(T);
  int64_t rows_ = 0, columns_ = 0, stride_ = 0;
  std::vector<T> data_;
};

// Rotations of the columns of a matrix, which keeps its address until the last Apply().
class Rotations {
 public:
  explicit Rotations(Columns<float>* matrix) : single_(matrix) {}
  explicit Rotations(Columns<double>* matrix) : double_(matrix) {}

  // A sweep begins; Add() is called for each of its rotations, in the order of columns or, with
  // `backward`, from the last one.
  void Begin(int64_t first, int64_t count, bool backward);
  void Add(double cosine, double sine) {
    const size_t at = sweeps_.back().backward ? --next_ : next_++;
    cosines_[at] = cosine;
    sines_[at] = sine;
  }
  void Apply();

 private:
  template <typename T>
  void ApplyTo(Columns<T>& matrix);

  Columns<float>* single_ = nullptr;
  Columns<double>* double_ = nullptr;
  std::vector<Sweep> sweeps_;
  std::vector<double> cosines_, sines_;
  size_t next_ = 0;
};

// The diagonal of a symmetric tridiagonal matrix becomes its eigenvalues, in no order; `off`, of
// the same size, has the elements beside it, and is destroyed. Rotations, unless null, are those of
// the eigenvectors' columns. False if they do not converge. `epsilon` is that of the elements'
// type.
bool TridiagonalEigenvalues(std::span<double> diagonal, std::span<double> off, double epsilon,
                            Rotations* vectors);

// The same for an upper bidiagonal matrix and its singular values, which may be negative.
bool BidiagonalSingularValues(std::span<double> diagonal, std::span<double> off, double epsilon,
                              Rotations* left, Rotations* right);

}  // namespace kiln::runtime::lib::linear
