// Integers of less than a byte and floats of 8 bits and fewer in the evaluator: ops on all their
// values, and all pairs of them, against plain C++ in a type that holds every exact result.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

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
using testing::ValueOf;

constexpr ElementType kInts[] = {ElementType::kS4, ElementType::kU4, ElementType::kS2,
                                 ElementType::kU2};
constexpr ElementType kFloats[] = {
    ElementType::kF8E5M2,     ElementType::kF8E4M3,        ElementType::kF8E3M4,
    ElementType::kF8E4M3FN,   ElementType::kF8E4M3B11FNUZ, ElementType::kF8E5M2FNUZ,
    ElementType::kF8E4M3FNUZ, ElementType::kF8E8M0FNU,     ElementType::kF6E2M3FN,
    ElementType::kF6E3M2FN,   ElementType::kF4E2M1FN,
};

// ---- Integers

int Wrapped(ElementType type, int value) {
  const int bits = static_cast<int>(BitWidth(type)), low = value & ((1 << bits) - 1);
  return IsSigned(type) && low >= 1 << (bits - 1) ? low - (1 << bits) : low;
}
int Unsigned(ElementType type, int value) { return value & ((1 << BitWidth(type)) - 1); }
int Signed(ElementType type, int value) {
  const int bits = static_cast<int>(BitWidth(type));
  return value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

TEST(InterpSmallInts, UnaryOpsAtEveryValue) {
  struct Op {
    std::string_view name;
    std::function<int(ElementType, int)> f;
  };
  const Op ops[] = {
      {"abs", [](ElementType, int x) { return std::abs(x); }},
      {"copy", [](ElementType, int x) { return x; }},
      {"negate", [](ElementType, int x) { return -x; }},
      {"not", [](ElementType, int x) { return ~x; }},
      {"sign", [](ElementType, int x) { return (x > 0) - (x < 0); }},
      {"popcnt",
       [](ElementType t, int x) { return std::popcount(static_cast<unsigned>(Unsigned(t, x))); }},
      {"count-leading-zeros",
       [](ElementType t, int x) {
         return std::countl_zero(static_cast<unsigned>(Unsigned(t, x))) - 32 +
                static_cast<int>(BitWidth(t));
       }},
  };
  for (ElementType type : kInts) {
    Literal all = AllValues(type);
    for (const Op& op : ops) {
      Literal result = Evaluate(op.name, {all}, type);
      for (int64_t i = 0; i < all.shape().num_elements(); ++i) {
        const int x = static_cast<int>(all.AsInt(i));
        ASSERT_EQ(std::to_integer<int8_t>(result.data()[i]),
                  static_cast<int8_t>(Wrapped(type, op.f(type, x))))
            << op.name << " of " << TypeName(type) << " " << x;
      }
    }
  }
}

TEST(InterpSmallInts, BinaryOpsOnAllPairs) {
  struct Op {
    std::string_view name;
    std::function<int(ElementType, int, int)> f;
  };
  auto fits = [](ElementType t, int y) { return Unsigned(t, y) < BitWidth(t); };
  const Op ops[] = {
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
      {"mulhi", [](ElementType t, int x, int y) { return (x * y) >> BitWidth(t); }},
      {"shift-left", [=](ElementType t, int x,
                         int y) { return fits(t, y) ? Unsigned(t, x) << Unsigned(t, y) : 0; }},
      {"shift-right-logical",
       [=](ElementType t, int x, int y) {
         return fits(t, y) ? Unsigned(t, x) >> Unsigned(t, y) : 0;
       }},
      {"shift-right-arithmetic",
       [=](ElementType t, int x, int y) {
         return Signed(t, Unsigned(t, x)) >> (fits(t, y) ? Unsigned(t, y) : 7);
       }},
      {"power",
       [](ElementType, int x, int y) {
         if (y < 0) return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? -1 : 0;
         unsigned result = 1;
         for (int i = 0; i < y; ++i) result *= static_cast<unsigned>(x);
         return static_cast<int>(result);
       }},
  };
  for (ElementType type : kInts) {
    auto [x, y] = AllPairs(type);
    const int64_t count = x.shape().num_elements();
    for (const Op& op : ops) {
      Literal result = Evaluate(op.name, {x, y}, type);
      for (int64_t i = 0; i < count; ++i) {
        const int a = static_cast<int>(x.AsInt(i)), b = static_cast<int>(y.AsInt(i));
        ASSERT_EQ(std::to_integer<int8_t>(result.data()[i]),
                  static_cast<int8_t>(Wrapped(type, op.f(type, a, b))))
            << op.name << " of " << TypeName(type) << " " << a << ", " << b;
      }
    }
    Literal less = Evaluate("compare", {x, y}, ElementType::kPred, ", direction=LT");
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(less.AsInt(i), x.AsInt(i) < y.AsInt(i));
  }
}

TEST(InterpSmallInts, AndTheOtherOps) {
  EXPECT_EQ(Eval("s4[2] clamp(s4[] constant(-2), s4[2] constant({-8, 7}), s4[] constant(3))"),
            "{-2, 3}");
  EXPECT_EQ(Eval("u2[2] select(pred[2] constant({1, 0}), u2[2] constant({1, 2}), "
                 "u2[2] constant({3, 0}))"),
            "{1, 0}");
  EXPECT_EQ(Eval("s4[20] iota(), iota_dimension=0"),
            "{0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3}");
  EXPECT_EQ(Eval("u2[2,3] transpose(u2[3,2] constant({{0, 1}, {2, 3}, {1, 2}})), dimensions={1,0}"),
            "{ { 0, 2, 1 }, { 1, 3, 2 } }");
  // Sums and products wrap at the width of the result.
  EXPECT_EQ(Eval("s4[] dot(s4[3] constant({7, 7, 1}), s4[3] constant({7, 7, 1})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "3");
  EXPECT_EQ(Eval("s32[] dot(s4[3] constant({7, 7, -8}), s4[3] constant({7, 7, 7})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "42");
  EXPECT_EQ(Eval("u8[] dot(u4[2] constant({15, 15}), u4[2] constant({15, 15})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "194");
  EXPECT_EQ(ValueOf(R"(HloModule m
sum { x = s4[] parameter(0)
  y = s4[] parameter(1)
  ROOT r = s4[] add(x, y) }
less { x = s4[] parameter(0)
  y = s4[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=LT }
ENTRY e {
  x = s4[5] constant({3, -8, 7, 0, 5})
  i = s4[2] constant({1, 4})
  zero = s4[] constant(0)
  s = s4[] reduce(x, zero), dimensions={0}, to_apply=sum
  o = s4[5] sort(x), dimensions={0}, to_apply=less
  t = (s4[2], s32[2]) topk(x), k=2, largest=true
  d = s4[2] dynamic-slice(x, zero), dynamic_slice_sizes={2}
  g = s4[2] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  c = s4[5] scatter(x, i, d), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  ROOT r = tuple(s, o, t, d, g, c)
})"),
            "(7, {-8, 0, 3, 5, 7}, ({7, 5}, {2, 4}), {3, -8}, {-8, 5}, {3, -5, 7, 0, -3})");
}

// ---- Floats

// Computed in f32, and rounded once.
uint64_t RoundedBits(ElementType type, double value) {
  return BitsOf(type, static_cast<double>(static_cast<float>(value)));
}

double SignOf(double x) { return x == 0 || std::isnan(x) ? x : std::copysign(1, x); }

TEST(InterpSmallFloats, UnaryOpsAtEveryValue) {
  struct Op {
    std::string_view name;
    double (*f)(double);
  };
  const Op ops[] = {
      {"abs", std::fabs},
      {"acos", std::acos},
      {"atanh", std::atanh},
      {"cbrt", std::cbrt},
      {"ceil", std::ceil},
      {"cosine", std::cos},
      {"erf", std::erf},
      {"exponential", std::exp},
      {"exponential-minus-one", std::expm1},
      {"floor", std::floor},
      {"log", std::log},
      {"log-plus-one", std::log1p},
      {"negate", [](double x) { return -x; }},
      {"round-nearest-afz", [](double x) { return std::round(x); }},
      {"round-nearest-even", std::nearbyint},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sign", SignOf},
      {"sqrt", std::sqrt},
      {"tanh", std::tanh},
  };
  for (ElementType type : kFloats) {
    Literal all = AllValues(type);
    const int64_t count = all.shape().num_elements();
    for (const Op& op : ops) {
      Literal result = Evaluate(op.name, {all}, type);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(BitsAt(result, i), RoundedBits(type, op.f(all.AsDouble(i))))
            << op.name << " of " << TypeName(type) << " " << all.AsDouble(i);
      }
    }
    Literal finite = Evaluate("is-finite", {all}, ElementType::kPred);
    Literal copy = Evaluate("copy", {all}, type);
    EXPECT_TRUE(copy == all);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(finite.AsInt(i), std::isfinite(all.AsDouble(i)) ? 1 : 0);
    }
  }
}

TEST(InterpSmallFloats, BinaryOpsOnAllPairsRoundOnce) {
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
      {"atan2", std::atan2},
      {"maximum",
       [](double x, double y) {
         return x > y || std::isnan(x) ? x : std::isnan(y) ? y : x == y && std::signbit(y) ? x : y;
       }},
      {"minimum",
       [](double x, double y) {
         return x < y || std::isnan(x) ? x : std::isnan(y) ? y : x == y && std::signbit(x) ? x : y;
       }},
  };
  for (ElementType type : kFloats) {
    auto [x, y] = AllPairs(type);
    const int64_t count = x.shape().num_elements();
    for (const Op& op : ops) {
      Literal result = Evaluate(op.name, {x, y}, type);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(BitsAt(result, i), RoundedBits(type, op.f(x.AsDouble(i), y.AsDouble(i))))
            << op.name << " of " << TypeName(type) << " " << x.AsDouble(i) << ", " << y.AsDouble(i);
      }
    }
    Literal less = Evaluate("compare", {x, y}, ElementType::kPred, ", direction=LT");
    Literal equal = Evaluate("compare", {x, y}, ElementType::kPred, ", direction=EQ");
    Literal total =
        Evaluate("compare", {x, y}, ElementType::kPred, ", direction=LT, type=TOTALORDER");
    for (int64_t i = 0; i < count; ++i) {
      const double a = x.AsDouble(i), b = y.AsDouble(i);
      ASSERT_EQ(less.AsInt(i), a < b);
      ASSERT_EQ(equal.AsInt(i), a == b);
      // By classes: NaNs outside, by their signs, and zeros by theirs.
      auto key = [](double v) {
        const double size = std::isnan(v) ? 1e300 : std::isinf(v) ? 1e200 : std::fabs(v);
        return std::copysign(size == 0 ? 1e-300 : size, v);
      };
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_EQ(total.AsInt(i), key(a) < key(b)) << TypeName(type) << " " << a << ", " << b;
    }
  }
}

TEST(InterpSmallFloats, ConvertFromAndToEveryType) {
  for (ElementType from : kFloats) {
    Literal all = AllValues(from);
    const int64_t count = all.shape().num_elements();
    std::vector<ElementType> types(std::begin(kFloats), std::end(kFloats));
    types.insert(types.end(),
                 {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64});
    for (ElementType to : types) {
      Literal result = Evaluate("convert", {all}, to);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(BitsAt(result, i), BitsOf(to, all.AsDouble(i)))
            << TypeName(from) << " to " << TypeName(to) << ": " << all.AsDouble(i);
      }
    }
    for (ElementType to : {ElementType::kS4, ElementType::kU4, ElementType::kS2, ElementType::kU2,
                           ElementType::kS8, ElementType::kU8, ElementType::kS32}) {
      const int bits = static_cast<int>(BitWidth(to));
      const double low = IsSigned(to) ? -std::ldexp(1, bits - 1) : 0;
      const double high = std::ldexp(1, IsSigned(to) ? bits - 1 : bits) - 1;
      Literal result = Evaluate("convert", {all}, to);
      for (int64_t i = 0; i < count; ++i) {
        const double x = all.AsDouble(i);
        ASSERT_EQ(result.AsDouble(i), std::isnan(x) ? 0 : std::clamp(std::trunc(x), low, high))
            << TypeName(from) << " to " << TypeName(to) << ": " << x;
      }
    }
    Literal pred = Evaluate("convert", {all}, ElementType::kPred);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(pred.AsInt(i), all.AsDouble(i) != 0);
    // Integers wrap among themselves and round here.
    for (ElementType ints : kInts) {
      Literal values = AllValues(ints);
      Literal result = Evaluate("convert", {values}, from);
      for (int64_t i = 0; i < values.shape().num_elements(); ++i) {
        ASSERT_EQ(BitsAt(result, i), BitsOf(from, values.AsDouble(i)));
      }
    }
  }
  EXPECT_EQ(Apply("convert", "s32[4]", {"{9, -9, 15, 16}"}, "s4[4]"), "{-7, 7, -1, 0}");
  EXPECT_EQ(Apply("convert", "s4[2]", {"{-1, 7}"}, "u64[2]"), "{18446744073709551615, 7}");
  EXPECT_EQ(Apply("convert", "s4[2]", {"{-1, 7}"}, "u2[2]"), "{3, 3}");
  EXPECT_EQ(Apply("convert", "f64[3]", {"{1.0625, 1.062500001, 1e300}"}, "f8e4m3fn[3]"),
            "{1, 1.1, nan}");
  EXPECT_EQ(Apply("convert", "u64[2]", {"{18446744073709551615, 17}"}, "f8e5m2[2]"), "{inf, 16}");
  EXPECT_EQ(Apply("convert", "pred[2]", {"{1, 0}"}, "f4e2m1fn[2]"), "{1, 0}");
}

TEST(InterpSmallFloats, ReducePrecisionKeepsTheFormat) {
  auto reduce = [](ElementType type, int exponent, int mantissa) {
    return Evaluate("reduce-precision", {AllValues(type)}, type,
                    Cat(", exponent_bits=", exponent, ", mantissa_bits=", mantissa));
  };
  for (ElementType type : kFloats) {
    const FloatFormat format = *FormatOf(type);
    EXPECT_TRUE(reduce(type, format.exponent, format.mantissa) == AllValues(type))
        << TypeName(type);
    EXPECT_TRUE(reduce(type, 30, 30) == AllValues(type)) << TypeName(type);
  }
  auto some = [](std::string_view type, std::string_view values, std::string_view attributes) {
    return Apply("reduce-precision", type, {values}, "", attributes);
  };
  EXPECT_EQ(some("f8e4m3fn[4]", "{1.125, 1.375, 1.875, -448}", "exponent_bits=4, mantissa_bits=1"),
            "{1, 1.5, 2, -nan}");
  EXPECT_EQ(some("f8e5m2[4]", "{64, 1, 0.25, -0.125}", "exponent_bits=3, mantissa_bits=2"),
            "{inf, 1, 0.25, -0}");
  EXPECT_EQ(some("f8e4m3fnuz[3]", "{-0.125, nan, 240}", "exponent_bits=2, mantissa_bits=3"),
            "{0, -nan, -nan}");
  EXPECT_EQ(some("f4e2m1fn[3]", "{1.5, 6, 0.5}", "exponent_bits=2, mantissa_bits=0"), "{2, 6, 0}");
}

TEST(InterpSmallFloats, NextAfterIsTheNeighbour) {
  for (ElementType type : kFloats) {
    auto [x, y] = AllPairs(type);
    Literal result = Evaluate("kiln.next-after", {x, y}, type);
    std::vector<double> values;
    Literal all = AllValues(type);
    for (int64_t i = 0; i < all.shape().num_elements(); ++i) {
      if (!std::isnan(all.AsDouble(i))) values.push_back(all.AsDouble(i));
    }
    std::sort(values.begin(), values.end());
    for (int64_t i = 0; i < x.shape().num_elements(); ++i) {
      const double from = x.AsDouble(i), to = y.AsDouble(i);
      double expected = to;
      if (std::isnan(from) || std::isnan(to)) {
        expected = std::nan("");
      } else if (from < to) {
        expected = *std::upper_bound(values.begin(), values.end(), from);
      } else if (from > to) {
        expected = *std::prev(std::lower_bound(values.begin(), values.end(), from));
      }
      // A step to zero keeps the sign, where a zero has one.
      if (expected == 0 && from != to) expected = std::copysign(0, from);
      ASSERT_EQ(BitsAt(result, i), BitsOf(type, expected))
          << TypeName(type) << " " << from << ", " << to;
    }
  }
}

TEST(InterpSmallFloats, FoldsAreWide) {
  for (ElementType type : kFloats) {
    if (type == ElementType::kF8E8M0FNU) continue;
    const std::string name(TypeName(type));
    // The sum of halves is exact in double: only the last step rounds.
    EXPECT_EQ(
        ValueOf(Cat("HloModule m\nadd { x = ", name, "[] parameter(0)\n  y = ", name,
                    "[] parameter(1)\n  ROOT r = ", name, R"([] add(x, y) }
ENTRY e {
  half = )",
                    name, R"([] constant(0.5)
  zero = )",
                    name, R"([] constant(0)
  halves = )",
                    name, R"([10] broadcast(half), dimensions={}
  sum = )",
                    name, R"([] reduce(halves, zero), dimensions={0}, to_apply=add
  dot = )",
                    name,
                    R"([] dot(halves, halves), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  wide = f32[] dot(halves, halves), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  windows = )",
                    name, R"([1] reduce-window(halves, zero), window={size=10}, to_apply=add
  ROOT t = tuple(sum, dot, wide, windows)
})")),
        type == ElementType::kF4E2M1FN ? "(4, 2, 2.5, {4})" : "(5, 2.5, 2.5, {5})")
        << name;
  }
}

