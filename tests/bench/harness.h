// Benchmarks: a table on standard output, JSON lines in a file, bounds that are held or missed.
//
//   KILN_BENCH(fused_sum) {
//     double seconds = Measure([&] { Run(); }).median;
//     report.Add("fused_sum", bytes / seconds / 1e9, "GB/s", AtLeast(0.85 * probe));
//   }
//
// What is compared is measured in one run: a machine's speed differs from day to day.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace kiln::bench {

// Seconds on a steady clock.
double Now();

struct Timing {
  double median = 0;  // seconds of one call
  double minimum = 0;
  int64_t calls = 0;
};

struct MeasureOptions {
  double seconds = 0.3;  // how long to measure, warm-up apart
  int64_t samples = 11;  // at least so many
  bool warm_up = true;   // one call before the first sample
};

// Times `call`; calls shorter than the clock can tell are timed in batches.
Timing Measure(const std::function<void()>& call, const MeasureOptions& options = {});

// Times `a` and `b` in turn, `pairs` times, and returns the median of a's time over b's.
double PairedRatio(const std::function<void()>& a, const std::function<void()>& b, int pairs);

// What a figure must reach. Without a bound it is reported as it is.
struct Bound {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
inline Bound AtLeast(double low) { return {.low = low}; }
inline Bound AtMost(double high) { return {.high = high}; }

class Report {
 public:
  // `json` may be empty: no file is written then.
  explicit Report(const std::string& json);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void Add(std::string_view name, double value, std::string_view unit, Bound bound = {});
  // Something that is worth a line and is no figure, such as a library that is not installed.
  void Note(std::string_view name, std::string_view text);
  int missed() const { return missed_; }

 private:
  void* json_ = nullptr;
  int missed_ = 0;
};

using BenchFn = void (*)(Report& report);
// Called before main by KILN_BENCH.
int Register(const char* name, BenchFn fn);

#define KILN_BENCH(name)                                   \
  static void Bench_##name(::kiln::bench::Report& report); \
  [[maybe_unused]] static const int registered_##name =    \
      ::kiln::bench::Register(#name, Bench_##name);        \
  static void Bench_##name([[maybe_unused]] ::kiln::bench::Report& report)

// Keeps the compiler from dropping the computation of `value`.
template <typename T>
inline void Keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace kiln::bench
