// Floats of 8 bits and fewer, integers of less than a byte, and complex numbers, as arrays hold
// them: all values, conversions between every two neighbours, and text.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/strings.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "tensor/literal.h"
#include "tensor/small_float.h"
#include "tensor/small_int.h"

namespace kiln {
namespace {

// The formats once more, by what their specifications say.
enum class Kind {
  kIeee,   // infinities and NaNs where the exponent is all ones
  kFn,     // NaN where exponent and mantissa are all ones
  kFnuz,   // NaN instead of -0
  kFinite  // numbers alone
};
struct Format {
  ElementType type;
  int exponent, mantissa, bias;
  Kind kind;
  bool is_signed = true;
  // The largest number and the least positive one, from the papers.
  double largest, least;

  int bits() const { return (is_signed ? 1 : 0) + exponent + mantissa; }
  bool IsNegative(int bits_of) const { return is_signed && bits_of >> (bits() - 1) != 0; }
  int Magnitude(int bits_of) const { return bits_of & ((1 << (exponent + mantissa)) - 1); }
};

constexpr Format kFormats[] = {
    {ElementType::kF8E5M2, 5, 2, 15, Kind::kIeee, true, 57344, 0x1p-16},
    {ElementType::kF8E4M3, 4, 3, 7, Kind::kIeee, true, 240, 0x1p-9},
    {ElementType::kF8E3M4, 3, 4, 3, Kind::kIeee, true, 15.5, 0x1p-6},
    {ElementType::kF8E4M3FN, 4, 3, 7, Kind::kFn, true, 448, 0x1p-9},
    {ElementType::kF8E4M3B11FNUZ, 4, 3, 11, Kind::kFnuz, true, 30, 0x1p-13},
    {ElementType::kF8E5M2FNUZ, 5, 2, 16, Kind::kFnuz, true, 57344, 0x1p-17},
    {ElementType::kF8E4M3FNUZ, 4, 3, 8, Kind::kFnuz, true, 240, 0x1p-10},
    {ElementType::kF8E8M0FNU, 8, 0, 127, Kind::kFn, false, 0x1p127, 0x1p-127},
    {ElementType::kF6E2M3FN, 2, 3, 1, Kind::kFinite, true, 7.5, 0.125},
    {ElementType::kF6E3M2FN, 3, 2, 3, Kind::kFinite, true, 28, 0.0625},
    {ElementType::kF4E2M1FN, 2, 1, 1, Kind::kFinite, true, 6, 0.5},
};

// What the bits stand for.
double ValueOf(const Format& f, int bits) {
  const int magnitude = f.Magnitude(bits), ones = (1 << f.exponent) - 1;
  const int exponent = magnitude >> f.mantissa, mantissa = magnitude & ((1 << f.mantissa) - 1);
  const double sign = f.IsNegative(bits) ? -1 : 1;
  const double nan = std::copysign(std::nan(""), sign);
  if (f.kind == Kind::kIeee && exponent == ones) return mantissa == 0 ? sign * HUGE_VAL : nan;
  if (f.kind == Kind::kFn && exponent == ones && mantissa == (1 << f.mantissa) - 1) return nan;
  if (f.kind == Kind::kFnuz && f.IsNegative(bits) && magnitude == 0) return nan;
  if (f.is_signed && exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissa);
  return sign * std::ldexp(mantissa + (1 << f.mantissa), exponent - f.bias - f.mantissa);
}

// The magnitudes of the numbers, ascending, and behind them the one that would come next.
struct Numbers {
  explicit Numbers(const Format& f) {
    for (int m = 0; m < 1 << (f.exponent + f.mantissa); ++m) {
      const double value = ValueOf(f, m);
      if (!std::isfinite(value)) break;
      values.push_back(value);
    }
    const double last = values.back();
    values.push_back(f.mantissa == 0 ? 2 * last : last + (last - values[values.size() - 2]));
  }
  std::vector<double> values;
};

// The bits that a number should be converted to, by looking for the nearest one.
int Expected(const Format& f, const Numbers& numbers, double x) {
  const int sign = f.is_signed ? 1 << (f.bits() - 1) : 0,
            ones = (1 << (f.exponent + f.mantissa)) - 1;
  const bool negative = std::signbit(x);
  const int nan = f.kind == Kind::kIeee ? -1 : f.kind == Kind::kFn ? ones : sign;
  if (std::isnan(x)) return f.kind == Kind::kFn && negative ? nan | sign : nan;
  const std::vector<double>& values = numbers.values;
  const double size = std::fabs(x);
  if (!f.is_signed && (negative || size == 0)) return nan;
  auto above = std::lower_bound(values.begin(), values.end(), size);
  int magnitude = static_cast<int>(above - values.begin());
  if (above == values.end()) {
    magnitude = static_cast<int>(values.size()) - 1;
  } else if (*above != size && magnitude > 0) {
    const double low = size - above[-1], high = *above - size;
    const bool to_low = f.mantissa == 0 ? low < high : low < high || (low == high && magnitude % 2);
    if (to_low) --magnitude;
  }
  if (magnitude + 1 == static_cast<int>(values.size())) {
    switch (f.kind) {
      case Kind::kIeee:
        break;  // the infinity comes next
      case Kind::kFn:
        magnitude = ones;
        break;
      case Kind::kFnuz:
        return nan;
      case Kind::kFinite:
        --magnitude;
    }
  }
  if (f.kind == Kind::kFnuz && magnitude == 0) return 0;
  return magnitude | (negative ? sign : 0);
}

// Calls f with each format and its C++ type.
template <typename F>
void ForEachFormat(F&& f) {
  for (const Format& format : kFormats) {
    SCOPED_TRACE(TypeName(format.type));
    VisitType(format.type, [&](auto zero) {
      if constexpr (SmallFloatType<decltype(zero)>) f(format, zero);
    });
  }
}

TEST(SmallFloats, EveryValueGoesToFloatAndDoubleAndBack) {
  ForEachFormat([](const Format& f, auto zero) {
    using T = decltype(zero);
    EXPECT_EQ(f.bits(), BitWidth(f.type));
    EXPECT_EQ(sizeof(T), 1u);
    EXPECT_TRUE(FormatOf(f.type) == T::format);
    for (int bits = 0; bits < 1 << f.bits(); ++bits) {
      const T small = T::FromBits(static_cast<uint8_t>(bits));
      const double value = ValueOf(f, bits), wide = static_cast<double>(small);
      const float narrow = static_cast<float>(small);
      ASSERT_EQ(std::signbit(wide), std::signbit(value)) << bits;
      ASSERT_EQ(std::signbit(narrow), std::signbit(value)) << bits;
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(wide) && std::isnan(narrow) && small != small) << bits;
        ASSERT_TRUE(std::isnan(static_cast<double>(T(wide)))) << bits;
        ASSERT_TRUE(std::isnan(static_cast<double>(-small))) << bits;
        continue;
      }
      ASSERT_EQ(wide, value) << bits;
      ASSERT_EQ(narrow, value) << bits;
      ASSERT_EQ(T(wide).bits(), bits);
      ASSERT_EQ(T(narrow).bits(), bits);
      ASSERT_EQ((-small).bits(), T(-value).bits()) << bits;
      // What lies above the bits of a type is not looked at.
      const int above = 256 - (1 << f.bits());
      ASSERT_EQ(static_cast<double>(T::FromBits(static_cast<uint8_t>(bits | above))), value);
    }
  });
}

