#include "machine.h"

#include <thread>
#include <vector>

#include "harness.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kiln::bench {
namespace {

constexpr int kLanes = 16;
// Independent chains: enough to hide the latency of an addition or a multiply-add on two ports.
constexpr int kChains = 12;

using Wide = float __attribute__((vector_size(4 * kLanes), aligned(4)));

#if defined(__x86_64__)
#define KILN_WIDEST __attribute__((target_clones("avx512f", "avx2", "default"), noinline))
#else
#define KILN_WIDEST __attribute__((noinline))
#endif

KILN_WIDEST float Sum(const std::span<const float>* arrays, size_t count, int64_t begin,
                      int64_t end) {
  constexpr int kUnroll = 4;
  Wide sums[kUnroll] = {};
  int64_t i = begin;
  for (; i + kLanes * kUnroll <= end; i += kLanes * kUnroll) {
    for (size_t a = 0; a < count; ++a) {
      const float* p = arrays[a].data() + i;
      for (int u = 0; u < kUnroll; ++u) {
        sums[u] += *reinterpret_cast<const Wide*>(p + u * kLanes);
      }
    }
  }
  float total = 0;
  for (; i < end; ++i) {
    for (size_t a = 0; a < count; ++a) total += arrays[a][i];
  }
  for (const Wide& sum : sums) {
    for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
  }
  return total;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) double FmaRounds512(int64_t rounds) {
  __m512 sums[kChains];
  __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(1e-3f);
  for (__m512& sum : sums) sum = term;
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  float total = 0;
  for (__m512& sum : sums) total += _mm512_reduce_add_ps(sum);
  Keep(total);
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

__attribute__((target("avx2,fma"), noinline)) double FmaRounds256(int64_t rounds) {
  __m256 sums[kChains];
  __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(1e-3f);
  for (__m256& sum : sums) sum = term;
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  Keep(sums);
  return 2.0 * 8 * kChains * static_cast<double>(rounds);
}
#endif

// Does `rounds` rounds of multiply-adds and returns how many operations these were.
double FmaRounds(int64_t rounds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return FmaRounds512(rounds);
  if (__builtin_cpu_supports("fma")) return FmaRounds256(rounds);
#endif
  constexpr int kScalars = 32;
  float sums[kScalars];
  for (float& sum : sums) sum = 1e-3f;
  for (int64_t i = 0; i < rounds; ++i) {
    for (float& sum : sums) sum = __builtin_fmaf(sum, 0.999f, 1e-3f);
  }
  Keep(sums);
  return 2.0 * kScalars * static_cast<double>(rounds);
}

}  // namespace

int Cpus() {
  unsigned n = std::thread::hardware_concurrency();
  return n ? static_cast<int>(n) : 1;
}

double ReadSeconds(std::span<const std::span<const float>> arrays, int threads) {
  int64_t size = arrays.empty() ? 0 : static_cast<int64_t>(arrays[0].size());
  auto piece = [&](int t) {
    float total = Sum(arrays.data(), arrays.size(), size * t / threads, size * (t + 1) / threads);
    Keep(total);
  };
  return Measure([&] {
           std::vector<std::thread> others;
           for (int t = 1; t < threads; ++t) others.emplace_back(piece, t);
           piece(0);
           for (std::thread& other : others) other.join();
         })
      .median;
}

double FmaPeak(double seconds) {
  FmaRounds(100000);
  double start = Now(), done = 0;
  while (Now() - start < seconds) done += FmaRounds(1000000);
  return done / (Now() - start);
}

KILN_BENCH(machine) {
  constexpr int64_t kElements = 16 << 20;
  std::vector<std::vector<float>> storage(3, std::vector<float>(kElements, 1.0f));
  std::vector<std::span<const float>> arrays(storage.begin(), storage.end());
  double bytes = 3.0 * kElements * sizeof(float);
  report.Add("machine/fma", FmaPeak(1.0) / 1e9, "GFLOP/s");
  report.Add("machine/read/1", bytes / ReadSeconds(arrays, 1) / 1e9, "GB/s");
  if (Cpus() > 1) report.Add("machine/read/2", bytes / ReadSeconds(arrays, 2) / 1e9, "GB/s");
}

}  // namespace kiln::bench
