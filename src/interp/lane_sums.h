// Many sums of products at once, of the same left factors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "interp/sum_of_products.h"

namespace kiln::interp {

inline constexpr size_t kLanes = 32;

// One sum for each lane, with the bits of Sum (sums.h): the last, incomplete block, and the sum of
// the others if there is one.
template <typename Compute, typename Wide>
struct LaneSums {
  Compute block[kLanes];
  Wide wide[kLanes];
  bool has_wide;
};

// The sums of x[k] * y[k * kLanes + lane] over k. `fused` as in SumOfProducts.
void SumLanes(std::span<const float> x, const float* y, bool fused, LaneSums<float, double>& sums);
void SumLanes(std::span<const double> x, const double* y, bool fused,
              LaneSums<double, long double>& sums);

// Whether so many sums at once are worth it.
inline bool HasLanes(size_t lanes) { return lanes >= kLanes / 4; }

// The right factors of up to kLanes sums for SumLanes: the elements at `first` plus each lane's and
// each term's offset. Absent lanes are 0.
template <typename Compute, typename From>
void PackLanes(const From* first, std::span<const int64_t> lanes, std::span<const int64_t> terms,
               Compute* to) {
  for (int64_t term : terms) {
    for (size_t l = 0; l < kLanes; ++l) {
      *to++ = l < lanes.size() ? static_cast<Compute>(first[term + lanes[l]]) : Compute(0);
    }
  }
}

// The left factors; 0 for a negative offset.
template <typename Compute, typename From>
void PackTerms(const From* first, std::span<const int64_t> terms, Compute* to) {
  for (int64_t term : terms) *to++ = term < 0 ? Compute(0) : static_cast<Compute>(first[term]);
}

// Calls put(lane, sum), rounded to the type of an array, for each of the first lanes.
template <typename To, bool fused, typename Put>
void ForEachSum(std::span<const ComputeType<To>> x, const ComputeType<To>* y, size_t lanes,
                Put&& put) {
  LaneSums<ComputeType<To>, Wider<To>> sums;
  SumLanes(x, y, fused, sums);
  for (size_t l = 0; l < lanes; ++l) {
    put(l, sums.has_wide ? RoundTo<To>(sums.wide[l] + static_cast<Wider<To>>(sums.block[l]))
                         : RoundTo<To>(sums.block[l]));
  }
}

}  // namespace kiln::interp
