// Products of fewer columns than a vector has lanes, and the gradients of their weights.
#include <string>
#include <tuple>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"

namespace kiln::bench {

// Of the peak of fused multiply-adds where only the lanes of the columns work.
KILN_BENCH(few_columns) {
  constexpr double kLanes = 16;
  const double peak = FmaPeak(0.2);
  for (auto [m, n, k, dimension] :
       {std::tuple(100, 10, 784, 1), {784, 10, 100, 0}, {512, 4, 256, 1}, {256, 12, 512, 0}}) {
    const std::string a =
        dimension == 1 ? Cat("f32[", m, ",", k, "]") : Cat("f32[", k, ",", m, "]");
    const std::string name =
        Cat("few_columns.", m, "x", n, "x", k, dimension == 1 ? "" : ".turned");
    Compiled product(
        Cat("ENTRY e { a = ", a, " parameter(0) b = f32[", k, ",", n,
            "] parameter(1) ROOT d = f32[", m, ",", n, "] dot(a, b), lhs_contracting_dims={",
            dimension, "}, rhs_contracting_dims={0} }"),
        1);
    const double seconds = product.Seconds();
    if (!product.ok()) {
      report.Note(name, product.error());
      continue;
    }
    const double rate = 2.0 * m * n * k / seconds;
    report.Add(name, rate / 1e9, "GFLOP/s");
    report.Add(name + ".of_the_lanes", rate / (peak * n / kLanes), "", AtLeast(0.8));
  }
}

}  // namespace kiln::bench
