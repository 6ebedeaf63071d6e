#include "runtime/lib/linear/linear.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "base/stack.h"
#include "base/strings.h"
#include "runtime/lib/attributes.h"
#include "runtime/lib/linear/kernels.h"
#include "runtime/lib/linear/loops.h"
#include "runtime/lib/parallel.h"
#include "tensor/small_float.h"

namespace kiln::runtime::lib {
namespace {

using linear::LoadLanes;
using linear::Real;
using linear::StoreLanes;
using linear::Triangle;

// Batches are split into pieces of this much work, up to this number.
constexpr int64_t kWorkOfPiece = 1 << 16;
constexpr int64_t kMostPieces = 16;

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The matrices of an array, and their pieces.
struct Batch {
  int64_t count = 0, rows = 0, columns = 0;
  int64_t pieces = 1;

  int64_t elements() const { return rows * columns; }
  bool AreSmall() const { return rows < linear::kSmall && columns < linear::kSmall; }
  int64_t FirstOf(int64_t piece) const { return count * piece / pieces; }
};

Batch BatchOf(const Shape& shape, int64_t n) {
  Batch batch;
  batch.rows = shape.dim(shape.rank() - 2);
  batch.columns = shape.dim(shape.rank() - 1);
  batch.count = batch.elements() > 0 ? shape.num_elements() / batch.elements() : 0;
  // In double, as it may be large.
  const double work = static_cast<double>(batch.count) * static_cast<double>(batch.elements()) *
                      static_cast<double>(n) / static_cast<double>(kWorkOfPiece);
  batch.pieces = static_cast<int64_t>(std::clamp(work, 1.0, static_cast<double>(kMostPieces)));
  batch.pieces = std::max<int64_t>(std::min(batch.pieces, batch.count), 1);
  return batch;
}

// f(type of computation, type in memory).
template <typename F>
auto VisitMatrixType(ElementType type, F&& f) -> decltype(f(float{}, float{})) {
  switch (type) {
    case ElementType::kF16:
      return f(float{}, Float16{});
    case ElementType::kBF16:
      return f(float{}, BFloat16{});
    case ElementType::kF32:
      return f(float{}, float{});
    case ElementType::kF64:
      return f(double{}, double{});
    case ElementType::kC64:
      return f(std::complex<float>{}, std::complex<float>{});
    case ElementType::kC128:
      return f(std::complex<double>{}, std::complex<double>{});
    default:
      return Unimplemented("no decomposition of ", TypeName(type));
  }
}

// Conversion to another type; the identity for its own.
template <typename To, typename From>
To As(From x) {
  return static_cast<To>(x);
}

// The number of small matrices between two polls for cancellation, a multiple of those of a block.
constexpr int64_t kSmallBetweenPolls = 64;

// Whether the matrices are decomposed in lanes, many at once.
template <typename T>
bool InLanes(const Batch& batch) {
  return std::is_same_v<T, Real<T>> && batch.AreSmall() && batch.count >= linear::kFewestInLanes;
}

// Scratch of the call, of this size per piece.
struct Scratch {
  void* memory = nullptr;
  int64_t piece_bytes = 0;

