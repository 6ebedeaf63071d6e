// QR with pivoting, products with the reflections of a QR, and tridiagonal systems.
#include <utility>

#include "runtime/lib/linear/lapack_call.h"

namespace kiln::runtime::lib::linear {
namespace {

// Norms of the columns' rest, updated as Drmac and Bujanovic propose ("On the failure of
// rank-revealing QR factorization software", 2008), as LAPACK's laqp2 does.
class RestNorms {
 public:
  template <typename W>
  explicit RestNorms(const DenseOf<W>& matrix)
      : norms_(matrix.colwise().norm()), computed_(norms_) {}

  int64_t Largest(int64_t from) const {
    int64_t at = 0;
    norms_.tail(norms_.size() - from).maxCoeff(&at);
    return from + at;
  }
  void Swap(int64_t i, int64_t j) {
    std::swap(norms_(i), norms_(j));
    std::swap(computed_(i), computed_(j));
  }
  // Row k is gone from the rest of columns behind k.
  template <typename W>
  void Remove(const DenseOf<W>& matrix, int64_t k) {
    const int64_t below = matrix.rows() - k - 1;
    for (int64_t j = k + 1; j < matrix.cols(); ++j) {
      if (norms_(j) == 0) continue;
      const double part = std::abs(matrix(k, j)) / norms_(j);
      const double left = std::max(0.0, 1 - part * part), ratio = norms_(j) / computed_(j);
      if (left * ratio * ratio > std::sqrt(std::numeric_limits<double>::epsilon())) {
        norms_(j) *= std::sqrt(left);
      } else {
        norms_(j) = computed_(j) = matrix.col(j).tail(below).norm();
      }
    }
  }