// By ml_dtypes and XLA the sign of a NaN is its bit's; the NaN that has the bits of -0 is negative.
TEST(InterpSmallFloats, SortsAndLargestInTotalOrder) {
  EXPECT_EQ(Eval("(f8e4m3fnuz[5], s32[5]) topk(f8e4m3fnuz[5] constant({1, nan, -2, 0, 240})), k=5, "
                 "largest=true"),
            "({240, 1, 0, -2, -nan}, {4, 0, 3, 2, 1})");
  EXPECT_EQ(Eval("(f6e3m2fn[4], s32[4]) topk(f6e3m2fn[4] constant({-0, 28, -28, 0})), k=4, "
                 "largest=false"),
            "({-28, -0, 0, 28}, {2, 0, 3, 1})");
  EXPECT_EQ(Eval("(f8e8m0fnu[3], s32[3]) topk(f8e8m0fnu[3] constant({4, nan, 0.5})), k=3, "
                 "largest=false"),
            "({0.5, 4, nan}, {2, 0, 1})");
}

TEST(InterpBitcastConvert, OfSmallAndComplexTypes) {
  EXPECT_EQ(Eval("s4[2,2] bitcast-convert(s8[2] constant({-14, 127}))"),
            "{ { 2, -1 }, { -1, 7 } }");
  EXPECT_EQ(Eval("s8[2] bitcast-convert(s4[2,2] constant({{2, -1}, {-1, 7}}))"), "{-14, 127}");
  EXPECT_EQ(Eval("u4[4] bitcast-convert(u16[] constant(4660))"), "{4, 3, 2, 1}");
  EXPECT_EQ(Eval("u4[3] bitcast-convert(s4[3] constant({-1, -8, 7}))"), "{15, 8, 7}");
  EXPECT_EQ(Eval("s4[] bitcast-convert(u4[] constant(15))"), "-1");
  EXPECT_EQ(Eval("u2[4] bitcast-convert(u8[] constant(27))"), "{3, 2, 1, 0}");
  EXPECT_EQ(Eval("pred[4] bitcast-convert(s4[] constant(-3))"), "{1, 0, 1, 1}");
  EXPECT_EQ(Eval("u8[3] bitcast-convert(f8e4m3fn[3] constant({1, -448, nan}))"), "{56, 254, 127}");
  EXPECT_EQ(Eval("f8e5m2[2] bitcast-convert(u16[] constant(48188))"), "{1, -1}");
  EXPECT_EQ(Eval("f4e2m1fn[2] bitcast-convert(u8[] constant(242))"), "{1, -6}");
  EXPECT_EQ(Eval("u2[3] bitcast-convert(f6e2m3fn[] constant(-7.5))"), "{3, 3, 3}");
  EXPECT_EQ(Eval("f32[2,2] bitcast-convert(c64[2] constant({(1, 2), (3, -0)}))"),
            "{ { 1, 2 }, { 3, -0 } }");
  EXPECT_EQ(Eval("c64[] bitcast-convert(f32[2] constant({1, 2}))"), "(1, 2)");
  EXPECT_EQ(Eval("u64[] bitcast-convert(c64[] constant((0, 1)))"), "4575657221408423936");
  EXPECT_EQ(Eval("c64[2] bitcast-convert(c128[] constant((1, 0)))"), "{(0, 1.875), (0, 0)}");
  EXPECT_EQ(Eval("c128[] bitcast-convert(f64[2] constant({1, -2}))"), "(1, -2)");
}

TEST(InterpStochasticConvert, OfSmallTypes) {
  // 1.5 goes up where the number is below a half.
  EXPECT_EQ(Eval("s32[3] stochastic-convert(f8e4m3fn[3] constant({1.5, 1.5, -1.5}), "
                 "u8[3] constant({127, 128, 0}))"),
            "{2, 1, -2}");
  EXPECT_EQ(Eval("s4[3] stochastic-convert(f4e2m1fn[3] constant({1.5, 1.5, 6}), "
                 "u4[3] constant({7, 8, 0}))"),
            "{2, 1, 6}");
  EXPECT_EQ(Eval("s2[2] stochastic-convert(f32[2] constant({100, -100}), "
                 "u32[2] constant({0, 0}))"),
            "{1, -2}");
}

}  // namespace
}  // namespace kiln