TEST(SmallFloats, RoundToTheNearest) {
  ForEachFormat([](const Format& f, auto zero) {
    using T = decltype(zero);
    const Numbers numbers(f);
    auto check = [&](double x) {
      const int expected = Expected(f, numbers, x);
      const int bits = T(x).bits();
      if (expected < 0) {
        ASSERT_TRUE(std::isnan(static_cast<double>(T(x)))) << x;
      } else {
        ASSERT_EQ(bits, expected) << x;
      }
    };
    for (size_t n = 0; n + 1 < numbers.values.size(); ++n) {
      const double low = numbers.values[n], high = numbers.values[n + 1];
      for (double x : {low, low + (high - low) / 2, high, low + (high - low) / 3}) {
        for (double near : {std::nextafter(x, 0.0), x, std::nextafter(x, HUGE_VAL)}) {
          ASSERT_NO_FATAL_FAILURE(check(near));
          ASSERT_NO_FATAL_FAILURE(check(-near));
        }
      }
    }
    // A sample of all floats, with the edges of the exponents.
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 40961) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      ASSERT_NO_FATAL_FAILURE(check(x));
      if (!std::isnan(x)) {
        ASSERT_EQ(T(x).bits(), T(static_cast<double>(x)).bits()) << x;
      }
    }
    for (int e = -1074; e < 1024; ++e) {
      for (double x : {std::ldexp(1.0, e), std::ldexp(1.5, e), std::ldexp(1.75, e)}) {
        ASSERT_NO_FATAL_FAILURE(check(x));
        ASSERT_NO_FATAL_FAILURE(check(-x));
      }
    }
    for (double x : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), -std::nan("")}) {
      ASSERT_NO_FATAL_FAILURE(check(x));
    }
  });
}

