// The kernels, for vectors of KILN_FFT_BYTES bytes, in the namespace KILN_FFT_NAMESPACE. Everything
// here is local to the including file, which is compiled for other instructions than the library.
#include <cstdint>
#include <type_traits>

#include "runtime/lib/fft/kernels.h"

namespace kiln::runtime::lib::fft {
namespace KILN_FFT_NAMESPACE {
namespace {

#define KILN_INLINE inline __attribute__((always_inline))

template <typename T>
struct Vector {
  static constexpr int kWidth = KILN_FFT_BYTES / static_cast<int>(sizeof(T));
  typedef T Type __attribute__((vector_size(KILN_FFT_BYTES)));
  // Of memory at any address.
  typedef T Loose __attribute__((vector_size(KILN_FFT_BYTES), aligned(sizeof(T)), may_alias));
};
template <typename T>
using V = typename Vector<T>::Type;
template <typename T>
constexpr int kWidth = Vector<T>::kWidth;

template <typename T>
KILN_INLINE V<T> Load(const T* at) {
  return *reinterpret_cast<const typename Vector<T>::Loose*>(at);
}
template <typename T>
KILN_INLINE void Store(T* at, V<T> value) {
  *reinterpret_cast<typename Vector<T>::Loose*>(at) = value;
}
template <typename T>
KILN_INLINE V<T> Same(T value) {
  return value - V<T>{};
}

// --- Shuffles

// The first elements of each pair of neighbours in (a, b), and the second ones.
KILN_INLINE V<float> Evens(V<float> a, V<float> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#endif
}
KILN_INLINE V<float> Odds(V<float> a, V<float> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#endif
}
KILN_INLINE V<double> Evens(V<double> a, V<double> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 0, 2);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#endif
}
KILN_INLINE V<double> Odds(V<double> a, V<double> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 1, 3);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#else
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#endif
}

// The halves of a0, b0, a1, b1, ...
KILN_INLINE V<float> ZipLow(V<float> a, V<float> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#endif
}
KILN_INLINE V<float> ZipHigh(V<float> a, V<float> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
#endif
}
KILN_INLINE V<double> ZipLow(V<double> a, V<double> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 0, 2);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#else
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#endif
}
KILN_INLINE V<double> ZipHigh(V<double> a, V<double> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 1, 3);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

KILN_INLINE V<float> Reversed(V<float> a) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, a, 3, 2, 1, 0);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
#else
  return __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#endif
}
KILN_INLINE V<double> Reversed(V<double> a) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, a, 1, 0);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, a, 3, 2, 1, 0);
#else
  return __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
#endif
}

// Of 16-byte pieces: zips of their elements (of f32, and of pairs of them), which stay within.
KILN_INLINE V<float> PieceZipLow(V<float> a, V<float> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
#else
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
#endif
}
KILN_INLINE V<float> PieceZipHigh(V<float> a, V<float> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
#endif
}
KILN_INLINE V<double> PieceZipLow(V<double> a, V<double> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 0, 2);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 4, 2, 6);
#else
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
#endif
}
KILN_INLINE V<double> PieceZipHigh(V<double> a, V<double> b) {
#if KILN_FFT_BYTES == 16
  return __builtin_shufflevector(a, b, 1, 3);
#elif KILN_FFT_BYTES == 32
  return __builtin_shufflevector(a, b, 1, 5, 3, 7);
#else
  return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
#endif
}

template <typename To, typename From>
KILN_INLINE To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return reinterpret_cast<To>(from);
}

