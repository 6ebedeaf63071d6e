#include "runtime/lib/fft/fft.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "runtime/lib/attributes.h"
#include "runtime/lib/fft/plan.h"
#include "runtime/lib/fft/roots.h"
#include "runtime/lib/parallel.h"

namespace kiln::runtime::lib {
namespace {

using namespace fft;  // NOLINT: the plans of this file's functions

// A transform along the last dimension works on rows; one side may be real.
enum class Rows { kComplex, kFromReal, kToReal };

// The minimal work of a piece, and the maximal number of pieces.
constexpr int64_t kPointsOfPiece = 1 << 14;
constexpr int64_t kMostPieces = 16;
// Longer rows are transformed one by one, by their columns; columns likewise, through a row.
constexpr int64_t kLongRow = 512;
constexpr int64_t kLongColumn = 4096;
// Arrays of this size stay in the second-level cache.
constexpr int64_t kNearBytes = 1 << 18;

int64_t PiecesOf(int64_t points) {
  return std::clamp<int64_t>(points / kPointsOfPiece, 1, kMostPieces);
}

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The transform: n points along the last dimension, `count` rows, and lengths[k] along the
// dimensions before, from the last to the first.
struct Description {
  ElementType type;  // of real numbers
  Rows rows;
  bool inverse = false;
  int64_t n = 0, count = 0;
  std::vector<int64_t> lengths;

  // Complex numbers in a row where it is complex, and in all.
  int64_t complex() const { return rows == Rows::kComplex ? n : n / 2 + 1; }
  int64_t points() const { return count * complex(); }
};

Result<Description> Describe(const CallSignature& signature) {
  auto bad = [&] { return InvalidArgument("fft: the library has no transform ", signature); };
  if (signature.operands.size() != 1 || signature.results.size() != 1) return bad();
  const Shape &from = signature.operands[0], &to = signature.results[0];
  const std::string_view type = AttributeOf(signature.attributes, "type");
  Description d;
  d.rows = type == "RFFT" ? Rows::kFromReal : type == "IRFFT" ? Rows::kToReal : Rows::kComplex;
  d.inverse = type == "IFFT" || type == "IRFFT";
  const ElementType complex = d.rows == Rows::kFromReal ? to.type() : from.type();
  if (complex != ElementType::kC64 && complex != ElementType::kC128) return bad();
  d.type = complex == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  for (std::string_view piece : Split(AttributeOf(signature.attributes, "length"), ',')) {
    std::optional<int64_t> length = ParseInt(piece);
    if (!length || *length < 0) return bad();
    d.lengths.insert(d.lengths.begin(), *length);
  }
  // The points are the real side's; the other side has all of them, or half of them, in the last
  // dimension.
  const Shape &real = d.rows == Rows::kToReal ? to : from, &other = &real == &to ? from : to;
  if (d.lengths.empty() || std::ssize(d.lengths) > real.rank()) return bad();
  for (size_t k = 0; k < d.lengths.size(); ++k) {
    if (real.dim(real.rank() - 1 - static_cast<int64_t>(k)) != d.lengths[k]) return bad();
  }
  d.n = d.lengths[0];
  Shape expected = real;
  expected.set_type(complex);
  if (d.rows != Rows::kComplex && d.n > 0) expected.set_dimension(real.rank() - 1, d.n / 2 + 1);
  if (d.rows == Rows::kToReal && d.n == 0 && other.rank() == real.rank()) {
    expected.set_dimension(real.rank() - 1, other.dim(real.rank() - 1));  // 0 or 1
  }
  const ElementType numbers = d.rows == Rows::kComplex ? complex : d.type;
  if (!(expected == other) || real.type() != numbers) return bad();
  d.lengths.erase(d.lengths.begin());
  d.count = d.n > 0 ? real.num_elements() / d.n : 0;
  return d;
}

// A pass along one dimension: the elements of a transform are `inner` complex numbers apart.
template <typename T>
class Columns {
 public:
  Columns(int64_t n, int64_t inner, const Kernels<T>& kernels)
      : n_(n), inner_(inner), scratch_bytes_(ScratchBytes(n)), kernels_(kernels) {
    if (n > kLongColumn) {
      row_.emplace(n, kernels);
    } else {
      lanes_.emplace(n, kernels);
    }
  }

