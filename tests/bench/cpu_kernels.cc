// Fused kernels on the CPU: how long they take to compile and how fast they run.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr std::string_view kAdd =
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n";

std::string Module(std::string_view body) {
  return Cat("HloModule m\n", kAdd, "ENTRY e {\n", body, "}\n");
}

void Rate(Report& report, std::string_view name, std::string_view body, double bytes, int threads) {
  Compiled c(Module(body), threads);
  if (!c.ok()) return report.Note(name, c.error());
  double seconds = c.Seconds();
  report.Add(Cat(name, ".threads", threads), bytes / seconds / 1e9, "GB/s");
}

}  // namespace

KILN_BENCH(cpu_fused_sum) {
  constexpr int64_t n = 16 << 20;
  std::string body = Cat("x = f32[", n, "] parameter(0) y = f32[", n, "] parameter(1) z = f32[", n,
                         "] parameter(2) p = f32[", n, "] multiply(y, z) s = f32[", n,
                         "] add(x, p) zero = f32[] constant(0) ROOT r = f32[] reduce(s, zero), "
                         "dimensions={0}, to_apply=add");
  for (int threads : {1, Cpus()}) {
    Compiled c(Module(body), threads);
    if (!c.ok()) return report.Note("cpu_fused_sum", c.error());
    std::vector<float> memory(3 * n, 1.0f);
    std::vector<std::span<const float>> arrays;
    for (int i = 0; i < 3; ++i) arrays.push_back(std::span<const float>(memory).subspan(i * n, n));
    double ratio = 0;
    std::vector<double> ratios;
    for (int round = 0; round < 5; ++round) {
      double best = ReadSeconds(arrays, threads);
      ratios.push_back(best / c.Seconds());
    }
    std::sort(ratios.begin(), ratios.end());
    ratio = ratios[ratios.size() / 2];
    report.Add(Cat("cpu_fused_sum.threads", threads, ".of_read_rate"), ratio, "", AtLeast(0.85));
    report.Add(Cat("cpu_fused_sum.threads", threads), 12.0 * n / c.Seconds() / 1e9, "GB/s");
    report.Add("cpu_fused_sum.kernels",
               static_cast<double>(program::CountKernels(c.program().steps)), "", AtMost(1));
  }
}

KILN_BENCH(cpu_kernel_rates) {
  for (int threads : {1, Cpus()}) {
    for (int64_t n : {int64_t{4096}, int64_t{100000}, int64_t{4} << 20, int64_t{32} << 20}) {
      Rate(report, Cat("cpu_fused_elementwise.", n),
           Cat("x = f32[", n, "] parameter(0) y = f32[", n, "] parameter(1) p = f32[", n,
               "] multiply(x, y) ROOT s = f32[", n, "] add(p, x)"),
           12.0 * static_cast<double>(n), threads);
    }
    for (const char* op : {"exponential", "tanh", "log", "logistic", "sqrt"}) {
      Rate(report, Cat("cpu_", op, ".4096"),
           Cat("x = f32[4096] parameter(0) ROOT t = f32[4096] ", op, "(x)"), 8.0 * 4096, threads);
    }
    Rate(report, "cpu_tanh.1048576", "x = f32[1048576] parameter(0) ROOT t = f32[1048576] tanh(x)",
         8.0 * 1048576, threads);
    for (auto [m, n] : {std::pair{1024, 1024}, {64, 4096}, {4096, 64}, {100000, 10}}) {
      std::string shape = Cat("f32[", m, ",", n, "]");
      double bytes = 4.0 * m * n;
      std::string in = Cat("x = ", shape, " parameter(0) zero = f32[] constant(0)\n");
      Rate(report, Cat("cpu_row_sum.", m, "x", n),
           Cat(in, "ROOT r = f32[", m, "] reduce(x, zero), dimensions={1}, to_apply=add"), bytes,
           threads);
      Rate(report, Cat("cpu_column_sum.", m, "x", n),
           Cat(in, "ROOT r = f32[", n, "] reduce(x, zero), dimensions={0}, to_apply=add"), bytes,
           threads);
      Rate(report, Cat("cpu_transpose.", m, "x", n),
           Cat(in, "ROOT t = f32[", n, ",", m, "] transpose(x), dimensions={1,0}"), 2 * bytes,
           threads);
      Rate(report, Cat("cpu_bias.", m, "x", n),
           Cat(in, "b = f32[", n, "] parameter(1) w = ", shape,
               " broadcast(b), dimensions={1} s = ", shape, " add(x, w) z = ", shape,
               " broadcast(zero), dimensions={} ROOT t = ", shape, " maximum(s, z)"),
           2 * bytes, threads);
      Rate(report, Cat("cpu_softmax.", m, "x", n),
           Cat(in, "low = f32[] constant(-inf) m = f32[", m,
               "] reduce(x, low), dimensions={1}, to_apply=max mb = ", shape,
               " broadcast(m), dimensions={0} d = ", shape, " subtract(x, mb) e = ", shape,
               " exponential(d) s = f32[", m,
               "] reduce(e, zero), dimensions={1}, to_apply=add sb = ", shape,
               " broadcast(s), dimensions={0} ROOT q = ", shape, " divide(e, sb)"),
           2 * bytes, threads);
    }
  }
}

