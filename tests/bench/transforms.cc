// Fourier transforms and decompositions.
#include <cmath>
#include <vector>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"

namespace kiln::bench {
namespace {

std::string Transform(std::string_view type, int64_t rows, int64_t n) {
  const std::string shape = Cat(type, "[", rows, ",", n, "]");
  return Cat("ENTRY e { x = ", shape, " parameter(0) ROOT y = ", shape,
             " fft(x), fft_type=FFT, fft_length={", n, "} }");
}

// Microseconds of a transform, by 5 n log2(n) flops each.
double AddTransform(std::string_view name, std::string_view type, int64_t rows, int64_t n,
                    int threads, Report& report, Bound bound = {}) {
  Compiled program(Transform(type, rows, n), threads);
  const double seconds = program.Seconds();
  if (!program.ok()) {
    report.Note(name, program.error());
    return -1;
  }
  const double flops =
      static_cast<double>(rows) * 5 * static_cast<double>(n) * std::log2(static_cast<double>(n));
  report.Add(Cat(name, " GFlop/s"), flops / seconds / 1e9, "GFlop/s");
  report.Add(name, seconds * 1e6, "us", bound);
  return seconds;
}

}  // namespace

// The same transform of lengths that are prime takes at most 8 times as long.
KILN_BENCH(fft) {
  for (std::string_view type : {"c64", "c128"}) {
    auto name = [&](int64_t n) { return Cat("fft ", type, " of ", n); };
    AddTransform(name(1024), type, 1, 1024, 1, report);
    AddTransform(Cat(name(1024), ", 1000 rows"), type, 1000, 1024, 2, report);
    AddTransform(Cat(name(16), ", 10000 rows"), type, 10000, 16, 2, report);
    const double power = AddTransform(name(65536), type, 1, 65536, 1, report);
    for (int64_t prime : {65521, 65537}) {
      AddTransform(name(prime), type, 1, prime, 1, report, AtMost(8 * power * 1e6));
    }
  }
}

KILN_BENCH(decompositions) {
  auto add = [&](std::string_view name, const std::string& text, double flops) {
    Compiled program(text, 2);
    // What is not positive definite takes as long.
    const double seconds = program.Seconds();
    if (!program.ok()) return report.Note(name, program.error());
    report.Add(name, seconds * 1e6, "us");
    report.Add(Cat(name, " GFlop/s"), flops / seconds / 1e9, "GFlop/s");
  };
  for (int64_t n : {3, 64, 512}) {
    const int64_t batch = n == 3 ? 10000 : 1;
    const std::string a = Cat("f32[", batch, ",", n, ",", n, "]");
    const double cube = static_cast<double>(batch) * static_cast<double>(n * n * n);
    // The identity times n, so that it is positive definite.
    const std::string eye =
        Cat("r = s32", a.substr(3), " iota(), iota_dimension=1 c = s32", a.substr(3),
            " iota(), iota_dimension=2 e = pred", a.substr(3),
            " compare(r, c), direction=EQ f = ", a, " convert(e) s = f32[] constant(", 4 * n,
            ") t = ", a, " broadcast(s), dimensions={} d = ", a, " multiply(f, t) x = ", a,
            " parameter(0) y = ", a, " add(x, d)");
    add(Cat("cholesky of ", batch, " x ", n),
        Cat("ENTRY e { ", eye, " ROOT l = ", a, " cholesky(y), lower=true }"), cube / 3);
    add(Cat("triangular-solve of ", batch, " x ", n),
        Cat("ENTRY e { ", eye, " ROOT l = ", a,
            " triangular-solve(y, x), left_side=true, lower=true, transpose_a=NO_TRANSPOSE }"),
        cube);
  }
}

}  // namespace kiln::bench
