// Eigenvalues of general matrices, by Schur's form, and Hessenberg's form.
#include <Eigen/Eigenvalues>

#include "runtime/lib/linear/lapack_call.h"

namespace kiln::runtime::lib::linear {
namespace {

// A = U T U^H. T is triangular; of real matrices it may have blocks of 2 by 2 on the diagonal, with
// equal elements on the block's diagonal and off it elements of opposite signs.
template <typename W>
struct Schur {
  DenseOf<W> t, u;
  VectorOf<Complex> values;
  bool converged = true;
};

// The rotation of LAPACK's lanv2 for the block at rows k and k + 1, whose eigenvalues are complex.
void Standardise(Schur<double>& schur, int64_t k, bool has_u) {
  auto& t = schur.t;
  const int64_t n = t.rows();
  auto rotate = [&](double c, double s) {
    const Eigen::JacobiRotation<double> rotation(c, s);
    t.rightCols(n - k).applyOnTheLeft(k, k + 1, rotation.adjoint());
    t.topRows(k + 2).applyOnTheRight(k, k + 1, rotation);
    if (has_u) schur.u.applyOnTheRight(k, k + 1, rotation);
  };
  const double difference = t(k, k) - t(k + 1, k + 1), sum = t(k, k + 1) + t(k + 1, k);
  const double size = std::hypot(sum, difference);
  if (size > 0) {
    const double c = std::sqrt((1 + std::abs(sum) / size) / 2);
    rotate(c, difference / 2 / (size * c) * std::copysign(1.0, sum));
  }
  t(k, k) = t(k + 1, k + 1) = (t(k, k) + t(k + 1, k + 1)) / 2;
  const double upper = t(k, k + 1), lower = t(k + 1, k);
  if (upper == 0 || lower == 0 || (upper > 0) == (lower > 0)) {
    // Real by rounding: the smaller element is within it.
    if (std::abs(lower) > std::abs(upper)) rotate(0, 1);
    t(k + 1, k) = 0;
    schur.values(k) = schur.values(k + 1) = t(k, k);
    return;
  }
  const double imaginary = std::sqrt(std::abs(upper)) * std::sqrt(std::abs(lower));
  schur.values(k) = Complex(t(k, k), imaginary);
  schur.values(k + 1) = Complex(t(k, k), -imaginary);
}

Schur<double> SchurOf(const DenseOf<double>& matrix, bool has_u) {
  Eigen::RealSchur<DenseOf<double>> solver(matrix, has_u);
  Schur<double> schur;
  schur.converged = solver.info() == Eigen::Success;
  if (!schur.converged) return schur;
  const int64_t n = matrix.rows();
  schur.t = solver.matrixT();
  if (has_u) schur.u = solver.matrixU();
  schur.values = schur.t.diagonal().cast<Complex>();
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j + 2; i < n; ++i) schur.t(i, j) = 0;
  }
  for (int64_t k = 0; k + 1 < n; ++k) {
    if (schur.t(k + 1, k) != 0) Standardise(schur, k++, has_u);
  }
  return schur;
}

Schur<Complex> SchurOf(const DenseOf<Complex>& matrix, bool has_u) {
  Eigen::ComplexSchur<DenseOf<Complex>> solver(matrix, has_u);
  Schur<Complex> schur;
  schur.converged = solver.info() == Eigen::Success;
  if (!schur.converged) return schur;
  schur.t = solver.matrixT().template triangularView<Eigen::Upper>();
  if (has_u) schur.u = solver.matrixU();
  schur.values = schur.t.diagonal();
  return schur;
}