KILN_BENCH(cpu_types) {
  for (const char* type : {"s8", "u8", "s16", "u16", "f16", "bf16", "u32", "f32"}) {
    const int64_t width = ByteWidth(*TypeByName(type));
    const bool is_float = IsFloat(*TypeByName(type));
    const std::string shape = Cat(type, "[1024,1024]");
    const std::string x = Cat("x = ", shape, " parameter(0) ");
    const double bytes = static_cast<double>(width << 20);
    Rate(report, Cat("cpu_types.axpy.", type),
         Cat(x, "y = ", shape, " parameter(1) p = ", shape, " multiply(x, y) ROOT s = ", shape,
             " add(p, x)"),
         3 * bytes, 1);
    Rate(report, Cat("cpu_types.transpose.", type),
         Cat(x, "ROOT t = ", shape, " transpose(x), dimensions={1,0}"), 2 * bytes, 1);
    if (is_float) {
      Rate(report, Cat("cpu_types.tanh.", type), Cat(x, "ROOT t = ", shape, " tanh(x)"), 2 * bytes,
           1);
    }
    Rate(report, Cat("cpu_types.convert_to_f32.", type),
         Cat(x, "ROOT t = f32[1024,1024] convert(x)"), bytes + 4 * (1 << 20), 1);
    Rate(report, Cat("cpu_types.convert_from_f32.", type),
         Cat("x = f32[1024,1024] parameter(0) ROOT t = ", shape, " convert(x)"),
         bytes + 4 * (1 << 20), 1);
    for (auto [m, n, k] : {std::tuple{512, 512, 512}, {1, 4096, 1024}}) {
      const double flops = 2.0 * m * n * k;
      Compiled dot(Module(Cat("x = ", type, "[", m, ",", k, "] parameter(0) y = ", type, "[", k,
                              ",", n, "] parameter(1) ROOT z = ", type, "[", m, ",", n,
                              "] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")),
                   1);
      report.Add(Cat("cpu_types.dot.", m, "x", n, "x", k, ".", type), flops / dot.Seconds() * 1e-9,
                 "GFLOP/s");
    }
  }
}

KILN_BENCH(cpu_compile_time) {
  constexpr std::string_view kSmall =
      "x = f32[1000] parameter(0) y = f32[1000] parameter(1) p = f32[1000] multiply(x, y)\n"
      "e = f32[1000] exponential(p) ROOT s = f32[1000] add(e, x)\n";
  std::string text = Module(kSmall);
  auto compile = [&] {
    Compiled c(text, 1);
    if (!c.ok()) std::abort();
  };
  report.Add("cpu_compile.small", Measure(compile).median * 1e3, "ms", AtMost(5));
  std::string sum = Module(
      "x = f32[4000] parameter(0) y = f32[4000] parameter(1) p = f32[4000] multiply(x, y) zero = "
      "f32[] constant(0) ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=add");
  report.Add("cpu_compile.sum", Measure([&] { Compiled c(sum, 1); }).median * 1e3, "ms", AtMost(5));
  // Distinct kernels that cannot be fused with each other: every one is a reduction.
  std::string many;
  std::string roots;
  for (int i = 0; i < 100; ++i) {
    std::string shape = Cat("f32[", 100 + i, ",64]");
    many += Cat("x", i, " = ", shape, " parameter(", i, ") e", i, " = ", shape,
                i % 3 == 0   ? " multiply(x"
                : i % 3 == 1 ? " add(x"
                             : " maximum(x",
                i, ", x", i, ")\n", "z", i, " = f32[] constant(", i, ") r", i, " = f32[",
                i % 2 ? 64 : 100 + i, "] reduce(e", i, ", z", i, "), dimensions={", i % 2 ? 0 : 1,
                "}, to_apply=add\n");
    roots += Cat(i > 0 ? ", r" : "r", i);
  }
  many += Cat(
      "ROOT t = (",
      [&] {
        std::string types;
        for (int i = 0; i < 100; ++i)
          types += Cat(i > 0 ? ", " : "", "f32[", i % 2 ? 64 : 100 + i, "]");
        return types;
      }(),
      ") tuple(", roots, ")\n");
  std::string text100 = Module(many);
  for (int threads : {1, Cpus()}) {
    size_t kernels = 0;
    double seconds = Measure([&] {
                       auto artefact = Compiled::Compile(text100, threads);
                       if (!artefact.ok()) std::abort();
                       kernels = artefact->program.kernels.size();
                     }).median;
    report.Add(Cat("cpu_compile.kernels", kernels, ".threads", threads), seconds * 1e3, "ms",
               AtMost(300));
  }
}

}  // namespace kiln::bench
