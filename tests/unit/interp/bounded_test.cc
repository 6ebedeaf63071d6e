// Values of bounded dimensions in the evaluator: all ops on the sizes that there are.
#include <gtest/gtest.h>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::ValueOf;

// x = {1, 2, 3, 4, 5} cut to n, and the lines, whose last one is the root.
std::string Cut(int n, std::string_view lines, std::string_view computations = "") {
  return ValueOf(Cat("HloModule m\n", computations, "\nENTRY e {\n",
                     "  whole = f32[5] constant({1, 2, 3, 4, 5})\n  n = s32[] constant(", n,
                     ")\n  x = f32[<=5] set-dimension-size(whole, n), dimensions={0}\n", lines,
                     "\n}\n"));
}

// m = {{1, 2, 3}, {4, 5, 6}} cut to rows x columns.
std::string CutMatrix(int rows, int columns, std::string_view lines,
                      std::string_view computations = "") {
  return ValueOf(
      Cat("HloModule m\n", computations, "\nENTRY e {\n",
          "  whole = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\n  rows = s32[] constant(", rows,
          ")\n  columns = s32[] constant(", columns,
          R"()
  some = s32[<=2,3] set-dimension-size(whole, rows), dimensions={0}
  m = s32[<=2,<=3] set-dimension-size(some, columns), dimensions={1}
)",
          lines, "\n}\n"));
}

constexpr std::string_view kAdd =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n";

TEST(InterpBounded, SetAndGet) {
  EXPECT_EQ(Cut(3, "  ROOT r = f32[<=5] copy(x)"), "{1, 2, 3}");
  EXPECT_EQ(Cut(0, "  ROOT r = f32[<=5] copy(x)"), "{}");
  EXPECT_EQ(Cut(5, "  ROOT r = f32[<=5] copy(x)"), "{1, 2, 3, 4, 5}");
  EXPECT_EQ(Cut(4, "  ROOT r = s32[] get-dimension-size(x), dimensions={0}"), "4");
  EXPECT_EQ(CutMatrix(2, 1, "  ROOT r = s32[<=2,<=3] copy(m)"), "{ {1}, {4} }");
  EXPECT_EQ(CutMatrix(1, 2, "  ROOT r = s32[<=2,<=3] copy(m)"), "{ { 1, 2 } }");
  EXPECT_EQ(CutMatrix(2, 1, "  ROOT r = s32[] get-dimension-size(m), dimensions={1}"), "1");
}

TEST(InterpBounded, WhatASizeGrowsByIsZero) {
  EXPECT_EQ(Cut(2,
                R"(  k = s32[] constant(4)
  ROOT r = f32[<=5] set-dimension-size(x, k), dimensions={0})"),
            "{1, 2, 0, 0}");
  EXPECT_EQ(Cut(2,
                R"(  k = s32[] constant(5)
  ROOT r = f32[5] set-dimension-size(x, k), dimensions={0})"),
            "{1, 2, 0, 0, 0}");
  // A result without a bound has zeros in the place of what is behind the size.
  EXPECT_EQ(Cut(2, "  ROOT r = f32[5] set-dimension-size(x, n), dimensions={0}"),
            "{1, 2, 0, 0, 0}");
}

TEST(InterpBounded, OfTwoSizesTheSmallerCountsButForOne) {
  auto add = [](int n, int k) {
    return Cut(n, Cat("  k = s32[] constant(", k, R"()
  y = f32[<=5] set-dimension-size(whole, k), dimensions={0}
  ROOT r = f32[<=5] add(x, y))"));
  };
  EXPECT_EQ(add(3, 4), "{2, 4, 6}");
  EXPECT_EQ(add(4, 2), "{2, 4}");
  EXPECT_EQ(add(1, 3), "{2, 3, 4}");
  EXPECT_EQ(add(3, 1), "{2, 3, 4}");
  EXPECT_EQ(add(1, 0), "{}");
  EXPECT_EQ(Cut(2, "  ROOT r = f32[<=5] add(x, whole)"), "{2, 4}");
}

TEST(InterpBounded, SizesThatDoNotFit) {
  EXPECT_EQ(Cut(6, "  ROOT r = f32[<=5] copy(x)"),
            "INVALID_ARGUMENT: 'x' of shape f32[<=5]: the size of dimension 0 is 6; expected 0 to "
            "5");
  EXPECT_EQ(Cut(-1, "  ROOT r = f32[<=5] copy(x)"),
            "INVALID_ARGUMENT: 'x' of shape f32[<=5]: the size of dimension 0 is -1; expected 0 to "
            "5");
  EXPECT_EQ(Cut(3,
                R"(  k = s32[] constant(4)
  y = f32[<=5] set-dimension-size(whole, k), dimensions={0}
  ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0})"),
            "INVALID_ARGUMENT: 'r' of shape f32[]: dot: operands have shapes f32[3] and f32[4]; "
            "contracting dimension 0 of lhs is 3 and 0 of rhs is 4; they must be equal");
  EXPECT_EQ(Cut(3, "  ROOT r = s32[<=5] iota(), iota_dimension=0"),
            "INVALID_ARGUMENT: 'r' of shape s32[<=5]: its operands do not tell its sizes at run "
            "time, of which s32[<=5] has the bounds; set-dimension-size gives a value a size");
  EXPECT_EQ(Cut(3,
                R"(  z = f32[] constant(0)
  b = f32[<=5] broadcast(z), dimensions={}
  ROOT r = f32[<=5] add(x, b))"),
            "INVALID_ARGUMENT: 'b' of shape f32[<=5]: its operands do not tell its sizes at run "
            "time, of which f32[<=5] has the bounds; set-dimension-size gives a value a size");
  EXPECT_EQ(Cut(1,
                R"(  z = s32[] constant(0)
  ROOT r = f32[2] dynamic-slice(x, z), dynamic_slice_sizes={2})"),
            "INVALID_ARGUMENT: 'r' of shape f32[2]: dynamic-slice: operands have shapes f32[1] and "
            "s32[]; the slice of dimension 0 is 2; expected 0 to 1");
}

