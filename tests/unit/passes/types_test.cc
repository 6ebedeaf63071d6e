// Complex numbers, floats of 8 bits and fewer and integers of less than a byte under the passes:
// what holds for the numbers of kernels does not hold for all of them, and every result stays.
// Compiled code does not have them, and says so.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "ir/text.h"
#include "passes/pipelines.h"
#include "random/fodder.h"
#include "support/interp.h"

namespace kiln::passes {
namespace {

constexpr ElementType kTypes[] = {
    ElementType::kC64,        ElementType::kC128,       ElementType::kS4,
    ElementType::kU4,         ElementType::kS2,         ElementType::kU2,
    ElementType::kF8E5M2,     ElementType::kF8E4M3FN,   ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ, ElementType::kF8E4M3,
    ElementType::kF8E3M4,     ElementType::kF8E8M0FNU,  ElementType::kF6E2M3FN,
    ElementType::kF6E3M2FN,   ElementType::kF4E2M1FN,
};

template <typename T>
Literal ComplexValues(ElementType type) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T parts[] = {0, -T{0}, 1, -1, T(0.3), 1000, inf, -inf, nan};
  std::vector<std::complex<T>> values;
  for (T x : parts) {
    for (T y : parts) values.emplace_back(x, y);
  }
  values.resize(64);
  return Literal::Array<std::complex<T>>(Shape(type, {64}), values);
}

// 64 values of a type: all there are, as often as it takes, or a quarter of them.
Literal ValuesOf(ElementType type, int64_t phase) {
  if (type == ElementType::kC64) return ComplexValues<float>(type);
  if (type == ElementType::kC128) return ComplexValues<double>(type);
  const Literal all = testing::AllValues(type);
  Literal values(Shape(type, {64}));
  const int64_t count = all.shape().num_elements(), step = count > 64 ? count / 64 : 1;
  for (int64_t i = 0; i < 64; ++i) values.data()[i] = all.data()[(step * i + phase) % count];
  return values;
}

// One op a line, T for the type, R for that of its absolute values; x and y are parameters of 64
// elements, c0, c1 and m1 arrays of one number.
constexpr std::string_view kOfAll[] = {
    "T[64] add(x, c0)",
    "T[64] subtract(x, x)",
    "T[64] subtract(c0, x)",
    "T[64] multiply(x, c0)",
    "T[64] multiply(x, c1)",
    "T[64] multiply(x, m1)",
    "T[64] divide(x, x)",
    "T[64] divide(x, c2)",
    "T[64] maximum(x, y)",
    "T[64] power(x, c2)",
    "T[64] power(x, c0)",
    "R[64] abs(x)",
    "T[64] sign(x)",
    "T[64] negate(x)",
    "pred[64] compare(x, x), direction=EQ",
    "pred[64] compare(x, x), direction=NE",
    "f32[64] convert(x)",
    "pred[64] convert(x)",
    "T[64] select(p, x, y)",
    "T[64] clamp(c0, x, c1)",
    "T[64] copy(x)",
    "T[64] reverse(x), dimensions={0}",
    "T[8,8] reshape(x)",
    "T[128] concatenate(x, y), dimensions={0}",
    "T[60] slice(x), slice={[2:62]}",
    "T[67] pad(x, s0), padding=1_2",
    "T[] reduce(x, s0), dimensions={0}, to_apply=sum",
    "T[] reduce(x, s1), dimensions={0}, to_apply=product",
    "T[64] reduce-window(x, s0), window={size=1}, to_apply=sum",
    "T[] dot(x, c1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "T[] dot(x, c0), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "T[64,64] dot(x, y)",
    "T[64] iota(), iota_dimension=0",
};
// Of results of those.
constexpr std::string_view kNested[] = {
    "T[64] add(r0, n)",
    "T[64] subtract(x, n)",
    "T[64] multiply(n, n)",
    "T[64] maximum(n, x)",
    "T[64] negate(n)",
    "R[64] abs(n)",
    "T[64] multiply(q, m1)",
    "T[64] convert(w)",
    "T[64] maximum(x, c0)",
    "T[64] minimum(x, x)",
    "T[64] divide(x, n)",
    "T[64] multiply(x, sq)",
    "T[64] subtract(sq, x)",
    "T[] reduce(b, s0), dimensions={0}, to_apply=sum",
    "T[8] reduce(b8, s0), dimensions={0}, to_apply=sum",
};

std::string ModuleOf(ElementType type) {
  std::string text =
      R"(HloModule m
sum { a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT r = T[] add(a, b) }
product { a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT r = T[] multiply(a, b) }
ENTRY e {
 x = T[64] parameter(0)
 y = T[64] parameter(1)
 p = pred[64] parameter(2)
 s0 = T[] constant(N0)
 s1 = T[] constant(N1)
 c0 = T[64] broadcast(s0), dimensions={}
 c1 = T[64] broadcast(s1), dimensions={}
 c2 = T[64] add(c1, c1)
 m1 = T[64] negate(c1)
 n = T[64] negate(x)
 r0 = T[64] add(x, c0)
 q = T[64] multiply(x, m1)
 w = f64[64] convert(x)
 sq = T[64] multiply(x, x)
 b = T[16] broadcast(s1), dimensions={}
 b8 = T[4,8] broadcast(s1), dimensions={}
)";
  std::string names, root;
  int count = 0;
  auto add = [&](std::string_view op) {
    const std::string name = Cat("v", count++);
    text += Cat(" ", name, " = ", op, "\n");
    names += Cat(names.empty() ? "" : ", ", name);
    root += Cat(root.empty() ? "" : ", ", op.substr(0, op.find(' ')));
  };
  for (std::string_view op : kOfAll) add(op);
  for (std::string_view op : kNested) add(op);
  if (IsFloat(type) || IsComplex(type)) {
    for (std::string_view op : {"T[64] exponential(x)", "T[64] sqrt(x)", "T[64] rsqrt(x)",
                                "T[64] log(x)", "T[64] real(z)"}) {
      if (op.find("real") == std::string_view::npos) add(op);
    }
    text += " s = T[64] sqrt(x)\n";
    add("T[64] multiply(s, s)");
    text += " e = T[64] exponential(x)\n f = T[64] exponential(y)\n";
    add("T[64] maximum(e, f)");
  }
  if (IsFloat(type)) {
    add("T[64] floor(x)");
    add("pred[64] is-finite(x)");
    add("pred[64] compare(x, y), direction=LT");
    add("T[64] remainder(x, c1)");
    add("T[64] reduce-precision(x), exponent_bits=8, mantissa_bits=8");
  }
  if (IsInteger(type)) {
    add("T[64] and(x, m1)");
    add("T[64] shift-left(x, c2)");
    add("T[64] xor(x, x)");
    add("T[64] remainder(x, c2)");
    add("T[64] popcnt(x)");
    add("pred[64] compare(x, c0), direction=GE");
  }
  text += Cat(" ROOT r = (", root, ") tuple(", names, ")\n}\n");
  const ElementType part = PartOf(type);
  // Where there is no zero it is NaN.
  const bool no_zero = type == ElementType::kF8E8M0FNU;
  const std::pair<std::string_view, std::string> replaced[] = {
      {"T[", Cat(TypeName(type), "[")},
      {"R[", Cat(TypeName(part), "[")},
      {"N0", IsComplex(type) ? "(0, 0)"
             : no_zero       ? "nan"
                             : "0"},
      {"N1", IsComplex(type) ? "(1, 0)" : "1"},
  };
  for (const auto& [from, to] : replaced) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      const bool word = at > 0 && std::isalpha(static_cast<unsigned char>(text[at - 1]));
      if (!word) text.replace(at, from.size(), to);
    }
  }
  return text;
}

