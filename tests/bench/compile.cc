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
  struct Size {
    int64_t ops;
    int runs;
    std::vector<double> wall = {}, cpu = {};
    int64_t kernels = 0;
  };
  std::vector<Size> sizes = {{100, 5}, {1000, 5}, {10000, 3}, {100000, 1}};
  auto median = [](std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
  };
  auto compile = [&](Size& size) {
    std::string text = Graph(size.ops);
    for (int i = 0; i < size.runs; ++i) {
      double start = Now(), cpu_start = CpuSeconds();
      auto artefact = Compiled::Compile(text, kThreads);
      size.wall.push_back(Now() - start);
      size.cpu.push_back(CpuSeconds() - cpu_start);
      if (!artefact.ok()) {
        report.Note(Cat("compile_graphs.", size.ops, "_ops"), artefact.status().ToString());
        return false;
      }
      size.kernels = program::CountKernels(artefact->program.steps);
    }
    return true;
  };
  for (Size& size : sizes) {
    if (!compile(size)) return;
  }
  Size &compared = sizes[2], &largest = sizes[3];
  // Before the largest and behind it: a machine that others use changes its pace.
  if (!compile(compared)) return;
  for (const Size& size : sizes) {
    std::string name = Cat("compile_graphs.", size.ops, "_ops");
    report.Add(Cat(name, ".threads", kThreads), median(size.wall), "s",
               &size == &compared ? AtMost(2) : Bound{});
    report.Add(Cat(name, ".cpu"), median(size.cpu), "s");
    report.Add(Cat(name, ".kernels"), static_cast<double>(size.kernels), "");
  }
  report.Add(Cat("compile_graphs.", largest.ops, "_of_", compared.ops),
             median(largest.wall) / median(compared.wall), "", AtMost(12));
}

}  // namespace kiln::bench
