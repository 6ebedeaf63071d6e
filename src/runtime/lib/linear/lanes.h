// Decompositions of many small real matrices at once, one in each lane of vectors. A block has, for
// each element of the matrices in row-major order, a vector of it. NaNs and divisions by zero
// propagate as in plain arithmetic; no lane depends on another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace kiln::runtime::lib::linear {

template <typename T>
struct Lanes {
  int64_t width;  // matrices of a block

  // A block of up to `width` matrices that follow one another; missing ones are like the last. And
  // back.
  void (*load)(const T* from, int64_t elements, int64_t matrices, T* block);
  void (*store)(const T* block, int64_t elements, int64_t matrices, T* to);
  // The Cholesky decomposition of a triangle; the other one becomes 0. A matrix that is not
  // positive definite becomes NaN.
  void (*cholesky)(T* a, int64_t n, bool lower);
  // Solves a triangular system in place of b: element (i, j) of the triangle is a[i * row + j *
  // column], element i of right side k is b[i * b_row + k * b_column].
  void (*solve)(const T* a, int64_t n, int64_t row, int64_t column, bool lower, bool unit_diagonal,
                T* b, int64_t columns, int64_t b_row, int64_t b_column);
  // P A = L U with partial pivoting; pivots[i], a number, is the row that was swapped with row i.
  void (*lu)(T* a, int64_t m, int64_t n, T* pivots);
  // R above the tails of the reflections.
  void (*qr)(T* a, int64_t m, int64_t n, T* taus);
  // The first n columns of the product of the reflections in `count` columns of a.
  void (*product)(const T* a, int64_t m, int64_t n, const T* taus, int64_t count, T* q);
};

// The most bytes of a vector.
inline constexpr int64_t kMostLaneBytes = 64;
// Fewer matrices are decomposed one by one.
inline constexpr int64_t kFewestInLanes = 8;

// The same for matrices of another type in memory.
template <typename T, typename Stored>
void LoadLanes(const Lanes<T>& lanes, const Stored* from, int64_t elements, int64_t matrices,
               T* block) {
  if constexpr (std::is_same_v<T, Stored>) return lanes.load(from, elements, matrices, block);
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    const Stored* const matrix = from + std::min(lane, matrices - 1) * elements;
    for (int64_t e = 0; e < elements; ++e)
      block[e * lanes.width + lane] = static_cast<T>(matrix[e]);
  }
}

template <typename T, typename Stored>
void StoreLanes(const Lanes<T>& lanes, const T* block, int64_t elements, int64_t matrices,
                Stored* to) {
  if constexpr (std::is_same_v<T, Stored>) return lanes.store(block, elements, matrices, to);
  for (int64_t lane = 0; lane < matrices; ++lane) {
    for (int64_t e = 0; e < elements; ++e) {
      to[lane * elements + e] = static_cast<Stored>(block[e * lanes.width + lane]);
    }
  }
}

}  // namespace kiln::runtime::lib::linear
