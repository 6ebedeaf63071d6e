// The plan of a transform of one length, with all precomputed tables.
//
// Short transforms, and several rows at once, use blocks of lanes (LanePlan). A long row uses short
// transforms over its columns and rows, or, if its length has a large prime factor, a convolution
// (RowPlan). Neither allocates when it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/lib/fft/kernels.h"

namespace kiln::runtime::lib::fft {

// The radices of the passes for n; empty for prime factors above kMaxRadix, and for 1.
std::vector<int> RadicesOf(int64_t n);
// Roughly, the arithmetic per element; infinite without radices.
double CostOf(int64_t n);
// The cheapest length from n on that is a multiple of `of` and of small primes.
int64_t GoodLength(int64_t n, int64_t of);

// n elements of each lane of a block.
template <typename T>
class LanePlan {
 public:
  LanePlan(int64_t n, const Kernels<T>& kernels);

  int64_t n() const { return n_; }
  // Elements of each of the two blocks of a transform: n or more.
  int64_t block_elements() const { return convolution_ ? convolution_->m : n_; }
  static int64_t BlockElements(int64_t n);
  // Transforms the first n elements of block a; the result is in the returned block, a or b.
  T* Run(T* a, T* b) const;

 private:
  // Bluestein's: jk = (j^2 + k^2 - (k - j)^2) / 2 makes of the sum a convolution.
  struct Convolution {
    int64_t m;
    std::unique_ptr<LanePlan> plan;
    std::vector<T> chirp, spectrum;
  };
  void MakePasses();
  void MakeConvolution();

  const int64_t n_;
  const Kernels<T>& kernels_;
  std::vector<Pass<T>> passes_;
  std::vector<T> tables_;
  std::unique_ptr<Convolution> convolution_;
};

// The rows of the transform after the one at hand, which is asked for ahead of it; null for none.
template <typename T>
struct NextRow {
  const T* from = nullptr;
  T* to = nullptr;
};

// One row of complex numbers, in memory order.
template <typename T>
class RowPlan {
 public:
  RowPlan(int64_t n, const Kernels<T>& kernels);

  int64_t n() const { return n_; }
  // The scratch bytes of a run, for any kernels.
  static int64_t ScratchBytes(int64_t n);
  // `from` and `to` may be equal. With `inverse` conjugate roots are used; the result is multiplied
  // by `scale`.
  void Run(const T* from, T* to, bool inverse, T scale, std::byte* scratch,
           const NextRow<T>& next = {}) const;

 private:
  enum class Kind { kLanes, kColumns, kBluestein, kRader };
  static Kind KindOf(int64_t n);
  // The factors of a row transformed by columns.
  struct Split {
    int64_t rows, columns;
  };
  static Split SplitOf(int64_t n);
  // Of kBluestein.
  static int64_t ConvolutionLength(int64_t n);
  static int64_t ColumnsBytes(int64_t n);
  static int64_t OrderedBytes(int64_t n);  // of kRader

  void MakeColumns(int64_t n);
  // The transform of the convolution kernel, of first_->n() * second_->n() elements.
  void MakeSpectrum(std::vector<T> kernel);
  // Of block after block of rows, their columns as elements.
  T* TurnedIn(std::byte* scratch) const;
  void RunColumns(const T* from, T* to, bool inverse, T scale, std::byte* scratch,
                  const NextRow<T>& next = {}) const;
  void RunRader(const T* from, T* to, bool inverse, T scale, std::byte* scratch) const;
  // The first n elements of `from`, times the chirp if there is one, convolved with the kernel, and
  // again times the chirp. If `sum` is not null it gets the sum of all elements.
  void Convolve(const T* from, int64_t n, T* to, bool inverse, T scale, std::byte* scratch,
                T* sum) const;

  const int64_t n_;
  const Kernels<T>& kernels_;
  const Kind kind_;
  // kLanes: the first. kColumns: of `rows` elements over the columns, then of `columns` elements;
  // of kBluestein and kRader for the length of their convolution.
  std::unique_ptr<LanePlan<T>> first_, second_;
  std::vector<T> twiddles_;      // as `twist` takes them, for block after block of columns
  std::vector<T> chirp_;         // kBluestein
  std::vector<uint32_t> order_;  // kRader: powers of a primitive root
  std::vector<T> spectrum_;      // of both, in blocks of rows
};

}  // namespace kiln::runtime::lib::fft