// A square of kWidth vectors, transposed.
template <typename T>
KILN_INLINE void Transpose(V<T> (&v)[kWidth<T>]) {
  constexpr int kPiece = 16 / static_cast<int>(sizeof(T));
  constexpr int kGroups = kWidth<T> / kPiece;
  // Within pieces of 16 bytes, group by group of as many vectors as a piece has elements.
  for (int g = 0; g < kWidth<T>; g += kPiece) {
    if constexpr (sizeof(T) == 4) {
      V<T> a = PieceZipLow(v[g], v[g + 1]), b = PieceZipHigh(v[g], v[g + 1]);
      V<T> c = PieceZipLow(v[g + 2], v[g + 3]), d = PieceZipHigh(v[g + 2], v[g + 3]);
      using D = V<double>;
      v[g] = Bits<V<T>>(PieceZipLow(Bits<D>(a), Bits<D>(c)));
      v[g + 1] = Bits<V<T>>(PieceZipHigh(Bits<D>(a), Bits<D>(c)));
      v[g + 2] = Bits<V<T>>(PieceZipLow(Bits<D>(b), Bits<D>(d)));
      v[g + 3] = Bits<V<T>>(PieceZipHigh(Bits<D>(b), Bits<D>(d)));
    } else {
      V<T> a = v[g], b = v[g + 1];
      v[g] = PieceZipLow(a, b);
      v[g + 1] = PieceZipHigh(a, b);
    }
  }
  // Then the pieces as wholes.
  if constexpr (kGroups == 2) {
#if KILN_FFT_BYTES == 32
    for (int e = 0; e < kPiece; ++e) {
      V<double> a = Bits<V<double>>(v[e]), b = Bits<V<double>>(v[kPiece + e]);
      v[e] = Bits<V<T>>(__builtin_shufflevector(a, b, 0, 1, 4, 5));
      v[kPiece + e] = Bits<V<T>>(__builtin_shufflevector(a, b, 2, 3, 6, 7));
    }
#endif
  }
  if constexpr (kGroups == 4) {
#if KILN_FFT_BYTES == 64
    for (int e = 0; e < kPiece; ++e) {
      V<double> r[4], t[4];
      for (int g = 0; g < 4; ++g) r[g] = Bits<V<double>>(v[g * kPiece + e]);
      t[0] = __builtin_shufflevector(r[0], r[1], 0, 1, 4, 5, 8, 9, 12, 13);
      t[1] = __builtin_shufflevector(r[0], r[1], 2, 3, 6, 7, 10, 11, 14, 15);
      t[2] = __builtin_shufflevector(r[2], r[3], 0, 1, 4, 5, 8, 9, 12, 13);
      t[3] = __builtin_shufflevector(r[2], r[3], 2, 3, 6, 7, 10, 11, 14, 15);
      r[0] = __builtin_shufflevector(t[0], t[2], 0, 1, 4, 5, 8, 9, 12, 13);
      r[2] = __builtin_shufflevector(t[0], t[2], 2, 3, 6, 7, 10, 11, 14, 15);
      r[1] = __builtin_shufflevector(t[1], t[3], 0, 1, 4, 5, 8, 9, 12, 13);
      r[3] = __builtin_shufflevector(t[1], t[3], 2, 3, 6, 7, 10, 11, 14, 15);
      for (int g = 0; g < 4; ++g) v[g * kPiece + e] = Bits<V<T>>(r[g]);
    }
#endif
  }
}

// --- Complex arithmetic

