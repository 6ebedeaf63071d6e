// Derivatives of calls, branches and loops.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "grad/gradient.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "support/grad_check.h"
#include "support/hlo.h"
#include "unit/grad/check.h"

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
  std::mt19937 random(7);
  return {testing::NormalLiteral(Shape(ElementType::kF64, {3}), random),
          testing::NormalLiteral(Shape(ElementType::kF64, {3, 3}), random),
          testing::NormalLiteral(Shape(ElementType::kF64, {5, 3}), random)};
}

TEST(Flow, Loops) { ExpectDerivatives(kScan, ScanArguments()); }
TEST(Flow, LoopsThatAreComputedAgain) {
  ExpectDerivatives(kScan, ScanArguments(), {}, {.recompute_loops = true});
}

// Two loops, one in the other, with a branch and a call inside; the outer one counts 7, 5, 3, and
// its state has a tuple. All of it is in a function.
constexpr std::string_view kNested = R"(HloModule m
add_sine {
  a = f64[2] parameter(0)
  b = f64[2] parameter(1)
  s = f64[2] sine(a)
  ROOT r = f64[2] add(s, b)
}
odd {
  p = (f64[2], f64[2]) parameter(0)
  x = f64[2] get-tuple-element(p), index=0
  y = f64[2] get-tuple-element(p), index=1
  ROOT c = f64[2] call(x, y), to_apply=add_sine
}
even {
  x = f64[2] parameter(0)
  ROOT m = f64[2] multiply(x, x)
}
inner_condition {
  p = (f64[2], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=1
  n = s32[] get-tuple-element(p), index=2
  ROOT c = pred[] compare(n, i), direction=GT
}
inner_body {
  p = (f64[2], s32[], s32[]) parameter(0)
  x = f64[2] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  n = s32[] get-tuple-element(p), index=2
  two = s32[] constant(2)
  m = s32[] remainder(i, two)
  t = (f64[2], f64[2]) tuple(x, x)
  y = f64[2] conditional(m, x, t), branch_computations={even, odd}
  f = f64[] convert(i)
  tenth = f64[] constant(0.1)
  g = f64[] multiply(f, tenth)
  h = f64[1] reshape(g)
  hh = f64[2] concatenate(h, h), dimensions={0}
  z = f64[2] add(y, hh)
  one = s32[] constant(1)
  j = s32[] add(one, i)
  ROOT r = (f64[2], s32[], s32[]) tuple(z, j, n)
}
outer_condition {
  p = (s32[], (f64[2], f64[2])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  end = s32[] constant(1)
  ROOT c = pred[] compare(i, end), direction=NE
}
outer_body {
  p = (s32[], (f64[2], f64[2])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  q = (f64[2], f64[2]) get-tuple-element(p), index=1
  x = f64[2] get-tuple-element(q), index=0
  w = f64[2] get-tuple-element(q), index=1
  zero = s32[] constant(0)
  three = s32[] constant(3)
  xw = f64[2] multiply(x, w)
  t = (f64[2], s32[], s32[]) tuple(xw, zero, three)
  l = (f64[2], s32[], s32[]) while(t), condition=inner_condition, body=inner_body
  y = f64[2] get-tuple-element(l), index=0
  f = f64[] convert(i)
  h = f64[1] reshape(f)
  hh = f64[2] concatenate(h, h), dimensions={0}
  z = f64[2] divide(y, hh)
  step = s32[] constant(-2)
  j = s32[] add(i, step)
  u = (f64[2], f64[2]) tuple(z, w)
  ROOT r = (s32[], (f64[2], f64[2])) tuple(j, u)
}
function {
  x = f64[2] parameter(0)
  w = f64[2] parameter(1)
  seven = s32[] constant(7)
  q = (f64[2], f64[2]) tuple(x, w)
  t = (s32[], (f64[2], f64[2])) tuple(seven, q)
  l = (s32[], (f64[2], f64[2])) while(t), condition=outer_condition, body=outer_body
  ROOT r = (f64[2], f64[2]) get-tuple-element(l), index=1
}
ENTRY e {
  x = f64[2] parameter(0)
  w = f64[2] parameter(1)
  c = (f64[2], f64[2]) call(x, w), to_apply=function
  y = f64[2] get-tuple-element(c), index=0
  v = f64[2] get-tuple-element(c), index=1
  m = f64[2] multiply(y, v)
  ROOT r = f64[] dot(m, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
})";

TEST(Flow, LoopsAndBranchesInside) {
  const std::vector<Literal> arguments = {Vector({0.6, -0.9}), Vector({1.3, 0.7})};
  ExpectDerivatives(kNested, arguments);
  ExpectDerivatives(kNested, arguments, {}, {.recompute_loops = true});
}

// The number of iterations comes from outside: it is a constant there.
TEST(Flow, LoopsWithALengthFromTheCaller) {
  std::string text = Replaced(std::string(kNested), "three = s32[] constant(3)",
                              "three = s32[] get-tuple-element(p), index=2");
  for (int k = 0; k < 2; ++k) {  // condition and body
    text = Replaced(text, "(s32[], (f64[2], f64[2])) parameter(0)",
                    "(s32[], (f64[2], f64[2]), s32[]) parameter(0) ");
  }
  text = Replaced(text, "ROOT r = (s32[], (f64[2], f64[2])) tuple(j, u)",
                  "ROOT r = (s32[], (f64[2], f64[2]), s32[]) tuple(j, u, three)");
  text = Replaced(text, "t = (s32[], (f64[2], f64[2])) tuple(seven, q)",
                  "n = s32[] parameter(2)\n"
                  "t = (s32[], (f64[2], f64[2]), s32[]) tuple(seven, q, n)");
  text = Replaced(text, "l = (s32[], (f64[2], f64[2])) while",
                  "l = (s32[], (f64[2], f64[2]), s32[]) while");
  text = Replaced(text, "call(x, w), to_apply=function", "call(x, w, k), to_apply=function");
  text = Replaced(text, "  c = (f64[2], f64[2]) call",
                  "  k = s32[] constant(3)\n  c = (f64[2], f64[2]) call");
  ExpectDerivatives(text, {Vector({0.6, -0.9}), Vector({1.3, 0.7})});
}

// x -> x^2 while x < limit: the number of iterations depends on x.
constexpr std::string_view kUnknown = R"(HloModule m
condition {
  x = f64[] parameter(0)
  limit = f64[] constant(50)
  ROOT c = pred[] compare(x, limit), direction=LT
}
body {
  x = f64[] parameter(0)
  ROOT m = f64[] multiply(x, x)
}
ENTRY e {
  x = f64[] parameter(0)
  ROOT l = f64[] while(x), condition=condition, body=body
})";

TEST(Flow, LoopsOfUnknownLength) {
  const std::unique_ptr<ir::Module> module = ir::ParseOrDie(kUnknown);
  const std::vector<Literal> tangents = TangentsAt(*module, {F64(1.5)}, {F64(1)});
  EXPECT_NEAR(tangents.at(0).AsDouble(0), 16 * std::pow(1.5, 15), 1e-9);
  ir::Computation& entry = *module->entry();
  const std::string before = ir::ToHloText(*module);
  auto gradients = VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), {});
  ASSERT_FALSE(gradients.ok());
  EXPECT_EQ(gradients.status().code(), Code::kUnimplemented);
  EXPECT_NE(gradients.status().message().find("forward mode"), std::string::npos);
  module->RemoveUnusedComputations();
  EXPECT_EQ(ir::ToHloText(*module), before);
}

TEST(Flow, LoopsThatDoNotRun) {
  ExpectDerivatives(Replaced(std::string(kScan), "n = s32[] constant(5)", "n = s32[] constant(0)"),
                    ScanArguments());
}

// The gradients' module, and what was replaced.
std::unique_ptr<ir::Module> Gradients(std::string_view text, const Options& options = {}) {
  std::unique_ptr<ir::Module> module = ir::ParseOrDie(text);
  ir::Computation& entry = *module->entry();
  auto gradients =
      VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), options);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return module;
  ir::Builder b(&entry);
  std::vector<Instruction*> results = *gradients;
  results.push_back(entry.root());
  entry.set_root(b.Tuple(std::move(results)));
  module->RemoveUnusedComputations();
  return module;
}

int64_t CountOf(const ir::Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& c : module.computations()) {
    for (const Instruction* i : c->instructions()) count += i->opcode() == opcode;
  }
  return count;
}

TEST(Flow, StoresWhatTheDerivativeReads) {
  // The state before an iteration, and tanh. Not the weights, a row of xs, or the counter.
  for (bool recomputes : {false, true}) {
    const auto module = Gradients(kScan, {.recompute_loops = recomputes});
    EXPECT_EQ(CountOf(*module, Opcode::kWhile), 2);
    EXPECT_EQ(CountOf(*module, Opcode::kTanh), recomputes ? 2 : 1);
    const Instruction* loop = ir::FindInstruction(*module, "last")->operand(0);
    EXPECT_EQ(loop->shape().elements().size(), recomputes ? 7u : 8u);
  }
}

TEST(Flow, EffectsRunOnce) {
  const std::string text =
      Replaced(Replaced(std::string(kScan), "t = f64[3] tanh(s)",
                        "printed = f64[3] custom-call(s), custom_call_target=\"kiln.print\"\n"
                        "  t = f64[3] tanh(printed)"),
               "constant(5)", "constant(4)");
  for (bool recomputes : {false, true}) {
    EXPECT_EQ(CountOf(*Gradients(text, {.recompute_loops = recomputes}), Opcode::kPrint), 1);
  }
}

