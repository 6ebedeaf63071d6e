// The functions of lanes.h, by the textbook; loops_impl.h includes this file into its namespace.

// Integers in the places of numbers.
template <typename T>
struct Words;
template <>
struct Words<float> {
  typedef int32_t Type __attribute__((vector_size(KILN_LINEAR_BYTES)));
};
template <>
struct Words<double> {
  typedef int64_t Type __attribute__((vector_size(KILN_LINEAR_BYTES)));
};
template <typename T>
using LaneWords = typename Words<T>::Type;
template <typename T>
using Lane = typename Vector<T>::Type;

template <typename T>
inline Lane<T> Same(T value) {
  return Lane<T>{} + value;
}
template <typename T>
inline Lane<T> Size(Lane<T> x) {
  return x < 0 ? -x : x;
}
template <typename T>
inline Lane<T> Root(Lane<T> x) {
  constexpr int64_t kWidth = Vector<T>::kWidth;
  T values[kWidth];
  *reinterpret_cast<Lane<T>*>(values) = x;
#pragma omp simd
  for (int64_t i = 0; i < kWidth; ++i) {
    values[i] = sizeof(T) == 4 ? static_cast<T>(__builtin_sqrtf(static_cast<float>(values[i])))
                               : static_cast<T>(__builtin_sqrt(values[i]));
  }
  return *reinterpret_cast<Lane<T>*>(values);
}

// The blocks off the diagonal of a square change places, of `kSize` elements and larger ones.
template <typename T, int64_t kSize, int64_t... kLane>
inline void SwapBlocks(Lane<T>* v, std::integer_sequence<int64_t, kLane...> lanes) {
  constexpr int64_t kWidth = Vector<T>::kWidth;
#pragma GCC unroll 16
  for (int64_t i = 0; i < kWidth; ++i) {
    if (i & kSize) continue;
    const Lane<T> x = v[i], y = v[i + kSize];
    v[i] = __builtin_shufflevector(x, y, (kLane & kSize ? kWidth + kLane - kSize : kLane)...);
    v[i + kSize] =
        __builtin_shufflevector(x, y, (kLane & kSize ? kWidth + kLane : kLane + kSize)...);
  }
  if constexpr (2 * kSize < kWidth) SwapBlocks<T, 2 * kSize>(v, lanes);
}

template <typename T>
inline void TransposeSquare(Lane<T>* v) {
  SwapBlocks<T, 1>(v, std::make_integer_sequence<int64_t, Vector<T>::kWidth>());
}

// f(first element, elements) for pieces of a matrix as long as vectors; of several pieces the last
// one is moved back to end with the matrix.
template <typename T, typename F>
inline void ForEachPiece(int64_t elements, F&& f) {
  constexpr int64_t kWidth = Vector<T>::kWidth;
  if (elements < kWidth) return f(int64_t{0}, elements);
  for (int64_t e = 0; e < elements; e += kWidth) {
    f(e + kWidth <= elements ? e : elements - kWidth, kWidth);
  }
}

// Whether whole vectors are mostly what is wanted.
template <typename T>
inline bool FillVectors(int64_t elements) {
  return 2 * elements > Vector<T>::kWidth;
}

// A vector from a matrix on takes elements of the next ones, too, if it is longer. The last ones
// are taken apart.
template <typename T>
void LoadBlock(const T* from, int64_t elements, int64_t matrices, T* block) {
  constexpr int64_t kWidth = Vector<T>::kWidth;
  if (!FillVectors<T>(elements)) {
    for (int64_t lane = 0; lane < kWidth; ++lane) {
      const T* const matrix = from + (lane < matrices ? lane : matrices - 1) * elements;
      for (int64_t e = 0; e < elements; ++e) block[e * kWidth + lane] = matrix[e];
    }
    return;
  }
  ForEachPiece<T>(elements, [&](int64_t first, int64_t count) {
    Lane<T> square[kWidth];
    for (int64_t lane = 0; lane < kWidth; ++lane) {
      const int64_t matrix = lane < matrices ? lane : matrices - 1;
      const T* const at = from + matrix * elements + first;
      if (matrix * elements + first + kWidth <= matrices * elements) {
        square[lane] = *reinterpret_cast<const Lane<T>*>(at);
      } else {
        T values[kWidth] = {};
        for (int64_t e = 0; e < count; ++e) values[e] = at[e];
        square[lane] = *reinterpret_cast<const Lane<T>*>(values);
      }
    }
    TransposeSquare<T>(square);
    auto* const to = reinterpret_cast<Lane<T>*>(block) + first;
    for (int64_t e = 0; e < count; ++e) to[e] = square[e];
  });
}

// What a vector writes beyond its matrix, the next one writes again.
template <typename T>
void StoreBlock(const T* block, int64_t elements, int64_t matrices, T* to) {
  constexpr int64_t kWidth = Vector<T>::kWidth;
  if (!FillVectors<T>(elements)) {
    for (int64_t lane = 0; lane < matrices; ++lane) {
      for (int64_t e = 0; e < elements; ++e) to[lane * elements + e] = block[e * kWidth + lane];
    }
    return;
  }
  ForEachPiece<T>(elements, [&](int64_t first, int64_t count) {
    Lane<T> square[kWidth];
    const auto* const from = reinterpret_cast<const Lane<T>*>(block) + first;
    for (int64_t e = 0; e < kWidth; ++e) square[e] = e < count ? from[e] : Lane<T>{};
    TransposeSquare<T>(square);
    for (int64_t lane = 0; lane < matrices; ++lane) {
      T* const at = to + lane * elements + first;
      if (lane * elements + first + kWidth <= matrices * elements) {
        *reinterpret_cast<Lane<T>*>(at) = square[lane];
      } else {
        for (int64_t e = 0; e < count; ++e) at[e] = square[lane][e];
      }
    }
  });
}

// Elements of a block.
template <typename T>
struct Block {
  Lane<T>* first;
  int64_t row, column;

  Block(const T* a, int64_t row, int64_t column)
      : first(reinterpret_cast<Lane<T>*>(const_cast<T*>(a))), row(row), column(column) {}
  Lane<T>& operator()(int64_t i, int64_t j) const { return first[i * row + j * column]; }
  // From element (k, k) on.
  Block Corner(int64_t k) const {
    Block corner = *this;
    corner.first += k * (row + column);
    return corner;
  }
};

template <typename T>
void CholeskyOfLanes(T* a, int64_t n, bool lower) {
  // The upper triangle is the lower one's, transposed.
  const Block<T> at(a, lower ? n : 1, lower ? 1 : n);
  const Lane<T> nan = Same<T>(static_cast<T>(__builtin_nan("")));
  Lane<T> failed{};
  for (int64_t j = 0; j < n; ++j) {
    Lane<T> rest = at(j, j);
    for (int64_t k = 0; k < j; ++k) rest -= at(j, k) * at(j, k);
    failed = rest > 0 ? failed : nan;
    const Lane<T> diagonal = Root<T>(rest);
    at(j, j) = diagonal;
    for (int64_t i = j + 1; i < n; ++i) {
      Lane<T> sum = at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
      at(i, j) = sum / diagonal;
      at(j, i) = Lane<T>{};
    }
  }
  for (int64_t e = 0; e < n * n; ++e) at.first[e] = failed == 0 ? at.first[e] : nan;
}

template <typename T>
void SolveInLanes(const T* a, int64_t n, int64_t row, int64_t column, bool lower,
                  bool unit_diagonal, T* b, int64_t columns, int64_t b_row, int64_t b_column) {
  const Block<T> at(a, row, column), x(b, b_row, b_column);
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = lower ? step : n - 1 - step;
    for (int64_t c = 0; c < columns; ++c) {
      Lane<T> rest = x(i, c);
      for (int64_t k = 0; k < step; ++k) {
        const int64_t j = lower ? k : n - 1 - k;
        rest -= at(i, j) * x(j, c);
      }
      x(i, c) = unit_diagonal ? rest : rest / at(i, i);
    }
  }
}