TEST(InterpBounded, UpdatesOfAllMustBeAll) {
  const std::string_view lines =
      R"(  k = s32[] constant(2)
  z = s32[] constant(0)
  u = f32[<=5] set-dimension-size(whole, k), dimensions={0}
  ROOT r = f32[<=5] dynamic-update-slice(x, u, z))";
  EXPECT_EQ(Cut(2, lines), "{1, 2}");
  EXPECT_EQ(Cut(3, lines),
            "INVALID_ARGUMENT: 'r' of shape f32[<=5]: dimension 0 of the update, f32[2], is to be "
            "all of dimension 0 of f32[3]");
}

TEST(InterpBounded, Elementwise) {
  EXPECT_EQ(Cut(3, "  ROOT r = f32[<=5] add(x, x)"), "{2, 4, 6}");
  EXPECT_EQ(Cut(2, "  c = s32[<=5] convert(x)\n  ROOT r = s32[<=5] negate(c)"), "{-1, -2}");
  EXPECT_EQ(Cut(3, "  two = f32[] constant(2)\n  ROOT r = f32[<=5] clamp(two, x, two)"),
            "{2, 2, 2}");
  EXPECT_EQ(Cut(0, "  ROOT r = f32[<=5] exponential(x)"), "{}");
}

TEST(InterpBounded, Moves) {
  EXPECT_EQ(Cut(3, "  ROOT r = f32[<=5] reverse(x), dimensions={0}"), "{3, 2, 1}");
  EXPECT_EQ(Cut(2, "  ROOT r = f32[<=5,2] broadcast(x), dimensions={0}"), "{ { 1, 1 }, { 2, 2 } }");
  EXPECT_EQ(Cut(2, "  ROOT r = f32[<=5] slice(x), slice={[0:5]}"), "{1, 2}");
  EXPECT_EQ(CutMatrix(2, 2, "  ROOT r = s32[<=3,<=2] transpose(m), dimensions={1,0}"),
            "{ { 1, 4 }, { 2, 5 } }");
  EXPECT_EQ(Cut(4,
                R"(  z = s32[] constant(9)
  ROOT r = f32[2] dynamic-slice(x, z), dynamic_slice_sizes={2})"),
            "{3, 4}");
  EXPECT_EQ(Cut(4,
                R"(  z = s32[] constant(9)
  ROOT r = f32[<=5] dynamic-slice(x, z), dynamic_slice_sizes={5})"),
            "{1, 2, 3, 4}");
  EXPECT_EQ(Cut(3, "  ROOT r = f32[<=10] concatenate(x, whole), dimensions={0}").substr(0, 8),
            "{1, 2, 3");
  EXPECT_EQ(Cut(2, "  ROOT r = f32[<=10] concatenate(x, x), dimensions={0}"), "{1, 2, 1, 2}");
  EXPECT_EQ(Cut(3,
                "  i = s32[2,1] constant({{2}, {7}})\n"
                "  ROOT r = f32[2] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, "
                "start_index_map={0}, index_vector_dim=1, slice_sizes={1}"),
            "{3, 3}");
}

