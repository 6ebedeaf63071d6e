// bitcast: the bytes of an array as those of another type.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"

namespace kiln {
namespace {

using testing::Check;

constexpr ElementType kTypes[] = {
#define KILN_ELEMENT_TYPE(Name, text, number, bits, category) ElementType::k##Name,
#include "tensor/element_types.def"
#undef KILN_ELEMENT_TYPE
};

// Bytes without a pattern, in the form that elements of the type have.
Literal Bytes(const Shape& shape) {
  Literal l(shape);
  uint32_t state = 12345;
  const int64_t bits = BitWidth(shape.type());
  for (int64_t k = 0; k < l.byte_size(); ++k) {
    state = state * 1664525 + 1013904223;
    auto byte = static_cast<uint8_t>(state >> 24);
    if (IsPred(shape.type())) byte &= 1;
    if (bits < 8) byte &= static_cast<uint8_t>((1 << bits) - 1);
    if (bits < 8 && IsSigned(shape.type()) && (byte >> (bits - 1)) != 0) {
      byte |= static_cast<uint8_t>(0xff << bits);
    }
    l.data()[k] = std::byte{byte};
  }
  return l;
}

// What the bytes are as elements.
Literal Expected(const Literal& from, const Shape& shape) {
  Literal l(shape);
  std::memcpy(l.data(), from.data(), static_cast<size_t>(from.byte_size()));
  const int64_t bits = BitWidth(shape.type());
  for (int64_t k = 0; k < l.byte_size(); ++k) {
    auto byte = static_cast<uint8_t>(l.data()[k]);
    if (IsPred(shape.type())) byte = byte != 0;
    if (bits < 8) {
      byte = static_cast<uint8_t>(byte << (8 - bits));
      byte = IsSigned(shape.type()) ? static_cast<uint8_t>(static_cast<int8_t>(byte) >> (8 - bits))
                                    : static_cast<uint8_t>(byte >> (8 - bits));
    }
    l.data()[k] = std::byte{byte};
  }
  return l;
}

// The rows of an array of three columns, the last one first.
Literal Reversed(const Literal& x) {
  Literal l(x.shape());
  const int64_t rows = x.shape().dim(0), bytes = x.byte_size() / rows;
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(l.data() + (rows - 1 - r) * bytes, x.data() + r * bytes,
                static_cast<size_t>(bytes));
  }
  return l;
}

// Each type as each other one: on a device as it is, and where code moves it.
TEST(Bitcast, EveryPairOfTypes) {
  constexpr int64_t kBytes = 96;
  for (size_t f = 0; f < std::size(kTypes); ++f) {
    const ElementType from = kTypes[f];
    const Shape operand(from, {2, kBytes / 2 / ByteWidth(from)});
    std::string text = Cat("HloModule m\nENTRY e {\n  p = ", operand.ToString(), " parameter(0)\n");
    std::string roots, shapes;
    std::vector<Shape> results;
    for (ElementType to : kTypes) {
      const Shape result(to, {kBytes / ByteWidth(to) / 3, 3});
      const size_t k = results.size();
      text += Cat("  b", k, " = ", result.ToString(), " bitcast(p)\n");
      text += Cat("  r", k, " = ", result.ToString(), " reverse(b", k, "), dimensions={0}\n");
      roots += Cat(k == 0 ? "" : ", ", k % 3 == 0 ? "b" : "r", k);
      shapes += Cat(k == 0 ? "" : ", ", result.ToString());
      results.push_back(result);
    }
    text += Cat("  ROOT t = (", shapes, ") tuple(", roots, ")\n}\n");
    auto module = ir::ParseOrDie(text);
    const Literal argument = Bytes(operand);
    for (int run = 0; run < 3; ++run) {
      if (run == 2 && f % 4 != 0) continue;
      Result<Literal> actual = run == 0 ? interp::Evaluate(*module, {&argument, 1})
                                        : testing::RunCompiled(*module, {argument}, run == 1);
      ASSERT_TRUE(actual.ok()) << TypeName(from) << ": " << actual.status().ToString();
      for (size_t k = 0; k < results.size(); ++k) {
        Literal expected = Expected(argument, results[k]);
        if (k % 3 != 0) expected = Reversed(expected);
        EXPECT_TRUE(actual->elements()[k] == expected)
            << run << ": " << TypeName(from) << " as " << TypeName(kTypes[k]);
      }
    }
  }
}

TEST(Bitcast, OfTheMemoryOfLayouts) {
  // Memory of the operand: column by column.
  auto module = ir::ParseOrDie(
      "HloModule m\nENTRY e {\n  p = u16[2,3]{0,1} parameter(0)\n"
      "  a = u8[3,4]{1,0} bitcast(p)\n  b = u32[3]{0} bitcast(p)\n"
      "  c = s16[3,2]{0,1} bitcast(p)\n"
      "  d = s16[3,2]{1,0} copy(c)\n"
      "  ROOT t = (u8[3,4], u32[3], s16[3,2]) tuple(a, b, d)\n}\n");
  const std::vector<uint16_t> values = {0x0102, 0x0304, 0x0506, 0x0708, 0x090a, 0x0b0c};
  const Literal argument = Literal::Array<uint16_t>(module->entry()->parameter(0)->shape(), values);
  auto actual = interp::Evaluate(*module, {&argument, 1});
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  // In memory: 0102 0708 0304 090a 0506 0b0c.
  EXPECT_EQ(actual->elements()[0].ToString(),
            "{ { 2, 1, 8, 7 }, { 4, 3, 10, 9 }, { 6, 5, 12, 11 } }");
  EXPECT_EQ(actual->elements()[1].ToString(),
            Cat("{", 0x07080102, ", ", 0x090a0304, ", ", 0x0b0c0506, "}"));
  EXPECT_EQ(actual->elements()[2].ToString(),
            Cat("{ { ", 0x0102, ", ", 0x090a, " }, { ", 0x0708, ", ", 0x0506, " }, { ", 0x0304,
                ", ", 0x0b0c, " } }"));
  Check(
      "HloModule m\nENTRY e {\n  p = f32[6,5]{0,1} parameter(0)\n"
      "  a = s32[5,6]{0,1} bitcast(p)\n  n = s32[5,6]{1,0} negate(a)\n"
      "  b = u8[6,4,5]{1,0,2} bitcast(p)\n  m = u8[6,4,5] not(b)\n"
      "  c = s64[3,5]{0,1} bitcast(p)\n  o = s64[3,5] add(c, c)\n"
      "  ROOT t = (s32[5,6], u8[6,4,5], s64[3,5]) tuple(n, m, o)\n}\n",
      0, 0);
}

TEST(Bitcast, AndWhatReadsIt) {
  Check(
      "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  q = s32[8] parameter(1)\n"
      "  b = s32[8] bitcast(p)\n  n = s32[8] negate(b)\n  x = s32[8] maximum(b, q)\n"
      "  h = u16[16] bitcast(p)\n  k = bf16[2,8] bitcast(h)\n  w = bf16[2,8] abs(k)\n"
      "  ROOT t = (s32[8], s32[8], bf16[2,8]) tuple(n, x, w)\n}\n",
      0, 0);
}

TEST(Bitcast, InAFusion) {
  Check(
      "HloModule m\nf {\n  p = f32[64,15] parameter(0)\n  b = s32[15,64]{0,1} bitcast(p)\n"
      "  ROOT n = s32[15,64]{0,1} negate(b)\n}\n"
      "ENTRY e {\n  p = f32[64,15] parameter(0)\n"
      "  ROOT r = s32[15,64]{0,1} fusion(p), kind=kLoop, calls=f\n}\n",
      0, 0);
}

TEST(Bitcast, InComputationsOfScalars) {
  Check(
      "HloModule m\nlarger {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  i = s32[] bitcast(a)\n  j = s32[] bitcast(b)\n  k = s32[] maximum(i, j)\n"
      "  ROOT r = f32[] bitcast(k)\n}\n"
      "bit {\n  a = f32[] parameter(0)\n  i = s32[] bitcast(a)\n"
      "  ROOT r = s32[] not(i)\n}\n"
      "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  i = u32[] bitcast(a)\n  j = u32[] bitcast(b)\n  ROOT r = pred[] compare(i, j), "
      "direction=LT\n}\n"
      "ENTRY e {\n  p = f32[4,9] parameter(0)\n  z = f32[] constant(0)\n"
      "  a = f32[4] reduce(p, z), dimensions={1}, to_apply=larger\n"
      "  b = s32[4,9] map(p), dimensions={0,1}, to_apply=bit\n"
      "  c = f32[4,9] sort(p), dimensions={1}, to_apply=less\n"
      "  ROOT t = (f32[4], s32[4,9], f32[4,9]) tuple(a, b, c)\n}\n",
      0, 0);
}

TEST(Bitcast, InLoopsAndBranches) {
  Check(
      "HloModule m\ncondition {\n  s = (s32[], f32[8], u8[32]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(5)\n"
      "  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
      "body {\n  s = (s32[], f32[8], u8[32]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n  x = f32[8] get-tuple-element(s), index=1\n"
      "  y = u8[32] get-tuple-element(s), index=2\n  one = s32[] constant(1)\n"
      "  j = s32[] add(i, one)\n  w = f32[8] bitcast(y)\n  v = u8[32] bitcast(x)\n"
      "  ROOT r = (s32[], f32[8], u8[32]) tuple(j, w, v)\n}\n"
      "ENTRY e {\n  x = f32[8] parameter(0)\n  y = u8[32] parameter(1)\n"
      "  i = s32[] constant(0)\n  s = (s32[], f32[8], u8[32]) tuple(i, x, y)\n"
      "  ROOT w = (s32[], f32[8], u8[32]) while(s), condition=condition, body=body\n}\n",
      0, 0);
}

TEST(Bitcast, OfBoundedDimensions) {
  Check(
      "HloModule m\nsum {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n"
      "  ROOT r = s32[] add(a, b)\n}\n"
      "ENTRY e {\n  p = f32[2,8] parameter(0)\n  m = u8[] parameter(1)\n"
      "  k = u8[] constant(9)\n  q = u8[] remainder(m, k)\n  n = s32[] convert(q)\n"
      "  d = f32[2,<=8] set-dimension-size(p, n), dimensions={1}\n"
      "  b = s32[<=8,2] bitcast(d)\n  z = s32[] constant(0)\n"
      "  x = s32[<=8,2] not(b)\n"
      "  ROOT r = s32[2] reduce(x, z), dimensions={0}, to_apply=sum\n}\n",
      0, 0);
}

std::string ErrorOf(const std::string& line) {
  return ir::ParseError(
      Cat("HloModule m\nENTRY e {\n  p = f32[2,3] parameter(0)\n", line, "\n}\n"));
}

TEST(Bitcast, OfEquallyManyBytes) {
  EXPECT_EQ(ErrorOf("  ROOT b = u8[24] bitcast(p)"), "OK");
  EXPECT_EQ(ErrorOf("  ROOT b = c128[] bitcast(p)"),
            "INVALID_ARGUMENT: line 4, column 19: instruction 'b': bitcast: operand has shape "
            "f32[2,3]; the result is c128[]; they must have equally many bytes");
  EXPECT_NE(ErrorOf("  ROOT b = s4[6] bitcast(p)"), "OK");
  EXPECT_NE(ErrorOf("  ROOT b = f32[5] bitcast(p)"), "OK");
  EXPECT_NE(ErrorOf("  ROOT b = u64[4] bitcast(p)"), "OK");
}

}  // namespace
}  // namespace kiln