  static int64_t ScratchBytes(int64_t n) {
    return n > kLongColumn ? Aligned(2 * n * static_cast<int64_t>(sizeof(T))) +
                                 Aligned(RowPlan<T>::ScratchBytes(n))
                           : 4 * LanePlan<T>::BlockElements(n) * kMostVectorBytes;
  }

  // In place, of so many arrays of n rows of `inner` numbers.
  void Run(const kiln_frame* frame, T* data, int64_t arrays, bool inverse, std::byte* scratch,
           int64_t pieces) const {
    const int64_t step = row_ ? 1 : kernels_.width, groups = (inner_ + step - 1) / step;
    const int64_t items = arrays * groups, own = scratch_bytes_;
    ForEach(frame, pieces, [&](int64_t piece) {
      std::byte* memory = scratch + piece * own;
      for (int64_t i = items * piece / pieces; i < items * (piece + 1) / pieces; ++i) {
        if (IsCancelled(frame)) return;
        const int64_t first = i % groups * step;
        T* at = data + 2 * (i / groups * n_ * inner_ + first);
        if (row_) {
          RunLong(at, inverse, memory);
          continue;
        }
        const int lanes = static_cast<int>(std::min(step, inner_ - first));
        T* a = reinterpret_cast<T*>(memory);
        T* b = a + 2 * lanes_->block_elements() * kernels_.width;
        kernels_.load_columns(at, inverse, nullptr, 2 * inner_, n_, lanes, a);
        const T* result = lanes_->Run(a, b);
        kernels_.store_columns(result, inverse, nullptr, false, at, 2 * inner_, n_, lanes, T(1));
      }
    });
  }

 private:
  void RunLong(T* at, bool inverse, std::byte* memory) const {
    T* row = reinterpret_cast<T*>(memory);
    for (int64_t k = 0; k < n_; ++k) {
      row[2 * k] = at[2 * k * inner_];
      row[2 * k + 1] = at[2 * k * inner_ + 1];
    }
    row_->Run(row, row, inverse, T(1), memory + Aligned(2 * n_ * static_cast<int64_t>(sizeof(T))));
    for (int64_t k = 0; k < n_; ++k) {
      at[2 * k * inner_] = row[2 * k];
      at[2 * k * inner_ + 1] = row[2 * k + 1];
    }
  }

  const int64_t n_, inner_;
  const int64_t scratch_bytes_;  // of a piece
  const Kernels<T>& kernels_;
  std::optional<LanePlan<T>> lanes_;
  std::optional<RowPlan<T>> row_;
};

// The transforms of the last dimension.
template <typename T>
class RowTransform {
 public:
  RowTransform(const Description& d, const Kernels<T>& kernels)
      : d_(d),
        kernels_(kernels),
        length_(LengthOf(d)),
        scratch_bytes_(ScratchBytes(d)),
        by_lanes_(length_ <= kLongRow && d.count >= kernels.width / 2),
        are_far_(2 * d.points() * static_cast<int64_t>(sizeof(T)) > kNearBytes) {
    if (by_lanes_) {
      lanes_.emplace(length_, kernels);
    } else {
      row_.emplace(length_, kernels);
    }
    if (d.rows == Rows::kComplex || d.n % 2 != 0) return;
    const Roots roots(d.n);
    roots_.resize(static_cast<size_t>(2 * (length_ + 1)));
    for (int64_t k = 0; k <= length_; ++k) {
      roots.Put(k % d.n, &roots_[static_cast<size_t>(2 * k)]);
    }
  }