template <typename T>
struct C {
  V<T> re, im;
};
template <typename T>
KILN_INLINE C<T> operator+(C<T> a, C<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename T>
KILN_INLINE C<T> operator-(C<T> a, C<T> b) {
  return {a.re - b.re, a.im - b.im};
}
// Times -i, and times (1 - i) / sqrt(2) to a power of 1 or 3.
template <typename T>
KILN_INLINE C<T> Turned(C<T> a) {
  return {a.im, -a.re};
}
template <typename T>
KILN_INLINE C<T> Eighth(C<T> a) {
  const V<T> half = Same<T>(static_cast<T>(0.70710678118654752440084436210484903928L));
  return {(a.re + a.im) * half, (a.im - a.re) * half};
}
template <typename T>
KILN_INLINE C<T> ThreeEighths(C<T> a) {
  const V<T> half = Same<T>(static_cast<T>(0.70710678118654752440084436210484903928L));
  return {(a.im - a.re) * half, (a.re + a.im) * -half};
}
template <typename T>
KILN_INLINE C<T> Times(C<T> a, V<T> re, V<T> im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
template <typename T>
KILN_INLINE C<T> LoadC(const T* block, int64_t element) {
  const T* at = block + element * 2 * kWidth<T>;
  return {Load(at), Load(at + kWidth<T>)};
}
template <typename T>
KILN_INLINE void StoreC(T* block, int64_t element, C<T> value) {
  T* at = block + element * 2 * kWidth<T>;
  Store(at, value.re);
  Store(at + kWidth<T>, value.im);
}
template <typename T>
KILN_INLINE C<T> Swapped(C<T> a, bool swap) {
  return swap ? C<T>{a.im, a.re} : a;
}

// --- Transforms of as many elements as the radix

template <typename T>
KILN_INLINE void Four(C<T>& a, C<T>& b, C<T>& c, C<T>& d) {
  C<T> s = a + c, t = a - c, u = b + d, v = Turned(b - d);
  a = s + u;
  b = t + v;
  c = s - u;
  d = t - v;
}

template <int kRadix, typename T>
KILN_INLINE void Transform(C<T> (&x)[kRadix], const T* roots) {
  if constexpr (kRadix == 2) {
    C<T> a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  } else if constexpr (kRadix == 4) {
    Four(x[0], x[1], x[2], x[3]);
  } else if constexpr (kRadix == 8) {
    Four(x[0], x[2], x[4], x[6]);
    Four(x[1], x[3], x[5], x[7]);
    C<T> e1 = x[2], e2 = x[4], e3 = x[6], e0 = x[0];
    C<T> o0 = x[1], o1 = Eighth(x[3]), o2 = Turned(x[5]), o3 = ThreeEighths(x[7]);
    x[0] = e0 + o0;
    x[4] = e0 - o0;
    x[1] = e1 + o1;
    x[5] = e1 - o1;
    x[2] = e2 + o2;
    x[6] = e2 - o2;
    x[3] = e3 + o3;
    x[7] = e3 - o3;
  } else {
    // Of an odd prime: x[k] and x[p - k] meet conjugate roots.
    constexpr int kHalf = kRadix / 2;
    C<T> sum[kHalf], difference[kHalf];
    C<T> all = x[0];
#pragma GCC unroll 8
    for (int k = 0; k < kHalf; ++k) {
      sum[k] = x[k + 1] + x[kRadix - 1 - k];
      difference[k] = x[k + 1] - x[kRadix - 1 - k];
      all = all + sum[k];
    }
#pragma GCC unroll 8
    for (int j = 1; j <= kHalf; ++j) {
      C<T> even = x[0], odd = {};
#pragma GCC unroll 8
      for (int k = 0; k < kHalf; ++k) {
        const int r = j * (k + 1) % kRadix;
        const V<T> c = Same(roots[r]), s = Same(roots[kRadix + r]);
        even = {even.re + sum[k].re * c, even.im + sum[k].im * c};
        odd = {odd.re + difference[k].im * s, odd.im - difference[k].re * s};
      }
      // x[j] is not read any more.
      x[j] = even + odd;
      x[kRadix - j] = even - odd;
    }
    x[0] = all;
  }
}

template <int kRadix, bool kTwiddle, typename T>
KILN_INLINE void PassAt(const Pass<T>& pass, int64_t p, const T* from, T* to) {
  const T* w = kTwiddle ? pass.twiddles + (p - 1) * 2 * (kRadix - 1) : nullptr;
  for (int64_t q = 0; q < pass.stride; ++q) {
    C<T> x[kRadix];
#pragma GCC unroll 16
    for (int k = 0; k < kRadix; ++k) {
      x[k] = LoadC(from, (k * pass.rest + p) * pass.stride + q);
    }
    Transform<kRadix>(x, pass.roots);
    StoreC(to, p * kRadix * pass.stride + q, x[0]);
#pragma GCC unroll 16
    for (int j = 1; j < kRadix; ++j) {
      if constexpr (kTwiddle) x[j] = Times(x[j], Same(w[2 * j - 2]), Same(w[2 * j - 1]));
      StoreC(to, (p * kRadix + j) * pass.stride + q, x[j]);
    }
  }
}

template <int kRadix, typename T>
void PassOf(const Pass<T>& pass, const T* from, T* to) {
  PassAt<kRadix, false>(pass, 0, from, to);
  for (int64_t p = 1; p < pass.rest; ++p) PassAt<kRadix, true>(pass, p, from, to);
}

// Any odd prime.
template <typename T>
void PassOfPrime(const Pass<T>& pass, const T* from, T* to) {
  const int radix = pass.radix, half = radix / 2;
  C<T> sum[kMaxRadix / 2], difference[kMaxRadix / 2];
  for (int64_t p = 0; p < pass.rest; ++p) {
    const T* w = p > 0 ? pass.twiddles + (p - 1) * 2 * (radix - 1) : nullptr;
    auto put = [&](int j, int64_t q, C<T> y) {
      if (p > 0) y = Times(y, Same(w[2 * j - 2]), Same(w[2 * j - 1]));
      StoreC(to, (p * radix + j) * pass.stride + q, y);
    };
    for (int64_t q = 0; q < pass.stride; ++q) {
      auto at = [&](int k) { return LoadC(from, (k * pass.rest + p) * pass.stride + q); };
      const C<T> first = at(0);
      C<T> all = first;
      for (int k = 0; k < half; ++k) {
        C<T> a = at(k + 1), b = at(radix - 1 - k);
        sum[k] = a + b;
        difference[k] = a - b;
        all = all + sum[k];
      }
      StoreC(to, p * radix * pass.stride + q, all);
      for (int j = 1; j <= half; ++j) {
        C<T> even = first, odd = {};
        for (int k = 0, r = j; k < half; ++k) {
          const V<T> c = Same(pass.roots[r]), s = Same(pass.roots[radix + r]);
          even = {even.re + sum[k].re * c, even.im + sum[k].im * c};
          odd = {odd.re + difference[k].im * s, odd.im - difference[k].re * s};
          r += j;
          if (r >= radix) r -= radix;
        }
        put(j, q, even + odd);
        put(radix - j, q, even - odd);
      }
    }
  }
}

template <typename T>
void RunPass(const Pass<T>& pass, const T* from, T* to) {
  switch (pass.radix) {
    case 2:
      return PassOf<2>(pass, from, to);
    case 3:
      return PassOf<3>(pass, from, to);
    case 4:
      return PassOf<4>(pass, from, to);
    case 5:
      return PassOf<5>(pass, from, to);
    case 7:
      return PassOf<7>(pass, from, to);
    case 8:
      return PassOf<8>(pass, from, to);
    default:
      return PassOfPrime(pass, from, to);
  }
}

// --- Between memory and blocks

template <typename T>
void LoadRows(const T* from, int64_t row_stride, int64_t count, int lanes, T* block, int64_t step,
              int64_t offset, bool swap) {
  auto place = [&](int64_t c) {
    return block + ((c * step + offset) ^ (swap ? 1 : 0)) * kWidth<T>;
  };
  int64_t c = 0;
  for (; c + kWidth<T> <= count; c += kWidth<T>) {
    V<T> square[kWidth<T>];
    for (int r = 0; r < kWidth<T>; ++r) {
      square[r] = r < lanes ? Load(from + r * row_stride + c) : V<T>{};
    }
    Transpose<T>(square);
    for (int k = 0; k < kWidth<T>; ++k) Store(place(c + k), square[k]);
  }
  for (; c < count; ++c) {
    T* to = place(c);
    for (int r = 0; r < kWidth<T>; ++r) to[r] = r < lanes ? from[r * row_stride + c] : T(0);
  }
}

template <typename T>
void StoreRows(const T* block, int64_t step, int64_t offset, bool swap, T* to, int64_t row_stride,
               int64_t count, int lanes, T scale) {
  auto place = [&](int64_t c) {
    return block + ((c * step + offset) ^ (swap ? 1 : 0)) * kWidth<T>;
  };
  const V<T> factor = Same(scale);
  int64_t c = 0;
  for (; c + kWidth<T> <= count; c += kWidth<T>) {
    V<T> square[kWidth<T>];
    for (int k = 0; k < kWidth<T>; ++k) square[k] = Load(place(c + k)) * factor;
    Transpose<T>(square);
    for (int r = 0; r < kWidth<T>; ++r) {
      if (r < lanes) Store(to + r * row_stride + c, square[r]);
    }
  }
  for (; c < count; ++c) {
    const T* at = place(c);
    for (int r = 0; r < lanes; ++r) to[r * row_stride + c] = at[r] * scale;
  }
}

// Complex numbers in memory order, a full vector of them or fewer.
template <typename T>
KILN_INLINE C<T> LoadMixed(const T* at, int lanes) {
  if (lanes == kWidth<T>) {
    V<T> a = Load(at), b = Load(at + kWidth<T>);
    return {Evens(a, b), Odds(a, b)};
  }
  C<T> x = {};
  for (int j = 0; j < lanes; ++j) {
    x.re[j] = at[2 * j];
    x.im[j] = at[2 * j + 1];
  }
  return x;
}
template <typename T>
KILN_INLINE void StoreMixed(T* at, int lanes, C<T> x) {
  if (lanes == kWidth<T>) {
    Store(at, ZipLow(x.re, x.im));
    Store(at + kWidth<T>, ZipHigh(x.re, x.im));
    return;
  }
  for (int j = 0; j < lanes; ++j) {
    at[2 * j] = x.re[j];
    at[2 * j + 1] = x.im[j];
  }
}

template <typename T>
void LoadColumns(const T* from, bool swap, const T* factors, int64_t stride, int64_t n, int lanes,
                 T* block) {
  for (int64_t k = 0; k < n; ++k) {
    C<T> x = Swapped(LoadMixed(from + k * stride, lanes), swap);
    if (factors) {
      const C<T> w = LoadMixed(factors + k * stride, lanes);
      x = Times(x, w.re, w.im);
    }
    StoreC(block, k, x);
  }
}

template <typename T>
void StoreColumns(const T* block, bool swap, const T* factors, bool swap_product, T* to,
                  int64_t stride, int64_t n, int lanes, T scale) {
  const V<T> factor = Same(scale);
  for (int64_t k = 0; k < n; ++k) {
    C<T> x = Swapped(LoadC(block, k), swap);
    if (factors) {
      const C<T> w = LoadMixed(factors + k * stride, lanes);
      x = Swapped(Times(x, w.re, w.im), swap_product);
    }
    StoreMixed(to + k * stride, lanes, C<T>{x.re * factor, x.im * factor});
  }
}

// --- Products

template <typename T>
void MultiplyLanes(const T* from, bool swap, const T* factors, bool swap_product, int64_t n,
                   T* to) {
  for (int64_t k = 0; k < n; ++k) {
    const C<T> x = Swapped(LoadC(from, k), swap);
    const V<T> re = Same(factors[2 * k]), im = Same(factors[2 * k + 1]);
    StoreC(to, k, Swapped(Times(x, re, im), swap_product));
  }
}

template <typename T>
void MultiplyBlocks(const T* from, const T* factors, int64_t n, T* to) {
  for (int64_t k = 0; k < n; ++k) {
    const C<T> w = LoadC(factors, k);
    StoreC(to, k, Swapped(Times(LoadC(from, k), w.re, w.im), true));
  }
}

template <typename T>
void Twist(const T* from, const T* factors, int64_t rows, int64_t first, int lanes, T* to,
           int64_t block_elements) {
  for (int64_t k = 0; k < rows; k += kWidth<T>) {
    V<T> re[kWidth<T>], im[kWidth<T>];
    for (int i = 0; i < kWidth<T>; ++i) {
      C<T> x = {};
      if (k + i < rows) {
        const C<T> w = LoadC(factors, k + i);
        x = Times(LoadC(from, k + i), w.re, w.im);
      }
      re[i] = x.re;
      im[i] = x.im;
    }
    Transpose<T>(re);
    Transpose<T>(im);
    T* block = to + k / kWidth<T> * block_elements * 2 * kWidth<T>;
    for (int j = 0; j < lanes; ++j) StoreC(block, first + j, C<T>{re[j], im[j]});
  }
}

template <typename T>
void Untwist(const T* from, int64_t block_elements, int64_t first, int lanes, const T* factors,
             int64_t rows, T* to) {
  for (int64_t k = 0; k < rows; k += kWidth<T>) {
    const T* block = from + k / kWidth<T> * block_elements * 2 * kWidth<T>;
    V<T> re[kWidth<T>], im[kWidth<T>];
    for (int j = 0; j < kWidth<T>; ++j) {
      const C<T> x = j < lanes ? LoadC(block, first + j) : C<T>{};
      re[j] = x.re;
      im[j] = x.im;
    }
    Transpose<T>(re);
    Transpose<T>(im);
    for (int i = 0; i < kWidth<T> && k + i < rows; ++i) {
      const C<T> w = LoadC(factors, k + i);
      StoreC(to, k + i, Times(C<T>{re[i], im[i]}, w.re, w.im));
    }
  }
}

// --- Real numbers as half as many complex ones
//
// Of even numbers e and odd ones o, z = e + i o has the transform Z = E + i O, of which
//   E[k] = (Z[k] + conj(Z[h - k])) / 2,  O[k] = (Z[k] - conj(Z[h - k])) / 2i,
// and X[k] = E[k] + w^k O[k] with the root w of 2h. Backwards without the halves.

// Element k and element h - k of the result; also of single numbers.
template <typename N>
struct Pair {
  N re, im;
};
template <typename N>
KILN_INLINE void RealPair(Pair<N> a, Pair<N> b, N wr, N wi, N half, Pair<N>& x, Pair<N>& y) {
  const N er = (a.re + b.re) * half, ei = (a.im - b.im) * half;
  const N or_ = (a.im + b.im) * half, oi = (b.re - a.re) * half;
  const N tr = or_ * wr - oi * wi, ti = or_ * wi + oi * wr;
  x = {er + tr, ei + ti};
  y = {er - tr, ti - ei};
}
template <typename N>
KILN_INLINE void ComplexPair(Pair<N> a, Pair<N> b, N wr, N wi, Pair<N>& x, Pair<N>& y) {
  const N er = a.re + b.re, ei = a.im - b.im;
  const N dr = a.re - b.re, di = a.im + b.im;
  // (a - conj(b)) times the conjugate root.
  const N tr = dr * wr + di * wi, ti = di * wr - dr * wi;
  x = {er - ti, ei + tr};
  y = {er + ti, tr - ei};
}

template <typename T>
void RealLanes(const T* from, const T* roots, int64_t h, T* to) {
  const C<T> z = LoadC(from, 0);
  StoreC(to, 0, C<T>{z.re + z.im, V<T>{}});
  StoreC(to, h, C<T>{z.re - z.im, V<T>{}});
  const V<T> half = Same<T>(T(0.5));
  for (int64_t k = 1; k <= h - k; ++k) {
    const C<T> a = LoadC(from, k), b = LoadC(from, h - k);
    Pair<V<T>> x, y;
    RealPair<V<T>>({a.re, a.im}, {b.re, b.im}, Same(roots[2 * k]), Same(roots[2 * k + 1]), half, x,
                   y);
    StoreC(to, h - k, C<T>{y.re, y.im});
    StoreC(to, k, C<T>{x.re, x.im});
  }
}

template <typename T>
void ComplexLanes(const T* from, const T* roots, int64_t h, T* to) {
  const C<T> first = LoadC(from, 0), last = LoadC(from, h);
  StoreC(to, 0, C<T>{first.re - last.re, first.re + last.re});
  for (int64_t k = 1; k <= h - k; ++k) {
    const C<T> a = LoadC(from, k), b = LoadC(from, h - k);
    Pair<V<T>> x, y;
    ComplexPair<V<T>>({a.re, a.im}, {b.re, b.im}, Same(roots[2 * k]), Same(roots[2 * k + 1]), x, y);
    StoreC(to, h - k, C<T>{y.im, y.re});
    StoreC(to, k, C<T>{x.im, x.re});
  }
}

template <typename T>
void SplitLanes(const T* from, int64_t n, T* a, T* b) {
  const C<T> z = LoadC(from, 0);
  StoreC(a, 0, C<T>{z.re, V<T>{}});
  StoreC(b, 0, C<T>{z.im, V<T>{}});
  const V<T> half = Same<T>(T(0.5));
  for (int64_t k = 1; k <= n / 2; ++k) {
    const C<T> x = LoadC(from, k), y = LoadC(from, n - k);
    StoreC(a, k, C<T>{(x.re + y.re) * half, (x.im - y.im) * half});
    StoreC(b, k, C<T>{(x.im + y.im) * half, (y.re - x.re) * half});
  }
}

template <typename T>
void MergeLanes(const T* a, const T* b, int64_t n, T* to) {
  StoreC(to, 0, C<T>{LoadC(b, 0).re, LoadC(a, 0).re});
  for (int64_t k = 1; k <= n / 2; ++k) {
    const C<T> x = LoadC(a, k), y = LoadC(b, k);
    StoreC(to, k, C<T>{x.im + y.re, x.re - y.im});
    StoreC(to, n - k, C<T>{y.re - x.im, x.re + y.im});
  }
}

// Calls one(k) for single pairs of elements k and h - k, and many(k) for kWidth of them from k on,
// where the two runs do not meet.
template <typename T, typename One, typename Many>
KILN_INLINE void ForPairs(int64_t h, One one, Many many) {
  int64_t k = 1;
  for (; k + kWidth<T> - 1 < h - (k + kWidth<T> - 1); k += kWidth<T>) many(k);
  for (; k <= h - k; ++k) one(k);
}

template <typename T>
KILN_INLINE Pair<V<T>> LoadRun(const T* row, int64_t k) {
  V<T> a = Load(row + 2 * k), b = Load(row + 2 * k + kWidth<T>);
  return {Evens(a, b), Odds(a, b)};
}
// Elements k, k - 1, ...
template <typename T>
KILN_INLINE Pair<V<T>> LoadBack(const T* row, int64_t k) {
  Pair<V<T>> x = LoadRun(row, k - kWidth<T> + 1);
  return {Reversed(x.re), Reversed(x.im)};
}
template <typename T>
KILN_INLINE void StoreRun(T* row, int64_t k, Pair<V<T>> x) {
  Store(row + 2 * k, ZipLow(x.re, x.im));
  Store(row + 2 * k + kWidth<T>, ZipHigh(x.re, x.im));
}
template <typename T>
KILN_INLINE void StoreBack(T* row, int64_t k, Pair<V<T>> x) {
  StoreRun(row, k - kWidth<T> + 1, Pair<V<T>>{Reversed(x.re), Reversed(x.im)});
}

template <typename T>
void RealRow(const T* from, const T* roots, int64_t h, T* to) {
  const T re = from[0], im = from[1];
  ForPairs<T>(
      h,
      [&](int64_t k) {
        const T *a = from + 2 * k, *b = from + 2 * (h - k);
        Pair<T> x, y;
        RealPair<T>({a[0], a[1]}, {b[0], b[1]}, roots[2 * k], roots[2 * k + 1], T(0.5), x, y);
        to[2 * (h - k)] = y.re, to[2 * (h - k) + 1] = y.im;
        to[2 * k] = x.re, to[2 * k + 1] = x.im;
      },
      [&](int64_t k) {
        const Pair<V<T>> w = LoadRun(roots, k);
        Pair<V<T>> x, y;
        RealPair<V<T>>(LoadRun(from, k), LoadBack(from, h - k), w.re, w.im, Same<T>(T(0.5)), x, y);
        StoreRun(to, k, x);
        StoreBack(to, h - k, y);
      });
  to[0] = re + im, to[1] = 0;
  to[2 * h] = re - im, to[2 * h + 1] = 0;
}

template <typename T>
void ComplexRow(const T* from, const T* roots, int64_t h, T* to) {
  const T first = from[0], last = from[2 * h];
  ForPairs<T>(
      h,
      [&](int64_t k) {
        const T *a = from + 2 * k, *b = from + 2 * (h - k);
        Pair<T> x, y;
        ComplexPair<T>({a[0], a[1]}, {b[0], b[1]}, roots[2 * k], roots[2 * k + 1], x, y);
        to[2 * (h - k)] = y.re, to[2 * (h - k) + 1] = y.im;
        to[2 * k] = x.re, to[2 * k + 1] = x.im;
      },
      [&](int64_t k) {
        const Pair<V<T>> w = LoadRun(roots, k);
        Pair<V<T>> x, y;
        ComplexPair<V<T>>(LoadRun(from, k), LoadBack(from, h - k), w.re, w.im, x, y);
        StoreRun(to, k, x);
        StoreBack(to, h - k, y);
      });
  to[0] = first + last, to[1] = first - last;
}

template <typename T>
constexpr Kernels<T> kKernels = {
    .name = KILN_FFT_NAME,
    .width = kWidth<T>,
    .pass = RunPass<T>,
    .load_rows = LoadRows<T>,
    .store_rows = StoreRows<T>,
    .load_columns = LoadColumns<T>,
    .store_columns = StoreColumns<T>,
    .multiply_lanes = MultiplyLanes<T>,
    .multiply_blocks = MultiplyBlocks<T>,
    .twist = Twist<T>,
    .untwist = Untwist<T>,
    .real_lanes = RealLanes<T>,
    .complex_lanes = ComplexLanes<T>,
    .real_row = RealRow<T>,
    .complex_row = ComplexRow<T>,
    .split_lanes = SplitLanes<T>,
    .merge_lanes = MergeLanes<T>,
};

}  // namespace

extern const Kernels<float>* const f32;
extern const Kernels<double>* const f64;
const Kernels<float>* const f32 = &kKernels<float>;
const Kernels<double>* const f64 = &kKernels<double>;

}  // namespace KILN_FFT_NAMESPACE
}  // namespace kiln::runtime::lib::fft
