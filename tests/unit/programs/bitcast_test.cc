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
      R"(HloModule m
ENTRY e {
  p = u16[2,3]{0,1} parameter(0)
  a = u8[3,4]{1,0} bitcast(p)
  b = u32[3]{0} bitcast(p)
  c = s16[3,2]{0,1} bitcast(p)
  d = s16[3,2]{1,0} copy(c)
  ROOT t = (u8[3,4], u32[3], s16[3,2]) tuple(a, b, d)
}
)");
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
      R"(HloModule m
ENTRY e {
  p = f32[6,5]{0,1} parameter(0)
  a = s32[5,6]{0,1} bitcast(p)
  n = s32[5,6]{1,0} negate(a)
  b = u8[6,4,5]{1,0,2} bitcast(p)
  m = u8[6,4,5] not(b)
  c = s64[3,5]{0,1} bitcast(p)
  o = s64[3,5] add(c, c)
  ROOT t = (s32[5,6], u8[6,4,5], s64[3,5]) tuple(n, m, o)
}
)",
      0, 0);
}

TEST(Bitcast, AndWhatReadsIt) {
  Check(
      R"(HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  q = s32[8] parameter(1)
  b = s32[8] bitcast(p)
  n = s32[8] negate(b)
  x = s32[8] maximum(b, q)
  h = u16[16] bitcast(p)
  k = bf16[2,8] bitcast(h)
  w = bf16[2,8] abs(k)
  ROOT t = (s32[8], s32[8], bf16[2,8]) tuple(n, x, w)
}
)",
      0, 0);
}

TEST(Bitcast, InAFusion) {
  Check(
      R"(HloModule m
f {
  p = f32[64,15] parameter(0)
  b = s32[15,64]{0,1} bitcast(p)
  ROOT n = s32[15,64]{0,1} negate(b)
}
ENTRY e {
  p = f32[64,15] parameter(0)
  ROOT r = s32[15,64]{0,1} fusion(p), kind=kLoop, calls=f
}
)",
      0, 0);
}

TEST(Bitcast, InComputationsOfScalars) {
  Check(
      R"(HloModule m
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] bitcast(a)
  j = s32[] bitcast(b)
  k = s32[] maximum(i, j)
  ROOT r = f32[] bitcast(k)
}
bit {
  a = f32[] parameter(0)
  i = s32[] bitcast(a)
  ROOT r = s32[] not(i)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = u32[] bitcast(a)
  j = u32[] bitcast(b)
  ROOT r = pred[] compare(i, j), direction=LT
}
ENTRY e {
  p = f32[4,9] parameter(0)
  z = f32[] constant(0)
  a = f32[4] reduce(p, z), dimensions={1}, to_apply=larger
  b = s32[4,9] map(p), dimensions={0,1}, to_apply=bit
  c = f32[4,9] sort(p), dimensions={1}, to_apply=less
  ROOT t = (f32[4], s32[4,9], f32[4,9]) tuple(a, b, c)
}
)",
      0, 0);
}

TEST(Bitcast, InLoopsAndBranches) {
  Check(
      R"(HloModule m
condition {
  s = (s32[], f32[8], u8[32]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], u8[32]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  y = u8[32] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[8] bitcast(y)
  v = u8[32] bitcast(x)
  ROOT r = (s32[], f32[8], u8[32]) tuple(j, w, v)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = u8[32] parameter(1)
  i = s32[] constant(0)
  s = (s32[], f32[8], u8[32]) tuple(i, x, y)
  ROOT w = (s32[], f32[8], u8[32]) while(s), condition=condition, body=body
}
)",
      0, 0);
}

TEST(Bitcast, OfBoundedDimensions) {
  Check(
      R"(HloModule m
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}
ENTRY e {
  p = f32[2,8] parameter(0)
  m = u8[] parameter(1)
  k = u8[] constant(9)
  q = u8[] remainder(m, k)
  n = s32[] convert(q)
  d = f32[2,<=8] set-dimension-size(p, n), dimensions={1}
  b = s32[<=8,2] bitcast(d)
  z = s32[] constant(0)
  x = s32[<=8,2] not(b)
  ROOT r = s32[2] reduce(x, z), dimensions={0}, to_apply=sum
}
)",
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
