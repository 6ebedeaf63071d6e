// Singular values. A complex matrix is made bidiagonal, which is real, so that the iteration is
// compiled once.
#include <Eigen/SVD>
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/lib/linear/lapack_call.h"
#include "runtime/lib/linear/real.h"

namespace kiln::runtime::lib::linear {
namespace {

// A = U S V^H, with as many columns in U and V as wanted: none, min(m, n), or all.
struct Singular {
  DenseOf<Complex> u, v;
  std::vector<double> values;
  bool converged = true;
};

// The factors in the order of values, which are made positive.
template <typename T>
class Factors {
 public:
  explicit Factors(const RealSingular<T>& found)
      : found_(found), order_(OrderOf(found.values, true)) {
    for (int64_t i : order_) values_.push_back(std::abs(found.values[static_cast<size_t>(i)]));
  }

  const std::vector<double>& values() const { return values_; }
  // Columns of U beyond the values stay where they are.
  T u(int64_t i, int64_t j) const {
    const auto at = static_cast<size_t>(j);
    return found_.u(i, at < order_.size() ? order_[at] : j);
  }
  T v(int64_t i, int64_t j) const {
    const int64_t place = order_[static_cast<size_t>(j)];
    const T x = found_.v(i, place);
    return std::signbit(found_.values[static_cast<size_t>(place)]) ? -x : x;
  }

 private:
  const RealSingular<T>& found_;
  const std::vector<int64_t> order_;
  std::vector<double> values_;
};

void FillVectors(std::span<const Array> results) {
  Fill(results[2], 0);
  Fill(results[3], 0);
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
Singular Decomposed(const DenseOf<Complex>& matrix, const Letters& letters) {
  const int64_t m = matrix.rows(), n = matrix.cols();
  if (m < n) {
    Singular other = Decomposed(DenseOf<Complex>(matrix.adjoint()), letters);
    std::swap(other.u, other.v);
    return other;
  }
  Eigen::internal::UpperBidiagonalization<DenseOf<Complex>> bidiagonal(matrix);
  const DenseOf<double> bands = bidiagonal.bidiagonal().toDenseMatrix();
  Columns<double> inner(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < std::min(i + 2, n); ++j) inner(i, j) = bands(i, j);
  }
  RealSingular<double> found = Decomposed(std::move(inner), letters.vectors, n);
  const Factors<double> factors(found);
  Singular made;
  made.values = factors.values();
  made.converged = found.converged;
  if (letters.vectors) {
    auto dense = [&](auto&& element) {
      return DenseOf<double>(DenseOf<double>::NullaryExpr(n, n, element));
    };
    const auto u = dense([&](int64_t i, int64_t j) { return factors.u(i, j); });
    const auto v = dense([&](int64_t i, int64_t j) { return factors.v(i, j); });
    made.u = Extended(bidiagonal.householderU(), m, letters.all ? m : n, u);
    made.v = Extended(bidiagonal.householderV(), n, n, v);
  }
  return made;
}

bool IsEmpty(std::span<const Array> operands, std::span<const Array> results) {
  if (operands[0].rows > 0 && operands[0].columns > 0) return false;
  auto is_diagonal = [](int64_t i, int64_t j) { return i == j ? 1.0 : 0.0; };
  WriteBy<double>(results[2], is_diagonal);
  WriteBy<double>(results[3], is_diagonal);
  WriteNumber(results[4], 0);
  return true;
}

void WriteValues(std::span<const Array> results, std::span<const double> values, double power) {
  WriteBy<double>(results[1],
                  [&](int64_t i, int64_t) { return values[static_cast<size_t>(i)] * power; });
  WriteNumber(results[4], 0);
}

// Results are the matrix, destroyed by LAPACK and returned as it was, the values, U, V^H and info.
template <bool kRejectsNans>
void ComplexValues(const Letters& letters, std::span<const Array> operands,
                   std::span<const Array> results) {
  if (IsEmpty(operands, results)) return;
  DenseOf<Complex> matrix = Read<Complex>(operands[0]);
  if (!matrix.allFinite()) return Fail(results, kRejectsNans && HasNan(matrix) ? -4 : 1);
  Write(results[0], matrix);
  const double power = Normalised(matrix);
  const Singular found = Decomposed(matrix, letters);
  if (!found.converged) return Fail(results, 1);
  WriteValues(results, found.values, power);
  if (!letters.vectors) return FillVectors(results);
  Write(results[2], found.u);
  Write(results[3], DenseOf<Complex>(found.v.adjoint()));
}

template <typename T>
void RealValues(const Letters& letters, std::span<const Array> operands,
                std::span<const Array> results, bool rejects_nans) {
  const int64_t m = operands[0].rows, n = operands[0].columns;
  const bool transposed = m < n;
  Normal<T> normal = ReadNormal<T>(operands[0], transposed, 'A');
  const T* given = reinterpret_cast<const T*>(operands[0].data);
  if (!normal.is_finite) {
    const bool has_nan = std::any_of(given, given + m * n, [](T x) { return std::isnan(x); });
    return Fail(results, rejects_nans && has_nan ? -4 : 1);
  }
  WriteBy<T>(results[0], [&](int64_t i, int64_t j) { return given[i * n + j]; });
  const int64_t columns = letters.all ? std::max(m, n) : std::min(m, n);
  RealSingular<T> found = Decomposed(std::move(normal.matrix), letters.vectors, columns);
  if (!found.converged) return Fail(results, 1);
  const Factors<T> factors(found);
  WriteValues(results, factors.values(), normal.power);
  if (!letters.vectors) return FillVectors(results);
  WriteBy<T>(results[2],
             [&](int64_t i, int64_t j) { return transposed ? factors.v(i, j) : factors.u(i, j); });
  WriteBy<T>(results[3],
             [&](int64_t i, int64_t j) { return transposed ? factors.u(j, i) : factors.v(j, i); });
}

template <bool kRejectsNans>
void RealValuesOfType(const Letters& letters, std::span<const Array> operands,
                      std::span<const Array> results) {
  if (IsEmpty(operands, results)) return;
  const bool is_single = operands[0].type == ElementType::kF32;
  (is_single ? RealValues<float> : RealValues<double>)(letters, operands, results, kRejectsNans);
}

}  // namespace

Kernels SingularKernels(bool rejects_nans) {
  if (rejects_nans) return {RealValuesOfType<true>, ComplexValues<true>};
  return {RealValuesOfType<false>, ComplexValues<false>};
}

}  // namespace kiln::runtime::lib::linear
