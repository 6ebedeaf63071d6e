// The evaluator's elementwise ops at their edges; the expected values are worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::Apply;
using testing::Eval;

TEST(InterpUnary, Abs) {
  EXPECT_EQ(Apply("abs", "f32[4]", {"{-1.5, -0, -inf, 2}"}), "{1.5, 0, inf, 2}");
  EXPECT_EQ(Apply("abs", "f64[2]", {"{-nan, -1e-310}"}), "{nan, 1e-310}");
  EXPECT_EQ(Apply("abs", "s32[3]", {"{-2147483648, -7, 7}"}), "{-2147483648, 7, 7}");
  EXPECT_EQ(Apply("abs", "s64[2]", {"{-9223372036854775808, -1}"}), "{-9223372036854775808, 1}");
  EXPECT_EQ(Apply("abs", "u8[2]", {"{255, 0}"}), "{255, 0}");
}

TEST(InterpUnary, RoundsToIntegers) {
  EXPECT_EQ(Apply("ceil", "f32[5]", {"{-0.5, 0.5, 2, -inf, nan}"}), "{-0, 1, 2, -inf, nan}");
  EXPECT_EQ(Apply("floor", "f64[4]", {"{-0.5, 0.5, -0, 1e300}"}), "{-1, 0, -0, 1e+300}");
  EXPECT_EQ(Apply("round-nearest-afz", "f32[6]", {"{0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997}"}),
            "{1, 2, 3, -1, -3, 0}");
  EXPECT_EQ(Apply("round-nearest-even", "f32[6]", {"{0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997}"}),
            "{0, 2, 2, -0, -2, 0}");
}

TEST(InterpUnary, CountsBits) {
  EXPECT_EQ(Apply("count-leading-zeros", "s32[3]", {"{0, 1, -1}"}), "{32, 31, 0}");
  EXPECT_EQ(Apply("count-leading-zeros", "u8[3]", {"{0, 1, 128}"}), "{8, 7, 0}");
  EXPECT_EQ(Apply("count-leading-zeros", "s64[2]", {"{0, 4294967296}"}), "{64, 31}");
  EXPECT_EQ(Apply("popcnt", "s32[3]", {"{0, -1, -2147483648}"}), "{0, 32, 1}");
  EXPECT_EQ(Apply("popcnt", "u8[2]", {"{255, 170}"}), "{8, 4}");
  EXPECT_EQ(Apply("popcnt", "s64[2]", {"{-1, 5}"}), "{64, 2}");
}

TEST(InterpUnary, IsFinite) {
  EXPECT_EQ(Apply("is-finite", "f32[5]", {"{1, inf, -inf, nan, 3e38}"}, "pred[5]"),
            "{1, 0, 0, 0, 1}");
  EXPECT_EQ(Apply("is-finite", "f64[]", {"1e308"}, "pred[]"), "true");
}

TEST(InterpUnary, Negate) {
  EXPECT_EQ(Apply("negate", "f32[3]", {"{0, -0, inf}"}), "{-0, 0, -inf}");
  EXPECT_EQ(Apply("negate", "s32[2]", {"{-2147483648, 5}"}), "{-2147483648, -5}");
  EXPECT_EQ(Apply("negate", "u8[2]", {"{1, 0}"}), "{255, 0}");
}

TEST(InterpUnary, Not) {
  EXPECT_EQ(Apply("not", "pred[2]", {"{1, 0}"}), "{0, 1}");
  EXPECT_EQ(Apply("not", "s32[2]", {"{0, 5}"}), "{-1, -6}");
  EXPECT_EQ(Apply("not", "u8[1]", {"{240}"}), "{15}");
}

TEST(InterpUnary, Sign) {
  EXPECT_EQ(Apply("sign", "f32[5]", {"{-3, -0, 0, nan, inf}"}), "{-1, -0, 0, nan, 1}");
  EXPECT_EQ(Apply("sign", "s64[3]", {"{-9223372036854775808, 0, 9}"}), "{-1, 0, 1}");
  EXPECT_EQ(Apply("sign", "u8[2]", {"{0, 200}"}), "{0, 1}");
}

