// The loops of Fourier transforms, once for each vector width of processors.
//
// A block is n elements of W transforms side by side ("lanes"): for each element a vector of W real
// parts, then one of W imaginary parts. W is the kernels' width.
#pragma once

#include <cstdint>

namespace kiln::runtime::lib::fft {

// Radices up to this have loops of their own, or use the loop for odd primes.
inline constexpr int kMaxRadix = 127;

// One pass of a transform, for one factor of the length.
template <typename T>
struct Pass {
  int radix;
  int64_t rest;    // what is left of the length behind this pass
  int64_t stride;  // the product of the radices before it
  // For each of `rest` positions but the first, radix - 1 roots: real and imaginary parts.
  const T* twiddles;
  // Of an odd radix: the cosines of 2 pi k / radix for k < radix, then the sines.
  const T* roots;
};

template <typename T>
struct Kernels {
  const char* name;
  int width;

  // A pass from one block to another.
  void (*pass)(const Pass<T>& pass, const T* from, T* to);

  // `lanes` rows of `count` numbers each become vectors: number c of the rows goes to vector c *
  // step + offset of the block, or with `swap` to (c * step + offset) ^ 1. Missing lanes are zeros.
  void (*load_rows)(const T* from, int64_t row_stride, int64_t count, int lanes, T* block,
                    int64_t step, int64_t offset, bool swap);
  // The inverse; each number is multiplied by `scale`.
  void (*store_rows)(const T* block, int64_t step, int64_t offset, bool swap, T* to,
                     int64_t row_stride, int64_t count, int lanes, T scale);
  // The same where the lanes are neighbours in memory: n complex elements of each, `stride` numbers
  // apart. Unless `factors` is null, the elements are multiplied by its elements, with the same
  // strides, between two swaps of parts: `swap` and `swap_product`.
  void (*load_columns)(const T* from, bool swap, const T* factors, int64_t stride, int64_t n,
                       int lanes, T* block);
  void (*store_columns)(const T* block, bool swap, const T* factors, bool swap_product, T* to,
                        int64_t stride, int64_t n, int lanes, T scale);

  // Elements of a block times one complex number each, shared by all lanes, between two swaps of
  // parts.
  void (*multiply_lanes)(const T* from, bool swap, const T* factors, bool swap_product, int64_t n,
                         T* to);
  // Elements of a block times the elements of another; the products' parts are swapped.
  void (*multiply_blocks)(const T* from, const T* factors, int64_t n, T* to);
  // `rows` of a block of columns (which are lanes), times a complex number for each element and
  // lane (a block of them), transposed: element k of lane j goes to lane k % W of element
  // first + j of block k / W; these blocks are of `block_elements` elements. Rows beyond the last
  // are zeros up to the next multiple of W.
  void (*twist)(const T* from, const T* factors, int64_t rows, int64_t first, int lanes, T* to,
                int64_t block_elements);
  // Back: transposed, and then multiplied.
  void (*untwist)(const T* from, int64_t block_elements, int64_t first, int lanes, const T* factors,
                  int64_t rows, T* to);

  // Transforms of real numbers by ones of half as many complex ones, h. In blocks, of h elements
  // and of h + 1: the transform's result becomes that of the real numbers; and back, with parts
  // that have changed places. `roots` are the 2h-th roots of unity 0 to h.
  void (*real_lanes)(const T* from, const T* roots, int64_t h, T* to);
  void (*complex_lanes)(const T* from, const T* roots, int64_t h, T* to);
  // The same for one row of complex numbers in memory order, without swapped parts; `from` and `to`
  // may be equal.
  void (*real_row)(const T* from, const T* roots, int64_t h, T* to);
  void (*complex_row)(const T* from, const T* roots, int64_t h, T* to);
  // The transform of a + i b, for n real elements a and b, n odd, becomes the first n / 2 + 1
  // elements of a's and b's transforms; and back, with swapped parts.
  void (*split_lanes)(const T* from, int64_t n, T* a, T* b);
  void (*merge_lanes)(const T* a, const T* b, int64_t n, T* to);
};

// The kernels for this machine.
template <typename T>
const Kernels<T>& KernelsOfMachine();

// One width each, for tests. Null if this machine lacks such vectors.
enum class Vectors { kBase, kAvx2, kAvx512 };
template <typename T>
const Kernels<T>* KernelsOf(Vectors vectors);

// The largest vector width in bytes.
inline constexpr int64_t kMostVectorBytes = 64;

}  // namespace kiln::runtime::lib::fft
