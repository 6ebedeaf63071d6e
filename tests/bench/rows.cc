// Kernels that are bound by memory: what goes over rows, and transposes. Each is held against a
// copy of as many bytes by the same number of threads, in turn with it: the rate that its bytes,
// read once and written once, can reach.
#include <algorithm>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"
#include "row_programs.h"

namespace kiln::bench {
namespace {

constexpr int64_t kRows = 4096, kFewRows = 64;

// The program over rows that stay in the second cache: the time that its arithmetic takes.
void AddInCache(Report& report, std::string_view name, const std::string& program) {
  Compiled c(program, 1);
  if (!c.ok()) return report.Note(name, c.error());
  c.Fill(0, -2, 2);
  double seconds = Measure([&] { c.Run(); }).median;
  report.Add(Cat(name, ".", kFewRows, "x", kColumns, ".threads1"),
             8.0 * static_cast<double>(kFewRows * kColumns) / seconds / 1e9, "GB/s");
}

// The program beside copies of its n elements, in the same memory.
void AddOfCopy(Report& report, std::string_view name, const std::string& program, int64_t n,
               double bound) {
  for (int threads : {1, Cpus()}) {
    Compiled c(program, threads);
    if (!c.ok()) return report.Note(name, c.error());
    c.Fill(0, -2, 2);
    auto size = static_cast<size_t>(n);
    std::span<const float> from(c.argument(0), size);
    std::span<float> to(c.result(0), size);
    auto copy = [&](Stores stores) { Copy(from, to, stores, c.pool()); };
    std::array<std::function<void()>, 3> calls = {
        [&] { c.Run(); }, [&] { copy(Stores::kOrdinary); }, [&] { copy(Stores::kNonTemporal); }};
    std::vector<double> seconds = MediansInTurn(calls, 41);
    double best = std::min(seconds[1], seconds[2]), bytes = 8.0 * static_cast<double>(n);
    std::string prefix = Cat(name, ".threads", threads);
    report.Add(prefix, bytes / seconds[0] / 1e9, "GB/s");
    report.Add(Cat(prefix, ".copy"), bytes / best / 1e9, "GB/s");
    report.Add(Cat(prefix, ".of_copy"), best / seconds[0], "",
               threads > 1 ? AtLeast(bound) : Bound{});
    if (threads == 1) {
      report.Add(Cat(name, ".kernels"),
                 static_cast<double>(program::CountKernels(c.program().steps)), "", AtMost(1));
    }
  }
}

}  // namespace

KILN_BENCH(rows_softmax) {
  AddOfCopy(report, "rows_softmax.4096x1024", Softmax(kRows), kRows * kColumns, 0.8);
  AddInCache(report, "rows_softmax", Softmax(kFewRows));
}
KILN_BENCH(rows_layer_norm) {
  AddOfCopy(report, "rows_layer_norm.4096x1024", Normalised(kRows), kRows * kColumns, 0.8);
  AddInCache(report, "rows_layer_norm", Normalised(kFewRows));
}
KILN_BENCH(rows_bias_gelu_scale) {
  AddOfCopy(report, "rows_bias_gelu_scale.4096x1024", BiasGeluScale(kRows), kRows * kColumns, 0.8);
  AddInCache(report, "rows_bias_gelu_scale", BiasGeluScale(kFewRows));
}
// Strips of columns read memory in pieces, and what is kept of them goes through the second cache.
KILN_BENCH(rows_columns) {
  constexpr int64_t n = kRows * kColumns;
  AddOfCopy(report, "columns_softmax.4096x1024", Softmax(kRows, 0), n, 0.25);
  AddOfCopy(report, "columns_normalised.4096x1024", Normalised(kRows, 0), n, 0.3);
}
KILN_BENCH(rows_transposed) {
  constexpr int64_t n = kRows * kColumns;
  AddOfCopy(report, "rows_softmax_transposed.4096x1024", Softmax(kRows, 1, true), n, 0.3);
  AddOfCopy(report, "columns_softmax_transposed.4096x1024", Softmax(kRows, 0, true), n, 0.2);
}
KILN_BENCH(rows_transpose) {
  constexpr int64_t n = 4096;
  AddOfCopy(report, "rows_transpose.4096x4096", Transpose(n, n), n * n, 0.7);
}

}  // namespace kiln::bench