TEST(InterpUnary, RootsAndTheirSpecialValues) {
  EXPECT_EQ(Apply("sqrt", "f32[5]", {"{4, -0, inf, 2, 0}"}), "{2, -0, inf, 1.4142135, 0}");
  EXPECT_EQ(Apply("rsqrt", "f32[5]", {"{4, -0, 0, inf, 0.25}"}), "{0.5, -inf, inf, 0, 2}");
  EXPECT_EQ(Eval("pred[2] compare(f32[2] sqrt(f32[2] constant({-1, 1})), f32[2] rsqrt(f32[2] "
                 "constant({-1, 1}))), direction=EQ"),
            "{0, 1}");
}

TEST(InterpUnary, ExponentialsAndLogarithms) {
  EXPECT_EQ(Apply("exponential", "f32[5]", {"{0, 1, 89, -200, -inf}"}),
            "{1, 2.7182817, inf, 0, 0}");
  // Results below the normal range are kept.
  EXPECT_EQ(Apply("exponential", "f32[]", {"-103"}), "1e-45");
  EXPECT_EQ(Apply("exponential", "f64[2]", {"{1, 710}"}), "{2.718281828459045, inf}");
  EXPECT_EQ(Apply("exponential-minus-one", "f32[4]", {"{0, -0, 1e-10, -inf}"}),
            "{0, -0, 1e-10, -1}");
  EXPECT_EQ(Apply("log", "f32[4]", {"{1, 0, inf, 2.7182817}"}), "{0, -inf, inf, 0.99999994}");
  EXPECT_EQ(Apply("log", "f64[2]", {"{-0, 10}"}), "{-inf, 2.302585092994046}");
  EXPECT_EQ(Apply("log-plus-one", "f32[3]", {"{1e-10, -1, -0}"}), "{1e-10, -inf, -0}");
  EXPECT_EQ(Eval("pred[] is-finite(f32[] log(f32[] constant(-1)))"), "false");
}

TEST(InterpUnary, Sigmoids) {
  EXPECT_EQ(Apply("logistic", "f32[5]", {"{0, inf, -inf, -100, 100}"}), "{0.5, 1, 0, 3.8e-44, 1}");
  EXPECT_EQ(Apply("logistic", "f64[]", {"-700"}), "9.85967654375977e-305");
  EXPECT_EQ(Apply("tanh", "f32[5]", {"{0, -0, 20, -inf, 1e-20}"}), "{0, -0, 1, -1, 1e-20}");
}

TEST(InterpUnary, Trigonometry) {
  EXPECT_EQ(Apply("sine", "f32[4]", {"{0, -0, 1, 1e30}"}), "{0, -0, 0.84147096, -0.79116344}");
  EXPECT_EQ(Apply("cosine", "f64[2]", {"{0, 3.141592653589793}"}), "{1, -1}");
  EXPECT_EQ(Apply("tan", "f32[3]", {"{-0, 1, -1e-30}"}), "{-0, 1.5574077, -1e-30}");
  EXPECT_EQ(Apply("asin", "f32[2]", {"{1, -0}"}), "{1.5707964, -0}");
  EXPECT_EQ(Apply("acos", "f32[3]", {"{1, -1, 0}"}), "{0, 3.1415927, 1.5707964}");
  EXPECT_EQ(Eval("pred[3] is-finite(f32[3] sine(f32[3] constant({inf, -inf, nan})))"), "{0, 0, 0}");
}