  static int64_t ScratchBytes(const Description& d) {
    const int64_t length = LengthOf(d), complex = 2 * static_cast<int64_t>(sizeof(T));
    // Blocks: two of the transform, and two for splitting or merging rows.
    const int64_t block = std::max(LanePlan<T>::BlockElements(length), length + 1);
    const int64_t lanes = length <= kLongRow ? 4 * block * 2 * kMostVectorBytes : 0;
    return std::max(lanes,
                    Aligned((length + 1) * complex) + Aligned(RowPlan<T>::ScratchBytes(length)));
  }

  void Run(const kiln_frame* frame, const T* from, T* to, T scale, std::byte* scratch,
           int64_t pieces) const {
    const int64_t own = scratch_bytes_, step = RowsAtOnce();
    const int64_t items = (d_.count + step - 1) / step;
    ForEach(frame, pieces, [&](int64_t piece) {
      std::byte* memory = scratch + piece * own;
      for (int64_t i = items * piece / pieces; i < items * (piece + 1) / pieces; ++i) {
        if (IsCancelled(frame)) return;
        const int64_t first = i * step, rows = std::min(step, d_.count - first);
        const T* in = from + first * NumbersIn();
        T* out = to + first * NumbersOut();
        if (by_lanes_) {
          RunLanes(in, out, rows, scale, memory);
        } else {
          const bool is_last = !are_far_ || i + 1 == items * (piece + 1) / pieces;
          const NextRow<T> next{is_last ? nullptr : in + NumbersIn(),
                                is_last ? nullptr : out + NumbersOut()};
          RunRows(in, out, rows, scale, memory, next);
        }
      }
    });
  }

 private:
  // Lengths of the complex transforms: half for real rows of an even number of points; other real
  // rows are paired.
  static int64_t LengthOf(const Description& d) {
    return d.rows != Rows::kComplex && d.n % 2 == 0 ? d.n / 2 : d.n;
  }
  bool InPairs() const { return d_.rows != Rows::kComplex && d_.n % 2 != 0; }
  int64_t RowsAtOnce() const { return (by_lanes_ ? kernels_.width : 1) * (InPairs() ? 2 : 1); }
  int64_t NumbersIn() const { return d_.rows == Rows::kFromReal ? d_.n : 2 * d_.complex(); }
  int64_t NumbersOut() const { return d_.rows == Rows::kToReal ? d_.n : 2 * d_.complex(); }

  void RunLanes(const T* in, T* out, int64_t rows, T scale, std::byte* memory) const {
    const int64_t width = kernels_.width, h = length_, n = d_.n;
    const int64_t block = 2 * width * std::max(lanes_->block_elements(), h + 1);
    T* a = reinterpret_cast<T*>(memory);
    T *b = a + block, *c = b + block, *d = c + block;
    const int64_t numbers_in = NumbersIn(), numbers_out = NumbersOut();
    const int first = static_cast<int>(std::min(rows, width)),
              second = static_cast<int>(rows) - first;
    const T* in2 = in + width * numbers_in;
    T* out2 = out + width * numbers_out;
    auto load = [&](const T* at, int lanes, T* to) {
      kernels_.load_rows(at, numbers_in, numbers_in, lanes, to, 1, 0, false);
    };
    auto store = [&](const T* at, int lanes, T* to) {
      kernels_.store_rows(at, 1, 0, false, to, numbers_out, numbers_out, lanes, scale);
    };
    if (InPairs()) {
      if (d_.rows == Rows::kFromReal) {
        kernels_.load_rows(in, n, n, first, a, 2, 0, false);
        kernels_.load_rows(in2, n, n, second, a, 2, 1, false);
        kernels_.split_lanes(lanes_->Run(a, b), n, c, d);
        store(c, first, out);
        store(d, second, out2);
      } else {
        load(in, first, c);
        load(in2, second, d);
        kernels_.merge_lanes(c, d, n, a);
        const T* result = lanes_->Run(a, b);
        // Real and imaginary parts are swapped.
        kernels_.store_rows(result, 2, 1, false, out, n, n, first, scale);
        kernels_.store_rows(result, 2, 0, false, out2, n, n, second, scale);
      }
      return;
    }
    switch (d_.rows) {
      case Rows::kComplex: {
        kernels_.load_rows(in, numbers_in, numbers_in, first, a, 1, 0, d_.inverse);
        const T* result = lanes_->Run(a, b);
        kernels_.store_rows(result, 1, 0, d_.inverse, out, numbers_out, numbers_out, first, scale);
        return;
      }
      case Rows::kFromReal:
        load(in, first, a);
        kernels_.real_lanes(lanes_->Run(a, b), roots_.data(), h, c);
        store(c, first, out);
        return;
      case Rows::kToReal: {
        load(in, first, c);
        kernels_.complex_lanes(c, roots_.data(), h, a);
        const T* result = lanes_->Run(a, b);
        kernels_.store_rows(result, 1, 0, true, out, n, n, first, scale);
      }
    }
  }

