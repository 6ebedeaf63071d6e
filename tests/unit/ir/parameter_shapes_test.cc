// Modules with sizes in place of the symbols and bounds of their parameters, against the evaluator.
#include <gtest/gtest.h>

#include "interp/interpreter.h"
#include "ir/specialise.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

const ElementType F32 = ElementType::kF32, S32 = ElementType::kS32;

// 1, 2, 3, ...
Literal Counting(const Shape& shape) {
  Literal value(shape);
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    const Literal number = Literal::ScalarOf(shape.type(), static_cast<double>(k + 1));
    std::memcpy(value.data() + k * number.byte_size(), number.data(),
                static_cast<size_t>(number.byte_size()));
  }
  return value;
}

std::unique_ptr<Module> Sized(const Module& module, const std::vector<Shape>& shapes) {
  Result<std::unique_ptr<Module>> sized = WithParameterShapes(module, shapes);
  EXPECT_TRUE(sized.ok()) << sized.status().ToString();
  return sized.ok() ? *std::move(sized) : nullptr;
}

// The module of these shapes gives what the module gives for arguments of the shapes, and is
// static if `is_static`.
std::unique_ptr<Module> ExpectSame(std::string_view text, const std::vector<Shape>& shapes,
                                   bool is_static = true) {
  auto module = ParseOrDie(text);
  std::unique_ptr<Module> sized = Sized(*module, shapes);
  if (!sized) return nullptr;
  EXPECT_TRUE(Verify(*sized).ok()) << Verify(*sized).ToString();
  std::vector<Literal> arguments;
  for (const Shape& shape : shapes) arguments.push_back(Counting(shape));
  // The evaluator knows no symbols.
  Result<SymbolSizes> sizes = MatchSymbols(*module, shapes);
  EXPECT_TRUE(sizes.ok());
  Result<Literal> expected = interp::Evaluate(**Specialise(*module, *sizes), arguments);
  Result<Literal> got = interp::Evaluate(*sized, arguments);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  EXPECT_TRUE(got.ok()) << got.status().ToString() << "\n" << ToHloText(*sized);
  if (!expected.ok() || !got.ok()) return sized;
  EXPECT_EQ(got->shape().ToString(), expected->shape().ToString());
  EXPECT_EQ(got->ToString(), expected->ToString());
  const Shape& root = sized->entry()->root()->shape();
  EXPECT_EQ(root.is_static(), is_static) << root.ToString();
  if (is_static) EXPECT_TRUE(root.SameTypeAndDimensions(expected->shape())) << root.ToString();
  return sized;
}

std::string Error(std::string_view text, const std::vector<Shape>& shapes) {
  auto module = ParseOrDie(text);
  Result<std::unique_ptr<Module>> sized = WithParameterShapes(*module, shapes);
  return sized.ok() ? "OK" : sized.status().ToString();
}

constexpr std::string_view kAdd =
    "add { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b) }\n";

TEST(ParameterShapes, BoundsBecomeSizes) {
  auto sized = ExpectSame(Cat("HloModule m\n", kAdd, R"(ENTRY e {
  x = f32[<=5,3] parameter(0)
  y = f32[<=5,3]{0,1} parameter(1)
  s = f32[<=5,3] add(x, y)
  whole = f32[<=5,2] slice(s), slice={[0:5], [1:3]}
  t = f32[2,<=5] transpose(whole), dimensions={1,0}
  c = f32[2,<=10] concatenate(t, t), dimensions={1}
  zero = f32[] constant(0)
  sum = f32[<=10] reduce(c, zero), dimensions={0}, to_apply=add
  b = f32[<=10,4] broadcast(sum), dimensions={0}
  flat = f32[1,<=10,4] reshape(b)
  n = s32[] get-dimension-size(x), dimensions={0}
  ROOT r = (f32[1,<=10,4], s32[], f32[<=5,3]{0,1}) tuple(flat, n, y)
})"),
                          {Shape(F32, {2, 3}), Shape(F32, {2, 3})});
  ASSERT_TRUE(sized);
  EXPECT_EQ(FindInstruction(*sized, "whole")->attributes().Slices(Attr::kSlice)[0].limit, 2);
  EXPECT_EQ(FindInstruction(*sized, "y")->shape().ToString(true), "f32[2,3]{0,1}");
  EXPECT_EQ(sized->entry()->root()->shape().ToString(true),
            "(f32[1,4,4]{2,1,0}, s32[], f32[2,3]{0,1})");
}