TEST(InterpUnary, HyperbolicFunctionsRootsAndErf) {
  EXPECT_EQ(Apply("sinh", "f32[3]", {"{1, -0, -inf}"}), "{1.1752012, -0, -inf}");
  EXPECT_EQ(Apply("cosh", "f32[3]", {"{1, -0, -inf}"}), "{1.5430807, 1, inf}");
  EXPECT_EQ(Apply("asinh", "f32[2]", {"{1, -0}"}), "{0.8813736, -0}");
  EXPECT_EQ(Apply("acosh", "f32[2]", {"{1, 2}"}), "{0, 1.316958}");
  EXPECT_EQ(Apply("atanh", "f32[3]", {"{1, -1, 0.5}"}), "{inf, -inf, 0.54930615}");
  EXPECT_EQ(Apply("cbrt", "f64[4]", {"{-27, 8, -0, inf}"}), "{-3, 2, -0, inf}");
  EXPECT_EQ(Apply("erf", "f32[4]", {"{0.5, -0, 10, -inf}"}), "{0.5204999, -0, 1, -1}");
  EXPECT_EQ(Apply("erf", "f16[1]", {"{0.5}"}), "{0.5205}");
}

TEST(InterpUnary, PartsOfRealNumbers) {
  EXPECT_EQ(Apply("real", "f32[3]", {"{-0, 2.5, nan}"}), "{-0, 2.5, nan}");
  EXPECT_EQ(Apply("imag", "f64[3]", {"{-0, 2.5, nan}"}), "{0, 0, 0}");
}

TEST(InterpUnary, CopyKeepsTheBitsOfNaNs) {
  uint32_t bits = 0x7f812345;  // a signaling NaN
  Literal nan(Shape(ElementType::kF32, {1}));
  std::memcpy(nan.data(), &bits, sizeof(bits));
  auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  p = f32[1] parameter(0)
  c = f32[1] copy(p)
  yes = pred[] constant(true)
  s = f32[1] select(yes, c, p)
  b = f32[2,1] broadcast(s), dimensions={1}
  t = f32[1,1] slice(b), slice={[1:2], [0:1]}
  ROOT r = f32[1] reshape(t)
})");
  auto result = interp::Evaluate(*module, std::vector<Literal>{nan});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(*result == nan);
}

TEST(InterpConvert, FloatToInteger) {
  EXPECT_EQ(Apply("convert", "f32[7]", {"{1.9, -1.9, nan, inf, -inf, 3e9, -2147483648}"}, "s32[7]"),
            "{1, -1, 0, 2147483647, -2147483648, 2147483647, -2147483648}");
  EXPECT_EQ(Apply("convert", "f64[3]", {"{9.3e18, -9.3e18, 2147483648}"}, "s64[3]"),
            "{9223372036854775807, -9223372036854775808, 2147483648}");
  EXPECT_EQ(Apply("convert", "f32[5]", {"{-1, 255.9, 256, -0.9, nan}"}, "u8[5]"),
            "{0, 255, 255, 0, 0}");
  EXPECT_EQ(Apply("convert", "f32[4]", {"{0, -0, nan, 1e-45}"}, "pred[4]"), "{0, 0, 1, 1}");
}

TEST(InterpConvert, IntegerToIntegerWraps) {
  EXPECT_EQ(Apply("convert", "s32[3]", {"{-1, 256, 300}"}, "u8[3]"), "{255, 0, 44}");
  EXPECT_EQ(Apply("convert", "s64[2]", {"{4294967297, -1}"}, "s32[2]"), "{1, -1}");
  EXPECT_EQ(Apply("convert", "u8[1]", {"{200}"}, "s64[1]"), "{200}");
  EXPECT_EQ(Apply("convert", "s32[3]", {"{0, 2, -256}"}, "pred[3]"), "{0, 1, 1}");
  EXPECT_EQ(Apply("convert", "pred[2]", {"{1, 0}"}, "f64[2]"), "{1, 0}");
}