  void* Of(int64_t piece) const { return static_cast<std::byte*>(memory) + piece * piece_bytes; }
};

// Runs f(first, count, scratch of the piece) for matrices that follow one another, piece by piece
// in their order: one, or several small ones. f may throw bad_alloc.
template <typename F>
Status ForMatrices(const kiln_frame* frame, const Batch& batch, const Scratch& scratch, F&& f) {
  const int64_t step = batch.AreSmall() ? kSmallBetweenPolls : 1;
  std::atomic<bool> failed{false};
  ForEach(frame, batch.pieces, [&](int64_t piece) {
    auto run = [&] {
      void* const own = scratch.Of(piece);
      const int64_t end = batch.FirstOf(piece + 1);
      for (int64_t i = batch.FirstOf(piece); i < end && !IsCancelled(frame); i += step) {
        f(i, std::min(step, end - i), own);
      }
    };
    try {
      if (batch.AreSmall()) return run();
      // Eigen has arrays in its frames.
      if (!OnOwnStack(run).ok()) failed.store(true, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
      failed.store(true, std::memory_order_relaxed);
    }
  });
  if (failed.load()) return ResourceExhausted("there is no memory for it");
  return OkStatus();
}

// --- Cholesky

template <typename T, typename Stored>
class Cholesky : public Function {
 public:
  Cholesky(const Batch& batch, bool lower) : batch_(batch), lower_(lower) {}

  // Scratch of a piece: a block of lanes, or the converted matrix if types differ.
  static int64_t OwnBytes(const Batch& batch, int64_t) {
    if (InLanes<T>(batch)) return batch.elements() * linear::kMostLaneBytes;
    if (std::is_same_v<T, Stored>) return 0;
    return Aligned(batch.elements() * static_cast<int64_t>(sizeof(T)));
  }

  Status Run(const kiln_frame* frame, void* const* args) const override {
    const auto* from = static_cast<const Stored*>(args[0]);
    auto* to = static_cast<Stored*>(args[1]);
    Scratch scratch;
    if (OwnBytes(batch_, batch_.rows) > 0) scratch = {args[2], OwnBytes(batch_, batch_.rows)};
    return ForMatrices(frame, batch_, scratch, [&](int64_t first, int64_t count, void* own) {
      const int64_t elements = batch_.elements();
      if constexpr (std::is_same_v<T, Real<T>>) {
        if (InLanes<T>(batch_)) {
          return RunLanes(from + first * elements, to + first * elements, count, own);
        }
      }
      for (int64_t i = first; i < first + count; ++i) {
        RunOne(frame, from + i * elements, to + i * elements, own);
      }
    });
  }

 private:
  void RunLanes(const Stored* from, Stored* to, int64_t count, void* own) const {
    const linear::Lanes<T>& lanes = linear::LoopsOfMachine<T>().lanes;
    const int64_t elements = batch_.elements(), width = lanes.width;
    T* const block = static_cast<T*>(own);
    for (int64_t i = 0; i < count; i += width) {
      const int64_t matrices = std::min(width, count - i);
      LoadLanes(lanes, from + i * elements, elements, matrices, block);
      lanes.cholesky(block, batch_.rows, lower_);
      StoreLanes(lanes, block, elements, matrices, to + i * elements);
    }
  }

  void RunOne(const kiln_frame* frame, const Stored* from, Stored* to, void* own) const {
    T* a = static_cast<T*>(own);
    if constexpr (std::is_same_v<T, Stored>) a = to;
    const int64_t n = batch_.rows;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const bool inside = lower_ ? j <= i : j >= i;
        a[i * n + j] = inside ? As<T>(from[i * n + j]) : T(0);
      }
    }
    if (!linear::Decompose(frame, a, n, lower_)) {
      constexpr Real<T> kNan = std::numeric_limits<Real<T>>::quiet_NaN();
      T nan(kNan);
      if constexpr (!std::is_same_v<T, Real<T>>) nan = T(kNan, kNan);
      std::fill(a, a + n * n, nan);
    }
    if constexpr (!std::is_same_v<T, Stored>) {
      for (int64_t k = 0; k < n * n; ++k) to[k] = As<Stored>(a[k]);
    }
  }

  const Batch batch_;
  const bool lower_;
};

// --- Triangular solve

template <typename T, typename Stored>
class TriangularSolve : public Function {
 public:
  TriangularSolve(const Batch& sides, int64_t n, bool left, const Triangle& triangle)
      : sides_(sides), n_(n), left_(left), triangle_(triangle) {}

  // Scratch of a piece: blocks of lanes, or the triangle in the solver's form, and the converted
  // matrices if types differ.
  static int64_t OwnBytes(const Batch& sides, int64_t n) {
    if (InLanes<T>(sides)) return (n * n + sides.elements()) * linear::kMostLaneBytes;
    const auto bytes = static_cast<int64_t>(sizeof(T));
    const int64_t copies =
        std::is_same_v<T, Stored> ? 0 : Aligned(n * n * bytes) + Aligned(sides.elements() * bytes);
    return Aligned(n * n * bytes) + copies;
  }