TEST(SmallFloats, SpecialValues) {
  auto bits = [](auto x) { return static_cast<int>(x.bits()); };
  const double inf = HUGE_VAL, nan = std::nan("");
  // IEEE: NaNs keep their upper bits.
  EXPECT_EQ(bits(F8E5M2(inf)), 0x7c);
  EXPECT_EQ(bits(F8E5M2(-61441)), 0xfc);
  EXPECT_EQ(bits(F8E5M2(61439)), 0x7b);
  EXPECT_EQ(bits(F8E5M2(-nan)), 0xfe);
  EXPECT_EQ(bits(F8E3M4(15.75)), 0x70);
  // No infinities: NaN instead, at once behind the largest number.
  EXPECT_EQ(bits(F8E4M3FN(inf)), 0x7f);
  EXPECT_EQ(bits(F8E4M3FN(-inf)), 0xff);
  EXPECT_EQ(bits(F8E4M3FN(464)), 0x7e);
  EXPECT_EQ(bits(F8E4M3FN(464.01)), 0x7f);
  EXPECT_EQ(bits(F8E4M3FN(-1e9)), 0xff);
  EXPECT_EQ(bits(F8E4M3FN(-0.0)), 0x80);
  // One zero, one NaN.
  EXPECT_EQ(bits(F8E4M3FNUZ(-0.0)), 0);
  EXPECT_EQ(bits(F8E4M3FNUZ(-1e-9)), 0);
  EXPECT_EQ(bits(F8E4M3FNUZ(248)), 0x80);
  EXPECT_EQ(bits(F8E4M3FNUZ(-inf)), 0x80);
  EXPECT_EQ(bits(F8E5M2FNUZ(nan)), 0x80);
  EXPECT_EQ(bits(-F8E5M2FNUZ(0.0)), 0);
  EXPECT_EQ(bits(F8E4M3B11FNUZ(31)), 0x80);
  EXPECT_EQ(bits(F8E4M3B11FNUZ(-30)), 0xff);
  // Neither zero nor sign; ties go up.
  EXPECT_EQ(bits(F8E8M0FNU(0.0)), 0xff);
  EXPECT_EQ(bits(F8E8M0FNU(-1.0)), 0xff);
  EXPECT_EQ(bits(F8E8M0FNU(-inf)), 0xff);
  EXPECT_EQ(bits(F8E8M0FNU(inf)), 0xff);
  EXPECT_EQ(bits(F8E8M0FNU(1.5)), 128);
  EXPECT_EQ(bits(F8E8M0FNU(3.0)), 129);
  EXPECT_EQ(bits(F8E8M0FNU(1.49)), 127);
  EXPECT_EQ(bits(F8E8M0FNU(1e-300)), 0);
  EXPECT_EQ(bits(F8E8M0FNU(0x1.7p127)), 254);
  EXPECT_EQ(bits(F8E8M0FNU(0x1.8p127)), 255);
  EXPECT_EQ(bits(-F8E8M0FNU(1.0)), 0xff);
  // Numbers alone: the largest instead of what is above, -0 instead of NaN.
  EXPECT_EQ(bits(F4E2M1FN(inf)), 7);
  EXPECT_EQ(bits(F4E2M1FN(-7.0)), 15);
  EXPECT_EQ(bits(F4E2M1FN(nan)), 8);
  EXPECT_EQ(bits(F4E2M1FN(-nan)), 8);
  EXPECT_EQ(bits(F6E2M3FN(1e30)), 0x1f);
  EXPECT_EQ(bits(F6E3M2FN(-inf)), 0x3f);
  EXPECT_EQ(bits(F6E3M2FN(nan)), 0x20);
}

