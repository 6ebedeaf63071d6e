// The products and triangular systems of loops_impl.h, which includes this file into its namespace.
// A product goes by tiles of c, whose sums stay in registers, over packed blocks of a and b (Goto
// and van de Geijn, Anatomy of high-performance matrix multiplication, 2008).

template <typename T>
struct Tile {
  using V = typename Vector<T>::Type;
  static constexpr int kVectors = KILN_LINEAR_BYTES == 32 ? 3 : 2;
  static constexpr int kColumns = KILN_LINEAR_BYTES == 64 ? 8 : 4;
  static constexpr int64_t kRows = kVectors * Vector<T>::kWidth;
  static_assert(ProductBlocks::kRows % kRows == 0 && ProductBlocks::kColumns % kColumns == 0);
};

// c -= a b for a whole tile: packed columns of a and rows of b.
template <typename T>
inline void SubtractTile(const T* a, const T* b, int64_t depth, T* c, int64_t stride) {
  using S = Tile<T>;
  using V = typename S::V;
  constexpr int64_t kWidth = Vector<T>::kWidth;
  V sums[S::kColumns][S::kVectors] = {};
  for (int64_t k = 0; k < depth; ++k, a += S::kRows, b += S::kColumns) {
    V x[S::kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < S::kVectors; ++v) x[v] = *reinterpret_cast<const V*>(a + v * kWidth);
#pragma GCC unroll 8
    for (int j = 0; j < S::kColumns; ++j) {
      const T y = b[j];
#pragma GCC unroll 4
      for (int v = 0; v < S::kVectors; ++v) sums[j][v] += x[v] * y;
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < S::kColumns; ++j) {
#pragma GCC unroll 4
    for (int v = 0; v < S::kVectors; ++v) {
      *reinterpret_cast<V*>(c + j * stride + v * kWidth) -= sums[j][v];
    }
  }
}

// Packs rows of a, in groups as high as tiles; missing ones are 0.
template <typename T>
void PackRows(const T* a, int64_t stride, int64_t rows, int64_t depth, T* to) {
  constexpr int64_t kRows = Tile<T>::kRows;
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t height = rows - i < kRows ? rows - i : kRows;
    const T* from = a + i;
    for (int64_t k = 0; k < depth; ++k, from += stride, to += kRows) {
      if (height == kRows) {
        for (int64_t r = 0; r < kRows; ++r) to[r] = from[r];
      } else {
        for (int64_t r = 0; r < kRows; ++r) to[r] = r < height ? from[r] : T(0);
      }
    }
  }
}

template <typename T>
void PackColumns(const T* b, int64_t row, int64_t column, int64_t depth, int64_t columns, T* to) {
  constexpr int64_t kColumns = Tile<T>::kColumns;
  for (int64_t j = 0; j < columns; j += kColumns, to += kColumns * depth) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const T* from = b + (j + c) * column;
      T* at = to + c;
      if (j + c >= columns) {
        for (int64_t k = 0; k < depth; ++k) at[k * kColumns] = 0;
      } else {
        for (int64_t k = 0; k < depth; ++k) at[k * kColumns] = from[k * row];
      }
    }
  }
}

template <typename T>
void SubtractProduct(T* c, int64_t c_stride, int64_t rows, int64_t columns, int64_t depth,
                     const T* a, int64_t a_stride, const T* b, int64_t b_row, int64_t b_column,
                     T* work) {
  using S = Tile<T>;
  using B = ProductBlocks;
  auto least = [](int64_t x, int64_t y) { return x < y ? x : y; };
  T border[S::kRows * S::kColumns];
  for (int64_t k = 0; k < depth; k += B::kDepth) {
    const int64_t deep = least(B::kDepth, depth - k);
    T* const packed_a = work;
    T* const packed_b = work + B::kRows * deep;
    for (int64_t j = 0; j < columns; j += B::kColumns) {
      const int64_t wide = least(B::kColumns, columns - j);
      PackColumns(b + k * b_row + j * b_column, b_row, b_column, deep, wide, packed_b);
      for (int64_t i = 0; i < rows; i += B::kRows) {
        const int64_t high = least(B::kRows, rows - i);
        PackRows(a + i + k * a_stride, a_stride, high, deep, packed_a);
        for (int64_t q = 0; q < wide; q += S::kColumns) {
          for (int64_t p = 0; p < high; p += S::kRows) {
            T* at = c + i + p + (j + q) * c_stride;
            const int64_t height = least(S::kRows, high - p), width = least(S::kColumns, wide - q);
            const bool is_whole = height == S::kRows && width == S::kColumns;
            if (!is_whole) {
              for (T& x : border) x = 0;
            }
            SubtractTile(packed_a + p * deep, packed_b + q * deep, deep, is_whole ? at : border,
                         is_whole ? c_stride : S::kRows);
            for (int64_t y = 0; !is_whole && y < width; ++y) {
              for (int64_t x = 0; x < height; ++x) at[x + y * c_stride] += border[x + y * S::kRows];
            }
          }
        }
      }
    }
  }
}