TEST(InterpConvert, RoundsToNearestEven) {
  EXPECT_EQ(Apply("convert", "s32[2]", {"{16777217, 16777219}"}, "f32[2]"), "{16777216, 16777220}");
  EXPECT_EQ(Apply("convert", "f64[3]", {"{1e39, 1e-46, 1.00000005960464477539}"}, "f32[3]"),
            "{inf, 0, 1}");
  EXPECT_EQ(Apply("convert", "s64[1]", {"{9223372036854775807}"}, "f64[1]"),
            "{9223372036854775808}");
}

TEST(InterpBinary, IntegersWrap) {
  EXPECT_EQ(Apply("add", "s32[2]", {"{2147483647, -1}", "{1, -1}"}), "{-2147483648, -2}");
  EXPECT_EQ(Apply("subtract", "s64[1]", {"{-9223372036854775808}", "{1}"}),
            "{9223372036854775807}");
  EXPECT_EQ(Apply("multiply", "s32[2]", {"{65536, -2147483648}", "{65536, -1}"}),
            "{0, -2147483648}");
  EXPECT_EQ(Apply("multiply", "u8[1]", {"{200}", "{200}"}), "{64}");
  EXPECT_EQ(Apply("add", "u8[1]", {"{200}", "{100}"}), "{44}");
}

