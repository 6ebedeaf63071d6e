// The evaluator's sorts and top-k, and what inference says of them.
#include <gtest/gtest.h>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::ValueOf;

constexpr char kLess[] = R"(
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
)";
constexpr char kLessOfPairs[] = R"(
less { a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = u8[] parameter(2)
  d = u8[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
)";

std::string Value(std::string_view computations, std::string_view body) {
  return ValueOf(Cat("HloModule m\n", computations, "ENTRY e {\n", body, "\n}\n"));
}

TEST(InterpSort, OneOperand) {
  EXPECT_EQ(Value(kLess, R"(x = f32[5] constant({3, -1, 2, -inf, 0.5})
  ROOT s = f32[5] sort(x), dimensions={0}, to_apply=less)"),
            "{-inf, -1, 0.5, 2, 3}");
  EXPECT_EQ(Value(kLess, R"(x = f32[2,3] constant({{3, -1, 2}, {1, 7, -4}})
  a = f32[2,3] sort(x), dimensions={0}, to_apply=less
  b = f32[2,3] sort(x), dimensions={1}, to_apply=less
  ROOT t = (f32[2,3], f32[2,3]) tuple(a, b))"),
            "({ { 1, -1, -4 }, { 3, 7, 2 } }, { { -1, 2, 3 }, { -4, 1, 7 } })");
}

TEST(InterpSort, EqualElementsKeepTheirOrder) {
  EXPECT_EQ(Value(kLessOfPairs, R"(x = s32[6] constant({2, 1, 2, 1, 2, 0})
  y = u8[6] constant({0, 1, 2, 3, 4, 5})
  ROOT s = (s32[6], u8[6]) sort(x, y), dimensions={0}, to_apply=less)"),
            "({0, 1, 1, 2, 2, 2}, {5, 1, 3, 0, 2, 4})");
  EXPECT_EQ(Value(kLess, R"(x = f32[4] constant({0, -0, 0, -1})
  ROOT s = f32[4] sort(x), dimensions={0}, to_apply=less)"),
            "{-1, 0, -0, 0}");
}

TEST(InterpSort, TotalOrder) {
  EXPECT_EQ(Value(R"(
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }
)",
                  R"(x = f32[7] constant({nan, 0, -0, inf, 1, -nan, -inf})
  ROOT s = f32[7] sort(x), dimensions={0}, to_apply=less)"),
            "{-nan, -inf, -0, 0, 1, inf, nan}");
  EXPECT_EQ(Value("", R"(x = f32[2,2] constant({{0, 1}, {-nan, nan}})
  y = f32[2,2] constant({{-0, 1}, {nan, nan}})
  a = pred[2,2] compare(x, y), direction=GT, type=TOTALORDER
  b = pred[2,2] compare(x, y), direction=EQ, type=TOTALORDER
  ROOT t = (pred[2,2], pred[2,2]) tuple(a, b))"),
            "({ { 1, 0 }, { 0, 0 } }, { { 0, 1 }, { 0, 1 } })");
}

TEST(InterpSort, TopK) {
  EXPECT_EQ(Value("", R"(x = f32[2,4] constant({{1, 5, 5, -2}, {-0, 0, nan, -nan}})
  ROOT t = (f32[2,3], s32[2,3]) topk(x), k=3, largest=true)"),
            "({ { 5, 5, 1 }, { nan, 0, -0 } }, { { 1, 2, 0 }, { 2, 1, 0 } })");
  EXPECT_EQ(Value("", R"(x = s8[4] constant({-128, 127, 0, -128})
  a = (s8[2], s32[2]) topk(x), k=2, largest=false
  b = (s8[0], s32[0]) topk(x), k=0, largest=true
  ROOT t = ((s8[2], s32[2]), (s8[0], s32[0])) tuple(a, b))"),
            "(({-128, -128}, {0, 3}), ({}, {}))");
}

// The error of a sort of x: f32[3,4] and y: s32[3,4], by `less` with such parameters.
std::string Error(std::string_view operands, std::string_view attributes,
                  std::string_view computation = kLess) {
  return ir::ParseError(Cat("HloModule m\n", computation,
                            R"(ENTRY e { x = f32[3,4] parameter(0)
 y = s32[3,4] parameter(1)
 z = f32[4] parameter(2)
 ROOT r = )",
                            operands, ", ", attributes, " }"));
}

void ExpectPart(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(InferenceSort, Errors) {
  EXPECT_EQ(Error("f32[3,4] sort(x)", "dimensions={1}, to_apply=less"), "OK");
  ExpectPart(Error("sort(x)", "dimensions={2}, to_apply=less"), "dimensions has 2");
  ExpectPart(Error("sort(x)", "dimensions={}, to_apply=less"), "dimensions has 0 numbers");
  ExpectPart(Error("sort(x)", "dimensions={0,1}, to_apply=less"), "dimensions has 2 numbers");
  ExpectPart(Error("sort(x, z)", "dimensions={0}, to_apply=less"), "dimensions must be equal");
  ExpectPart(Error("sort(x, y)", "dimensions={0}, to_apply=less"),
             "expected (f32[], f32[], s32[], s32[])");
  ExpectPart(Error("sort(x)", "dimensions={0}, to_apply=less",
                   "less { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\n"),
             "gives f32[]; expected pred[]");
  ExpectPart(Error("topk(x)", "k=5, largest=true"), "k is 5; expected 0 to 4");
  ExpectPart(Error("topk(x)", "k=-1, largest=true"), "k is -1");
  ExpectPart(Error("topk(x)", "largest=true"), "attribute 'k' is missing");
}

}  // namespace
}  // namespace kiln
