// Attributes of custom calls: the dictionary's text, read.
#include "tensor/call_attributes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/strings.h"
#include "support/labels.h"
#include "tensor/call_signature.h"

namespace kiln {
namespace {

using Kind = CallAttribute::Kind;

CallAttribute One(std::string_view value) {
  auto read = ParseCallAttributes(Cat("{x = ", value, "}"));
  EXPECT_TRUE(read.ok()) << value << ": " << Cat(read.status());
  return read.ok() && read->size() == 1 ? std::move((*read)[0]) : CallAttribute{};
}

template <typename T>
std::vector<T> ValuesOf(const CallAttribute& attribute) {
  std::vector<T> values(attribute.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
  return values;
}

template <typename T>
void ExpectScalar(std::string_view text, ElementType type, T value) {
  const CallAttribute a = One(text);
  EXPECT_TRUE(a.kind == Kind::kScalar && a.type == type && a.count == 1) << text;
  EXPECT_EQ(ValuesOf<T>(a), std::vector<T>{value}) << text;
}

template <typename T>
void ExpectArray(std::string_view text, ElementType type, std::vector<T> values) {
  const CallAttribute a = One(text);
  EXPECT_TRUE(a.kind == Kind::kArray && a.type == type) << text;
  EXPECT_EQ(a.count, std::ssize(values)) << text;
  EXPECT_EQ(ValuesOf<T>(a), values) << text;
}

TEST(CallAttributes, Scalars) {
  ExpectScalar<uint8_t>("true", ElementType::kPred, 1);
  ExpectScalar<uint8_t>("false", ElementType::kPred, 0);
  ExpectScalar<int8_t>("-128 : i8", ElementType::kS8, -128);
  ExpectScalar<uint8_t>("76 : ui8", ElementType::kU8, 76);
  ExpectScalar<int32_t>("-7 : i32", ElementType::kS32, -7);
  ExpectScalar<int64_t>("-9223372036854775808 : i64", ElementType::kS64, INT64_MIN);
  ExpectScalar<uint64_t>("18446744073709551615 : ui64", ElementType::kU64, UINT64_MAX);
  ExpectScalar<int64_t>("5", ElementType::kS64, 5);
  ExpectScalar<float>("1.500000e+00 : f32", ElementType::kF32, 1.5f);
  ExpectScalar<float>("0.1 : f32", ElementType::kF32, 0.1f);
  ExpectScalar<uint32_t>("0xFF800000 : f32", ElementType::kF32, 0xFF800000u);
  ExpectScalar<double>("-1e-300 : f64", ElementType::kF64, -1e-300);
  ExpectScalar<uint16_t>("1.0 : bf16", ElementType::kBF16, 0x3F80);
  ExpectScalar<uint8_t>("1.0 : f8E4M3FN", ElementType::kF8E4M3FN, 0x38);
}

TEST(CallAttributes, Arrays) {
  ExpectArray<int64_t>("array<i64: 1, -2, 3>", ElementType::kS64, {1, -2, 3});
  ExpectArray<uint8_t>("array<i1: true, false>", ElementType::kPred, {1, 0});
  ExpectArray<float>("array<f32>", ElementType::kF32, {});
  ExpectArray<int32_t>("[1 : i32, 2 : i32]", ElementType::kS32, {1, 2});
  ExpectArray<int64_t>("[]", ElementType::kS64, {});
  ExpectArray<int16_t>("dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>", ElementType::kS16,
                       {1, 2, 3, 4});
  ExpectArray<double>("dense<2.5> : tensor<3xf64>", ElementType::kF64, {2.5, 2.5, 2.5});
  ExpectArray<uint32_t>("dense<7> : tensor<ui32>", ElementType::kU32, {7});
  ExpectArray<float>("dense<> : tensor<0xf32>", ElementType::kF32, {});
  ExpectArray<int32_t>("dense<\"0x0100000002000000\"> : tensor<2xi32>", ElementType::kS32, {1, 2});
}

TEST(CallAttributes, TextsAndDictionaries) {
  const CallAttribute text = One(R"("a \"\\ \0A\n, }")");
  EXPECT_EQ(text.kind, Kind::kString);
  EXPECT_STREQ(reinterpret_cast<const char*>(text.bytes.data()), "a \"\\ \n\n, }");
  EXPECT_EQ(text.count, 10);
  auto read = ParseCallAttributes(R"({b = {n = 1 : i32, inner = {}}, "a key" = "", a = true})");
  ASSERT_TRUE(read.ok()) << Cat(read.status());
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].name, "a");
  EXPECT_EQ((*read)[1].name, "a key");
  EXPECT_EQ((*read)[2].kind, Kind::kDictionary);
  ASSERT_EQ((*read)[2].members.size(), 2u);
  EXPECT_EQ((*read)[2].members[0].name, "inner");
  EXPECT_TRUE(ParseCallAttributes("{}")->empty());
}

TEST(CallAttributes, Mistakes) {
  auto error = [](std::string_view text) { return Cat(ParseCallAttributes(text).status()); };
  auto has = [&](std::string_view text, std::string_view part) {
    EXPECT_NE(error(text).find(part), std::string::npos) << text << ": " << error(text);
  };
  has("", "expected '{'");
  has("{a = 1", "expected '}'");
  has("{a = 1} b", "expected the end of the dictionary");
  has("{a = 1.5 : i32}",
      "attribute 'a': line 1, column 15: found '}'; expected a number of type s32");
  has("{a = array<i8: >}", "attribute 'a'");
  has("{a = dense<[1, 2]> : tensor<3xi32>}", "expected 3 elements");
  has("{a = dense<1> : tensor<99999999999x9xi32>}", "elements");
  has("{a = dense<\"0x01\"> : tensor<1xi32>}", "expected 4 bytes in hexadecimal digits");
  has("{a = \"\\q\"}", "an escape of MLIR");
  for (std::string_view other : {"@f", "[1, 2.0]", "[\"t\"]", "1 : complex<f32>", "unit"}) {
    EXPECT_FALSE(ParseCallAttributes(Cat("{a = ", other, "}")).ok()) << other;
  }
  has("{a}", "UNIMPLEMENTED: attribute 'a': is neither a number");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{a = ";
  has(deep, "at most 100 levels");
}

TEST(CallAttributes, SignaturesKeepAll) {
  CallSignature signature;
  Shape matrix(ElementType::kF32, {2, 3});
  matrix.set_minor_to_major({0, 1});
  signature.operands = {matrix, Shape::Scalar(ElementType::kS32)};
  signature.results = {matrix};
  signature.attributes = "{a = 1 : i32}";
  signature.api_version = 4;
  signature.has_side_effect = true;
  signature.aliases = {{0, 0}};
  const std::string bytes = signature.Encode();
  auto read = CallSignature::Decode(bytes);
  ASSERT_TRUE(read.ok()) << Cat(read.status());
  EXPECT_EQ(read->operands, signature.operands);
  EXPECT_EQ(read->results, signature.results);
  EXPECT_EQ(read->attributes, signature.attributes);
  EXPECT_EQ(read->api_version, 4);
  EXPECT_TRUE(read->has_side_effect);
  EXPECT_EQ(read->aliases, signature.aliases);
  for (size_t end = 0; end + signature.attributes.size() < bytes.size(); ++end) {
    EXPECT_FALSE(CallSignature::Decode(bytes.substr(0, end)).ok()) << end;
  }
}

KILN_LABEL(text, "CallAttributes");

}  // namespace
}  // namespace kiln