// Blocks of 2 by 2 become triangular, by complex rotations.
Schur<Complex> Triangular(const Schur<double>& real) {
  Schur<Complex> schur{real.t.cast<Complex>(), real.u.cast<Complex>(), real.values};
  const int64_t n = real.t.rows();
  for (int64_t k = 0; k + 1 < n; ++k) {
    if (real.t(k + 1, k) == 0) continue;
    // The eigenvector of the block, and a vector orthogonal to it.
    const double upper = real.t(k, k + 1), imaginary = real.values(k).imag();
    const double size = std::hypot(upper, imaginary);
    Eigen::Matrix2cd q;
    q << upper / size, Complex(0, imaginary / size), Complex(0, imaginary / size), upper / size;
    auto& t = schur.t;
    t.block(k, k, 2, n - k) = (q.adjoint() * t.block(k, k, 2, n - k)).eval();
    t.block(0, k, k + 2, 2) = (t.block(0, k, k + 2, 2) * q).eval();
    schur.u.middleCols(k, 2) = (schur.u.middleCols(k, 2) * q).eval();
    t(k, k) = real.values(k);
    t(k + 1, k + 1) = real.values(k + 1);
    t(k + 1, k) = 0;
    ++k;
  }
  return schur;
}
const Schur<Complex>& Triangular(const Schur<Complex>& schur) { return schur; }

// Solutions grow without bound where eigenvalues are equal.
void ScaleIfLarge(VectorOf<Complex>& x, Complex latest) {
  if (std::abs(latest) > 1e100) x *= 1 / std::abs(latest);
}

// Eigenvectors of T, of norm 1: x with T x = w x, or T^H x = conj(w) x.
DenseOf<Complex> TriangularVectors(const DenseOf<Complex>& t, bool is_left) {
  const int64_t n = t.rows();
  const double least = std::max(t.cwiseAbs().maxCoeff() * std::numeric_limits<double>::epsilon(),
                                std::numeric_limits<double>::min());
  DenseOf<Complex> vectors = DenseOf<Complex>::Zero(n, n);
  for (int64_t k = 0; k < n; ++k) {
    VectorOf<Complex> x = VectorOf<Complex>::Zero(n);
    x(k) = 1;
    auto difference = [&](int64_t i) {
      const Complex d = t(i, i) - t(k, k);
      return std::abs(d) < least ? Complex(least) : d;
    };
    if (is_left) {
      for (int64_t i = k + 1; i < n; ++i) {
        x(i) = -t.col(i).segment(k, i - k).dot(x.segment(k, i - k)) / std::conj(difference(i));
        ScaleIfLarge(x, x(i));
      }
    } else {
      x.head(k) = -t.col(k).head(k);
      for (int64_t i = k - 1; i >= 0; --i) {
        x(i) /= difference(i);
        ScaleIfLarge(x, x(i));
        x.head(i) -= x(i) * t.col(i).head(i);
      }
    }
    vectors.col(k) = x / x.norm();
  }
  return vectors;
}

// Of norm 1, with the largest element real. For real matrices, those of real eigenvalues are real,
// and those of conjugate ones conjugate.
template <typename W>
DenseOf<Complex> EigenvectorsOf(const Schur<Complex>& schur, bool is_left) {
  DenseOf<Complex> vectors = schur.u * TriangularVectors(schur.t, is_left);
  for (int64_t k = 0; k < vectors.cols(); ++k) {
    auto x = vectors.col(k);
    if (!kIsComplex<W> && schur.values(k).imag() < 0) {
      x = vectors.col(k - 1).conjugate();
      continue;
    }
    int64_t largest = 0;
    x.cwiseAbs2().maxCoeff(&largest);
    const Complex phase = std::conj(x(largest)) / std::abs(x(largest));
    x *= phase;
    x(largest) = x(largest).real();
    if (!kIsComplex<W> && schur.values(k).imag() == 0) x = x.real().eval().template cast<Complex>();
    x /= x.norm();
  }
  return vectors;
}

// The eigenvalues, for real matrices as two arrays.
template <typename W>
std::span<const Array> WriteValues(std::span<const Array> results, const VectorOf<Complex>& values,
                                   double power) {
  if (kIsComplex<W>) {
    Write(results[0], VectorOf<Complex>(values * power));
    return results.subspan(1);
  }
  Write(results[0], Eigen::VectorXd(values.real() * power));
  Write(results[1], Eigen::VectorXd(values.imag() * power));
  return results.subspan(2);
}

