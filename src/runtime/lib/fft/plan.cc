#include "runtime/lib/fft/plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/lib/fft/residues.h"
#include "runtime/lib/fft/roots.h"

namespace kiln::runtime::lib::fft {
namespace {

// A shorter row is the only lane of a block.
constexpr int64_t kLeastColumns = 32;
// A transform by convolution is two transforms of the longer length, with more memory traffic.
constexpr double kConvolutionCost = 3;
// The cost of gathering an element of a long row, and scattering it back.
constexpr double kOrderCost = 20;

// exp(-i pi k^2 / n) for k < n: k^2 matters by its rest to 2 n.
template <typename T>
std::vector<T> ChirpOf(int64_t n) {
  const Roots roots(2 * n);
  std::vector<T> chirp(static_cast<size_t>(2 * n));
  for (int64_t k = 0; k < n; ++k) {
    const auto square = static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n));
    roots.Put(square, &chirp[static_cast<size_t>(2 * k)]);
  }
  return chirp;
}

// The kernel of a convolution of m points: the conjugate chirp from -n to n, divided by m for the
// inverse transform.
template <typename T>
std::vector<T> KernelOf(const std::vector<T>& chirp, int64_t n, int64_t m) {
  std::vector<T> kernel(static_cast<size_t>(2 * m));
  for (int64_t k = 0; k < n; ++k) {
    const T re = chirp[static_cast<size_t>(2 * k)], im = -chirp[static_cast<size_t>(2 * k + 1)];
    for (int64_t at : {k, (m - k) % m}) {
      kernel[static_cast<size_t>(2 * at)] = re / static_cast<T>(m);
      kernel[static_cast<size_t>(2 * at + 1)] = im / static_cast<T>(m);
    }
  }
  return kernel;
}

// For Rader's: exp(-2 pi i g^-k / n) over n - 1, where `order` has the powers g^k.
template <typename T>
std::vector<T> RootsInOrder(const std::vector<uint32_t>& order) {
  const size_t m = order.size();
  const Roots roots(static_cast<int64_t>(m) + 1);
  std::vector<T> kernel(2 * m);
  for (size_t k = 0; k < m; ++k) {
    roots.Put(order[(m - k) % m], &kernel[2 * k]);
    kernel[2 * k] /= static_cast<T>(m);
    kernel[2 * k + 1] /= static_cast<T>(m);
  }
  return kernel;
}

}  // namespace

std::vector<int> RadicesOf(int64_t n) {
  std::vector<int> radices;
  auto take = [&](int radix) {
    while (n % radix == 0) {
      radices.push_back(radix);
      n /= radix;
    }
  };
  take(8);
  // 16 is 4 times 4 rather than 8 times 2.
  if (n % 2 == 0 && n % 4 != 0 && !radices.empty()) {
    radices.back() = 4;
    radices.push_back(4);
    n /= 2;
  }
  for (int radix : {4, 2, 7, 5, 3}) take(radix);
  for (int radix = 11; radix <= kMaxRadix && n > 1; radix += 2) take(radix);
  if (n > 1) radices.clear();
  return radices;
}

double CostOf(int64_t n) {
  double cost = 0;
  std::vector<int> radices = RadicesOf(n);
  if (radices.empty() && n > 1) return std::numeric_limits<double>::infinity();
  for (int radix : radices) cost += radix == 8 ? 4.5 : radix <= 5 ? radix - 0.5 : 1.1 * radix;
  return cost;
}

int64_t GoodLength(int64_t n, int64_t of) {
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t sevens = of; sevens < 2 * n + of; sevens *= 7) {
    for (int64_t fives = sevens; fives < 2 * n + of; fives *= 5) {
      for (int64_t threes = fives; threes < 2 * n + of; threes *= 3) {
        int64_t length = threes;
        while (length < n) length *= 2;
        const double cost = static_cast<double>(length) * CostOf(length);
        if (cost < least) best = length, least = cost;
      }
    }
  }
  return best;
}

// --- LanePlan

template <typename T>
LanePlan<T>::LanePlan(int64_t n, const Kernels<T>& kernels) : n_(n), kernels_(kernels) {
  if (BlockElements(n) == n) {
    MakePasses();
  } else {
    MakeConvolution();
  }
}

