// Derivatives of calls, branches and loops.
#include <gtest/gtest.h>

#include "unit/grad/differences.h"

namespace kiln::grad {
namespace {

using ir::Instruction;

Literal F64(double x) { return Literal::Scalar<double>(ElementType::kF64, x); }
Literal Vector(std::vector<double> values) {
  return Literal::Array<double>(Shape(ElementType::kF64, {static_cast<int64_t>(values.size())}),
                                values);
}
Literal Pred(bool x) { return Literal::Scalar<bool>(ElementType::kPred, x); }
Literal S32(int32_t x) { return Literal::Scalar<int32_t>(ElementType::kS32, x); }

constexpr std::string_view kCalls = R"(HloModule m
inner {
  a = f64[3] parameter(0)
  b = f64[3] parameter(1)
  s = f64[3] sine(a)
  p = f64[3] multiply(s, b)
  ROOT t = (f64[3], f64[3]) tuple(p, s)
}
outer {
  a = f64[3] parameter(0)
  b = f64[3] parameter(1)
  c = (f64[3], f64[3]) call(a, b), to_apply=inner
  c0 = f64[3] get-tuple-element(c), index=0
  c1 = f64[3] get-tuple-element(c), index=1
  e = f64[3] exponential(c1)
  ROOT r = f64[3] multiply(e, c0)
}
ENTRY e {
  x = f64[3] parameter(0)
  y = f64[3] parameter(1)
  c = f64[3] call(x, y), to_apply=outer
  d = f64[3] call(c, c), to_apply=outer
  m = f64[3] multiply(d, c)
  ROOT r = f64[] dot(m, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
})";

TEST(Flow, Calls) {
  ExpectDerivatives(kCalls, {Vector({0.3, -0.7, 1.1}), Vector({0.5, 0.9, -0.2})});
}

constexpr std::string_view kBranches = R"(HloModule m
first {
  p = (f64[3], f64[3]) parameter(0)
  x = f64[3] get-tuple-element(p), index=0
  s = f64[3] get-tuple-element(p), index=1
  e = f64[3] exponential(x)
  m = f64[3] multiply(e, s)
  n = f64[3] sine(m)
  ROOT t = (f64[3], f64[3]) tuple(n, m)
}
second {
  x = f64[3] parameter(0)
  c = f64[3] cosine(x)
  k = f64[] constant(3)
  b = f64[3] broadcast(k), dimensions={}
  q = f64[3] multiply(c, x)
  ROOT t = (f64[3], f64[3]) tuple(q, b)
}
ENTRY e {
  which = INDEX parameter(0)
  x = f64[3] parameter(1)
  s = f64[3] parameter(2)
  sq = f64[3] multiply(x, x)
  t = (f64[3], f64[3]) tuple(sq, s)
  c = (f64[3], f64[3]) conditional(which, OPERANDS), BRANCHES
  c0 = f64[3] get-tuple-element(c), index=0
  c1 = f64[3] get-tuple-element(c), index=1
  m = f64[3] multiply(c0, c1)
  ROOT r = f64[] dot(m, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
})";

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Flow, Branches) {
  const Literal x = Vector({0.3, -0.7, 1.1});
  std::string text = Replaced(std::string(kBranches), "INDEX", "pred[]");
  text = Replaced(Replaced(text, "OPERANDS", "t, sq"), "BRANCHES",
                  "true_computation=first, false_computation=second");
  for (bool which : {true, false})
    ExpectDerivatives(text, {Pred(which), x, Vector({0.8, 0.1, -0.4})});
  text = Replaced(std::string(kBranches), "INDEX", "s32[]");
  text = Replaced(Replaced(text, "OPERANDS", "t, sq, t"), "BRANCHES",
                  "branch_computations={first, second, first}");
  for (int32_t which : {0, 1, 2})
    ExpectDerivatives(text, {S32(which), x, Vector({0.8, 0.1, -0.4})});
}

// A scan: the state h = tanh(W h + xs[i]), of which ys[i] is stored, with a counter.
constexpr std::string_view kScan = R"(HloModule m
condition {
  p = (s32[], f64[3], f64[3,3], f64[5,3], f64[5,3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f64[3], f64[3,3], f64[5,3], f64[5,3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f64[3] get-tuple-element(p), index=1
  w = f64[3,3] get-tuple-element(p), index=2
  xs = f64[5,3] get-tuple-element(p), index=3
  ys = f64[5,3] get-tuple-element(p), index=4
  z = s32[] constant(0)
  row = f64[1,3] dynamic-slice(xs, i, z), dynamic_slice_sizes={1,3}
  x = f64[3] reshape(row)
  d = f64[3] dot(w, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f64[3] add(d, x)
  t = f64[3] tanh(s)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f64[1,3] reshape(t)
  stored = f64[5,3] dynamic-update-slice(ys, y, i, z)
  ROOT r = (s32[], f64[3], f64[3,3], f64[5,3], f64[5,3]) tuple(next, t, w, xs, stored)
}
ENTRY e {
  h = f64[3] parameter(0)
  w = f64[3,3] parameter(1)
  xs = f64[5,3] parameter(2)
  z = s32[] constant(0)
  zero = f64[] constant(0)
  ys = f64[5,3] broadcast(zero), dimensions={}
  t = (s32[], f64[3], f64[3,3], f64[5,3], f64[5,3]) tuple(z, h, w, xs, ys)
  l = (s32[], f64[3], f64[3,3], f64[5,3], f64[5,3]) while(t), condition=condition, body=body
  last = f64[3] get-tuple-element(l), index=1
  all = f64[5,3] get-tuple-element(l), index=4
  sq = f64[5,3] multiply(all, all)
  d = f64[5] dot(sq, last), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f64[5] multiply(d, d)
  k = f64[5] constant({1, -1, 2, 0.5, 3})
  ROOT r = f64[] dot(f, k), lhs_contracting_dims={0}, rhs_contracting_dims={0}
})";

std::vector<Literal> ScanArguments() {
  Numbers numbers;
  return {numbers.Array(Shape(ElementType::kF64, {3})),
          numbers.Array(Shape(ElementType::kF64, {3, 3})),
          numbers.Array(Shape(ElementType::kF64, {5, 3}))};
}

TEST(Flow, Loops) { ExpectDerivatives(kScan, ScanArguments()); }
TEST(Flow, LoopsThatAreComputedAgain) {
  ExpectDerivatives(kScan, ScanArguments(), 2, {.recompute_loops = true});
}

}  // namespace
}  // namespace kiln::grad