  // One row, or a pair of them.
  void RunRows(const T* in, T* out, int64_t rows, T scale, std::byte* memory,
               const NextRow<T>& next) const {
    const int64_t n = d_.n;
    T* row = reinterpret_cast<T*>(memory);
    std::byte* rest = memory + Aligned((length_ + 1) * 2 * static_cast<int64_t>(sizeof(T)));
    if (!InPairs()) {
      switch (d_.rows) {
        case Rows::kComplex:
          return row_->Run(in, out, d_.inverse, scale, rest, next);
        case Rows::kFromReal:
          row_->Run(in, out, false, scale, rest, next);
          return kernels_.real_row(out, roots_.data(), length_, out);
        case Rows::kToReal:
          kernels_.complex_row(in, roots_.data(), length_, row);
          return row_->Run(row, out, true, scale, rest, {nullptr, next.to});
      }
    }
    const bool pair = rows == 2;
    const T* in2 = in + NumbersIn();
    T* out2 = out + NumbersOut();
    if (d_.rows == Rows::kFromReal) {
      for (int64_t k = 0; k < n; ++k) {
        row[2 * k] = in[k];
        row[2 * k + 1] = pair ? in2[k] : T(0);
      }
      row_->Run(row, row, false, scale, rest);
      for (int64_t k = 0; k <= n / 2; ++k) {
        const T *x = row + 2 * k, *y = row + 2 * (k == 0 ? 0 : n - k);
        out[2 * k] = (x[0] + y[0]) / 2;
        out[2 * k + 1] = (x[1] - y[1]) / 2;
        if (!pair) continue;
        out2[2 * k] = (x[1] + y[1]) / 2;
        out2[2 * k + 1] = (y[0] - x[0]) / 2;
      }
      return;
    }
    row[0] = in[0];
    row[1] = pair ? in2[0] : T(0);
    for (int64_t k = 1; k <= n / 2; ++k) {
      const T ar = in[2 * k], ai = in[2 * k + 1];
      const T br = pair ? in2[2 * k] : T(0), bi = pair ? in2[2 * k + 1] : T(0);
      row[2 * k] = ar - bi;
      row[2 * k + 1] = ai + br;
      row[2 * (n - k)] = ar + bi;
      row[2 * (n - k) + 1] = br - ai;
    }
    row_->Run(row, row, true, scale, rest);
    for (int64_t k = 0; k < n; ++k) {
      out[k] = row[2 * k];
      if (pair) out2[k] = row[2 * k + 1];
    }
  }