TEST(ParameterShapes, SymbolsAndBoundsTogether) {
  ExpectSame(R"(ENTRY e {
  x = f32[N,<=4] parameter(0)
  w = f32[<=4,M] parameter(1)
  d = f32[N,M] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[N,M], f32[N,<=4]) tuple(d, x)
})",
             {Shape(F32, {2, 3}), Shape(F32, {3, 5})});
  ExpectSame("ENTRY e { x = f32[<=4] parameter(0)\n ROOT r = f32[<=4] negate(x) }",
             {Shape(F32, {0})});
  ExpectSame("ENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }", {Shape(F32, {4})});
}

TEST(ParameterShapes, GathersAndSlicesOfAll) {
  ExpectSame(R"(ENTRY e {
  x = f32[<=5,3] parameter(0)
  i = s32[<=2] parameter(1)
  z = s32[] constant(0)
  g = f32[<=2,<=5] gather(x, i), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={5,1}
  d = f32[<=5,1] dynamic-slice(x, z, z), dynamic_slice_sizes={5,1}
  u = f32[<=5,3] dynamic-update-slice(x, d, z, z)
  ROOT r = tuple(g, d, u)
})",
             {Shape(F32, {4, 3}), Shape(S32, {1})});
}

TEST(ParameterShapes, CalledComputations) {
  // One computation, called with two sizes.
  auto sized = ExpectSame(R"(HloModule m
twice { p = f32[<=5] parameter(0)
  ROOT d = f32[<=5] add(p, p) }
outer { q = f32[<=5] parameter(0)
  ROOT c = f32[<=5] call(q), to_apply=twice }
ENTRY e {
  x = f32[<=5] parameter(0)
  y = f32[<=5] parameter(1)
  a = f32[<=5] call(x), to_apply=outer
  b = f32[<=5] call(y), to_apply=twice
  c = f32[<=5] call(a), to_apply=outer
  ROOT r = (f32[<=5], f32[<=5]) tuple(b, c)
})",
                          {Shape(F32, {2}), Shape(F32, {3})});
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->computations().size(), 4u);  // one outer, two twice
  EXPECT_EQ(FindInstruction(*sized, "a")->shape(), Shape(F32, {2}));
}

TEST(ParameterShapes, LoopsKeepSizes) {
  ExpectSame(R"(HloModule m
condition { s = (s32[], f32[<=5]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[<=5] get-tuple-element(s), index=1
  n = s32[] get-dimension-size(x), dimensions={0}
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[<=5]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[<=5] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[<=5] add(x, x)
  ROOT r = (s32[], f32[<=5]) tuple(next, y) }
ENTRY e {
  x = f32[<=5] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[<=5]) tuple(zero, x)
  ROOT w = (s32[], f32[<=5]) while(s), condition=condition, body=body
})",
             {Shape(F32, {3})});
}

// The loop's state has its bounds again: its first value is an array of them, cut.
TEST(ParameterShapes, LoopsThatChangeSizes) {
  auto sized = ExpectSame(R"(HloModule m
condition { s = (f32[<=5], f32[<=5]) parameter(0)
  x = f32[<=5] get-tuple-element(s), index=0
  n = s32[] get-dimension-size(x), dimensions={0}
  one = s32[] constant(1)
  ROOT c = pred[] compare(n, one), direction=GT }
body { s = (f32[<=5], f32[<=5]) parameter(0)
  x = f32[<=5] get-tuple-element(s), index=0
  y = f32[<=5] get-tuple-element(s), index=1
  n = s32[] get-dimension-size(x), dimensions={0}
  one = s32[] constant(1)
  less = s32[] subtract(n, one)
  z = f32[<=5] set-dimension-size(x, less), dimensions={0}
  t = f32[<=5] negate(y)
  ROOT r = (f32[<=5], f32[<=5]) tuple(z, t) }
ENTRY e {
  x = f32[<=5] parameter(0)
  s = (f32[<=5], f32[<=5]) tuple(x, x)
  ROOT w = (f32[<=5], f32[<=5]) while(s), condition=condition, body=body
})",
                          {Shape(F32, {3})}, false);
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->entry()->root()->shape().ToString(), "(f32[<=5], f32[3])");
}