  Status Run(const kiln_frame* frame, void* const* args) const override {
    const auto* a = static_cast<const Stored*>(args[0]);
    const auto* b = static_cast<const Stored*>(args[1]);
    auto* x = static_cast<Stored*>(args[2]);
    const Scratch scratch = {args[3], OwnBytes(sides_, n_)};
    return ForMatrices(frame, sides_, scratch, [&](int64_t first, int64_t count, void* own) {
      const int64_t elements = sides_.elements();
      if constexpr (std::is_same_v<T, Real<T>>) {
        if (InLanes<T>(sides_)) {
          return RunLanes(a + first * n_ * n_, b + first * elements, x + first * elements, count,
                          own);
        }
      }
      for (int64_t i = first; i < first + count; ++i) {
        RunOne(frame, a + i * n_ * n_, b + i * elements, x + i * elements, own);
      }
    });
  }

 private:
  void RunLanes(const Stored* a, const Stored* b, Stored* x, int64_t count, void* own) const {
    const linear::Lanes<T>& lanes = linear::LoopsOfMachine<T>().lanes;
    const int64_t elements = sides_.elements(), width = lanes.width;
    T *const triangles = static_cast<T*>(own), *const sides = triangles + n_ * n_ * width;
    const bool transposed = triangle_.transposed == left_;  // of x^T op(a)^T = b^T on the right
    for (int64_t i = 0; i < count; i += width) {
      const int64_t matrices = std::min(width, count - i);
      LoadLanes(lanes, a + i * n_ * n_, n_ * n_, matrices, triangles);
      LoadLanes(lanes, b + i * elements, elements, matrices, sides);
      lanes.solve(triangles, n_, transposed ? 1 : n_, transposed ? n_ : 1,
                  triangle_.lower != transposed, triangle_.unit_diagonal, sides,
                  left_ ? sides_.columns : sides_.rows, left_ ? sides_.columns : 1,
                  left_ ? 1 : sides_.columns);
      StoreLanes(lanes, sides, elements, matrices, x + i * elements);
    }
  }

  void RunOne(const kiln_frame* frame, const Stored* a, const Stored* b, Stored* x,
              void* own) const {
    const int64_t elements = sides_.elements();
    T* unfolded = static_cast<T*>(own);
    if constexpr (std::is_same_v<T, Stored>) {
      if (b != x) std::memcpy(x, b, static_cast<size_t>(elements) * sizeof(T));
      SolveOne(frame, a, x, unfolded);
    } else {
      const int64_t bytes = Aligned(n_ * n_ * static_cast<int64_t>(sizeof(T)));
      T* matrix = reinterpret_cast<T*>(static_cast<std::byte*>(own) + bytes);
      T* sides = reinterpret_cast<T*>(static_cast<std::byte*>(own) + 2 * bytes);
      for (int64_t k = 0; k < n_ * n_; ++k) matrix[k] = As<T>(a[k]);
      for (int64_t k = 0; k < elements; ++k) sides[k] = As<T>(b[k]);
      SolveOne(frame, matrix, sides, unfolded);
      for (int64_t k = 0; k < elements; ++k) x[k] = As<Stored>(sides[k]);
    }
  }

  // x op(a) = b is op(a)^T x^T = b^T.
  void SolveOne(const kiln_frame* frame, const T* a, T* x, T* unfolded) const {
    Triangle triangle = triangle_;
    if (left_) {
      linear::Solve(frame, a, n_, triangle, x, sides_.columns, sides_.columns, int64_t{1},
                    unfolded);
    } else {
      triangle.transposed = !triangle.transposed;
      linear::Solve(frame, a, n_, triangle, x, sides_.rows, int64_t{1}, sides_.columns, unfolded);
    }
  }

