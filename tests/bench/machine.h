// What the machine itself can do: the yardsticks of the benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/thread_pool.h"

namespace kiln::bench {

// Hardware threads.
int Cpus();

// Reads all the arrays once, `threads` contiguous pieces of each in parallel. Each thread reads all
// arrays side by side, as a fused sum over them does.
void Read(std::span<const std::span<const float>> arrays, int threads);
// The time of one such pass in seconds (median).
double ReadSeconds(std::span<const std::span<const float>> arrays, int threads);

// Copies `from` to `to` once, a contiguous piece for each thread of the pool, as fast as
// hand-written code can: through the caches, through them with the output's lines asked for ahead,
// or with stores that pass them by (which is faster where nothing of the output stays in a cache).
enum class Stores { kOrdinary, kAhead, kNonTemporal };
inline constexpr Stores kAllStores[] = {Stores::kOrdinary, Stores::kAhead, Stores::kNonTemporal};
void Copy(std::span<const float> from, std::span<float> to, Stores stores,
          runtime::ThreadPool& pool);

// Times the calls in turn, `rounds` times, and returns the median seconds of each. Every call is
// made twice and timed the second time, so that it finds the caches as it leaves them itself.
std::vector<double> MediansInTurn(std::span<const std::function<void()>> calls, int rounds);

// The rate of f32 fused multiply-adds that one core sustains for `seconds`, in FLOP/s, with the
// widest vectors that it has.
double FmaPeak(double seconds);

// The same of other instructions: of two products of bf16, and of four products of bytes, for each
// lane of a vector, or of two products of bytes as s16. 0 where the machine has none.
double Bf16Peak(double seconds);
double BytePeak(double seconds);

}  // namespace kiln::bench
