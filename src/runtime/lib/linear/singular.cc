// Singular values. A complex matrix is made bidiagonal, which is real, so that the iteration is
// compiled once.
#include <Eigen/SVD>

#include "runtime/lib/linear/lapack_call.h"

namespace kiln::runtime::lib::linear {
namespace {

// A = U S V^H, with as many columns in U and V as wanted: none, min(m, n), or all.
template <typename W>
struct Singular {
  DenseOf<W> u, v;
  Eigen::VectorXd values;
  bool converged = true;
};

Singular<double> Decomposed(const DenseOf<double>& matrix, const Letters& letters) {
  unsigned options = 0;
  if (letters.all) {
    options = Eigen::ComputeFullU | Eigen::ComputeFullV;
  } else if (letters.vectors) {
    options = Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  Eigen::BDCSVD<DenseOf<double>> solver(matrix, options);
  Singular<double> found;
  found.values = solver.singularValues();
  found.converged = solver.info() == Eigen::Success;
  if (letters.vectors) {
    found.u = solver.matrixU();
    found.v = solver.matrixV();
  }
  return found;
}

// U1 times a matrix for the first rows, and 1 on the diagonal below it.
template <typename Reflections>
DenseOf<Complex> Extended(const Reflections& u1, int64_t rows, int64_t columns,
                          const DenseOf<double>& first) {
  DenseOf<Complex> u = DenseOf<Complex>::Identity(rows, columns);
  u.topLeftCorner(first.rows(), first.cols()) = first.cast<Complex>();
  u.applyOnTheLeft(u1);
  return u;
}

// Of at least as many rows as columns.
Singular<Complex> Decomposed(const DenseOf<Complex>& matrix, const Letters& letters) {
  const int64_t m = matrix.rows(), n = matrix.cols();
  if (m < n) {
    Singular<Complex> other = Decomposed(DenseOf<Complex>(matrix.adjoint()), letters);
    std::swap(other.u, other.v);
    return other;
  }
  Eigen::internal::UpperBidiagonalization<DenseOf<Complex>> bidiagonal(matrix);
  const Singular<double> inner =
      Decomposed(DenseOf<double>(bidiagonal.bidiagonal().toDenseMatrix()), letters);
  Singular<Complex> found;
  found.values = inner.values;
  found.converged = inner.converged;
  if (letters.vectors) {
    found.u = Extended(bidiagonal.householderU(), m, letters.all ? m : n, inner.u);
    found.v = Extended(bidiagonal.householderV(), n, n, inner.v);
  }
  return found;
}

// Results are the matrix, destroyed by LAPACK and returned as it was, the values, U, V^H and info.
template <typename W, bool kRejectsNans>
void SingularValues(const Letters& letters, std::span<const Array> operands,
                    std::span<const Array> results) {
  DenseOf<W> matrix = Read<W>(operands[0]);
  const int64_t m = matrix.rows(), n = matrix.cols();
  auto is_diagonal = [](int64_t i, int64_t j) { return i == j ? 1.0 : 0.0; };
  if (m == 0 || n == 0) {
    WriteBy<double>(results[2], is_diagonal);
    WriteBy<double>(results[3], is_diagonal);
    return WriteNumber(results[4], 0);
  }
  if (!matrix.allFinite()) return Fail(results, kRejectsNans && HasNan(matrix) ? -4 : 1);
  Write(results[0], matrix);
  const double power = Normalised(matrix);
  const Singular<W> found = Decomposed(matrix, letters);
  if (!found.converged || !found.values.allFinite()) return Fail(results, 1);
  Write(results[1], Eigen::VectorXd(found.values * power));
  if (letters.vectors) {
    Write(results[2], found.u);
    Write(results[3], DenseOf<W>(found.v.adjoint()));
  } else {
    Fill(results[2], 0);
    Fill(results[3], 0);
  }
  WriteNumber(results[4], 0);
}

}  // namespace

Kernels SingularKernels(bool rejects_nans) {
  if (rejects_nans) return {SingularValues<double, true>, SingularValues<Complex, true>};
  return {SingularValues<double, false>, SingularValues<Complex, false>};
}

}  // namespace kiln::runtime::lib::linear