TEST(InterpBinary, PredIsAlgebraOfTruth) {
  EXPECT_EQ(Apply("add", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 1, 1, 1}");
  EXPECT_EQ(Apply("multiply", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 0, 0, 1}");
  EXPECT_EQ(Apply("maximum", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 1, 1, 1}");
  EXPECT_EQ(Apply("minimum", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 0, 0, 1}");
  EXPECT_EQ(Apply("xor", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 1, 1, 0}");
}

TEST(InterpBinary, Bitwise) {
  EXPECT_EQ(Apply("and", "s32[2]", {"{12, -1}", "{10, 7}"}), "{8, 7}");
  EXPECT_EQ(Apply("or", "u8[1]", {"{12}", "{10}"}), "{14}");
  EXPECT_EQ(Apply("xor", "s64[1]", {"{-1}", "{1}"}), "{-2}");
}

TEST(InterpBinary, DivideInteger) {
  EXPECT_EQ(Apply("divide", "s32[5]", {"{7, -7, 5, -2147483648, 0}", "{2, 2, 0, -1, 0}"}),
            "{3, -3, -1, -2147483648, -1}");
  EXPECT_EQ(Apply("divide", "u8[2]", {"{200, 9}", "{0, 2}"}), "{255, 4}");
  EXPECT_EQ(Apply("divide", "s64[1]", {"{-9223372036854775808}", "{-1}"}),
            "{-9223372036854775808}");
}

TEST(InterpBinary, RemainderHasTheSignOfTheLeft) {
  EXPECT_EQ(Apply("remainder", "s32[5]", {"{7, -7, 7, 5, -2147483648}", "{3, 3, -3, 0, -1}"}),
            "{1, -1, 1, 5, 0}");
  EXPECT_EQ(Apply("remainder", "u8[2]", {"{200, 7}", "{0, 4}"}), "{200, 3}");
  EXPECT_EQ(Apply("remainder", "f32[4]", {"{5.5, -5.5, -4, 1}", "{2, 2, 2, inf}"}),
            "{1.5, -1.5, -0, 1}");
  EXPECT_EQ(Eval("pred[] is-finite(f32[] remainder(f32[] constant(1), f32[] constant(0)))"),
            "false");
}

TEST(InterpBinary, DivideFloat) {
  EXPECT_EQ(Apply("divide", "f32[4]", {"{1, -1, 0, 1}", "{0, 0, -5, 3}"}),
            "{inf, -inf, -0, 0.33333334}");
}

TEST(InterpBinary, PowerInteger) {
  EXPECT_EQ(
      Apply("power", "s32[8]", {"{2, -2, 0, 3, 1, -1, -1, 2}", "{10, 3, 0, 40, -5, -3, -4, -1}"}),
      "{1024, -8, 1, 689956897, 1, -1, 1, 0}");
  EXPECT_EQ(Apply("power", "s32[2]", {"{0, 2}", "{-1, 32}"}), "{0, 0}");
  EXPECT_EQ(Apply("power", "u8[2]", {"{3, 2}", "{5, 255}"}), "{243, 0}");
}

TEST(InterpBinary, PowerFloat) {
  EXPECT_EQ(Apply("power", "f32[6]", {"{2, 0, 1, -2, 0, -inf}", "{0.5, 0, nan, 3, -1, 3}"}),
            "{1.4142135, 1, 1, -8, inf, -inf}");
  EXPECT_EQ(Eval("pred[] is-finite(f32[] power(f32[] constant(-2), f32[] constant(0.5)))"),
            "false");
}

TEST(InterpBinary, MaximumAndMinimum) {
  EXPECT_EQ(Apply("maximum", "f32[5]", {"{1, nan, 2, -0, 0}", "{2, 1, nan, 0, -0}"}),
            "{2, nan, nan, 0, 0}");
  EXPECT_EQ(Apply("minimum", "f64[5]", {"{1, nan, 2, -0, 0}", "{2, 1, nan, 0, -0}"}),
            "{1, nan, nan, -0, -0}");
  EXPECT_EQ(Apply("maximum", "s32[2]", {"{-5, 3}", "{4, -2147483648}"}), "{4, 3}");
  EXPECT_EQ(Apply("minimum", "u8[1]", {"{200}", "{100}"}), "{100}");
}

TEST(InterpBinary, ShiftsOutOfRange) {
  EXPECT_EQ(Apply("shift-left", "s32[5]", {"{1, 1, 1, 1, -1}", "{0, 31, 32, -1, 4}"}),
            "{1, -2147483648, 0, 0, -16}");
  EXPECT_EQ(Apply("shift-right-arithmetic", "s32[4]", {"{-8, -8, 8, -8}", "{1, 40, 40, -1}"}),
            "{-4, -1, 0, -1}");
  EXPECT_EQ(Apply("shift-right-logical", "s32[4]", {"{-8, -8, 8, -8}", "{1, 40, 1, 31}"}),
            "{2147483644, 0, 4, 1}");
  EXPECT_EQ(Apply("shift-left", "u8[3]", {"{255, 255, 1}", "{4, 8, 255}"}), "{240, 0, 0}");
  EXPECT_EQ(Apply("shift-right-arithmetic", "u8[2]", {"{128, 127}", "{9, 1}"}), "{255, 63}");
  EXPECT_EQ(Apply("shift-right-logical", "s64[1]", {"{-1}", "{63}"}), "{1}");
}

TEST(InterpCompare, FollowsIeee754) {
  auto compare = [](std::string_view direction) {
    return Apply("compare", "f32[4]", {"{1, nan, -0, 2}", "{2, nan, 0, 1}"}, "pred[4]",
                 Cat("direction=", direction));
  };
  EXPECT_EQ(compare("EQ"), "{0, 0, 1, 0}");
  EXPECT_EQ(compare("NE"), "{1, 1, 0, 1}");
  EXPECT_EQ(compare("LT"), "{1, 0, 0, 0}");
  EXPECT_EQ(compare("LE"), "{1, 0, 1, 0}");
  EXPECT_EQ(compare("GT"), "{0, 0, 0, 1}");
  EXPECT_EQ(compare("GE"), "{0, 0, 1, 1}");
}

TEST(InterpCompare, KnowsTheSignOfItsType) {
  EXPECT_EQ(Apply("compare", "u8[1]", {"{200}", "{100}"}, "pred[1]", "direction=GT"), "{1}");
  EXPECT_EQ(Apply("compare", "s32[1]", {"{-1}", "{1}"}, "pred[1]", "direction=LT"), "{1}");
  EXPECT_EQ(Apply("compare", "pred[1]", {"{0}", "{1}"}, "pred[1]", "direction=LT"), "{1}");
}

TEST(InterpCompare, ByTheTotalOrder) {
  auto compare = [](std::string_view direction) {
    return Apply("compare", "f32[5]", {"{-0, nan, inf, -nan, 1}", "{0, nan, nan, -inf, 1}"},
                 "pred[5]", Cat("direction=", direction, ", type=TOTALORDER"));
  };
  EXPECT_EQ(compare("LT"), "{1, 0, 1, 1, 0}");
  EXPECT_EQ(compare("GE"), "{0, 1, 0, 0, 1}");
  EXPECT_EQ(compare("EQ"), "{0, 1, 0, 0, 1}");
}

TEST(InterpBinary, UpperHalfOfTheProduct) {
  EXPECT_EQ(Apply("mulhi", "s8[3]", {"{-128, 127, -1}", "{-128, 127, 1}"}), "{64, 63, -1}");
  EXPECT_EQ(Apply("mulhi", "u32[2]", {"{4294967295, 65536}", "{4294967295, 65536}"}),
            "{4294967294, 1}");
  EXPECT_EQ(Apply("mulhi", "s64[2]", {"{-9223372036854775808, -1}", "{2, 1}"}), "{-1, -1}");
  EXPECT_EQ(Apply("mulhi", "u64[1]", {"{18446744073709551615}", "{18446744073709551615}"}),
            "{18446744073709551614}");
}

TEST(InterpBinary, Atan2HasTheSignsOfBoth) {
  EXPECT_EQ(Apply("atan2", "f32[5]", {"{0, 0, -0, 1, -1}", "{1, -0, -1, 0, -1}"}),
            "{0, 3.1415927, -3.1415927, 1.5707964, -2.3561945}");
}

TEST(InterpBinary, StochasticConvertGoesUpByChance) {
  auto convert = [](std::string_view x, std::string_view random) {
    return Eval(
        Cat("s8[6] stochastic-convert(f32[6] constant(", x, "), u32[6] constant(", random, "))"));
  };
  // A quarter is 2^30: rounded up below it.
  EXPECT_EQ(convert("{1.25, 1.25, -1.25, -1.25, 2, -2}",
                    "{1073741823, 1073741824, 1073741823, 1073741824, 0, 0}"),
            "{2, 1, -2, -1, 2, -2}");
  EXPECT_EQ(convert("{nan, inf, -inf, 127.5, -128.5, -127.5}", "{0, 0, 0, 0, 0, 0}"),
            "{0, 127, -128, 127, -128, -128}");
}

TEST(InterpTernary, Clamp) {
  EXPECT_EQ(Apply("clamp", "f32[4]", {"{0, 0, nan, 3}", "{-1, nan, 1, 2}", "{1, 1, 1, 1}"}),
            "{0, nan, nan, 1}");
  EXPECT_EQ(Eval("s32[3] clamp(s32[] constant(-1), s32[3] constant({-5, 0, 5}), "
                 "s32[] constant(2))"),
            "{-1, 0, 2}");
}

TEST(InterpTernary, Select) {
  EXPECT_EQ(Eval("f32[3] select(pred[3] constant({1, 0, 1}), f32[3] constant({1, 2, 3}), "
                 "f32[3] constant({4, 5, 6}))"),
            "{1, 5, 3}");
  EXPECT_EQ(Eval("s64[2] select(pred[] constant(false), s64[2] constant({1, 2}), "
                 "s64[2] constant({3, 4}))"),
            "{3, 4}");
}

TEST(InterpElementwise, EmptyArrays) {
  EXPECT_EQ(Eval("f32[0] tanh(f32[0] constant({}))"), "{}");
  EXPECT_EQ(Eval("pred[0] compare(u8[0] constant({}), u8[0] constant({})), direction=EQ"), "{}");
}

}  // namespace
}  // namespace kiln
