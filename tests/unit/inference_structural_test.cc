// Inference of the ops on bits and positions, through HLO text.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace kiln {
namespace {

// The shape that inference gives an expression of parameters "x = ..., y = ...", or the error.
std::string ShapeOf(std::string_view parameters, std::string_view expression,
                    std::string_view computations = "") {
  std::string text = Cat("HloModule m\n", computations, "\nENTRY e {\n");
  int number = 0;
  for (std::string_view p : Split(parameters, ';')) {
    text += Cat("  ", p, " parameter(", number++, ")\n");
  }
  auto module = ir::ParseHloText(Cat(text, "  ROOT r = ", expression, "\n}\n"));
  if (!module.ok()) return std::string(module.status().message());
  return (*module)->entry()->root()->shape().ToString();
}

void ExpectError(std::string_view part, std::string_view parameters, std::string_view expression,
                 std::string_view computations = "") {
  std::string text = ShapeOf(parameters, expression, computations);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(InferenceBits, Reverse) {
  EXPECT_EQ(ShapeOf("x = f32[2,3]", "reverse(x), dimensions={1}"), "f32[2,3]");
  EXPECT_EQ(ShapeOf("x = f32[N,3]", "reverse(x), dimensions={0}"), "f32[N,3]");
  ExpectError("dimensions has 2", "x = f32[2,3]", "reverse(x), dimensions={2}");
  ExpectError("dimensions has 0 twice", "x = f32[2,3]", "reverse(x), dimensions={0,0}");
}

TEST(InferenceBits, BitcastConvert) {
  EXPECT_EQ(ShapeOf("x = f32[2,3]", "s32[2,3] bitcast-convert(x)"), "s32[2,3]");
  EXPECT_EQ(ShapeOf("x = f64[N]", "s32[N,2] bitcast-convert(x)"), "s32[N,2]");
  EXPECT_EQ(ShapeOf("x = u8[2,4]", "f32[2] bitcast-convert(x)"), "f32[2]");
  EXPECT_EQ(ShapeOf("x = pred[8]", "u8[] bitcast-convert(x)"), "u8[]");
  ExpectError("the last dimension must be of size 4", "x = u8[4,2]", "f32[4] bitcast-convert(x)");
  ExpectError("the last dimension must be of size 4", "x = u8[]", "f32[] bitcast-convert(x)");
  ExpectError("inference says s32[2,2]", "x = f64[2]", "s32[4] bitcast-convert(x)");
}

TEST(InferenceBits, ReducePrecision) {
  EXPECT_EQ(ShapeOf("x = f32[2]", "reduce-precision(x), exponent_bits=5, mantissa_bits=0"),
            "f32[2]");
  ExpectError("exponent_bits is 0", "x = f32[2]",
              "reduce-precision(x), exponent_bits=0, mantissa_bits=3");
  ExpectError("mantissa_bits is -1", "x = f32[2]",
              "reduce-precision(x), exponent_bits=5, mantissa_bits=-1");
  ExpectError("must be a float type", "x = s32[2]",
              "reduce-precision(x), exponent_bits=5, mantissa_bits=3");
}

TEST(InferenceBits, GetDimensionSize) {
  EXPECT_EQ(ShapeOf("x = f32[2,N]", "get-dimension-size(x), dimensions={1}"), "s32[]");
  ExpectError("dimensions has 2", "x = f32[2,3]", "get-dimension-size(x), dimensions={2}");
  ExpectError("dimensions has 0 entries", "x = f32[2]", "get-dimension-size(x), dimensions={}");
  ExpectError("does not fit in an s32", "x = u8[3000000000,0]",
              "get-dimension-size(x), dimensions={0}");
}

TEST(InferenceBits, Map) {
  constexpr char kFunction[] = R"(
f { a = f32[] parameter(0)
  b = s32[] parameter(1)
  ROOT p = pred[] constant(true) }
pair { a = f32[] parameter(0)
  ROOT t = (f32[]) tuple(a) })";
  EXPECT_EQ(
      ShapeOf("x = f32[2,3];y = s32[2,3]", "map(x, y), dimensions={0,1}, to_apply=f", kFunction),
      "pred[2,3]");
  ExpectError("dimensions must be all of the operand's 2, in order", "x = f32[2,3];y = s32[2,3]",
              "map(x, y), dimensions={1,0}, to_apply=f", kFunction);
  ExpectError("dimensions must be all", "x = f32[2,3];y = s32[2,3]",
              "map(x, y), dimensions={0}, to_apply=f", kFunction);
  ExpectError("the operands' dimensions must be equal", "x = f32[2,3];y = s32[3,2]",
              "map(x, y), dimensions={0,1}, to_apply=f", kFunction);
  ExpectError("expected (s32[], f32[])", "x = f32[2];y = s32[2]",
              "map(y, x), dimensions={0}, to_apply=f", kFunction);
  ExpectError("expected a scalar", "x = f32[2]", "map(x), dimensions={0}, to_apply=pair",
              kFunction);
}

TEST(InferenceBits, OptBarrier) {
  EXPECT_EQ(ShapeOf("x = (f32[2], (s32[N]))", "opt-barrier(x)"), "(f32[2], (s32[N]))");
  ExpectError("expected 1", "x = f32[2];y = f32[2]", "opt-barrier(x, y)");
}

}  // namespace
}  // namespace kiln