TEST(SmallFloats, IntegersAndDoublesRoundOnce) {
  EXPECT_EQ(static_cast<double>(F8E4M3FN(17)), 16);
  EXPECT_EQ(static_cast<double>(F8E4M3FN(uint8_t{19})), 20);
  EXPECT_EQ(F8E4M3FN(INT64_MAX).bits(), 0x7f);
  EXPECT_EQ(F4E2M1FN(INT64_MIN).bits(), 15);
  EXPECT_EQ(F8E8M0FNU(UINT64_MAX).bits(), 127 + 64);
  EXPECT_EQ(F8E8M0FNU(0).bits(), 0xff);
  EXPECT_EQ(F8E5M2(true).bits(), F8E5M2(1.0).bits());
  // As floats these would be halfway, and then even.
  EXPECT_EQ(static_cast<double>(F8E5M2(1.125 + 0x1p-40)), 1.25);
  EXPECT_EQ(static_cast<double>(F8E5M2(1.375 - 0x1p-40)), 1.25);
  EXPECT_EQ(static_cast<double>(F8E8M0FNU((int64_t{3} << 61) - 1)), 0x1p62);
}

TEST(SmallFloats, Limits) {
  ForEachFormat([](const Format& f, auto zero) {
    using T = decltype(zero);
    using L = std::numeric_limits<T>;
    auto value = [](T x) { return static_cast<double>(x); };
    EXPECT_EQ(value(L::max()), f.largest);
    EXPECT_EQ(value(L::denorm_min()), f.least);
    EXPECT_EQ(value(L::lowest()), f.is_signed ? -f.largest : f.least);
    EXPECT_EQ(value(L::min()), std::ldexp(1.0, L::min_exponent - 1));
    EXPECT_EQ(value(L::epsilon()), std::ldexp(1.0, -f.mantissa));
    EXPECT_LE(f.largest, std::ldexp(1.0, L::max_exponent));
    EXPECT_GE(f.largest, std::ldexp(1.0, L::max_exponent - 1));
    EXPECT_EQ(L::has_infinity, std::isinf(value(L::infinity())));
    EXPECT_EQ(L::has_quiet_NaN, std::isnan(value(L::quiet_NaN())));
    EXPECT_TRUE(T(1.0) < T(2.0) && !(T(2.0) < T(1.0)) && T(1.0) == T(1.0));
  });
}

// A module whose root is the constant.
std::string Constant(const Literal& value, std::string_view text) {
  return Cat("HloModule m\nENTRY e {\n  ROOT c = ", value.shape(), " constant(", text, ")\n}\n");
}

TEST(SmallFloats, TextReadsBackAtEveryValue) {
  ForEachFormat([](const Format& f, auto) {
    Literal all(Shape(f.type, {1 << f.bits()}));
    for (int bits = 0; bits < 1 << f.bits(); ++bits) {
      all.values<uint8_t>()[static_cast<size_t>(bits)] = static_cast<uint8_t>(bits);
    }
    auto module = ir::ParseOrDie(Constant(all, all.ToString()));
    EXPECT_TRUE(module->entry()->root()->literal() == all) << all.ToString();
    EXPECT_NE(ir::ToHloText(*module).find(Cat(TypeName(f.type), "[")), std::string::npos);
  });
}

