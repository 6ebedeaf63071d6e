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

// Steps of heat on a square whose border stays, as a frontend's update of a slice writes it.
std::string Stencil(int64_t steps, int64_t side) {
  const std::string all = Cat("f32[", side, ",", side, "]");
  const std::string inside = Cat("f32[", side - 2, ",", side - 2, "]");
  const std::string state = Cat("(s32[], ", all, ")");
  auto slice = [&](std::string_view name, int64_t row, int64_t column) {
    return Cat(name, " = ", inside, " slice(u), slice={[", row, ":", side - 2 + row, "], [", column,
               ":", side - 2 + column, "]}\n");
  };
  return Cat("HloModule stencil\n", "body { t = ", state,
             " parameter(0) i = s32[] get-tuple-element(t), index=0\n",
             "one = s32[] constant(1) next = s32[] add(i, one)\n", "u = ", all,
             " get-tuple-element(t), index=1\n", slice("n", 0, 1), slice("s", 2, 1),
             slice("w", 1, 0), slice("e", 1, 2), slice("c", 1, 1), "a = ", inside,
             " add(n, s) b = ", inside, " add(w, e) d = ", inside, " add(a, b)\n",
             "four = f32[] constant(4) fours = ", inside, " broadcast(four), dimensions={}\n",
             "m = ", inside, " multiply(c, fours) f = ", inside, " subtract(d, m)\n",
             "tenth = f32[] constant(0.1) tenths = ", inside, " broadcast(tenth), dimensions={}\n",
             "g = ", inside, " multiply(f, tenths) h = ", inside, " add(c, g)\n", "v = ", all,
             " dynamic-update-slice(u, h, one, one)\n", "ROOT r = ", state, " tuple(next, v) }\n",
             "condition { t = ", state, " parameter(0) i = s32[] get-tuple-element(t), index=0\n",
             "n = s32[] constant(", steps, ") ROOT p = pred[] compare(i, n), direction=LT }\n",
             "ENTRY e { u = ", all, " parameter(0) i = s32[] constant(0) init = ", state,
             " tuple(i, u) w = ", state, " while(init), condition=condition, body=body\n",
             "ROOT r = ", all, " get-tuple-element(w), index=1 }\n");
}

}  // namespace

// Steps of an array in the second-level cache read and write it once: no iteration copies it.
KILN_BENCH(loop_stencil) {
  constexpr int64_t kSteps = 50, kSide = 512;
  for (int threads : {1, 2}) {
    const std::string name = Cat("loop_stencil.50x512x512.threads", threads);
    Compiled c(Stencil(kSteps, kSide), threads);
    const double seconds = c.Seconds();
    if (!c.ok()) return report.Note(name, c.error());
    report.Add(name, seconds * 1e6, "us", AtMost(6000));
    report.Add(name + ".rate", 8.0 * kSteps * kSide * kSide / seconds / 1e9, "GB/s");
  }
}

KILN_BENCH(loop_scan) {
  Compiled c(Scan(2000, 3), 1);
  if (!c.ok()) return report.Note("loop_scan", c.error());
  report.Add("loop_scan.2000x3", c.Seconds() * 1e6, "us", AtMost(60));
}

}  // namespace kiln::bench
