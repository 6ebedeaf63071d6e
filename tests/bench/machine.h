// What the machine itself can do: the yardsticks of the benchmarks.
#pragma once

#include <cstdint>
#include <span>

namespace kiln::bench {

// Hardware threads.
int Cpus();

// Reads all the arrays once, `threads` contiguous pieces of each in parallel, and returns the time
// of one such pass in seconds (median). Each thread reads all arrays side by side, as a fused sum
// over them does.
double ReadSeconds(std::span<const std::span<const float>> arrays, int threads);

// The rate of f32 fused multiply-adds that one core sustains for `seconds`, in FLOP/s, with the
// widest vectors that it has.
double FmaPeak(double seconds);

}  // namespace kiln::bench
