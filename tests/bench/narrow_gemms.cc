// Gemms of bf16 and of bytes beside oneDNN, in turn within one run.
#include <cmath>

#include "base/strings.h"
#include "gemms.h"
#include "harness.h"
#include "machine.h"
#include "peers.h"
#include "target/target.h"

namespace kiln::bench {
namespace {

using Type = OneDnnProduct::Type;

struct Narrow {
  const char* name;
  GemmTypes types;
  Type a, b, c;
  double (*peak)(double seconds);
};

const Narrow kNarrow[] = {
    {"bf16",
     {ElementType::kBF16, ElementType::kBF16, ElementType::kF32},
     Type::kBf16,
     Type::kBf16,
     Type::kF32,
     Bf16Peak},
    {"s8",
     {ElementType::kS8, ElementType::kS8, ElementType::kS32},
     Type::kS8,
     Type::kS8,
     Type::kS32,
     BytePeak},
    {"u8s8",
     {ElementType::kU8, ElementType::kS8, ElementType::kS32},
     Type::kU8,
     Type::kS8,
     Type::kS32,
     BytePeak},
};

struct NarrowRow {
  Shape3 shape;
  double of_peak = 0;  // what a constant B must reach of the instruction's peak
};

const NarrowRow kNarrowRows[] = {
    {{128, 128, 128}, 0.8},    {{256, 256, 256}, 0.8}, {{512, 512, 512}, 0.8},
    {{1024, 1024, 1024}, 0.8}, {{2048, 2048, 2048}},   {{128, 3072, 768}},
    {{1, 768, 3072}},
};

void CompareNarrow(Report& report, int threads) {
  runtime::ThreadPool pool(threads);
  for (const Narrow& narrow : kNarrow) {
    const double peak = narrow.peak(0.5);
    if (peak == 0) continue;
    if (threads == 1) {
      report.Add(Cat("narrow_gemm.", narrow.name, ".peak"), peak / 1e9, "GFLOP/s");
    }
    for (const NarrowRow& row : kNarrowRows) {
      const Shape3& s = row.shape;
      GemmArrays arrays(s, narrow.types);
      GemmRun plain(arrays, {}), constant(arrays, {.constant = true});
      std::vector<Contender> contenders = {{"plain", [&] { plain.Run(pool); }},
                                           {"constant", [&] { constant.Run(pool); }}};
      std::unique_ptr<OneDnnProduct> peers[2];
      const char* names[] = {"oneDNN", "oneDNN.constant"};
      for (int k = 0; k < 2; ++k) {
        peers[k] = OneDnnProduct::Make({s.m, s.n, s.k, narrow.a, narrow.b, narrow.c, arrays.a.get(),
                                        arrays.b.get(), arrays.c.get(), k == 1},
                                       threads);
        if (peers[k]) contenders.push_back({names[k], [&peers, k] { peers[k]->Run(); }});
      }
      TakeTurns(contenders, threads);
      const std::string name =
          Cat("narrow_gemm.", narrow.name, ".", s.ToString(), ".threads", threads, ".");
      for (Contender& c : contenders) report.Add(name + c.name, c.Rate(s) / 1e9, "GFLOP/s");
      if (threads == 1 && row.of_peak > 0) {
        report.Add(name + "of_peak", contenders[1].Rate(s) / peak, "", AtLeast(row.of_peak));
      }
      if (contenders.size() < 4) continue;
      // Without an instruction for bytes the peer's sums of two products saturate at 16 bits: other
      // numbers, at another price where it does not wait for memory.
      const bool saturates =
          narrow.c == Type::kS32 && !target::HostCpu().cpu.MultipliesBytes() && s.m > 1;
      for (size_t k : {0, 1}) {
        const std::string ratio = Cat(name, contenders[k].name, ".of_peer");
        const double value = contenders[k].Rate(s) / contenders[k + 2].Rate(s);
        saturates ? report.Add(ratio, value, "") : report.Add(ratio, value, "", AtLeast(1));
      }
    }
  }
}

}  // namespace

KILN_BENCH(narrow_gemm_1_thread) { CompareNarrow(report, 1); }

KILN_BENCH(narrow_gemm_2_threads) {
  if (Cpus() > 1) CompareNarrow(report, 2);
}

}  // namespace kiln::bench
