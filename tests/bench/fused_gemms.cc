// Gemms with what is made of their operands and results, in one kernel: beside the same in kernels
// of their own, in turn with them.
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int kPairs = 31;

// The time of one program over that of another one.
void Compare(Report& report, const std::string& name, const std::string& fused,
             const std::string& apart, const std::set<std::string>& disabled) {
  for (int threads : {1, Cpus()}) {
    Compiled one(fused, threads);
    Compiled several(apart, threads, disabled, &one);
    if (!one.ok() || !several.ok()) return report.Note(name, Cat(one.error(), several.error()));
    const double microseconds = one.Seconds() * 1e6;
    const int pairs = microseconds < 1000 ? 10 * kPairs : kPairs;
    const double ratio = PairedRatio([&] { one.Run(); }, [&] { several.Run(); }, pairs);
    report.Add(Cat(name, ".threads", threads), microseconds, "us");
    report.Add(Cat(name, ".threads", threads, ".of_apart"), ratio, "", AtMost(1.1));
    if (threads > 1) continue;
    report.Add(Cat(name, ".launches"),
               static_cast<double>(program::CountKernels(one.program().steps)), "");
  }
}

struct Sizes {
  int64_t batch, m, n, k;
  bool across = false;  // the right operand is [batch, n, k]
};

std::string Chain(const Sizes& s, std::string_view tail) {
  std::string d = Cat("f32[", s.batch, ",", s.m, ",", s.n, "]");
  std::string r = Cat("f32[", s.batch, ",", s.m, "]");
  std::string body;
  if (tail == "softmax") {
    body =
        Cat("t = ", r, " reduce(d, low), dimensions={2}, to_apply=max\ntb = ", d,
            " broadcast(t), dimensions={0,1}\nb = ", d, " subtract(d, tb)\ne = ", d,
            " exponential(b)\ns = ", r, " reduce(e, zero), dimensions={2}, to_apply=add\nsb = ", d,
            " broadcast(s), dimensions={0,1}\nROOT y = ", d, " divide(e, sb)\n");
  } else if (tail == "norm") {
    body =
        Cat("s = ", r, " reduce(d, zero), dimensions={2}, to_apply=add\nn = f32[] constant(", s.n,
            ")\nnb = ", r, " broadcast(n), dimensions={}\nm = ", r, " divide(s, nb)\nmb = ", d,
            " broadcast(m), dimensions={0,1}\nc = ", d, " subtract(d, mb)\ncc = ", d,
            " multiply(c, c)\nq = ", r, " reduce(cc, zero), dimensions={2}, to_apply=add\nv = ", r,
            " divide(q, nb)\nrs = ", r, " rsqrt(v)\nrb = ", d,
            " broadcast(rs), dimensions={0,1}\nROOT y = ", d, " multiply(c, rb)\n");
  } else if (tail == "sum") {
    body = Cat("ROOT y = ", r, " reduce(d, zero), dimensions={2}, to_apply=add\n");
  } else {
    body =
        Cat("z = ", d, " parameter(2)\ne = ", d, " subtract(d, z)\nee = ", d, " multiply(e, e)\n",
            "ROOT y = f32[] reduce(ee, zero), dimensions={0,1,2}, to_apply=add\n");
  }
  return Cat("HloModule m\n",
             "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n",
             "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n",
             "ENTRY e {\nx = f32[", s.batch, ",", s.m, ",", s.k, "] parameter(0)\nw = f32[",
             s.batch, ",", s.across ? s.n : s.k, ",", s.across ? s.k : s.n,
             "] parameter(1)\nzero = f32[] constant(0)\nlow = f32[] constant(-inf)\nd = ", d,
             " dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
             "rhs_contracting_dims={",
             s.across ? 2 : 1, "}\n", body, "}\n");
}

// What an operand is made of is put into memory first where `apart`.
std::string Weights(int64_t m, int64_t n, int64_t k, bool across, bool apart) {
  std::string shape = Cat("[", across ? n : k, ",", across ? k : n, "]");
  return Cat("HloModule m\nENTRY e {\nx = f32[", m, ",", k, "] parameter(0)\nw = s8", shape,
             " parameter(1)\ns = f32[", n, "] parameter(2)\nt = f32", shape,
             " convert(w)\nsb = f32", shape, " broadcast(s), dimensions={", across ? 0 : 1,
             "}\nv = f32", shape, " multiply(t, sb)\nu = f32", shape,
             apart ? " opt-barrier" : " copy", "(v)\nROOT d = f32[", m, ",", n,
             "] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={", across ? 1 : 0,
             "}\n}\n");
}

std::string Scores(bool apart) {
  std::string text = "HloModule m\nENTRY e {\nqkv = f32[4,128,3,8,64] parameter(0)\n";
  for (int k : {0, 1}) {
    text += Cat("s", k, " = f32[4,128,1,8,64] slice(qkv), slice={[0:4], [0:128], [", k, ":", k + 1,
                "], [0:8], [0:64]}\nr", k, " = f32[4,128,8,64] reshape(s", k, ")\nv", k,
                " = f32[4,128,8,64] ", apart ? "opt-barrier" : "copy", "(r", k, ")\n");
  }
  return text +
         "ROOT d = f32[4,8,128,128] dot(v0, v1), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, "
         "lhs_contracting_dims={3}, rhs_contracting_dims={3}\n}\n";
}

// A gemm and its transpose.
std::string Symmetric(int64_t n, bool apart) {
  std::string d = Cat("f32[", n, ",", n, "]");
  return Cat("HloModule m\nENTRY e {\nx = f32[", n, ",16] parameter(0)\nw = f32[16,", n,
             "] parameter(1)\nd = ", d,
             " dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nt = ", d,
             " transpose(d), dimensions={1,0}\nu = ", d, apart ? " opt-barrier" : " copy",
             "(t)\nROOT r = ", d, " add(d, u)\n}\n");
}

}  // namespace

KILN_BENCH(gemms_rows) {
  const std::pair<Sizes, const char*> kChains[] = {
      {{1, 128, 128, 64}, "softmax"},   {{1, 512, 512, 64}, "softmax"},
      {{1, 4096, 1024, 64}, "softmax"}, {{96, 128, 128, 64, true}, "softmax"},
      {{1, 1024, 256, 256}, "norm"},    {{1, 4096, 256, 256}, "norm"},
      {{1, 4096, 1024, 64}, "sum"},     {{1, 4096, 256, 256}, "sum"},
      {{1, 4096, 1024, 64}, "loss"}};
  for (const auto& [s, tail] : kChains) {
    std::string text = Chain(s, tail);
    Compare(report, Cat("gemms_rows.", tail, ".", s.batch, "x", s.m, "x", s.n, "x", s.k), text,
            text, {"chain-fusion"});
  }
}

KILN_BENCH(gemms_operands) {
  for (int64_t m : {1, 8, 64}) {
    for (bool across : {true, false}) {
      Compare(report, Cat("gemms_operands.scaled.", m, "x2048x2048", across ? ".across" : ""),
              Weights(m, 2048, 2048, across, false), Weights(m, 2048, 2048, across, true), {});
    }
  }
  for (int64_t n : {512, 2048}) {
    Compare(report, Cat("gemms_operands.symmetric.", n), Symmetric(n, false), Symmetric(n, true),
            {});
  }
  Compare(report, "gemms_operands.sliced.32x128x128x64", Scores(false), Scores(true), {});
}

}  // namespace kiln::bench