TEST(Flow, TellsWhatWasReplaced) {
  std::unique_ptr<ir::Module> module = ir::ParseOrDie(kScan);
  ir::Computation& entry = *module->entry();
  const Instruction* loop = ir::FindInstruction(*module, "l");
  std::vector<std::pair<const Instruction*, const Instruction*>> replaced;
  const Options options = {.replaced = [&](const Instruction* op, const Instruction* now) {
    replaced.emplace_back(op, now);
  }};
  const Shape shape = loop->shape();
  ASSERT_TRUE(
      VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), options).ok());
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(replaced[0].first, loop);
  EXPECT_EQ(replaced[0].second->shape(), shape);
}

std::string Checkpointed() {
  return Replaced(std::string(kCalls), "call(x, y), to_apply=outer",
                  "call(x, y), to_apply=outer, frontend_attributes={kiln.gradient=\"checkpoint\"}");
}

TEST(Flow, CheckpointsAreComputedAgain) {
  ExpectDerivatives(Checkpointed(), {Vector({0.3, -0.7, 1.1}), Vector({0.5, 0.9, -0.2})});
  const auto module = Gradients(Checkpointed());
  // The call still returns its value alone, and its operands are held back.
  EXPECT_EQ(ir::FindInstruction(*module, "m")->operand(1)->shape(), Shape(ElementType::kF64, {3}));
  EXPECT_EQ(CountOf(*module, Opcode::kOptBarrier), 1);
}

// The rule says that the derivative of x sin(y) is 10 by x, and x by y.
constexpr std::string_view kRule = R"(HloModule m
backward {
  x = f64[2] parameter(0)
  y = f64[2] parameter(1)
  n = s32[] parameter(2)
  r = f64[2] parameter(3)
  t = f64[2] parameter(4)
  ten = f64[2] constant({10, 10})
  a = f64[2] multiply(t, ten)
  b = f64[2] multiply(t, x)
  ROOT g = (f64[2], f64[2]) tuple(a, b)
}
function {
  x = f64[2] parameter(0)
  y = f64[2] parameter(1)
  n = s32[] parameter(2)
  s = f64[2] sine(y)
  m = f64[2] multiply(x, s)
  ROOT r = f64[2] custom-call(m), custom_call_target="CustomGradient", called_computations={backward}
}
middle {
  x = f64[2] parameter(0)
  y = f64[2] parameter(1)
  n = s32[] parameter(2)
  ROOT c = f64[2] call(x, y, n), to_apply=function
}
ENTRY e {
  x = f64[2] parameter(0)
  y = f64[2] parameter(1)
  n = s32[] parameter(2)
  c = f64[2] call(x, y, n), to_apply=middle
  k = f64[2] constant({1, 3})
  ROOT r = f64[] dot(c, k), lhs_contracting_dims={0}, rhs_contracting_dims={0}
})";

TEST(Flow, RulesOfTheUser) {
  const std::vector<Literal> arguments = {Vector({0.5, 2}), Vector({1, -1}), S32(3)};
  const auto module = ir::ParseOrDie(kRule);
  const std::vector<Literal> gradients = GradientsAt(*module, arguments);
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_TRUE(gradients[0] == Vector({10, 30}));
  EXPECT_TRUE(gradients[1] == Vector({0.5, 6}));
  // J (1, 2; 3, 4) = 10 (1, 2) + x (3, 4), times (1, 3)
  const auto tangents = TangentsAt(*module, arguments, {Vector({1, 2}), Vector({3, 4})});
  EXPECT_DOUBLE_EQ(tangents.at(0).AsDouble(0), 11.5 + 3 * 28);
  // The text keeps the rule.
  const auto again = ir::ParseOrDie(ir::ToHloText(*module));
  EXPECT_TRUE(GradientsAt(*again, arguments).at(0) == Vector({10, 30}));
}

TEST(Flow, CallsOfManyCallsAreRefused) {
  std::string text = "HloModule m\nf0 {\n  x = f64[] parameter(0)\n  ROOT r = f64[] sine(x)\n}\n";
  for (int k = 1; k <= 64; ++k) {
    const std::string callee = "f" + std::to_string(k - 1);
    text += (k < 64 ? "f" + std::to_string(k) : std::string("ENTRY e")) +
            " {\n  x = f64[] parameter(0)\n  y = f64[] call(x), to_apply=" + callee +
            "\n  ROOT r = f64[] call(y), to_apply=" + callee + "\n}\n";
  }
  const auto module = ir::ParseOrDie(text);
  ir::Computation& entry = *module->entry();
  auto gradients = VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), {});
  ASSERT_FALSE(gradients.ok());
  EXPECT_EQ(gradients.status().code(), Code::kResourceExhausted);
}

TEST(Flow, CustomCallsWithoutRules) {
  const auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  x = f64[] parameter(0)
  ROOT c = f64[] custom-call(x), custom_call_target="theirs"
})");
  ir::Computation& entry = *module->entry();
  auto gradients = VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), {});
  ASSERT_FALSE(gradients.ok());
  EXPECT_EQ(gradients.status().code(), Code::kUnimplemented);
  EXPECT_NE(gradients.status().message().find("'theirs'"), std::string::npos);
}

}  // namespace
}  // namespace kiln::grad