Literal Preds() {
  Literal preds(Shape(ElementType::kPred, {64}));
  for (int64_t i = 0; i < 64; ++i) preds.values<bool>()[static_cast<size_t>(i)] = i % 3 == 0;
  return preds;
}

Pipeline PipelineOf(std::string_view name) {
  for (const NamedPipeline& pipeline : AllPipelines()) {
    if (pipeline.name == name) return pipeline.get();
  }
  return {{.passes = {name}}};
}

void Check(std::string_view pass, ElementType type, bool constant) {
  SCOPED_TRACE(Cat(pass, " on ", TypeName(type), constant ? " constants" : ""));
  auto module = ir::ParseOrDie(ModuleOf(type));
  std::vector<Literal> arguments = {ValuesOf(type, 0), ValuesOf(type, 3), Preds()};
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  if (constant) {
    // The parameters' values are known.
    ir::Computation* entry = module->entry();
    std::vector<ir::Instruction*> parameters(entry->parameters().begin(),
                                             entry->parameters().end());
    for (size_t n = 0; n < 2; ++n) {
      ir::Instruction* known =
          entry->Create({.opcode = Opcode::kConstant,
                         .shape = parameters[n]->shape(),
                         .literal = std::make_shared<const Literal>(arguments[n])},
                        parameters[n]);
      entry->ReplaceAllUses(parameters[n], known);
    }
  }
  PassContext context;
  context.verify = true;
  Status status = RunPipeline("test", PipelineOf(pass), *module, context);
  ASSERT_TRUE(status.ok()) << status.ToString();
  auto actual = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  // Pipelines make real numbers and larger ones of them, which round in other places: ComplexCode
  // and NarrowCode have bounds for each op.
  if (FindPass(pass) == nullptr && !IsInteger(type)) return;
  EXPECT_EQ(testing::BitDifference(*expected, *actual), "") << ir::ToHloText(*module);
}