template <typename T>
int64_t LanePlan<T>::BlockElements(int64_t n) {
  // Short enough for any pass.
  constexpr int64_t kSmall = 16;
  if (n <= kSmall) return n;
  const int64_t m = GoodLength(2 * n - 1, 1);
  const double by_convolution = kConvolutionCost * static_cast<double>(m) * CostOf(m);
  return static_cast<double>(n) * CostOf(n) <= by_convolution ? n : m;
}

template <typename T>
void LanePlan<T>::MakePasses() {
  const std::vector<int> radices = RadicesOf(n_);
  // The offsets of each pass's tables.
  struct Place {
    size_t twiddles, roots;
  };
  std::vector<Place> places;
  int64_t length = n_, stride = 1;
  for (int radix : radices) {
    const int64_t rest = length / radix;
    places.push_back({tables_.size(), 0});
    // Roots of `length`; of an odd radix beyond 5 there may be few passes and many roots.
    const Roots roots(length);
    for (int64_t p = 1; p < rest; ++p) {
      for (int64_t j = 1; j < radix; ++j) {
        tables_.resize(tables_.size() + 2);
        roots.Put(p * j, &tables_[tables_.size() - 2]);
      }
    }
    places.back().roots = tables_.size();
    if (radix % 2 != 0) {
      const Roots own(radix);
      for (int64_t k = 0; k < radix; ++k) tables_.push_back(static_cast<T>(own(k).real()));
      for (int64_t k = 0; k < radix; ++k) tables_.push_back(static_cast<T>(-own(k).imag()));
    }
    passes_.push_back({radix, rest, stride, nullptr, nullptr});
    length = rest;
    stride *= radix;
  }
  for (size_t i = 0; i < passes_.size(); ++i) {
    passes_[i].twiddles = tables_.data() + places[i].twiddles;
    passes_[i].roots = tables_.data() + places[i].roots;
  }
}

template <typename T>
void LanePlan<T>::MakeConvolution() {
  convolution_ = std::make_unique<Convolution>();
  Convolution& c = *convolution_;
  c.m = BlockElements(n_);
  c.plan = std::make_unique<LanePlan>(c.m, kernels_);
  c.chirp = ChirpOf<T>(n_);
  c.spectrum = KernelOf(c.chirp, n_, c.m);
  const RowPlan<T> row(c.m, kernels_);
  std::vector<std::byte> scratch(static_cast<size_t>(RowPlan<T>::ScratchBytes(c.m)));
  row.Run(c.spectrum.data(), c.spectrum.data(), false, T(1), scratch.data());
}

template <typename T>
T* LanePlan<T>::Run(T* a, T* b) const {
  if (!convolution_) {
    for (const Pass<T>& pass : passes_) {
      kernels_.pass(pass, a, b);
      std::swap(a, b);
    }
    return a;
  }
  const Convolution& c = *convolution_;
  kernels_.multiply_lanes(a, false, c.chirp.data(), false, n_, a);
  const int64_t element = 2 * kernels_.width;
  std::memset(a + n_ * element, 0, static_cast<size_t>((c.m - n_) * element) * sizeof(T));
  T* x = c.plan->Run(a, b);
  // The inverse transform is a transform of numbers with swapped parts.
  kernels_.multiply_lanes(x, false, c.spectrum.data(), true, c.m, x);
  T* y = c.plan->Run(x, x == a ? b : a);
  kernels_.multiply_lanes(y, true, c.chirp.data(), false, n_, y);
  return y;
}

template class LanePlan<float>;
template class LanePlan<double>;

// --- RowPlan

template <typename T>
typename RowPlan<T>::Kind RowPlan<T>::KindOf(int64_t n) {
  if (n < kLeastColumns) return Kind::kLanes;
  const int64_t m = ConvolutionLength(n);
  const double bluestein = kConvolutionCost * static_cast<double>(m) * CostOf(m);
  if (static_cast<double>(n) * CostOf(n) <= bluestein) {
    return SplitOf(n).rows > 1 ? Kind::kColumns : Kind::kLanes;
  }
  const double rader = static_cast<double>(n - 1) * (kConvolutionCost * CostOf(n - 1) + kOrderCost);
  const bool ordered = rader < bluestein && n <= std::numeric_limits<uint32_t>::max();
  return ordered && IsPrime(n) ? Kind::kRader : Kind::kBluestein;
}

