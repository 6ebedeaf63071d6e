// Loops of small bodies.
#include "base/strings.h"
#include "compiled.h"
#include "harness.h"

namespace kiln::bench {
namespace {

// carry = carry + x[i], y[i] = carry * x[i], as a frontend's scan writes it.
std::string Scan(int64_t steps, int64_t width) {
  std::string row = Cat("f32[", width, "]"), all = Cat("f32[", steps, ",", width, "]");
  std::string one = Cat("f32[1,", width, "]");
  std::string state = Cat("(s32[], ", row, ", ", all, ", ", all, ")");
  return Cat("HloModule scan\n", "body { t = ", state,
             " parameter(0) i = s32[] get-tuple-element(t), index=0\n",
             "one = s32[] constant(1) next = s32[] add(i, one) zero = s32[] constant(0)\n",
             "c = ", row, " get-tuple-element(t), index=1\n", "ys = ", all,
             " get-tuple-element(t), index=2\n", "xs = ", all, " get-tuple-element(t), index=3\n",
             "s = ", one, " dynamic-slice(xs, i, zero), dynamic_slice_sizes={1,", width, "}\n",
             "x = ", row, " reshape(s) sum = ", row, " add(c, x) y = ", row, " multiply(c, x)\n",
             "u = ", one, " reshape(y)\n", "next_ys = ", all,
             " dynamic-update-slice(ys, u, i, zero)\n", "ROOT r = ", state,
             " tuple(next, sum, next_ys, xs) }\n", "condition { t = ", state,
             " parameter(0) i = s32[] get-tuple-element(t), index=0\n", "n = s32[] constant(",
             steps, ") ROOT p = pred[] compare(i, n), direction=LT }\n", "ENTRY e { xs = ", all,
             " parameter(0) i = s32[] constant(0)\n", "one = f32[] constant(1) c = ", row,
             " broadcast(one), dimensions={}\n", "zero = f32[] constant(0) ys = ", all,
             " broadcast(zero), dimensions={}\n", "init = ", state, " tuple(i, c, ys, xs)\n",
             "w = ", state, " while(init), condition=condition, body=body\n", "last = ", row,
             " get-tuple-element(w), index=1\n", "out = ", all, " get-tuple-element(w), index=2\n",
             "ROOT r = (", row, ", ", all, ") tuple(last, out) }\n");
}

}  // namespace

KILN_BENCH(loop_scan) {
  Compiled c(Scan(2000, 3), 1);
  if (!c.ok()) return report.Note("loop_scan", c.error());
  report.Add("loop_scan.2000x3", c.Seconds() * 1e6, "us", AtMost(60));
}

}  // namespace kiln::bench