TEST(ParameterShapes, Branches) {
  const std::string_view module = R"(HloModule m
negate { p = f32[<=5] parameter(0)
  ROOT n = f32[<=5] negate(p) }
half { p = f32[<=5] parameter(0)
  two = s32[] constant(2)
  ROOT n = f32[<=5] set-dimension-size(p, two), dimensions={0} }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[<=5] parameter(1)
  ROOT r = f32[<=5] conditional(i, x, x), branch_computations={negate, half}
})";
  ExpectSame(module, {Shape(S32, {}), Shape(F32, {2})});
  // The argument is 1: the second branch.
  ExpectSame(module, {Shape(S32, {}), Shape(F32, {3})}, false);
  ExpectSame(module, {Shape(S32, {}), Shape(F32, {0})}, false);
}

TEST(ParameterShapes, SetDimensionSize) {
  auto text = [](std::string_view size, std::string_view result) {
    return Cat("ENTRY e {\n  x = f32[<=5,2] parameter(0)\n  y = f32[<=5] parameter(1)\n  n = ",
               size, "\n  s = ", result, " set-dimension-size(x, n), dimensions={0}\n",
               "  ROOT r = (", result, ") tuple(s)\n}");
  };
  const std::string known = "s32[] get-dimension-size(y), dimensions={0}";
  for (int64_t rows : {0, 2, 5}) {
    for (int64_t size : {0, 1, 2, 4, 5}) {
      const std::vector<Shape> shapes = {Shape(F32, {rows, 2}), Shape(F32, {size})};
      ExpectSame(text(known, "f32[<=5,2]"), shapes);
      ExpectSame(text(Cat("s32[] constant(", size, ")"), "f32[<=5,2]"), shapes);
      if (size == 5) ExpectSame(text(known, "f32[5,2]"), shapes);
    }
  }
  EXPECT_EQ(Error(text("s32[] constant(6)", "f32[<=5,2]"), {Shape(F32, {3, 2}), Shape(F32, {1})}),
            "INVALID_ARGUMENT: 's': the size of dimension 0 of f32[3,2] is 6; expected 0 to 5");
  EXPECT_EQ(Error(text(known, "f32[5,2]"), {Shape(F32, {3, 2}), Shape(F32, {1})}),
            "INVALID_ARGUMENT: 's': the size of dimension 0 is 1; expected 5");
}

// Sizes computed from values stay bounded, also where they meet known ones.
TEST(ParameterShapes, SizesOfValues) {
  const std::string_view module = R"(ENTRY e {
  x = f32[<=5] parameter(0)
  k = s32[] parameter(1)
  two = s32[] constant(2)
  n = s32[] add(k, two)
  cut = f32[<=5] set-dimension-size(x, n), dimensions={0}
  sum = f32[<=5] add(x, cut)
  ROOT r = (f32[<=5], f32[<=5], f32[<=5]) tuple(x, cut, sum)
})";
  auto sized = ExpectSame(module, {Shape(F32, {3}), Shape(S32, {})}, false);
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->entry()->root()->shape().ToString(), "(f32[3], f32[<=5], f32[<=5])");
}

TEST(ParameterShapes, SessionOnlyOps) {
  auto sized = ExpectSame(R"(ENTRY e {
  x = f32[<=5] parameter(0)
  u = (f32[<=5], s32[<=5], s32[<=5]) custom-call(x), custom_call_target="kiln.unique"
  v = f32[<=5] get-tuple-element(u), index=0
  i = s32[<=5] get-tuple-element(u), index=1
  d = f32[<=5] negate(v)
  ROOT r = (f32[<=5], s32[<=5]) tuple(d, i)
})",
                          {Shape(F32, {3})}, false);
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->entry()->root()->shape().ToString(), "(f32[<=3], s32[3])");
}

