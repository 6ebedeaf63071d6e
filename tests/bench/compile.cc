// How long graphs of many ops take to compile: elementwise ops, a third of them functions, and a
// product for every fifth op, over a chain that looks back a little.
#include <ctime>
#include <random>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"

namespace kiln::bench {
namespace {

constexpr int64_t kSize = 64;
constexpr int kThreads = 2;

std::string Graph(int64_t ops) {
  constexpr const char* kUnary[] = {"tanh", "negate", "abs", "logistic", "exponential"};
  constexpr const char* kBinary[] = {"add", "multiply", "subtract", "maximum", "minimum"};
  std::mt19937 random(1);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::string shape = Cat("f32[", kSize, ",", kSize, "]");
  std::string text = Cat("HloModule chain\nENTRY e {\nv0 = ", shape, " parameter(0)\nw = ", shape,
                         " parameter(1)\n");
  for (int64_t i = 1; i <= ops; ++i) {
    text += Cat(i == ops ? "ROOT v" : "v", i, " = ", shape, " ");
    std::string last = Cat("v", i - 1);
    if (i % 5 == 0) {
      text += Cat("dot(", last, ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
    } else if (below(2)) {
      text += Cat(kUnary[below(5)], "(", last, ")\n");
    } else {
      text +=
          Cat(kBinary[below(5)], "(", last, ", v", i - 1 - below(std::min<int64_t>(i, 20)), ")\n");
    }
  }
  return text + "}\n";
}

// Of all threads of the process.
double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

KILN_BENCH(compile_graphs) {
  double of_10000 = 0;
  for (int64_t ops : {100, 1000, 10000, 100000}) {
    std::string text = Graph(ops), name = Cat("compile_graphs.", ops, "_ops");
    // The median of a few where one is short.
    int runs = ops <= 1000 ? 5 : ops <= 10000 ? 3 : 1;
    std::vector<double> wall, cpu;
    int64_t kernels = 0;
    for (int i = 0; i < runs; ++i) {
      double start = Now(), cpu_start = CpuSeconds();
      auto artefact = Compiled::Compile(text, kThreads);
      wall.push_back(Now() - start);
      cpu.push_back(CpuSeconds() - cpu_start);
      if (!artefact.ok()) return report.Note(name, artefact.status().ToString());
      kernels = plan::CountKernels(artefact->program.steps);
    }
    std::sort(wall.begin(), wall.end());
    std::sort(cpu.begin(), cpu.end());
    double seconds = wall[runs / 2];
    report.Add(Cat(name, ".threads", kThreads), seconds, "s", ops == 10000 ? AtMost(2) : Bound{});
    report.Add(Cat(name, ".cpu"), cpu[runs / 2], "s");
    report.Add(Cat(name, ".kernels"), static_cast<double>(kernels), "");
    if (ops == 10000) of_10000 = seconds;
    if (ops == 100000) {
      report.Add("compile_graphs.100000_of_10000", seconds / of_10000, "", AtMost(12));
    }
  }
}

}  // namespace kiln::bench