TEST(SmallFloats, TextIsTheShortestAndTakesWhatIsHeld) {
  auto text = [](ElementType type, double value) {
    return Literal::ScalarOf(type, value).ToString();
  };
  EXPECT_EQ(text(ElementType::kF8E4M3FN, 0.1), "0.1");
  EXPECT_EQ(text(ElementType::kF8E4M3FN, 448), "448");
  EXPECT_EQ(text(ElementType::kF8E4M3FN, 1e9), "nan");
  EXPECT_EQ(text(ElementType::kF8E4M3FNUZ, 1e9), "-nan");
  EXPECT_EQ(text(ElementType::kF8E5M2, -1e9), "-inf");
  EXPECT_EQ(text(ElementType::kF8E8M0FNU, 0x1p-127), "6e-39");
  EXPECT_EQ(text(ElementType::kF4E2M1FN, 1e9), "6");
  EXPECT_EQ(text(ElementType::kF4E2M1FN, -0.0), "-0");
  auto parse = [](ElementType type, std::string_view value) {
    return ir::ParseError(Constant(Literal(Shape::Scalar(type)), value));
  };
  for (auto [type, value] :
       {std::pair(ElementType::kF8E4M3FN, "465"), std::pair(ElementType::kF8E4M3FN, "nan(0x1)"),
        std::pair(ElementType::kF8E5M2, "1e6"), std::pair(ElementType::kF8E4M3FNUZ, "248"),
        std::pair(ElementType::kF8E8M0FNU, "0"), std::pair(ElementType::kF8E8M0FNU, "-1"),
        std::pair(ElementType::kF4E2M1FN, "7"), std::pair(ElementType::kS4, "8"),
        std::pair(ElementType::kU4, "16"), std::pair(ElementType::kU4, "-1"),
        std::pair(ElementType::kS2, "2"), std::pair(ElementType::kU2, "4"),
        std::pair(ElementType::kC64, "1"), std::pair(ElementType::kC64, "(1)"),
        std::pair(ElementType::kC64, "(1, 1e39)")}) {
    EXPECT_NE(parse(type, value), "OK") << TypeName(type) << " " << value;
  }
  EXPECT_EQ(parse(ElementType::kF8E4M3FN, "464"), "OK");
  EXPECT_EQ(parse(ElementType::kF8E5M2, "inf"), "OK");
  // As in XLA's parser, whether the type has them or not.
  EXPECT_EQ(parse(ElementType::kF8E4M3FN, "-inf"), "OK");
  EXPECT_EQ(parse(ElementType::kF6E2M3FN, "nan"), "OK");
  EXPECT_EQ(parse(ElementType::kF6E3M2FN, "inf"), "OK");
  EXPECT_EQ(parse(ElementType::kF4E2M1FN, "6.9"), "OK");
  EXPECT_EQ(parse(ElementType::kS4, "-8"), "OK");
  EXPECT_EQ(parse(ElementType::kU2, "3"), "OK");
}

template <typename T>
void CheckInteger(ElementType type, int low, int high) {
  SCOPED_TRACE(TypeName(type));
  using L = std::numeric_limits<T>;
  EXPECT_EQ(static_cast<int>(L::min()), low);
  EXPECT_EQ(static_cast<int>(L::max()), high);
  EXPECT_EQ(high - low + 1, 1 << T::bits);
  EXPECT_EQ(BitWidth(type), T::bits);
  EXPECT_EQ(ByteWidth(type), 1);
  for (int64_t x = -600; x < 600; ++x) {
    const int wrapped = static_cast<int>(((x - low) & ((1 << T::bits) - 1)) + low);
    ASSERT_EQ(static_cast<int>(T(x)), wrapped) << x;
    ASSERT_EQ(static_cast<int>(T(static_cast<uint64_t>(x))), wrapped) << x;
    ASSERT_EQ(std::bit_cast<int8_t>(T(x)), static_cast<int8_t>(wrapped)) << x;
    ASSERT_EQ(static_cast<double>(T(static_cast<double>(wrapped))), wrapped);
  }
  // In a byte that is not extended the lower bits count.
  for (int byte = 0; byte < 256; ++byte) {
    ASSERT_EQ(std::bit_cast<T>(static_cast<uint8_t>(byte)), T(byte));
  }
  Literal all(Shape(type, {high - low + 1}));
  for (int x = low; x <= high; ++x) all.values<T>()[static_cast<size_t>(x - low)] = T(x);
  auto module = ir::ParseOrDie(Constant(all, all.ToString()));
  EXPECT_TRUE(module->entry()->root()->literal() == all) << all.ToString();
  EXPECT_EQ(all.AsInt(0), low);
  EXPECT_EQ(all.AsDouble(high - low), high);
}

