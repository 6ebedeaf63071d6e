// Every element type in the evaluator: ops on all values of the narrow types, and the edges of the
// wide ones, against plain C++ in a type that holds every exact result.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::AllPairs;
using testing::AllValues;
using testing::Apply;
using testing::BitsAt;
using testing::BitsOf;
using testing::Eval;
using testing::Evaluate;

constexpr ElementType kHalves[] = {ElementType::kF16, ElementType::kBF16};
constexpr ElementType kBytes[] = {ElementType::kS8, ElementType::kU8};

double RoundAway(double x) { return std::round(x); }
double SignOf(double x) { return x == 0 || std::isnan(x) ? x : std::copysign(1, x); }
double Sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

TEST(InterpHalves, UnaryOpsAtEveryValue) {
  struct Op {
    std::string_view name;
    double (*f)(double);
  };
  const Op ops[] = {
      {"abs", std::fabs},
      {"ceil", std::ceil},
      {"copy", [](double x) { return x; }},
      {"exponential", std::exp},
      {"exponential-minus-one", std::expm1},
      {"floor", std::floor},
      {"log", std::log},
      {"log-plus-one", std::log1p},
      {"logistic", Sigmoid},
      {"negate", [](double x) { return -x; }},
      {"round-nearest-afz", RoundAway},
      {"round-nearest-even", std::nearbyint},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sign", SignOf},
      {"sqrt", std::sqrt},
      {"tanh", std::tanh},
  };
  for (ElementType type : kHalves) {
    Literal all = AllValues(type);
    for (const Op& op : ops) {
      Literal result = Evaluate(op.name, {all}, type);
      for (int64_t i = 0; i < 65536; ++i) {
        ASSERT_EQ(BitsAt(result, i), BitsOf(type, op.f(all.AsDouble(i))))
            << op.name << " of " << TypeName(type) << " " << all.AsDouble(i);
      }
    }
    Literal finite = Evaluate("is-finite", {all}, ElementType::kPred);
    for (int64_t i = 0; i < 65536; ++i) {
      ASSERT_EQ(finite.AsInt(i), std::isfinite(all.AsDouble(i)) ? 1 : 0);
    }
  }
}

// Sums, products and quotients of halves have a double that rounds to the right half.
TEST(InterpHalves, BinaryOpsRoundOnce) {
  struct Op {
    std::string_view name;
    double (*f)(double, double);
  };
  const Op ops[] = {
      {"add", [](double x, double y) { return x + y; }},
      {"subtract", [](double x, double y) { return x - y; }},
      {"multiply", [](double x, double y) { return x * y; }},
      {"divide", [](double x, double y) { return x / y; }},
      {"remainder", std::fmod},
      {"power", std::pow},
      {"maximum",
       [](double x, double y) {
         return x > y || std::isnan(x) ? x : std::isnan(y) ? y : x == y && std::signbit(y) ? x : y;
       }},
      {"minimum",
       [](double x, double y) {
         return x < y || std::isnan(x) ? x : std::isnan(y) ? y : x == y && std::signbit(x) ? x : y;
       }},
  };
  for (ElementType type : kHalves) {
    Literal x(Shape(type, {300000})), y(x.shape());
    uint64_t state = 1;
    auto next = [&] { return state = state * 6364136223846793005ull + 1442695040888963407ull; };
    for (int64_t i = 0; i < 300000; ++i) {
      uint64_t random = next();
      x.values<uint16_t>()[i] = static_cast<uint16_t>(random >> 48);
      y.values<uint16_t>()[i] = static_cast<uint16_t>(random >> 32);
      // Near each other half of the time.
      if (random >> 31 & 1) {
        y.values<uint16_t>()[i] = static_cast<uint16_t>((random >> 48) + (random >> 20) % 4096);
      }
    }
    for (const Op& op : ops) {
      Literal result = Evaluate(op.name, {x, y}, type);
      for (int64_t i = 0; i < 300000; ++i) {
        ASSERT_EQ(BitsAt(result, i), BitsOf(type, op.f(x.AsDouble(i), y.AsDouble(i))))
            << op.name << " of " << TypeName(type) << " " << x.AsDouble(i) << ", " << y.AsDouble(i);
      }
    }
  }
}