  const Batch sides_;
  const int64_t n_;
  const bool left_;
  const Triangle triangle_;
};

class Nothing : public Function {
 public:
  Status Run(const kiln_frame*, void* const*) const override { return OkStatus(); }
};

Status Refused(std::string_view op, const CallSignature& signature) {
  return InvalidArgument(op, ": the library has none of ", signature);
}

Status CheckCount(std::string_view op, const CallSignature& signature, size_t operands) {
  bool fits = signature.operands.size() == operands && signature.results.size() == 1;
  for (const Shape& shape : signature.operands) fits = fits && shape.rank() >= 2;
  fits = fits && signature.operands.back() == signature.results[0];
  if (fits && operands == 2) {
    // Checks equal batches and square matrices.
    std::vector<int64_t> a = signature.operands[0].dims(), b = signature.operands[1].dims();
    fits = a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin()) &&
           a.back() == a[a.size() - 2] &&
           signature.operands[0].type() == signature.operands[1].type();
  }
  return fits ? OkStatus() : Refused(op, signature);
}

// f(batch of the last operand, n, type of computation, type in memory).
template <typename F>
auto VisitMatrices(const CallSignature& signature, F&& f) {
  const Shape& a = signature.operands[0];
  const int64_t n = a.dim(a.rank() - 1);
  const Batch batch = BatchOf(signature.operands.back(), n);
  return VisitMatrixType(a.type(),
                         [&](auto computed, auto stored) { return f(batch, n, computed, stored); });
}

using Made = Result<std::shared_ptr<const Function>>;

template <typename F, typename... Args>
Made MakeFunction(const Args&... args) {
  return std::shared_ptr<const Function>(std::make_shared<F>(args...));
}

}  // namespace

Made MakeCholesky(const CallSignature& signature) {
  KILN_RETURN_IF_ERROR(CheckCount("cholesky", signature, 1));
  const bool lower = FlagOf(signature.attributes, "lower");
  return VisitMatrices(signature, [&](const Batch& batch, int64_t n, auto t, auto stored) -> Made {
    if (batch.rows != n) return Refused("cholesky", signature);
    if (batch.count == 0) return MakeFunction<Nothing>();
    return MakeFunction<Cholesky<decltype(t), decltype(stored)>>(batch, lower);
  });
}

Result<int64_t> CholeskyScratchBytes(const CallSignature& signature) {
  KILN_RETURN_IF_ERROR(CheckCount("cholesky", signature, 1));
  return VisitMatrices(
      signature, [&](const Batch& batch, int64_t n, auto t, auto stored) -> Result<int64_t> {
        return batch.pieces * Cholesky<decltype(t), decltype(stored)>::OwnBytes(batch, n);
      });
}

Made MakeTriangularSolve(const CallSignature& signature) {
  KILN_RETURN_IF_ERROR(CheckCount("triangular-solve", signature, 2));
  const bool left = FlagOf(signature.attributes, "left_side");
  const std::string_view op = AttributeOf(signature.attributes, "transpose_a");
  Triangle triangle;
  triangle.lower = FlagOf(signature.attributes, "lower");
  triangle.unit_diagonal = FlagOf(signature.attributes, "unit_diagonal");
  triangle.transposed = op == "TRANSPOSE" || op == "ADJOINT";
  triangle.conjugated = op == "ADJOINT";
  return VisitMatrices(signature, [&](const Batch& sides, int64_t n, auto t, auto stored) -> Made {
    if ((left ? sides.rows : sides.columns) != n) {
      return Refused("triangular-solve", signature);
    }
    if (sides.count == 0) return MakeFunction<Nothing>();
    return MakeFunction<TriangularSolve<decltype(t), decltype(stored)>>(sides, n, left, triangle);
  });
}

Result<int64_t> TriangularSolveScratchBytes(const CallSignature& signature) {
  KILN_RETURN_IF_ERROR(CheckCount("triangular-solve", signature, 2));
  return VisitMatrices(
      signature, [&](const Batch& sides, int64_t n, auto t, auto stored) -> Result<int64_t> {
        return sides.pieces * TriangularSolve<decltype(t), decltype(stored)>::OwnBytes(sides, n);
      });
}

}  // namespace kiln::runtime::lib