TEST(SmallInts, HoldTheirRangeAndWrap) {
  CheckInteger<S4>(ElementType::kS4, -8, 7);
  CheckInteger<U4>(ElementType::kU4, 0, 15);
  CheckInteger<S2>(ElementType::kS2, -2, 1);
  CheckInteger<U2>(ElementType::kU2, 0, 3);
}

TEST(ComplexLiterals, AreTextNumbersAndBytes) {
  using C = std::complex<float>;
  const std::vector<C> values = {C(1, 2), C(-0.0f, HUGE_VALF), C(std::nanf(""), -1.5f), C(0, 0)};
  Literal l = Literal::Array<C>(Shape(ElementType::kC64, {2, 2}), values);
  EXPECT_EQ(l.ToString(), "{ { (1, 2), (-0, inf) }, { (nan, -1.5), (0, 0) } }");
  auto module = ir::ParseOrDie(Constant(l, l.ToString()));
  EXPECT_TRUE(module->entry()->root()->literal() == l);
  EXPECT_EQ(l.AsDouble(0), 1);
  EXPECT_EQ(l.byte_size(), 32);
  Literal scalar = Literal::ScalarOf(ElementType::kC128, -0.5);
  EXPECT_EQ(scalar.ToString(), "(-0.5, 0)");
  EXPECT_TRUE(scalar.IsAll(-0.5));
  EXPECT_FALSE(scalar.IsAll(0.5));
  scalar.values<std::complex<double>>()[0].imag(-0.0);
  EXPECT_FALSE(scalar.IsAll(-0.5));
  EXPECT_EQ(ByteWidth(ElementType::kC64), 8);
  EXPECT_EQ(ByteWidth(ElementType::kC128), 16);
  Literal nan = Literal::Array<std::complex<double>>(
      Shape(ElementType::kC128, {1}),
      std::vector{std::complex<double>(std::bit_cast<double>(0xfff8000000000001), 0)});
  EXPECT_TRUE(ir::ParseOrDie(Constant(nan, nan.ToString()))->entry()->root()->literal() == nan);
}

TEST(ElementTypes, AreOneOfAKind) {
  for (ElementType type : {ElementType::kC64, ElementType::kC128, ElementType::kS4,
                           ElementType::kF8E4M3FN, ElementType::kF6E2M3FN}) {
    EXPECT_FALSE(IsKernelType(type)) << TypeName(type);
  }
  for (ElementType type : {ElementType::kPred, ElementType::kS8, ElementType::kU64,
                           ElementType::kBF16, ElementType::kF64}) {
    EXPECT_TRUE(IsKernelType(type)) << TypeName(type);
    EXPECT_EQ(WideOf(type), type);
  }
  EXPECT_EQ(WideOf(ElementType::kS2), ElementType::kS8);
  EXPECT_EQ(WideOf(ElementType::kU4), ElementType::kU8);
  EXPECT_EQ(WideOf(ElementType::kF8E8M0FNU), ElementType::kF32);
  EXPECT_EQ(PartOf(ElementType::kC128), ElementType::kF64);
  EXPECT_EQ(PartOf(ElementType::kF16), ElementType::kF16);
  EXPECT_EQ(ComplexOf(ElementType::kF32), ElementType::kC64);
  EXPECT_FALSE(FormatOf(ElementType::kS32));
  EXPECT_TRUE(FormatOf(ElementType::kF64) == kDoubleBits);
}

KILN_LABEL(text, "SmallFloats", "ComplexLiterals");

}  // namespace
}  // namespace kiln
