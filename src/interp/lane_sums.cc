#include "interp/lane_sums.h"

#include <algorithm>
#include <cmath>

namespace kiln::interp {
namespace {

template <bool fused, typename Compute, typename Wide>
[[gnu::always_inline]] inline void Walk(std::span<const Compute> x, const Compute* y,
                                        LaneSums<Compute, Wide>& sums) {
  std::fill_n(sums.wide, kLanes, Wide(0));
  std::fill_n(sums.block, kLanes, Compute(0));
  sums.has_wide = false;
  for (size_t begin = 0; begin < x.size(); begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, x.size());
    Compute block[kLanes] = {};
    for (size_t k = begin; k < end; ++k) {
      for (size_t l = 0; l < kLanes; ++l) {
        const Compute factor = y[k * kLanes + l];
        block[l] = fused ? std::fma(x[k], factor, block[l]) : block[l] + x[k] * factor;
      }
    }
    if (end - begin < kSumBlock) {
      std::copy_n(block, kLanes, sums.block);
      return;
    }
    for (size_t l = 0; l < kLanes; ++l) sums.wide[l] += static_cast<Wide>(block[l]);
    sums.has_wide = true;
  }
}

template <typename Compute, typename Wide>
struct Walks {
  using Function = void(std::span<const Compute>, const Compute*, LaneSums<Compute, Wide>&);

  template <bool fused>
  static void Plain(std::span<const Compute> x, const Compute* y, LaneSums<Compute, Wide>& sums) {
    Walk<fused>(x, y, sums);
  }
#ifdef __x86_64__
  // Without FMA here, as the compiler would fuse what must be rounded.
  [[gnu::target("avx2")]] static void Separate(std::span<const Compute> x, const Compute* y,
                                               LaneSums<Compute, Wide>& sums) {
    Walk<false>(x, y, sums);
  }
  [[gnu::target("avx2,fma")]] static void Fused(std::span<const Compute> x, const Compute* y,
                                                LaneSums<Compute, Wide>& sums) {
    Walk<true>(x, y, sums);
  }
#endif

  static Function* Choose(bool fused) {
#ifdef __x86_64__
    if (fused && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Fused;
    if (!fused && __builtin_cpu_supports("avx2")) return Separate;
#endif
    return fused ? Plain<true> : Plain<false>;
  }
};

}  // namespace

void SumLanes(std::span<const float> x, const float* y, bool fused, LaneSums<float, double>& sums) {
  Walks<float, double>::Choose(fused)(x, y, sums);
}
void SumLanes(std::span<const double> x, const double* y, bool fused,
              LaneSums<double, long double>& sums) {
  Walks<double, long double>::Choose(fused)(x, y, sums);
}

}  // namespace kiln::interp