TEST(InterpBounded, Reshapes) {
  EXPECT_EQ(Cut(3, "  ROOT r = f32[1,<=5,1] reshape(x)"), "{ { {1}, {2}, {3} } }");
  EXPECT_EQ(CutMatrix(2, 2, "  ROOT r = s32[<=3,<=2] reshape(m)"), "{ { 1, 2 }, { 4, 5 } }");
  EXPECT_EQ(CutMatrix(1, 3, "  ROOT r = s32[<=3,<=2] reshape(m)"), "{ {1}, {2}, {3} }");
  // Of equal bounds: in order, where the bounds are.
  const std::string_view square =
      R"(  x1 = f32[<=5,5] broadcast(x), dimensions={0}
  two = s32[] constant(2)
  s = f32[<=5,<=5] set-dimension-size(x1, two), dimensions={1}
)";
  EXPECT_EQ(Cut(1, Cat(square, "  ROOT r = f32[<=5,1,<=5] reshape(s)")), "{ { { 1, 1 } } }");
  const std::string_view cube =
      R"(  one = s32[] constant(1)
  y = f32[<=5,<=5,4] broadcast(s), dimensions={0,1}
  z = f32[<=5,<=5,<=4] set-dimension-size(y, one), dimensions={2}
)";
  EXPECT_EQ(Cut(2, Cat(square, cube, "  ROOT r = f32[<=4,<=5,<=5] reshape(z)")),
            "{ { { 1, 1 }, { 2, 2 } } }");
  EXPECT_EQ(
      Cut(1, Cat(square, cube, "  ROOT r = f32[<=4,<=5,<=5] reshape(z)")),
      "INVALID_ARGUMENT: 'r' of shape f32[<=4,<=5,<=5]: its operands do not tell its sizes at "
      "run time, of which f32[<=4,<=5,<=5] has the bounds; set-dimension-size gives a value a "
      "size");
}

TEST(InterpBounded, Folds) {
  const std::string_view sum =
      R"(  z = f32[] constant(100)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add)";
  EXPECT_EQ(Cut(3, sum, kAdd), "106");
  EXPECT_EQ(Cut(0, sum, kAdd), "100");
  EXPECT_EQ(
      Cut(3, "  ROOT r = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
      "14");
  EXPECT_EQ(Cut(3, "  ROOT r = f32[<=5] sort(x), dimensions={0}, to_apply=more",
                R"(more {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT
}
)"),
            "{3, 2, 1}");
  EXPECT_EQ(CutMatrix(2, 2,
                      R"(  z = s32[] constant(0)
  ROOT t = s32[<=2] reduce(m, z), dimensions={1}, to_apply=add)",
                      R"(add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT t = s32[] add(a, b)
}
)"),
            "{3, 9}");
}

// The loop doubles the values, of which there is one less each time, while there are more than two.
TEST(InterpBounded, LoopsBranchesAndCallsHandSizesOn) {
  const std::string_view computations =
      R"(cond {
  p = (f32[<=5]) parameter(0)
  x = f32[<=5] get-tuple-element(p), index=0
  s = s32[] get-dimension-size(x), dimensions={0}
  two = s32[] constant(2)
  ROOT c = pred[] compare(s, two), direction=GT
}
body {
  p = (f32[<=5]) parameter(0)
  x = f32[<=5] get-tuple-element(p), index=0
  s = s32[] get-dimension-size(x), dimensions={0}
  one = s32[] constant(1)
  l = s32[] subtract(s, one)
  y = f32[<=5] add(x, x)
  z = f32[<=5] set-dimension-size(y, l), dimensions={0}
  ROOT t = (f32[<=5]) tuple(z)
}
same {
  p = f32[<=5] parameter(0)
  ROOT c = f32[<=5] copy(p)
}
neg {
  p = f32[<=5] parameter(0)
  ROOT c = f32[<=5] negate(p)
}
)";
  EXPECT_EQ(Cut(5,
                R"(  t = (f32[<=5]) tuple(x)
  w = (f32[<=5]) while(t), condition=cond, body=body
  ROOT r = f32[<=5] get-tuple-element(w), index=0)",
                computations),
            "{8, 16}");
  EXPECT_EQ(Cut(2,
                R"(  p = pred[] constant(false)
  b = f32[<=5] conditional(p, x, x), true_computation=same, false_computation=neg
  ROOT r = f32[<=5] call(b), to_apply=neg)",
                computations),
            "{1, 2}");
}

TEST(InterpBounded, ArgumentsHaveSizesWithinBounds) {
  const std::string_view text =
      "HloModule m\nENTRY e {\n  p = f32[<=3] parameter(0)\n  ROOT r = f32[<=3] negate(p)\n}\n";
  EXPECT_EQ(ValueOf(text, {Literal(Shape(ElementType::kF32, {2}))}), "{-0, -0}");
  EXPECT_EQ(ValueOf(text, {Literal(Shape(ElementType::kF32, {4}))}),
            "INVALID_ARGUMENT: argument 0 of 'e' has shape f32[4]; f32[<=3] is expected");
}

TEST(InterpBounded, Checks) {
  const std::string_view check =
      R"(  c = f32[3] constant({1, 2, 3})
  t = () custom-call(x, c), custom_call_target="check.expect_eq", custom_call_has_side_effect=true
  ROOT r = () tuple())";
  EXPECT_EQ(Cut(3, check), "()");
  EXPECT_NE(Cut(2, check).find("the value has the shape f32[2], and what is expected f32[3]"),
            std::string::npos)
      << Cut(2, check);
  EXPECT_NE(Cut(2, "  ROOT r = f32[<=5] custom-call(x), custom_call_target=\"f\"")
                .find("no function is registered"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln
