#include "machine.h"

#include <algorithm>
#include <cstring>
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

// Pieces begin and end at a multiple of this many elements: whole lines of a cache, four of them.
constexpr int64_t kCopyGrain = 64;

#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) void Stream512(const float* from, float* to,
                                                            int64_t count) {
  for (int64_t i = 0; i < count; i += kCopyGrain) {
    __m512 line[4];
    for (int u = 0; u < 4; ++u) line[u] = _mm512_loadu_ps(from + i + 16 * u);
    for (int u = 0; u < 4; ++u) _mm512_stream_ps(to + i + 16 * u, line[u]);
  }
  _mm_sfence();
}

template <bool ahead>
__attribute__((target("avx512f"), noinline)) void Copy512(const float* from, float* to,
                                                          int64_t count) {
  constexpr int64_t kAheadBy = 1024;
  for (int64_t i = 0; i < count; i += kCopyGrain) {
    __m512 line[4];
    for (int u = 0; u < 4; ++u) {
      if (ahead) __builtin_prefetch(to + i + 16 * u + kAheadBy, 1);
    }
    for (int u = 0; u < 4; ++u) line[u] = _mm512_loadu_ps(from + i + 16 * u);
    for (int u = 0; u < 4; ++u) _mm512_storeu_ps(to + i + 16 * u, line[u]);
  }
}

__attribute__((target("avx"), noinline)) void Stream256(const float* from, float* to,
                                                        int64_t count) {
  for (int64_t i = 0; i < count; i += kCopyGrain) {
    for (int u = 0; u < 8; ++u) _mm256_stream_ps(to + i + 8 * u, _mm256_loadu_ps(from + i + 8 * u));
  }
  _mm_sfence();
}
#endif

// `to` is at a multiple of 64 bytes, `count` one of kCopyGrain.
void CopyPiece(const float* from, float* to, int64_t count, Stores stores) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return stores == Stores::kNonTemporal ? Stream512(from, to, count)
           : stores == Stores::kAhead     ? Copy512<true>(from, to, count)
                                          : Copy512<false>(from, to, count);
  }
  if (stores == Stores::kNonTemporal && __builtin_cpu_supports("avx")) {
    return Stream256(from, to, count);
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
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

__attribute__((target("avx512f,avx512bf16"), noinline)) double Bf16Rounds(int64_t rounds) {
  __m512 sums[kChains] = {};
  const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor);
  }
  float total = 0;
  for (__m512& sum : sums) total += _mm512_reduce_add_ps(sum);
  Keep(total);
  return 4.0 * 16 * kChains * static_cast<double>(rounds);
}

__attribute__((target("avx512f,avx512vnni"), noinline)) double ByteRounds(int64_t rounds) {
  __m512i sums[kChains] = {};
  const __m512i factor = _mm512_set1_epi32(0x01020304);
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, factor, factor);
  }
  int32_t total = 0;
  for (__m512i& sum : sums) total += _mm512_reduce_add_epi32(sum);
  Keep(total);
  return 8.0 * 16 * kChains * static_cast<double>(rounds);
}

// Products of pairs of s16, which two instructions add.
__attribute__((target("avx2"), noinline)) double S16Rounds(int64_t rounds) {
  constexpr int kPairChains = 6;  // with the products between they fill the registers
  __m256i sums[kPairChains] = {};
  __m256i factor = _mm256_set1_epi32(0x00010002);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 6
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(factor));  // or one product would do for all
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(factor, factor));
    }
  }
  Keep(sums);
  return 4.0 * 8 * kPairChains * static_cast<double>(rounds);
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

void Read(std::span<const std::span<const float>> arrays, int threads) {
  int64_t size = arrays.empty() ? 0 : static_cast<int64_t>(arrays[0].size());
  auto piece = [&](int t) {
    float total = Sum(arrays.data(), arrays.size(), size * t / threads, size * (t + 1) / threads);
    Keep(total);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(piece, t);
  piece(0);
  for (std::thread& other : others) other.join();
}

double ReadSeconds(std::span<const std::span<const float>> arrays, int threads) {
  return Measure([&] { Read(arrays, threads); }).median;
}

void Copy(std::span<const float> from, std::span<float> to, Stores stores,
          runtime::ThreadPool& pool) {
  struct Job {
    const float* from;
    float* to;
    int64_t grains;
    int64_t pieces;
    Stores stores;
  } job{from.data(), to.data(), static_cast<int64_t>(from.size()) / kCopyGrain, pool.threads(),
        stores};
  auto work = [](void* context, int64_t task) {
    const Job& j = *static_cast<Job*>(context);
    runtime::Range r = runtime::PieceOf(j.grains, j.pieces, task);
    CopyPiece(j.from + r.begin * kCopyGrain, j.to + r.begin * kCopyGrain,
              (r.end - r.begin) * kCopyGrain, j.stores);
  };
  pool.Run(job.pieces, work, &job);
  size_t copied = static_cast<size_t>(job.grains * kCopyGrain);
  std::copy(from.begin() + copied, from.end(), to.begin() + copied);
}

std::vector<double> MediansInTurn(std::span<const std::function<void()>> calls, int rounds) {
  std::vector<std::vector<double>> times(calls.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i]();
      double start = Now();
      calls[i]();
      times[i].push_back(Now() - start);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& t : times) {
    std::nth_element(t.begin(), t.begin() + rounds / 2, t.end());
    medians.push_back(t[rounds / 2]);
  }
  return medians;
}

namespace {

double Peak(double seconds, double (*do_rounds)(int64_t)) {
  do_rounds(100000);
  double start = Now(), done = 0;
  while (Now() - start < seconds) done += do_rounds(1000000);
  return done / (Now() - start);
}

}  // namespace

double FmaPeak(double seconds) { return Peak(seconds, FmaRounds); }

double Bf16Peak([[maybe_unused]] double seconds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return Peak(seconds, Bf16Rounds);
#endif
  return 0;
}

double BytePeak([[maybe_unused]] double seconds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) return Peak(seconds, ByteRounds);
  if (__builtin_cpu_supports("avx2")) return Peak(seconds, S16Rounds);
#endif
  return 0;
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