TEST(ParameterShapes, KeepsNamesAndAliases) {
  auto module = ParseOrDie(
      R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
body { b = f32[<=5] parameter(0)
  ROOT x.1 = f32[<=5] negate(b) }
ENTRY e {
  x = f32[<=5] parameter(0)
  y = f32[<=5] parameter(1)
  c = f32[<=5] call(x), to_apply=body
  d = f32[<=5] call(y), to_apply=body
  x.2 = f32[<=5] abs(d)
  short = f32[<=5] slice(y), slice={[0:5]}
  ROOT r = (f32[<=5], f32[<=5]) tuple(c, x.2)
})");
  auto sized = Sized(*module, {Shape(F32, {3}), Shape(F32, {2})});
  ASSERT_TRUE(sized);
  for (const Instruction* i : module->entry()->instructions()) {
    EXPECT_TRUE(FindInstruction(*sized->entry(), i->name())) << i->name();
  }
  EXPECT_EQ(sized->aliases().size(), 2u);
  auto crossed = ParseOrDie(R"(HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { x = f32[<=5] parameter(0)
  y = f32[<=5] parameter(1)
  ROOT r = f32[<=5] negate(y) })");
  EXPECT_EQ(Sized(*crossed, {Shape(F32, {3}), Shape(F32, {2})})->aliases().size(), 0u);
  EXPECT_EQ(Sized(*crossed, {Shape(F32, {3}), Shape(F32, {3})})->aliases().size(), 1u);
}

TEST(ParameterShapes, KeepsMarksAndControlDependencies) {
  auto module = ParseOrDie(R"(ENTRY e {
  x = f32[<=5] parameter(0)
  first = f32[<=5] negate(x), frontend_attributes={kiln.device="CPU:0"}
  two = s32[] constant(2)
  cut = f32[<=5] set-dimension-size(x, two), dimensions={0}, control-predecessors={first}, frontend_attributes={kiln.device="CPU:1"}
  ROOT r = (f32[<=5], f32[<=5]) tuple(first, cut)
})");
  auto sized = Sized(*module, {Shape(F32, {3})});
  ASSERT_TRUE(sized);
  const Instruction* cut = FindInstruction(*sized, "cut");
  EXPECT_EQ(cut->opcode(), Opcode::kSlice);
  ASSERT_EQ(cut->control_predecessors().size(), 1u);
  EXPECT_EQ(cut->control_predecessors()[0], FindInstruction(*sized, "first"));
  EXPECT_NE(ToHloText(*cut).find("kiln.device=\"CPU:1\""), std::string::npos);
}

TEST(ParameterShapes, WhatDoesNotFit) {
  const std::string_view module = R"(ENTRY e {
  x = f32[<=5,N] parameter(0)
  y = f32[<=5,N] parameter(1)
  ROOT s = f32[<=5,N] add(x, y)
})";
  EXPECT_EQ(Error(module, {Shape(F32, {3, 2}), Shape(F32, {4, 2})}),
            "INVALID_ARGUMENT: instruction 's': add: operands have shapes f32[3,2] and f32[4,2]; "
            "they must be equal");
  EXPECT_EQ(Error(module, {Shape(F32, {6, 2}), Shape(F32, {6, 2})}),
            "INVALID_ARGUMENT: argument 0 has shape f32[6,2]; expected f32[<=5,N]");
  EXPECT_EQ(Error(module, {Shape(F32, {3, 2})}),
            "INVALID_ARGUMENT: there are 1 arguments; expected 2");
  EXPECT_EQ(
      Error(R"(HloModule m
inner { a = f32[<=5] parameter(0)
  b = f32[<=5] parameter(1)
  ROOT bad = f32[<=5] multiply(a, b) }
ENTRY e { x = f32[<=5] parameter(0)
  y = f32[<=5] parameter(1)
  ROOT c = f32[<=5] call(x, y), to_apply=inner })",
            {Shape(F32, {1}), Shape(F32, {2})}),
      "INVALID_ARGUMENT: instruction 'bad': multiply: operands have shapes f32[1] and f32[2]; "
      "they must be equal");
}

}  // namespace
}  // namespace kiln::ir