 private:
  Eigen::RowVectorXd norms_, computed_;
};

// One step: the reflection of column k, on the columns behind it.
template <typename W>
W ReflectColumn(DenseOf<W>& matrix, int64_t k) {
  const int64_t below = matrix.rows() - k - 1, behind = matrix.cols() - k - 1;
  auto tail = matrix.col(k).tail(below);
  const W tau = Reflect<W>(matrix(k, k), tail);
  ReflectRows<W>(matrix.bottomRightCorner(below + 1, behind), tail, Eigen::numext::conj(tau));
  return tau;
}

// Columns whose entry is not 0 are moved to the front and keep their order; the others are pivoted.
// Results are R above the reflections, each column's place in the operand, from 1, and the taus.
template <typename W>
void PivotedQr(const Letters&, std::span<const Array> operands, std::span<const Array> results) {
  DenseOf<W> matrix = Read<W>(operands[0]);
  const int64_t m = matrix.rows(), n = matrix.cols(), steps = std::min(m, n);
  auto* order = reinterpret_cast<int32_t*>(results[1].data);
  const auto* given = reinterpret_cast<const int32_t*>(operands[1].data);
  int64_t fixed = 0;
  for (int64_t j = 0; j < n; ++j) {
    const bool is_fixed = given[j] != 0;
    order[j] = static_cast<int32_t>(j) + 1;
    if (!is_fixed) continue;
    if (j != fixed) {
      matrix.col(j).swap(matrix.col(fixed));
      std::swap(order[j], order[fixed]);
    }
    ++fixed;
  }
  if (!matrix.allFinite()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Fill(results[0], nan);
    return Fill(results[2], nan);
  }
  const double power = Normalised(matrix);
  VectorOf<W> taus(steps);
  fixed = std::min(fixed, steps);
  for (int64_t k = 0; k < fixed; ++k) taus(k) = ReflectColumn(matrix, k);
  if (fixed < steps) {
    RestNorms norms(DenseOf<W>(matrix.bottomRows(m - fixed)));
    for (int64_t k = fixed; k < steps; ++k) {
      const int64_t pivot = norms.Largest(k);
      if (pivot != k) {
        matrix.col(k).swap(matrix.col(pivot));
        std::swap(order[k], order[pivot]);
        norms.Swap(k, pivot);
      }
      taus(k) = ReflectColumn(matrix, k);
      norms.Remove(matrix, k);
    }
  }
  WriteBy<W>(results[0],
             [&](int64_t i, int64_t j) { return i > j ? matrix(i, j) : W(matrix(i, j) * power); });
  Write(results[2], taus);
}

// Q C, Q^H C, C Q or C Q^H, for Q the product of the operand's reflections in their order.
template <typename W>
void ByReflections(const Letters& letters, std::span<const Array> operands,
                   std::span<const Array> results) {
  const DenseOf<W> reflections = Read<W>(operands[0]), taus = Read<W>(operands[1]);
  DenseOf<W> c = Read<W>(operands[2]);
  const int64_t steps = taus.rows(), size = reflections.rows();
  const bool from_first = letters.left == letters.transposed;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t k = from_first ? step : steps - 1 - step;
    const auto tail = reflections.col(k).tail(size - k - 1);
    const W tau = letters.transposed ? Eigen::numext::conj(taus(k, 0)) : taus(k, 0);
    if (letters.left) {
      ReflectRows<W>(c.bottomRows(size - k), tail, tau);
    } else {
      ReflectColumns<W>(c.rightCols(size - k), tail, tau);
    }
  }
  Write(results[0], c);
}

double SizeOf(double x) { return std::abs(x); }
double SizeOf(Complex x) { return std::abs(x.real()) + std::abs(x.imag()); }

// Gauss' elimination with swaps of neighbours. The operands' diagonals have n elements: the first
// of the lower and the last of the upper one are not used. Results are the diagonals of the factor
// U, the highest one in the place of the lower, the solution, and info: from 1, the first pivot
// that is 0.
template <typename W>
void Tridiagonal(const Letters&, std::span<const Array> operands, std::span<const Array> results) {
  DenseOf<W> lower = Read<W>(operands[0]), diagonal = Read<W>(operands[1]),
             upper = Read<W>(operands[2]), b = Read<W>(operands[3]);
  const int64_t n = diagonal.rows();
  auto eliminate = [&]() -> int64_t {
    for (int64_t k = 0; k + 1 < n; ++k) {
      W &d = diagonal(k, 0), &next = diagonal(k + 1, 0), &l = lower(k + 1, 0), &u = upper(k, 0);
      const bool has_more = k + 2 < n;
      if (SizeOf(d) >= SizeOf(l)) {
        if (d == W(0)) return k + 1;
        const W factor = l / d;
        next -= factor * u;
        b.row(k + 1) -= factor * b.row(k);
        if (has_more) l = W(0);
        continue;
      }
      const W factor = d / l, below = next;
      d = l;
      next = u - factor * below;
      u = below;
      if (has_more) {
        l = upper(k + 1, 0);
        upper(k + 1, 0) = -factor * l;
      }
      b.row(k).swap(b.row(k + 1));
      b.row(k + 1) -= factor * b.row(k);
    }
    return n > 0 && diagonal(n - 1, 0) == W(0) ? n : 0;
  };
  const int64_t info = eliminate();
  for (int64_t k = n - 1; info == 0 && k >= 0; --k) {
    if (k + 1 < n) b.row(k) -= upper(k, 0) * b.row(k + 1);
    if (k + 2 < n) b.row(k) -= lower(k + 1, 0) * b.row(k + 2);
    b.row(k) /= diagonal(k, 0);
  }
  Write(results[0], lower);
  Write(results[1], diagonal);
  Write(results[2], upper);
  Write(results[3], b);
  WriteNumber(results[4], static_cast<int32_t>(info));
}

}  // namespace

Kernels PivotedQrKernels() { return {PivotedQr<double>, PivotedQr<Complex>}; }
Kernels ReflectionsKernels() { return {nullptr, ByReflections<Complex>}; }
Kernels TridiagonalKernels() { return {Tridiagonal<double>, Tridiagonal<Complex>}; }

}  // namespace kiln::runtime::lib::linear