// Both factors fill the lanes of the widest vectors if possible.
template <typename T>
int64_t RowPlan<T>::ConvolutionLength(int64_t n) {
  constexpr int64_t kWidest = kMostVectorBytes / static_cast<int64_t>(sizeof(T));
  return GoodLength(2 * n - 1, 2 * n >= 16 * kWidest * kWidest ? kWidest * kWidest : 1);
}

template <typename T>
typename RowPlan<T>::Split RowPlan<T>::SplitOf(int64_t n) {
  constexpr int64_t kWidest = kMostVectorBytes / static_cast<int64_t>(sizeof(T));
  // The elements of a block in the first-level cache, and in the second-level cache.
  constexpr int64_t kFirst = 256, kSecond = 4096;
  Split best{1, n};
  double least = std::numeric_limits<double>::infinity();
  auto part = [&](int64_t length, int64_t lanes) {
    const double filled =
        static_cast<double>((lanes + kWidest - 1) / kWidest * kWidest) / static_cast<double>(lanes);
    const double far = length > kSecond ? 2 : length > kFirst ? 1.2 : 1;
    return filled * far * (CostOf(length) + 3);
  };
  for (int64_t rows = 2; rows * rows <= n; ++rows) {
    if (n % rows != 0) continue;
    for (int64_t r : {rows, n / rows}) {
      const double cost = part(r, n / r) + part(n / r, r);
      if (cost < least) best = {r, n / r}, least = cost;
    }
  }
  return best;
}

template <typename T>
RowPlan<T>::RowPlan(int64_t n, const Kernels<T>& kernels)
    : n_(n), kernels_(kernels), kind_(KindOf(n)) {
  switch (kind_) {
    case Kind::kLanes:
      first_ = std::make_unique<LanePlan<T>>(n, kernels);
      break;
    case Kind::kColumns:
      MakeColumns(n);
      break;
    case Kind::kBluestein: {
      const int64_t m = ConvolutionLength(n);
      MakeColumns(m);
      chirp_ = ChirpOf<T>(n);
      MakeSpectrum(KernelOf(chirp_, n, m));
      break;
    }
    case Kind::kRader:
      MakeColumns(n - 1);
      order_ = PowersOfPrimitiveRoot(n);
      MakeSpectrum(RootsInOrder<T>(order_));
      break;
  }
}

template <typename T>
void RowPlan<T>::MakeColumns(int64_t n) {
  const Split split = SplitOf(n);
  first_ = std::make_unique<LanePlan<T>>(split.rows, kernels_);
  second_ = std::make_unique<LanePlan<T>>(split.columns, kernels_);
  const Roots roots(n);
  const int64_t width = kernels_.width, blocks = (split.columns + width - 1) / width;
  twiddles_.resize(static_cast<size_t>(2 * blocks * split.rows * width));
  T* to = twiddles_.data();
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t k = 0; k < split.rows; ++k, to += 2 * width) {
      for (int64_t j = 0; j < width && block * width + j < split.columns; ++j) {
        T root[2];
        roots.Put((block * width + j) * k, root);
        to[j] = root[0];
        to[width + j] = root[1];
      }
    }
  }
}

template <typename T>
void RowPlan<T>::MakeSpectrum(std::vector<T> kernel) {
  const int64_t rows = first_->n(), columns = second_->n(), m = rows * columns;
  const int64_t width = kernels_.width, blocks = (rows + width - 1) / width;
  std::vector<std::byte> scratch(static_cast<size_t>(ColumnsBytes(m)));
  RunColumns(kernel.data(), kernel.data(), false, T(1), scratch.data());
  spectrum_.resize(static_cast<size_t>(2 * blocks * width * columns));
  for (int64_t k = 0; k < m; ++k) {
    const int64_t row = k % rows, column = k / rows;
    T* to =
        &spectrum_[static_cast<size_t>((row / width * columns + column) * 2 * width + row % width)];
    to[0] = kernel[static_cast<size_t>(2 * k)];
    to[width] = kernel[static_cast<size_t>(2 * k + 1)];
  }
}