int Wrapped(ElementType type, int value) {
  return IsSigned(type) ? static_cast<int8_t>(value) : static_cast<uint8_t>(value);
}

// Of the type's own values, in int.
struct IntOp {
  std::string_view name;
  std::function<int(ElementType, int, int)> f;
};
std::vector<IntOp> IntOps() {
  auto amount = [](int y) { return static_cast<uint8_t>(y); };
  return {
      {"add", [](ElementType, int x, int y) { return x + y; }},
      {"subtract", [](ElementType, int x, int y) { return x - y; }},
      {"multiply", [](ElementType, int x, int y) { return x * y; }},
      {"divide", [](ElementType, int x, int y) { return y == 0 ? -1 : x / y; }},
      {"remainder", [](ElementType, int x, int y) { return y == 0 ? x : x % y; }},
      {"maximum", [](ElementType, int x, int y) { return std::max(x, y); }},
      {"minimum", [](ElementType, int x, int y) { return std::min(x, y); }},
      {"and", [](ElementType, int x, int y) { return x & y; }},
      {"or", [](ElementType, int x, int y) { return x | y; }},
      {"xor", [](ElementType, int x, int y) { return x ^ y; }},
      {"shift-left", [=](ElementType, int x, int y) { return amount(y) < 8 ? x << y : 0; }},
      {"shift-right-logical",
       [=](ElementType, int x, int y) { return amount(y) < 8 ? static_cast<uint8_t>(x) >> y : 0; }},
      {"shift-right-arithmetic",
       [=](ElementType, int x, int y) {
         return static_cast<int8_t>(x) >> std::min<int>(amount(y), 7);
       }},
      {"power",
       [](ElementType, int x, int y) {
         if (y < 0) return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? -1 : 0;
         unsigned result = 1;
         for (int i = 0; i < y; ++i) result *= static_cast<unsigned>(x);
         return static_cast<int>(result);
       }},
  };
}

TEST(InterpInts, BinaryOpsOnAllPairsOfBytes) {
  for (ElementType type : kBytes) {
    auto [x, y] = AllPairs(type);
    for (const IntOp& op : IntOps()) {
      Literal result = Evaluate(op.name, {x, y}, type);
      for (int64_t i = 0; i < 65536; ++i) {
        int a = static_cast<int>(x.AsInt(i)), b = static_cast<int>(y.AsInt(i));
        ASSERT_EQ(result.AsInt(i), Wrapped(type, op.f(type, a, b)))
            << op.name << " of " << TypeName(type) << " " << a << ", " << b;
      }
    }
    Literal less = Evaluate("compare", {x, y}, ElementType::kPred, ", direction=LT");
    for (int64_t i = 0; i < 65536; ++i) ASSERT_EQ(less.AsInt(i), x.AsInt(i) < y.AsInt(i));
  }
}