// Results are the eigenvalues, left and right eigenvectors, and info.
template <typename W>
void Eigenvalues(const Letters& letters, std::span<const Array> operands,
                 std::span<const Array> results) {
  DenseOf<W> matrix = Read<W>(operands[0]);
  if (matrix.rows() == 0) return WriteNumber(results.back(), 0);
  if (!matrix.allFinite()) return Fail(results, -4);
  const double power = Normalised(matrix);
  const bool has_vectors = letters.left_vectors || letters.right_vectors;
  const Schur<W> schur = SchurOf(matrix, has_vectors);
  if (!schur.converged) return Fail(results, 1);
  const std::span<const Array> vectors = WriteValues<W>(results, schur.values, power);
  if (has_vectors) {
    const Schur<Complex>& triangular = Triangular(schur);
    if (letters.left_vectors) Write(vectors[0], EigenvectorsOf<W>(triangular, true));
    if (letters.right_vectors) Write(vectors[1], EigenvectorsOf<W>(triangular, false));
  }
  if (!letters.left_vectors) Fill(vectors[0], 0);
  if (!letters.right_vectors) Fill(vectors[1], 0);
  WriteNumber(results.back(), 0);
}

// Results are T, U, the eigenvalues, the number of selected ones, which is 0, and info.
template <typename W>
void SchurForm(const Letters& letters, std::span<const Array> operands,
               std::span<const Array> results) {
  DenseOf<W> matrix = Read<W>(operands[0]);
  WriteNumber(results[results.size() - 2], 0);
  if (matrix.rows() == 0) return WriteNumber(results.back(), 0);
  if (!matrix.allFinite()) return Fail(results, static_cast<int32_t>(matrix.rows()));
  const double power = Normalised(matrix);
  const Schur<W> schur = SchurOf(matrix, letters.vectors);
  if (!schur.converged) return Fail(results, 1);
  Write(results[0], DenseOf<W>(schur.t * power));
  if (letters.vectors) {
    Write(results[1], schur.u);
  } else {
    Fill(results[1], 0);
  }
  WriteValues<W>(results.subspan(2), schur.values, power);
  WriteNumber(results.back(), 0);
}

// Results are Hessenberg's form above its reflections, their taus, and info.
template <typename W>
void Hessenberg(const Letters& letters, std::span<const Array> operands,
                std::span<const Array> results) {
  DenseOf<W> matrix = Read<W>(operands[0]);
  const int64_t n = matrix.rows(), high = letters.high;
  WriteNumber(results[2], 0);
  if (n == 0) return;
  if (!matrix.allFinite()) return Fail(results, 0);
  const double power = Normalised(matrix);
  VectorOf<W> taus = VectorOf<W>::Zero(n - 1);
  for (int64_t k = letters.low - 1; k + 1 < high; ++k) {
    const int64_t rest = high - 1 - k;
    auto tail = matrix.col(k).segment(k + 2, rest - 1);
    taus(k) = Reflect<W>(matrix(k + 1, k), tail);
    ReflectColumns<W>(matrix.block(0, k + 1, high, rest), tail, taus(k));
    ReflectRows<W>(matrix.block(k + 1, k + 1, rest, n - 1 - k), tail, Eigen::numext::conj(taus(k)));
  }
  WriteBy<W>(results[0], [&](int64_t i, int64_t j) {
    const bool in_reflection = j >= letters.low - 1 && i > j + 1 && i < high;
    return in_reflection ? matrix(i, j) : W(matrix(i, j) * power);
  });
  Write(results[1], taus);
}

}  // namespace

Kernels EigenKernels() { return {Eigenvalues<double>, Eigenvalues<Complex>}; }
Kernels SchurKernels() { return {SchurForm<double>, SchurForm<Complex>}; }
Kernels HessenbergKernels() { return {Hessenberg<double>, Hessenberg<Complex>}; }

}  // namespace kiln::runtime::lib::linear