TEST(PassesOnOtherTypes, ResultsStay) {
  for (ElementType type : kTypes) {
    for (std::string_view pass :
         {"algebraic-simplifier", "constant-folding", "cse", "dce", "transpose-folding",
          "sort-simplifier", "reduce-simplifier", "unroll-reductions", "cpu", "gpu"}) {
      Check(pass, type, false);
    }
    Check("cpu", type, true);
  }
}

TEST(PassesOnOtherTypes, ExpressionsOfConstantsAreConstants) {
  auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  a = c64[2] constant({(1, 2), (0, -1)})
  b = c64[2] multiply(a, a)
  c = f32[2] abs(b)
  d = f8e4m3fn[2] constant({1.5, 448})
  f = f8e4m3fn[2] add(d, d)
  g = s4[2] constant({7, -8})
  h = s4[2] subtract(g, s4[2] constant({-1, 1}))
  ROOT r = (f32[2], f8e4m3fn[2], s4[2]) tuple(c, f, h)
})");
  PassContext context;
  ASSERT_TRUE(RunPipeline("test", PipelineOf("constant-folding"), *module, context).ok());
  const ir::Instruction* root = module->entry()->root();
  EXPECT_EQ(root->operand(0)->literal().ToString(), "{5, 1}");
  EXPECT_EQ(root->operand(1)->literal().ToString(), "{3, nan}");
  EXPECT_EQ(root->operand(2)->literal().ToString(), "{-8, 7}");
}

// Where elements are is nobody's business but the movers', whatever they are.
TEST(PassesOnOtherTypes, MovesAreSimplified) {
  for (ElementType type : kTypes) {
    const std::string t(TypeName(type));
    auto module = ir::ParseOrDie(
        Cat("HloModule m\nENTRY e {\n  x = ", t, "[4,2] parameter(0)\n  a = ", t,
            "[2,4] transpose(x), dimensions={1,0}\n  b = ", t,
            "[4,2] transpose(a), dimensions={1,0}\n  c = ", t, "[8] reshape(b)\n  d = ", t,
            "[8] reverse(c), dimensions={0}\n  f = ", t,
            "[8] reverse(d), dimensions={0}\n  ROOT g = ", t, "[4,2] reshape(f)\n}\n"));
    PassContext context;
    ASSERT_TRUE(RunPipeline("test", PipelineOf("algebraic-simplifier"), *module, context).ok());
    EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kParameter) << ir::ToHloText(*module);
  }
}

}  // namespace
}  // namespace kiln::passes