TEST(InterpInts, WideEdges) {
  EXPECT_EQ(Apply("add", "s16[2]", {"{32767, -32768}", "{1, -1}"}), "{-32768, 32767}");
  EXPECT_EQ(Apply("multiply", "u16[2]", {"{65535, 256}", "{65535, 256}"}), "{1, 0}");
  EXPECT_EQ(Apply("multiply", "s16[1]", {"{-32768}", "{-32768}"}), "{0}");
  EXPECT_EQ(Apply("divide", "s16[3]", {"{-32768, -7, 5}", "{-1, 2, 0}"}), "{-32768, -3, -1}");
  EXPECT_EQ(Apply("divide", "u32[3]", {"{4294967295, 7, 5}", "{2, 4294967295, 0}"}),
            "{2147483647, 0, 4294967295}");
  EXPECT_EQ(Apply("remainder", "u64[2]", {"{18446744073709551615, 3}", "{10, 0}"}), "{5, 3}");
  EXPECT_EQ(Apply("maximum", "u32[1]", {"{4294967295}", "{1}"}), "{4294967295}");
  EXPECT_EQ(Apply("minimum", "u64[1]", {"{18446744073709551615}", "{1}"}), "{1}");
  EXPECT_EQ(Apply("compare", "u64[1]", {"{9223372036854775808}", "{1}"}, "pred[1]", "direction=GT"),
            "{1}");
  EXPECT_EQ(Apply("shift-right-arithmetic", "u32[2]", {"{2147483648, 1073741824}", "{31, 40}"}),
            "{4294967295, 0}");
  EXPECT_EQ(Apply("shift-left", "u16[2]", {"{65535, 1}", "{15, 16}"}), "{32768, 0}");
  EXPECT_EQ(Apply("negate", "u64[1]", {"{1}"}), "{18446744073709551615}");
  EXPECT_EQ(Apply("abs", "s8[2]", {"{-128, -1}"}), "{-128, 1}");
  EXPECT_EQ(Apply("popcnt", "u64[1]", {"{18446744073709551615}"}), "{64}");
  EXPECT_EQ(Apply("count-leading-zeros", "s16[2]", {"{0, -1}"}), "{16, 0}");
  EXPECT_EQ(Apply("power", "u64[1]", {"{3}", "{41}"}), "{18026252303461234787}");
  EXPECT_EQ(Apply("sign", "s8[3]", {"{-128, 0, 9}"}), "{-1, 0, 1}");
}

// Float to integer: truncated, clamped, NaN to 0.
double Clamped(ElementType to, double value) {
  if (std::isnan(value)) return 0;
  int bits = static_cast<int>(BitWidth(to));
  double low = IsSigned(to) ? -std::ldexp(1, bits - 1) : 0;
  double high = std::ldexp(1, IsSigned(to) ? bits - 1 : bits) - 1;
  return std::clamp(std::trunc(value), low, high);
}

TEST(InterpConvertTypes, EveryHalfToEveryType) {
  for (ElementType from : kHalves) {
    Literal all = AllValues(from);
    for (ElementType to : {ElementType::kS8, ElementType::kS16, ElementType::kS32, ElementType::kU8,
                           ElementType::kU16, ElementType::kU32}) {
      Literal result = Evaluate("convert", {all}, to);
      for (int64_t i = 0; i < 65536; ++i) {
        ASSERT_EQ(result.AsDouble(i), Clamped(to, all.AsDouble(i)))
            << TypeName(from) << " to " << TypeName(to) << ": " << all.AsDouble(i);
      }
    }
    for (ElementType to :
         {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64}) {
      Literal result = Evaluate("convert", {all}, to);
      for (int64_t i = 0; i < 65536; ++i) {
        ASSERT_EQ(BitsAt(result, i), BitsOf(to, all.AsDouble(i)))
            << TypeName(from) << " to " << TypeName(to) << ": " << all.AsDouble(i);
      }
    }
    Literal pred = Evaluate("convert", {all}, ElementType::kPred);
    for (int64_t i = 0; i < 65536; ++i) ASSERT_EQ(pred.AsInt(i), all.AsDouble(i) != 0);
  }
}

