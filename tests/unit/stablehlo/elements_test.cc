// Constants of StableHLO text: every way to write elements, and floats of every format.
#include <bit>
#include <cmath>
#include <cstring>

#include "stablehlo/mlir/floats.h"
#include "support/labels.h"
#include "support/stablehlo.h"

namespace kiln::stablehlo {
namespace {

using mlir::Attribute;
using mlir::FloatKind;

// The elements as T; one where all are equal.
template <typename T>
std::vector<T> Elements(std::string_view text) {
  std::unique_ptr<mlir::Module> module;
  const Attribute* attribute = ReadAttribute(module, text);
  if (!attribute) return {};
  EXPECT_TRUE(attribute->is(mlir::AttributeKind::kElements)) << text;
  std::vector<T> values(attribute->bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), attribute->bytes.data(), attribute->bytes.size());
  EXPECT_EQ(values.size() * sizeof(T), attribute->bytes.size()) << text;
  EXPECT_EQ(attribute->splat, values.size() == 1) << text;
  return values;
}

std::string ErrorOf(std::string_view attribute) {
  auto module = ReadText(Cat("\"x.x\"() {value = ", attribute, "} : () -> ()"));
  return std::string(module.status().message());
}

template <typename T>
using V = std::vector<T>;

TEST(StablehloElements, Integers) {
  EXPECT_EQ(Elements<int32_t>("dense<[[1, -2, 3], [4, 5, 0x7F]]> : tensor<2x3xi32>"),
            (V<int32_t>{1, -2, 3, 4, 5, 127}));
  EXPECT_EQ(Elements<int64_t>("dense<7> : tensor<2x3xi64>"), V<int64_t>{7});
  EXPECT_EQ(Elements<int64_t>("dense<[7, 7]> : tensor<2xi64>"), V<int64_t>{7});
  EXPECT_EQ(Elements<int8_t>("dense<[-128, 127, 255]> : tensor<3xi8>"), (V<int8_t>{-128, 127, -1}));
  EXPECT_EQ(Elements<uint64_t>("dense<[0, 18446744073709551615]> : tensor<2xui64>"),
            (V<uint64_t>{0, UINT64_MAX}));
  EXPECT_EQ(Elements<int64_t>("dense<-9223372036854775808> : tensor<i64>"), V<int64_t>{INT64_MIN});
  EXPECT_EQ(Elements<int64_t>("dense<[1, 2]> : tensor<2xindex>"), (V<int64_t>{1, 2}));
  EXPECT_EQ(Elements<uint8_t>("dense<[true, false, 1, 0]> : tensor<4xi1>"),
            (V<uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(Elements<uint8_t>("dense<-1> : tensor<i1>"), V<uint8_t>{1});
  // Below a byte: extended by the sign, or by zeros.
  EXPECT_EQ(Elements<int8_t>("dense<[-8, 7, 15]> : tensor<3xi4>"), (V<int8_t>{-8, 7, -1}));
  EXPECT_EQ(Elements<uint8_t>("dense<[3, 0]> : tensor<2xui2>"), (V<uint8_t>{3, 0}));
}

TEST(StablehloElements, Empty) {
  EXPECT_EQ(Elements<int32_t>("dense<> : tensor<0xi32>"), V<int32_t>());
  EXPECT_EQ(Elements<int32_t>("dense<[]> : tensor<0x3xi32>"), V<int32_t>());
  EXPECT_EQ(Elements<int32_t>("dense<[[], []]> : tensor<2x0xi32>"), V<int32_t>());
  EXPECT_EQ(Elements<int32_t>("dense<1> : tensor<4x0xi32>"), V<int32_t>());
  EXPECT_EQ(Elements<int32_t>("dense<> : tensor<99999999999x0xi32>"), V<int32_t>());
}

TEST(StablehloElements, Floats) {
  EXPECT_EQ(Elements<float>("dense<[1.0, -0.0, 1.5e-3, 0x7F800000, 0.1]> : tensor<5xf32>"),
            (V<float>{1, -0.0f, 1.5e-3f, INFINITY, 0.1f}));
  EXPECT_TRUE(std::signbit(Elements<float>("dense<-0.0> : tensor<f32>")[0]));
  EXPECT_EQ(Elements<uint32_t>("dense<[0x7FC00001, 0xFF800001]> : tensor<2xf32>"),
            (V<uint32_t>{0x7FC00001, 0xFF800001}));
  EXPECT_EQ(Elements<double>("dense<[3.1415926535897931, 4.940660e-324]> : tensor<2xf64>"),
            (V<double>{3.1415926535897931, 5e-324}));
  EXPECT_EQ(Elements<uint16_t>("dense<[1.0, 0x7C00, 65504.0, 5.960460e-08]> : tensor<4xf16>"),
            (V<uint16_t>{0x3C00, 0x7C00, 0x7BFF, 1}));
  EXPECT_EQ(Elements<uint16_t>("dense<[1.0, 3.140630, 0x0001]> : tensor<3xbf16>"),
            (V<uint16_t>{0x3F80, 0x4049, 1}));
  // A number between two floats of which its double is the middle: rounded from the digits.
  EXPECT_EQ(Elements<uint32_t>("dense<1.00000005960464477539062500001> : tensor<f32>"),
            V<uint32_t>{0x3F800001});
  EXPECT_EQ(Elements<uint32_t>("dense<1.000000059604644775390625> : tensor<f32>"),
            V<uint32_t>{0x3F800000});
  EXPECT_EQ(Elements<float>("dense<1.0e-60> : tensor<f32>"), V<float>{0});
}

TEST(StablehloElements, NarrowFloats) {
  EXPECT_EQ(Elements<uint8_t>("dense<[0.0, -0.0, 1.0, 0.1, 0x7F, 57344.0]> : tensor<6xf8E5M2>"),
            (V<uint8_t>{0, 0x80, 0x3C, 0x2E, 0x7F, 0x7B}));
  EXPECT_EQ(Elements<uint8_t>("dense<[0.0, -0.0, 1.0, 448.0, 0xFF]> : tensor<5xf8E4M3FN>"),
            (V<uint8_t>{0, 0x80, 0x38, 0x7E, 0xFF}));
  EXPECT_EQ(Elements<uint8_t>("dense<[-0.0, 1.0, 240.0]> : tensor<3xf8E4M3FNUZ>"),
            (V<uint8_t>{0, 0x40, 0x7F}));
  EXPECT_EQ(Elements<uint8_t>("dense<[1.0, 30.0]> : tensor<2xf8E4M3B11FNUZ>"),
            (V<uint8_t>{0x58, 0x7F}));
  EXPECT_EQ(Elements<uint8_t>("dense<[1.0, 0.1, 3.1415, 0.0]> : tensor<4xf8E8M0FNU>"),
            (V<uint8_t>{127, 124, 129, 0}));
  EXPECT_EQ(Elements<uint8_t>("dense<[0.5, -6.0, 1.5]> : tensor<3xf4E2M1FN>"),
            (V<uint8_t>{1, 0xF, 3}));
  EXPECT_EQ(Elements<uint8_t>("dense<[7.5, 0.125]> : tensor<2xf6E2M3FN>"), (V<uint8_t>{0x1F, 1}));
  EXPECT_EQ(Elements<uint8_t>("dense<[28.0, -1.0]> : tensor<2xf6E3M2FN>"),
            (V<uint8_t>{0x1F, 0x2C}));
  EXPECT_EQ(Elements<uint8_t>("dense<[1.0, 15.5]> : tensor<2xf8E3M4>"), (V<uint8_t>{0x30, 0x6F}));
}

TEST(StablehloElements, Complex) {
  EXPECT_EQ(Elements<float>("dense<[(1.0, -2.0), (0x7F800000,0.5)]> : tensor<2xcomplex<f32>>"),
            (V<float>{1, -2, INFINITY, 0.5}));
  std::unique_ptr<mlir::Module> module;
  const Attribute* splat = ReadAttribute(module, "dense<(1.0, 2.0)> : tensor<9xcomplex<f64>>");
  EXPECT_TRUE(splat->splat);
  EXPECT_EQ(splat->bytes.size(), 16u);
  EXPECT_EQ(mlir::ToText(*splat), "dense<(1.0,2.0)> : tensor<9xcomplex<f64>>");
  const Attribute* hex =
      ReadAttribute(module, "dense<\"0x0000803f000000C0\"> : tensor<complex<f32>>");
  EXPECT_EQ(mlir::ToText(*hex), "dense<(1.0,-2.0)> : tensor<complex<f32>>");
}

TEST(StablehloElements, HexBlobs) {
  EXPECT_EQ(Elements<int32_t>("dense<\"0x01000000FFFFFFFF\"> : tensor<2xi32>"),
            (V<int32_t>{1, -1}));
  EXPECT_EQ(Elements<int32_t>("dense<\"0x02000000\"> : tensor<5xi32>"), V<int32_t>{2});
  EXPECT_EQ(Elements<int8_t>("dense<\"0x0F07\"> : tensor<2xi4>"), (V<int8_t>{-1, 7}));
  EXPECT_EQ(Elements<uint8_t>("dense<\"0x0F07\"> : tensor<2xui4>"), (V<uint8_t>{15, 7}));
  EXPECT_EQ(Elements<int32_t>("dense<\"0x\"> : tensor<0xi32>"), V<int32_t>());
}

// Bits, a byte each, or one byte for all.
TEST(StablehloElements, HexBooleans) {
  EXPECT_EQ(Elements<uint8_t>("dense<\"0x0502\"> : tensor<10xi1>"),
            (V<uint8_t>{1, 0, 1, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(Elements<uint8_t>("dense<\"0x010001\"> : tensor<3xi1>"), (V<uint8_t>{1, 0, 1}));
  EXPECT_EQ(Elements<uint8_t>("dense<\"0x05\"> : tensor<3xi1>"), (V<uint8_t>{1, 0, 1}));
  EXPECT_EQ(Elements<uint8_t>("dense<\"0xFF\"> : tensor<20xi1>"), V<uint8_t>{1});
  EXPECT_EQ(Elements<uint8_t>("dense<\"0x00\"> : tensor<20xi1>"), V<uint8_t>{0});
  EXPECT_EQ(Elements<uint8_t>("dense<\"0xFFFF\"> : tensor<16xi1>"), V<uint8_t>{1});
}

TEST(StablehloElements, PrintedInFull) {
  std::unique_ptr<mlir::Module> module;
  const Attribute* attribute =
      ReadAttribute(module, "dense<[1.0, 0x7FC00001, 1.0e10]> : tensor<3xf32>");
  EXPECT_EQ(mlir::ToText(*attribute), "dense<[1.0, 0x7FC00001, 1.0e+10]> : tensor<3xf32>");
  EXPECT_EQ(mlir::ToText(*attribute, {.max_listed_elements = 2}),
            "dense<\"0x0000803F0100C07FF9021550\"> : tensor<3xf32>");
}

TEST(StablehloElements, Errors) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"dense<[1, 2]> : tensor<3xi32>", "column 29: found ']'; expected ','"},
      {"dense<[1, 2, 3]> : tensor<2xi32>", "column 29: found ','; expected ']' after 2 elements"},
      {"dense<[[1]]> : tensor<1xi32>", "column 25: found '['; expected a number that i32 holds"},
      {"dense<[1]> : tensor<1x1xi32>", "column 25: found '1'; expected '['"},
      {"dense<[1]> : tensor<1000000xi32>", "column 24: found '['; expected 1000000 elements"},
      {"dense<256> : tensor<i8>", "column 24: found '256'; expected a number that i8 holds"},
      {"dense<-129> : tensor<i8>", "found '-129'; expected a number that i8 holds"},
      {"dense<-1> : tensor<ui8>", "found '-1'; expected a number that ui8 holds"},
      {"dense<128> : tensor<si8>", "found '128'; expected a number that si8 holds"},
      {"dense<16> : tensor<i4>", "expected a number that i4 holds"},
      {"dense<99999999999999999999> : tensor<i64>", "expected a number that i64 holds"},
      {"dense<1.0> : tensor<i32>", "expected a number that i32 holds"},
      {"dense<1> : tensor<f32>", "found '1'; expected a number that f32 holds"},
      {"dense<0x10000> : tensor<f16>", "found '0x10000'; expected a number that f16 holds"},
      {"dense<-0x1> : tensor<f16>", "found '-0x1'; expected a number that f16 holds"},
      {"dense<1.0e39> : tensor<f32>", "found '1.0e39'; expected a number that f32 holds"},
      {"dense<449.0e1> : tensor<f8E4M3FN>", "expected a number that f8E4M3FN holds"},
      {"dense<true> : tensor<i8>", "found 'true'; expected a number that i8 holds"},
      {"dense<maybe> : tensor<i1>", "found 'maybe'; expected true or false"},
      {"dense<2> : tensor<i1>", "found '2'; expected a number that i1 holds"},
      {"dense<> : tensor<i32>", "found '>'; expected a number that i32 holds"},
      {"dense<(1.0, 2.0> : tensor<complex<f32>>", "found '>'; expected ')'"},
      {"dense<1.0> : tensor<complex<f32>>", "found '1.0'; expected '('"},
      {"dense<\"0x0\"> : tensor<i8>", "expected bytes in hexadecimal digits after 0x"},
      {"dense<\"0xG0\"> : tensor<i8>", "expected bytes in hexadecimal digits after 0x"},
      {"dense<\"0x0102\"> : tensor<3xi8>", "expected 3 elements of 1 bytes"},
      {"dense<\"0x010203\"> : tensor<2xi16>", "expected 2 elements of 2 bytes"},
      {"dense<\"0x0102\"> : tensor<20xi1>", "expected the bits of 20 booleans"},
      {"dense<\"a\"> : tensor<1x!tf_type.string>",
       "elements of !tf_type.string are not implemented"},
      {"dense<1> : tensor<?xi32>", "expected a tensor whose sizes are numbers"},
      {"dense<1> : i32", "expected a tensor whose sizes are numbers"},
      {"dense<1>", "found '}'; expected ':'"},
      {"sparse<0, 1> : tensor<2xi32>", "sparse elements are not implemented"},
      {"dense_resource<none> : tensor<2xi32>", "expected a resource that the text has at its end"},
      {"array<i8: 300>", "found '300'; expected a number that i8 holds"},
      {"array<tensor<f32>: 1>", "expected a type of integers or floats after '<'"},
      {"1.5 : i32", "found '1.5'; expected a number that i32 holds"},
      {"1 : tensor<f32>", "expected the type of a number"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(ErrorOf(text).find(expected), std::string::npos) << text << ": " << ErrorOf(text);
  }
}

// Every pattern of the narrow formats is the number that it decodes to, and halves of the way to
// the next one go to even.
TEST(StablehloElements, FloatFormats) {
  for (int k = 0; k <= static_cast<int>(FloatKind::kF4E2M1FN); ++k) {
    const auto kind = static_cast<FloatKind>(k);
    const mlir::FloatFormat& format = mlir::FormatOf(kind);
    if (format.bits > 16) continue;
    const bool exponents = format.specials == mlir::FloatSpecials::kExponent;
    double last = NAN;
    for (uint64_t bits = 0; bits < uint64_t{1} << format.bits; ++bits) {
      const double value = mlir::DecodeFloat(kind, bits);
      if (std::isnan(value)) {
        last = NAN;
        continue;
      }
      EXPECT_EQ(mlir::EncodeFloat(kind, value), bits) << format.name << " " << bits;
      if (std::isfinite(value) && std::isfinite(last) &&
          std::signbit(value) == std::signbit(last)) {
        const double middle = (value + last) / 2;
        const uint64_t even = (bits & 1) == 0 || exponents ? bits : bits - 1;
        EXPECT_EQ(mlir::EncodeFloat(kind, middle), even) << format.name << " " << bits;
        const double towards = std::nextafter(middle, last);
        EXPECT_EQ(mlir::EncodeFloat(kind, towards), bits - 1) << format.name << " " << bits;
      }
      last = value;
    }
  }
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF16, 65519.9), 0x7BFFu);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF16, 65520), std::nullopt);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF8E4M3FN, 464), 0x7Eu);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF8E4M3FN, 464.1), std::nullopt);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF4E2M1FN, 7), std::nullopt);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF4E2M1FN, INFINITY), std::nullopt);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF8E8M0FNU, -1), std::nullopt);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF8E8M0FNU, NAN), 0xFFu);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kF8E4M3FNUZ, NAN), 0x80u);
  EXPECT_EQ(mlir::EncodeFloat(FloatKind::kTF32, 1.0 + 1.0 / 1024), 0x3F802000u);
  EXPECT_EQ(mlir::DecodeFloat(FloatKind::kTF32, 0x3F802000u), 1.0 + 1.0 / 1024);
}

KILN_LABEL(text, "StablehloElements");

}  // namespace
}  // namespace kiln::stablehlo