template <typename T>
int64_t RowPlan<T>::ColumnsBytes(int64_t n) {
  constexpr int64_t kNumber = static_cast<int64_t>(sizeof(T)), kElement = 2 * kMostVectorBytes;
  const Split split = SplitOf(n);
  const int64_t block =
      std::max(LanePlan<T>::BlockElements(split.rows), LanePlan<T>::BlockElements(split.columns));
  // Two blocks, and the rows in blocks of the widest vectors.
  const int64_t rows = split.rows * kNumber + kMostVectorBytes;
  return 2 * block * kElement + rows * 2 * LanePlan<T>::BlockElements(split.columns);
}

// The elements in the order of the convolution.
template <typename T>
int64_t RowPlan<T>::OrderedBytes(int64_t n) {
  const auto bytes = 2 * (n - 1) * static_cast<int64_t>(sizeof(T));
  return (bytes + kMostVectorBytes - 1) / kMostVectorBytes * kMostVectorBytes;
}

template <typename T>
int64_t RowPlan<T>::ScratchBytes(int64_t n) {
  switch (KindOf(n)) {
    case Kind::kLanes:
      return 4 * LanePlan<T>::BlockElements(n) * kMostVectorBytes;
    case Kind::kColumns:
      return ColumnsBytes(n);
    case Kind::kBluestein:
      return ColumnsBytes(ConvolutionLength(n));
    case Kind::kRader:
      return OrderedBytes(n) + ColumnsBytes(n - 1);
  }
  return 0;
}

template <typename T>
void RowPlan<T>::Run(const T* from, T* to, bool inverse, T scale, std::byte* scratch,
                     const NextRow<T>& next) const {
  switch (kind_) {
    case Kind::kLanes: {
      T* a = reinterpret_cast<T*>(scratch);
      T* b = a + first_->block_elements() * 2 * kernels_.width;
      kernels_.load_rows(from, 0, 2 * n_, 1, a, 1, 0, inverse);
      T* result = first_->Run(a, b);
      kernels_.store_rows(result, 1, 0, inverse, to, 0, 2 * n_, 1, scale);
      return;
    }
    case Kind::kColumns:
      return RunColumns(from, to, inverse, scale, scratch, next);
    case Kind::kBluestein:
      return Convolve(from, n_, to, inverse, scale, scratch, nullptr);
    case Kind::kRader:
      return RunRader(from, to, inverse, scale, scratch);
  }
}

template <typename T>
T* RowPlan<T>::TurnedIn(std::byte* scratch) const {
  const int64_t block = std::max(first_->block_elements(), second_->block_elements());
  return reinterpret_cast<T*>(scratch) + 4 * block * kernels_.width;
}

// Asks for the lines of so many numbers. Rows in memory are read and written by columns, which
// nothing else brings in time.
template <typename T>
static void FetchPart(const T* at, int64_t numbers) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t k = 0; k < numbers; k += kLine) __builtin_prefetch(at + k, 0, 3);
}

// With j = j1 columns + j2 and k = k1 + k2 rows:
// X[k] = sum over j2 of root(j2 k1 / n) root(j2 k2 / columns) sum over j1 of x[j] root(j1 k1 /
// rows)
template <typename T>
void RowPlan<T>::RunColumns(const T* from, T* to, bool inverse, T scale, std::byte* scratch,
                            const NextRow<T>& next) const {
  const int64_t rows = first_->n(), columns = second_->n(), width = kernels_.width;
  T* a = reinterpret_cast<T*>(scratch);
  T* turned = TurnedIn(scratch);
  T* b = a + (turned - a) / 2;
  const int64_t turned_elements = second_->block_elements();
  for (int64_t j = 0; j < columns; j += width) {
    const int lanes = static_cast<int>(std::min(width, columns - j));
    if (next.from) FetchPart(next.from + 2 * rows * j, 2 * rows * lanes);
    kernels_.load_columns(from + 2 * j, inverse, nullptr, 2 * columns, rows, lanes, a);
    const T* result = first_->Run(a, b);
    kernels_.twist(result, twiddles_.data() + 2 * j * rows, rows, j, lanes, turned,
                   turned_elements);
  }
  for (int64_t k = 0; k < rows; k += width) {
    const int lanes = static_cast<int>(std::min(width, rows - k));
    if (next.to) FetchPart(next.to + 2 * columns * k, 2 * columns * lanes);
    T* x = turned + k * 2 * turned_elements;
    const T* result = second_->Run(x, a);
    kernels_.store_columns(result, inverse, nullptr, false, to + 2 * k, 2 * rows, columns, lanes,
                           scale);
  }
}