TEST(InterpConvertTypes, Edges) {
  EXPECT_EQ(Apply("convert", "f64[2]", {"{1.00048828126, 1.000488281249}"}, "f16[2]"),
            "{1.001, 1}");
  EXPECT_EQ(
      Apply("convert", "f32[4]", {"{65519.9, 65520, 2.9802322e-08, 2.9802326e-08}"}, "f16[4]"),
      "{65504, inf, 0, 6e-08}");
  EXPECT_EQ(Apply("convert", "f32[3]", {"{3.3961774e38, 3.3961777e38, nan}"}, "bf16[3]"),
            "{3.39e+38, inf, nan}");
  EXPECT_EQ(Apply("convert", "s64[2]", {"{9223372036854775807, -2049}"}, "f16[2]"), "{inf, -2048}");
  EXPECT_EQ(Apply("convert", "s32[3]", {"{16842753, 16842752, 2147483647}"}, "bf16[3]"),
            "{16908288, 16777216, 2.15e+09}");
  EXPECT_EQ(Apply("convert", "f16[4]", {"{inf, -inf, 65504, nan}"}, "u64[4]"),
            "{18446744073709551615, 0, 65504, 0}");
  EXPECT_EQ(Apply("convert", "f64[3]", {"{4294967295.9, -0.9, 1e20}"}, "u32[3]"),
            "{4294967295, 0, 4294967295}");
  EXPECT_EQ(Apply("convert", "f32[2]", {"{1.8446743e19, 1.8446744e19}"}, "u64[2]"),
            "{18446742974197923840, 18446744073709551615}");
  EXPECT_EQ(Apply("convert", "u64[2]", {"{18446744073709551615, 9223372586610589697}"}, "f32[2]"),
            "{1.8446744e+19, 9.223373e+18}");
  EXPECT_EQ(Apply("convert", "s32[2]", {"{-1, 40000}"}, "s16[2]"), "{-1, -25536}");
  EXPECT_EQ(Apply("convert", "s8[2]", {"{-1, -128}"}, "u32[2]"), "{4294967295, 4294967168}");
  EXPECT_EQ(Apply("convert", "pred[2]", {"{1, 0}"}, "bf16[2]"), "{1, 0}");
}

TEST(InterpHalves, FoldsAreWide) {
  // One by one the ones would be lost in 2048 and 256.
  for (std::string_view type : {"f16", "bf16"}) {
    EXPECT_EQ(testing::ValueOf(Cat(
                  R"(HloModule m
add { x = )",
                  type, R"([] parameter(0)
  y = )",
                  type, R"([] parameter(1)
  ROOT r = )",
                  type, R"([] add(x, y) }
ENTRY e {
  one = )",
                  type, R"([] constant(1)
  zero = )",
                  type, R"([] constant(0)
  ones = )",
                  type, R"([4096] broadcast(one), dimensions={}
  sum = )",
                  type, R"([] reduce(ones, zero), dimensions={0}, to_apply=add
  dot = )",
                  type, R"([] dot(ones, ones), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  wide = f32[] dot(ones, ones), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = tuple(sum, dot, wide)
})")),
              "(4096, 4096, 4096)");
  }
}

TEST(InterpInts, DotsAndSumsWrap) {
  EXPECT_EQ(Eval("s8[] dot(s8[3] constant({100, 100, 3}), s8[3] constant({2, 1, 1})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "47");
  EXPECT_EQ(Eval("s32[] dot(s8[3] constant({100, -100, 3}), s8[3] constant({100, 100, -1})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "-3");
  EXPECT_EQ(Eval("u32[] dot(u8[2] constant({255, 255}), u8[2] constant({255, 255})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "130050");
  EXPECT_EQ(Eval("u16[] dot(u16[2] constant({65535, 1}), u16[2] constant({65535, 5})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "6");
}

TEST(InterpShapeOps, IotaOfEveryType) {
  EXPECT_EQ(Eval("f16[3] iota(), iota_dimension=0"), "{0, 1, 2}");
  EXPECT_EQ(Eval("u64[3] iota(), iota_dimension=0"), "{0, 1, 2}");
  EXPECT_EQ(testing::ValueOf(R"(HloModule m
ENTRY e {
  wraps = s8[300] iota(), iota_dimension=0
  rounds = bf16[300] iota(), iota_dimension=0
  a = s8[2] slice(wraps), slice={[127:129]}
  b = bf16[3] slice(rounds), slice={[257:260]}
  ROOT t = tuple(a, b)
})"),
            "({127, -128}, {256, 258, 260})");
}

}  // namespace
}  // namespace kiln