template <typename T>
void LuOfLanes(T* a, int64_t m, int64_t n, T* pivots) {
  const Block<T> at(a, n, 1);
  const Block<T> pivot_of(pivots, 1, 0);
  for (int64_t k = 0; k < (m < n ? m : n); ++k) {
    Lane<T> largest = Size<T>(at(k, k)), pivot = Same<T>(static_cast<T>(k));
    for (int64_t i = k + 1; i < m; ++i) {
      const Lane<T> size = Size<T>(at(i, k));
      pivot = size > largest ? Same<T>(static_cast<T>(i)) : pivot;
      largest = size > largest ? size : largest;
    }
    pivot_of(k, 0) = pivot;
    for (int64_t i = k + 1; i < m; ++i) {
      const Lane<T> number = Same<T>(static_cast<T>(i));
      for (int64_t j = 0; j < n; ++j) {
        const Lane<T> x = at(k, j), y = at(i, j);
        at(k, j) = pivot == number ? y : x;
        at(i, j) = pivot == number ? x : y;
      }
    }
    const Lane<T> head = at(k, k), divisor = head != 0 ? head : Same<T>(1);
    for (int64_t i = k + 1; i < m; ++i) {
      const Lane<T> factor = at(i, k) / divisor;
      at(i, k) = factor;
      for (int64_t j = k + 1; j < n; ++j) at(i, j) -= factor * at(k, j);
    }
  }
}

// LAPACK's larfg: x, n vectors of a column, becomes beta and v's tail; returns tau. Powers of 2
// keep the squares in range.
template <typename T>
inline Lane<T> Reflection(const Block<T>& x, int64_t n) {
  Lane<T> largest = Size<T>(x(0, 0));
  for (int64_t i = 1; i < n; ++i) {
    const Lane<T> size = Size<T>(x(i, 0));
    largest = size > largest ? size : largest;
  }
  const T least = sizeof(T) == 4 ? T(0x1p-126) : static_cast<T>(0x1p-1022);
  const LaneWords<T> exponent = reinterpret_cast<LaneWords<T>>(Same<T>(T(1) / T(0)));
  Lane<T> power = reinterpret_cast<Lane<T>>(reinterpret_cast<LaneWords<T>>(largest) & exponent);
  power = power < least ? Same<T>(least) : power;
  power = power - power == 0 ? power : Same<T>(1);  // of numbers
  const Lane<T> scale = 1 / power;
  Lane<T> square{};
  for (int64_t i = 1; i < n; ++i) {
    const Lane<T> y = x(i, 0) * scale;
    square += y * y;
  }
  const Lane<T> alpha = x(0, 0) * scale, norm = Root<T>(alpha * alpha + square);
  const Lane<T> beta = reinterpret_cast<LaneWords<T>>(alpha) < 0 ? norm : -norm;
  const Lane<T> factor = 1 / (alpha - beta);
  const auto is_done = (square == 0) & (alpha == alpha);
  for (int64_t i = 1; i < n; ++i) x(i, 0) = is_done ? Lane<T>{} : x(i, 0) * scale * factor;
  x(0, 0) = is_done ? x(0, 0) : beta * power;
  return is_done ? Lane<T>{} : (beta - alpha) / beta;
}

// (I - tau v v^T) c, for v = (1, tail) of a column.
template <typename T>
inline void Reflect(const Block<T>& v, int64_t rows, Lane<T> tau, const Block<T>& c,
                    int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    Lane<T> sum = c(0, j);
    for (int64_t i = 1; i < rows; ++i) sum += v(i, 0) * c(i, j);
    sum *= tau;
    c(0, j) -= sum;
    for (int64_t i = 1; i < rows; ++i) c(i, j) -= v(i, 0) * sum;
  }
}

template <typename T>
void QrOfLanes(T* a, int64_t m, int64_t n, T* taus) {
  const Block<T> at(a, n, 1), tau(taus, 1, 0);
  for (int64_t k = 0; k < (m < n ? m : n); ++k) {
    const Block<T> corner = at.Corner(k);
    tau(k, 0) = Reflection<T>(corner, m - k);
    Block<T> right = corner;
    right.first += 1;
    Reflect<T>(corner, m - k, tau(k, 0), right, n - k - 1);
  }
}

template <typename T>
void ProductOfLanes(const T* a, int64_t m, int64_t n, const T* taus, int64_t count, T* q) {
  const Block<T> at(a, n, 1), tau(taus, 1, 0), to(q, n, 1);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) to(i, j) = Same<T>(i == j ? 1 : 0);
  }
  for (int64_t k = count; k-- > 0;) {
    Reflect<T>(at.Corner(k), m - k, tau(k, 0), to.Corner(k), n - k);
  }
}
