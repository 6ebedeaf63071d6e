// Eigenvalues of symmetric and Hermitian matrices, and their tridiagonal form.
#include <Eigen/Eigenvalues>
#include <utility>

#include "runtime/lib/linear/lapack_call.h"
#include "runtime/lib/linear/real.h"

namespace kiln::runtime::lib::linear {
namespace {

// The whole matrix of one of its triangles, by its rows from the last to the first if `reversed`.
// Only the lower triangle of the result is defined.
template <typename W>
DenseOf<W> LowerOf(const DenseOf<W>& given, bool lower, bool reversed) {
  const int64_t n = given.rows();
  DenseOf<W> matrix(n, n);
  for (int64_t j = 0; j < n; ++j) {
    matrix(j, j) = std::real(reversed ? given(n - 1 - j, n - 1 - j) : given(j, j));
    for (int64_t i = j + 1; i < n; ++i) {
      if (reversed) {
        matrix(i, j) = given(n - 1 - i, n - 1 - j);
      } else {
        matrix(i, j) = lower ? given(i, j) : Eigen::numext::conj(given(j, i));
      }
      matrix(j, i) = W(0);
    }
  }
  return matrix;
}

void Hermitian(const Letters& letters, std::span<const Array> operands,
               std::span<const Array> results) {
  using W = Complex;
  const DenseOf<W> given = Read<W>(operands[0]);
  if (given.rows() == 0) return WriteNumber(results[2], 0);
  DenseOf<W> matrix = LowerOf<W>(given, letters.lower, false);
  if (!matrix.allFinite()) return Fail(results, static_cast<int32_t>(matrix.rows()));
  const double power = Normalised(matrix);
  Eigen::SelfAdjointEigenSolver<DenseOf<W>> solver(
      matrix, letters.vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return Fail(results, 1);
  Write(results[0], letters.vectors ? solver.eigenvectors() : given);
  Write(results[1], Eigen::VectorXd(solver.eigenvalues() * power));
  WriteNumber(results[2], 0);
}

// A = Q T Q^T for the lower triangle of A, which becomes the reflections of Q, with 1 in front.
template <typename T>
struct Tridiagonal {
  std::vector<double> diagonal, off;
  std::vector<T> taus;
};
template <typename T>
Tridiagonal<T> TridiagonalOf(Columns<T>& a) {
  const Loops<T>& loops = LoopsOfMachine<T>();
  const int64_t n = a.rows();
  const auto size = static_cast<size_t>(n);
  Tridiagonal<T> made{std::vector<double>(size), std::vector<double>(size), {}};
  made.taus.resize(size - 1);
  // A is the matrix minus v w^T + w v^T of the step before: both from its first row on.
  std::vector<T> zeros(size), w(size), next(size);
  const T* v = zeros.data();
  for (int64_t k = 0; k < n; ++k) {
    const int64_t rest = n - 1 - k;
    const auto at = static_cast<size_t>(k);
    T* column = a.at(k, k);
    for (int64_t i = 0; i <= rest; ++i) {
      column[i] -= v[i] * w[0] + w[static_cast<size_t>(i)] * v[0];
    }
    made.diagonal[at] = column[0];
    if (rest == 0) break;
    T* u = column + 1;
    const Reflection<T> reflection = ReflectionOf(u, rest);
    const T tau = made.taus[at] = reflection.tau;
    made.off[at] = reflection.first;
    loops.update_and_multiply(a.at(k + 1, k + 1), a.stride(), rest, v + 1, w.data() + 1, u,
                              next.data());
    // H A H = A - u w^T - w u^T, with w = tau A u - (tau^2 u^T A u / 2) u.
    const T half = tau * tau * loops.dot(next.data(), u, rest) / 2;
    for (int64_t i = 0; i < rest; ++i) {
      w[static_cast<size_t>(i)] = tau * next[static_cast<size_t>(i)] - half * u[i];
    }
    v = u;
  }
  return made;
}

template <typename T>
void Symmetric(const Letters& letters, std::span<const Array> operands,
               std::span<const Array> results) {
  const int64_t n = operands[0].rows;
  if (n == 0) return WriteNumber(results[2], 0);
  const char triangle = letters.lower ? 'L' : 'U';
  Normal<T> normal = ReadNormal<T>(operands[0], !letters.lower, triangle);
  if (!normal.is_finite) return Fail(results, static_cast<int32_t>(n));
  Tridiagonal<T> reduced = TridiagonalOf(normal.matrix);
  Columns<T> vectors;
  if (letters.vectors) vectors = ProductOf<T>(normal.matrix, reduced.taus, 1, n);
  Rotations rotations(&vectors);
  if (!TridiagonalEigenvalues(reduced.diagonal, reduced.off, std::numeric_limits<T>::epsilon(),
                              letters.vectors ? &rotations : nullptr)) {
    return Fail(results, 1);
  }
  const std::vector<int64_t> order = OrderOf(reduced.diagonal, false);
  auto place = [&](int64_t j) { return order[static_cast<size_t>(j)]; };
  if (letters.vectors) {
    WriteBy<T>(results[0], [&](int64_t i, int64_t j) { return vectors(i, place(j)); });
  } else {
    const T* given = reinterpret_cast<const T*>(operands[0].data);
    WriteBy<T>(results[0], [&](int64_t i, int64_t j) { return given[i * n + j]; });
  }
  WriteBy<double>(results[1], [&](int64_t i, int64_t) {
    return reduced.diagonal[static_cast<size_t>(place(i))] * normal.power;
  });
  WriteNumber(results[2], 0);
}

void SymmetricOfType(const Letters& letters, std::span<const Array> operands,
                     std::span<const Array> results) {
  const bool is_single = operands[0].type == ElementType::kF32;
  return (is_single ? Symmetric<float> : Symmetric<double>)(letters, operands, results);
}

// LAPACK reduces upper triangles from their last row on: as lower ones, with the order of rows and
// columns reversed.
template <typename W>
void ToTridiagonal(const Letters& letters, std::span<const Array> operands,
                   std::span<const Array> results) {
  DenseOf<W> given = Read<W>(operands[0]);
  const int64_t n = given.rows();
  WriteNumber(results[4], 0);
  if (n == 0) return;
  const bool reversed = !letters.lower;
  auto place = [&](int64_t i) { return reversed ? n - 1 - i : i; };
  DenseOf<W> matrix = LowerOf<W>(given, true, reversed);
  if (!matrix.allFinite()) return Fail(results, 0);
  const double power = Normalised(matrix);
  VectorOf<W> taus(n - 1);
  Eigen::VectorXd off(n - 1);
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t rest = n - 1 - k;
    auto tail = matrix.col(k).tail(rest - 1);
    taus(k) = Reflect<W>(matrix(k + 1, k), tail);
    off(k) = std::real(matrix(k + 1, k));
    VectorOf<W> v(rest);
    v << W(1), tail;
    // H^H A H = A - v w^H - w v^H, with w = tau A v - (|tau|^2 v^H A v / 2) v.
    auto corner = matrix.bottomRightCorner(rest, rest);
    VectorOf<W> w = corner.template selfadjointView<Eigen::Lower>() * v;
    const W square = v.dot(w) * W(std::norm(taus(k)) / 2);
    w = taus(k) * w - square * v;
    corner.template selfadjointView<Eigen::Lower>().rankUpdate(v, w, W(-1));
  }
  for (int64_t j = 0; j < n; ++j) {
    given(place(j), place(j)) = std::real(matrix(j, j)) * power;
    for (int64_t i = j + 1; i < n; ++i) {
      given(place(i), place(j)) = i == j + 1 ? W(off(j) * power) : matrix(i, j);
    }
  }
  Write(results[0], given);
  Write(results[1], Eigen::VectorXd(given.diagonal().real()));
  auto offset = [&](int64_t i) { return reversed ? n - 2 - i : i; };
  WriteBy<double>(results[2], [&](int64_t i, int64_t) { return off(offset(i)) * power; });
  WriteBy<W>(results[3], [&](int64_t i, int64_t) { return taus(offset(i)); });
}

}  // namespace

Kernels SelfAdjointKernels() { return {SymmetricOfType, Hermitian}; }
Kernels ToTridiagonalKernels() { return {ToTridiagonal<double>, ToTridiagonal<Complex>}; }

}  // namespace kiln::runtime::lib::linear