  const Description d_;
  const Kernels<T>& kernels_;
  const int64_t length_;
  const int64_t scratch_bytes_;  // of a piece
  const bool by_lanes_;
  const bool are_far_;  // from memory
  std::optional<LanePlan<T>> lanes_;
  std::optional<RowPlan<T>> row_;
  std::vector<T> roots_;
};

template <typename T>
class Fft : public Function {
 public:
  explicit Fft(const Description& d)
      : d_(d), scale_(ScaleOf(d)), pieces_(PiecesOf(d.points())), rows_(d, KernelsOfMachine<T>()) {
    int64_t inner = d.complex();
    for (int64_t length : d.lengths) {
      columns_.push_back({std::make_unique<Columns<T>>(length, inner, KernelsOfMachine<T>()),
                          length, d.points() / std::max<int64_t>(length * inner, 1)});
      inner *= length;
    }
  }

  static int64_t ScratchBytes(const Description& d) {
    int64_t own = RowTransform<T>::ScratchBytes(d);
    for (int64_t length : d.lengths) own = std::max(own, Columns<T>::ScratchBytes(length));
    return CopyBytes(d) + PiecesOf(d.points()) * own;
  }

  Status Run(const kiln_frame* frame, void* const* args) const override {
    const T* from = static_cast<const T*>(args[0]);
    T* to = static_cast<T*>(args[1]);
    auto* scratch = static_cast<std::byte*>(args[2]);
    std::byte* rest = scratch + CopyBytes(d_);
    if (d_.rows != Rows::kToReal) {
      rows_.Run(frame, from, to, scale_, rest, pieces_);
      RunColumns(frame, to, rest);
      return OkStatus();
    }
    if (CopyBytes(d_) > 0) {
      std::memcpy(scratch, from, static_cast<size_t>(2 * d_.points()) * sizeof(T));
      from = reinterpret_cast<const T*>(scratch);
      RunColumns(frame, reinterpret_cast<T*>(scratch), rest);
    }
    rows_.Run(frame, from, to, scale_, rest, pieces_);
    return OkStatus();
  }

 private:
  struct Axis {
    std::unique_ptr<Columns<T>> columns;
    int64_t length, arrays;
  };

  static T ScaleOf(const Description& d) {
    if (!d.inverse) return T(1);
    long double points = static_cast<long double>(d.n);
    for (int64_t length : d.lengths) points *= static_cast<long double>(length);
    return static_cast<T>(1 / points);
  }
  // After a transform along other dimensions the input is not the operand's memory.
  static int64_t CopyBytes(const Description& d) {
    if (d.rows != Rows::kToReal || d.lengths.empty()) return 0;
    return Aligned(2 * d.points() * static_cast<int64_t>(sizeof(T)));
  }

  void RunColumns(const kiln_frame* frame, T* data, std::byte* scratch) const {
    for (const Axis& axis : columns_) {
      if (axis.length == 1) continue;
      axis.columns->Run(frame, data, axis.arrays, d_.inverse, scratch, pieces_);
    }
  }

  const Description d_;
  const T scale_;
  const int64_t pieces_;
  const RowTransform<T> rows_;
  std::vector<Axis> columns_;
};

class Nothing : public Function {
 public:
  Status Run(const kiln_frame*, void* const*) const override { return OkStatus(); }
};

bool IsEmpty(const Description& d) {
  return d.points() == 0 || std::find(d.lengths.begin(), d.lengths.end(), 0) != d.lengths.end();
}

}  // namespace

Result<std::shared_ptr<const Function>> MakeFft(const CallSignature& signature) {
  KILN_ASSIGN_OR_RETURN(Description d, Describe(signature));
  std::shared_ptr<const Function> function;
  if (IsEmpty(d)) {
    function = std::make_shared<Nothing>();
  } else if (d.type == ElementType::kF32) {
    function = std::make_shared<Fft<float>>(d);
  } else {
    function = std::make_shared<Fft<double>>(d);
  }
  return function;
}

Result<int64_t> FftScratchBytes(const CallSignature& signature) {
  KILN_ASSIGN_OR_RETURN(Description d, Describe(signature));
  if (IsEmpty(d)) return 0;
  return d.type == ElementType::kF32 ? Fft<float>::ScratchBytes(d) : Fft<double>::ScratchBytes(d);
}

}  // namespace kiln::runtime::lib