// kRows rows of x at once, a vector of columns after the other.
template <typename T, int kRows>
void SolveSomeRows(const T* l, int64_t l_row, int64_t l_column, bool unit, T* x, int64_t stride,
                   int64_t columns) {
  using V = typename Vector<T>::Type;
  constexpr int64_t kWidth = Vector<T>::kWidth;
  T factors[kRows][kRows];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j <= i; ++j) factors[i][j] = l[i * l_row + j * l_column];
  }
  auto solve = [&](auto load, auto store) {
    decltype(load(0)) known[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      known[i] = load(i);
#pragma GCC unroll 8
      for (int j = 0; j < i; ++j) known[i] -= factors[i][j] * known[j];
      if (!unit) known[i] /= factors[i][i];
      store(i, known[i]);
    }
  };
  int64_t column = 0;
  for (; column + kWidth <= columns; column += kWidth) {
    T* at = x + column;
    solve([&](int i) -> V { return *reinterpret_cast<V*>(at + i * stride); },
          [&](int i, V y) { *reinterpret_cast<V*>(at + i * stride) = y; });
  }
  for (; column < columns; ++column) {
    T* at = x + column;
    solve([&](int i) { return at[i * stride]; }, [&](int i, T y) { at[i * stride] = y; });
  }
}

template <typename T>
void SolveRows(const T* l, int64_t l_row, int64_t l_column, int64_t n, bool unit, T* x,
               int64_t stride, int64_t columns) {
  if (n == 8) return SolveSomeRows<T, 8>(l, l_row, l_column, unit, x, stride, columns);
  for (int64_t i = 0; i < n; ++i) {
    T* row = x + i * stride;
    for (int64_t j = 0; j < i; ++j) {
      const T factor = l[i * l_row + j * l_column];
      const T* other = x + j * stride;
      for (int64_t c = 0; c < columns; ++c) row[c] -= factor * other[c];
    }
    const T diagonal = l[i * (l_row + l_column)];
    for (int64_t c = 0; c < columns && !unit; ++c) row[c] /= diagonal;
  }
}

template <typename T>
void SubtractOuter(T* a, int64_t stride, int64_t rows, int64_t columns, const T* x, const T* y,
                   int64_t y_stride) {
  int64_t j = 0;
  for (; j + 2 <= columns; j += 2) {
    T *p = a + j * stride, *q = p + stride;
    const T f = y[j * y_stride], g = y[(j + 1) * y_stride];
#pragma omp simd
    for (int64_t i = 0; i < rows; ++i) {
      p[i] -= x[i] * f;
      q[i] -= x[i] * g;
    }
  }
  if (j < columns) {
    T* p = a + j * stride;
    const T f = y[j * y_stride];
#pragma omp simd
    for (int64_t i = 0; i < rows; ++i) p[i] -= x[i] * f;
  }
}

template <typename T>
int64_t Largest(const T* x, int64_t n) {
  T most = -1;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; ++i) {
    const T size = x[i] < 0 ? -x[i] : x[i];
    most = size > most ? size : most;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == most || -x[i] == most) return i;
  }
  return 0;
}

template <typename T>
void Transpose(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
               int64_t to_stride) {
  constexpr int64_t kBlock = 8;
  for (int64_t i = 0; i < rows; i += kBlock) {
    const int64_t height = rows - i < kBlock ? rows - i : kBlock;
    for (int64_t j = 0; j < columns; ++j) {
      const T* x = from + i * from_stride + j;
      T* y = to + j * to_stride + i;
      if (height == kBlock) {
#pragma GCC unroll 8
        for (int64_t r = 0; r < kBlock; ++r) y[r] = x[r * from_stride];
      } else {
        for (int64_t r = 0; r < height; ++r) y[r] = x[r * from_stride];
      }
    }
  }
}
