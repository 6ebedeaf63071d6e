// The parts that LAPACK's functions share: arrays of one call, and matrices read from them. Work is
// in double precision for all types, so that each algorithm is compiled once for real and once for
// complex numbers; but for eigenvalues of symmetric and singular values of real matrices, see
// real.h, and for their LU and QR, factors.h.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "runtime/lib/linear/kernels.h"
#include "tensor/element_type.h"

namespace kiln::runtime::lib::linear {

using Complex = std::complex<double>;
template <typename W>
inline constexpr bool kIsComplex = std::is_same_v<W, Complex>;
template <typename W>
using DenseOf = Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic>;
template <typename W>
using VectorOf = Eigen::Matrix<W, Eigen::Dynamic, 1>;

// One item of a batch: a matrix in row-major order, or a vector as a matrix of one column.
struct Array {
  ElementType type = ElementType::kF32;
  int64_t rows = 0, columns = 0;
  std::byte* data = nullptr;
};

// The letters of a call's configuration; 'N' where missing.
struct Letters {
  bool lower = true;
  bool left = true, transposed = false;  // of ormqr
  bool all = false, vectors = false;     // mode 'A'; any mode but 'N'
  bool left_vectors = false;             // of geev
  bool right_vectors = false;
  int64_t low = 1, high = 0;          // of gehrd, from 1
  const kiln_frame* frame = nullptr;  // of the run
};

// The value of f(T{}) for the type T of the elements, one of f32, f64, c64, c128 and s32.
template <typename F>
auto VisitStored(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kF32:
      return f(float{});
    case ElementType::kF64:
      return f(double{});
    case ElementType::kC64:
      return f(std::complex<float>{});
    case ElementType::kC128:
      return f(Complex{});
    default:
      return f(int32_t{});
  }
}

template <typename W>
DenseOf<W> Read(const Array& array) {
  DenseOf<W> matrix(array.rows, array.columns);
  VisitStored(array.type, [&]<typename T>(T) {
    if constexpr (std::is_convertible_v<T, W>) {
      const T* from = reinterpret_cast<const T*>(array.data);
      for (int64_t i = 0; i < array.rows; ++i) {
        for (int64_t j = 0; j < array.columns; ++j) matrix(i, j) = static_cast<W>(*from++);
      }
    }
  });
  return matrix;
}

// f(row, column) is the value of an element.
template <typename W, typename F>
void WriteBy(const Array& array, F&& f) {
  VisitStored(array.type, [&]<typename T>(T) {
    T* to = reinterpret_cast<T*>(array.data);
    for (int64_t i = 0; i < array.rows; ++i) {
      for (int64_t j = 0; j < array.columns; ++j) {
        const W x = f(i, j);
        if constexpr (kIsComplex<W> && std::is_arithmetic_v<T>) {
          *to++ = static_cast<T>(x.real());
        } else {
          *to++ = static_cast<T>(x);
        }
      }
    }
  });
}

// Elements of the matrix, which is at least as large as the array.
template <typename Matrix>
void Write(const Array& array, const Matrix& matrix) {
  WriteBy<typename Matrix::Scalar>(array, [&](int64_t i, int64_t j) { return matrix(i, j); });
}
inline void Fill(const Array& array, double value) {
  WriteBy<double>(array, [&](int64_t, int64_t) { return value; });
}
inline void WriteNumber(const Array& array, int32_t number) {
  *reinterpret_cast<int32_t*>(array.data) = number;
}

// NaN in all floats of the results, and `info` as the last one.
inline void Fail(std::span<const Array> results, int32_t info) {
  for (const Array& array : results) {
    if (array.type == ElementType::kS32) {
      Fill(array, 0);
    } else {
      Fill(array, std::numeric_limits<double>::quiet_NaN());
    }
  }
  WriteNumber(results.back(), info);
}

template <typename Matrix>
bool HasNan(const Matrix& matrix) {
  return !(matrix.array() == matrix.array()).all();
}

// Divides by a power of 2 such that the largest part is near 1, so that squares are in range;
// returns the power. `matrix` is finite.
template <typename Matrix>
double Normalised(Matrix& matrix) {
  double largest = 0;
  for (int64_t j = 0; j < matrix.cols(); ++j) {
    for (int64_t i = 0; i < matrix.rows(); ++i) {
      largest =
          std::max({largest, std::abs(std::real(matrix(i, j))), std::abs(std::imag(matrix(i, j)))});
    }
  }
  if (largest == 0) return 1;
  // At both ends of the range the reciprocal is a number, too.
  const double power = std::ldexp(1.0, std::clamp(std::ilogb(largest), -1020, 1020));
  matrix *= 1 / power;
  return power;
}

// The reflection I - tau v v^H of LAPACK's larfg, for x = (alpha, tail): its adjoint maps x to
// (beta, 0). `tail` becomes v without its first element, 1.
template <typename W, typename Tail>
W Reflect(W& alpha, Tail&& tail) {
  double square = tail.size() > 0 ? tail.squaredNorm() : 0;
  if (square == 0 && std::imag(alpha) == 0) return W(0);
  double beta = std::sqrt(std::norm(alpha) + square);
  if (std::real(alpha) >= 0) beta = -beta;
  const W tau = (W(beta) - alpha) / W(beta);
  tail *= W(1) / (alpha - W(beta));
  alpha = W(beta);
  return tau;
}

// matrix = (I - factor v v^H) matrix, where v is (1, tail).
template <typename W, typename Block, typename Tail>
void ReflectRows(Block&& matrix, const Tail& tail, W factor) {
  if (factor == W(0) || matrix.cols() == 0) return;
  Eigen::Matrix<W, 1, Eigen::Dynamic> product = matrix.row(0);
  auto rest = matrix.bottomRows(matrix.rows() - 1);
  product.noalias() += tail.adjoint() * rest;
  product *= factor;
  matrix.row(0) -= product;
  rest.noalias() -= tail * product;
}

// matrix = matrix (I - factor v v^H).
template <typename W, typename Block, typename Tail>
void ReflectColumns(Block&& matrix, const Tail& tail, W factor) {
  if (factor == W(0) || matrix.rows() == 0) return;
  VectorOf<W> product = matrix.col(0);
  auto rest = matrix.rightCols(matrix.cols() - 1);
  product.noalias() += rest * tail;
  product *= factor;
  matrix.col(0) -= product;
  rest.noalias() -= product * tail.adjoint();
}

// The functions of one item, for real and complex numbers: operands and results as
// runtime/lib/linear/lapack.cc lists them. They may throw bad_alloc.
using Kernel = void (*)(const Letters&, std::span<const Array> operands,
                        std::span<const Array> results);
// The same for several small items that follow one another, the first of which is given.
using LaneKernel = void (*)(std::span<const Array> operands, std::span<const Array> results,
                            int64_t count);
struct Kernels {
  Kernel real = nullptr, complex = nullptr;
  LaneKernel lanes = nullptr;  // of real numbers
};
Kernels SelfAdjointKernels();                // syevd, heevd
Kernels ToTridiagonalKernels();              // sytrd, hetrd
Kernels SingularKernels(bool rejects_nans);  // gesvd, or gesdd, which gives -4 for NaNs
Kernels EigenKernels();                      // geev
Kernels SchurKernels();                      // gees
Kernels HessenbergKernels();                 // gehrd
Kernels PivotedQrKernels();                  // geqp3
Kernels ReflectionsKernels();                // unmqr; for real matrices, see factors.h
Kernels TridiagonalKernels();                // gtsv

}  // namespace kiln::runtime::lib::linear
