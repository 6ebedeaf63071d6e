// Gemms of f32 beside oneDNN and OpenBLAS on the same arrays, in turn within one run.
#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "gemms.h"
#include "harness.h"
#include "machine.h"
#include "peers.h"
#include "runtime/thread_pool.h"

namespace kiln::bench {
namespace {

struct Row {
  Shape3 shape;
  double of_peak = 0;     // what a square gemm must reach of the multiply-add peak
  double in_place = 0.9;  // and beside the better library
  double packed = 0.9;
};

const Row kRows[] = {
    {{32, 32, 32}},         {{64, 64, 64}, 0.8},      {{128, 128, 128}, 0.8},
    {{256, 256, 256}, 0.8}, {{512, 512, 512}, 0.75},  {{1024, 1024, 1024}, 0.7},
    {{2048, 2048, 2048}},   {{128, 768, 768}},        {{128, 3072, 768}},
    {{196, 1024, 256}},     {{1, 768, 3072}, 0, 0.8}, {{100, 10, 784}},
    {{2048, 2048, 64}},
};

void Compare(Report& report, int threads) {
  runtime::ThreadPool pool(threads);
  const double peak = FmaPeak(1.0);
  if (threads == 1) report.Add("gemm.peak", peak / 1e9, "GFLOP/s");
  for (const Row& row : kRows) {
    const Shape3& s = row.shape;
    GemmArrays arrays(s, kSingle);
    GemmRun in_place(arrays, {});
    GemmRun packed(arrays, {.constant = true});
    std::vector<Contender> contenders = {{"plain", [&] { in_place.Run(pool); }, {}},
                                         {"constant", [&] { packed.Run(pool); }, {}}};
    for (const GemmPeer& peer : GemmPeers()) {
      peer.SetThreads(threads);
      const Sgemm gemm{s.m,
                       s.n,
                       s.k,
                       static_cast<const float*>(arrays.a.get()),
                       static_cast<const float*>(arrays.b.get()),
                       static_cast<float*>(arrays.c.get())};
      contenders.push_back({peer.name(), [&peer, gemm] { peer.Run(gemm); }, {}});
    }
    TakeTurns(contenders, threads);
    double best = 0;
    for (size_t i = 2; i < contenders.size(); ++i) best = std::max(best, contenders[i].Rate(s));
    const std::string name = Cat("gemm.", s.ToString(), ".threads", threads, ".");
    for (size_t i = 0; i < contenders.size(); ++i) {
      report.Add(name + contenders[i].name, contenders[i].Rate(s) / 1e9, "GFLOP/s");
    }
    if (threads == 1 && row.of_peak > 0) {
      report.Add(name + "of_peak", contenders[0].Rate(s) / peak, "", AtLeast(row.of_peak));
    }
    if (best == 0) continue;
    report.Add(name + "plain.of_best", contenders[0].Rate(s) / best, "", AtLeast(row.in_place));
    report.Add(name + "constant.of_best", contenders[1].Rate(s) / best, "", AtLeast(row.packed));
  }
}

}  // namespace

KILN_BENCH(gemm_1_thread) { Compare(report, 1); }

KILN_BENCH(gemm_2_threads) {
  if (Cpus() > 1) Compare(report, 2);
}

// What bias and ReLU add to a gemm that they are fused with.
KILN_BENCH(gemm_epilogue) {
  for (const Shape3& s : {Shape3{256, 256, 256},
                          {512, 512, 512},
                          {128, 768, 768},
                          {128, 3072, 768},
                          {196, 1024, 256},
                          {100, 10, 784}}) {
    GemmArrays arrays(s, kSingle);
    for (bool constant : {false, true}) {
      GemmRun plain(arrays, {.constant = constant});
      GemmRun fused(arrays, {.constant = constant, .bias_relu = true});
      const double ratio = PairedRatio([&] { fused.Run(); }, [&] { plain.Run(); }, 50);
      report.Add(Cat("gemm_epilogue.", s.ToString(), constant ? ".constant" : ".plain"), ratio, "",
                 AtMost(1.05));
    }
  }
}

KILN_BENCH(gemm_compile_time) {
  for (const Row& row : kRows) {
    GemmArrays arrays(row.shape, kSingle);
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) {
      times.push_back(GemmRun(arrays, {.bias_relu = true}).compile_milliseconds());
    }
    std::sort(times.begin(), times.end());
    report.Add(Cat("gemm_compile.", row.shape.ToString()), times[3], "ms", AtMost(9));
  }
}

}  // namespace kiln::bench