// Rader's, for a prime n with the primitive root g: with j = g^p and k = g^-q the sum over j > 0 of
// x[j] root(jk / n) is one over p of x[g^p] root(g^-(q - p) / n), a convolution of n - 1 elements.
template <typename T>
void RowPlan<T>::RunRader(const T* from, T* to, bool inverse, T scale, std::byte* scratch) const {
  T* x = reinterpret_cast<T*>(scratch);
  const size_t m = order_.size();
  for (size_t p = 0; p < m; ++p) {
    const T* element = from + 2 * int64_t{order_[p]};
    x[2 * p] = element[0];
    x[2 * p + 1] = element[1];
  }
  const T first[2] = {from[0] * scale, from[1] * scale};
  T sum[2];
  Convolve(x, n_ - 1, x, inverse, scale, scratch + OrderedBytes(n_), sum);
  to[0] = first[0] + sum[inverse ? 1 : 0] * scale;
  to[1] = first[1] + sum[inverse ? 0 : 1] * scale;
  for (size_t q = 0; q < m; ++q) {
    T* element = to + 2 * int64_t{order_[q == 0 ? 0 : m - q]};
    element[0] = first[0] + x[2 * q];
    element[1] = first[1] + x[2 * q + 1];
  }
}

// The spectrum is in the order of transforms by columns, where the inverse begins. With the chirp
// this is Bluestein's.
template <typename T>
void RowPlan<T>::Convolve(const T* from, int64_t n, T* to, bool inverse, T scale,
                          std::byte* scratch, T* sum) const {
  const int64_t rows = first_->n(), columns = second_->n(), width = kernels_.width;
  T* a = reinterpret_cast<T*>(scratch);
  T* turned = TurnedIn(scratch);
  T* b = a + (turned - a) / 2;
  // The full rows of the n elements, and the remainder in the next one.
  const int64_t full = n / columns, rest = n % columns;
  const bool chirp = !chirp_.empty();
  auto factors = [&](int64_t at) { return chirp ? chirp_.data() + at : nullptr; };
  // Parts are swapped before and after the product, or once.
  const bool swap = chirp || !inverse;
  for (int64_t j = 0; j < columns; j += width) {
    const int lanes = static_cast<int>(std::min(width, columns - j));
    const int more = static_cast<int>(std::clamp<int64_t>(rest - j, 0, lanes));
    kernels_.load_columns(from + 2 * j, inverse, factors(2 * j), 2 * columns, full, lanes, a);
    T* end = a + full * 2 * width;
    if (rows > full) {
      const int64_t at = 2 * (full * columns + (more > 0 ? j : 0));
      kernels_.load_columns(from + at, inverse, factors(at), 0, 1, more, end);
      std::memset(end + 2 * width, 0,
                  static_cast<size_t>((rows - full - 1) * 2 * width) * sizeof(T));
    }
    const T* result = first_->Run(a, b);
    kernels_.twist(result, twiddles_.data() + 2 * j * rows, rows, j, lanes, turned, columns);
  }
  for (int64_t k = 0; k < rows; k += width) {
    T* x = turned + k * 2 * columns;
    T* there = second_->Run(x, a);
    if (k == 0 && sum) sum[0] = there[0], sum[1] = there[width];
    // So that the inverse ends in the original block.
    T* start = there == x ? x : a;
    kernels_.multiply_blocks(there, spectrum_.data() + k * 2 * columns, columns, start);
    second_->Run(start, start == x ? a : x);
  }
  for (int64_t j = 0; j < columns; j += width) {
    const int lanes = static_cast<int>(std::min(width, columns - j));
    const int more = static_cast<int>(std::clamp<int64_t>(rest - j, 0, lanes));
    kernels_.untwist(turned, columns, j, lanes, twiddles_.data() + 2 * j * rows, rows, a);
    const T* result = first_->Run(a, b);
    kernels_.store_columns(result, swap, factors(2 * j), inverse, to + 2 * j, 2 * columns, full,
                           lanes, scale);
    if (more > 0) {
      const int64_t at = 2 * (full * columns + j);
      kernels_.store_columns(result + full * 2 * width, swap, factors(at), inverse, to + at, 0, 1,
                             more, scale);
    }
  }
}

template class RowPlan<float>;
template class RowPlan<double>;

}  // namespace kiln::runtime::lib::fft
