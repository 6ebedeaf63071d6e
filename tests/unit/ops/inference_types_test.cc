// Inference by element types: which ops take complex numbers and small types, and what they make of
// them.
#include <gtest/gtest.h>

#include "ops/inference.h"

namespace kiln {
namespace {

using enum ElementType;

// The result's type of an op on arrays of two elements, or "no".
std::string TypeOf(Opcode opcode, std::vector<ElementType> types, Attributes attributes = {}) {
  std::vector<Shape> shapes;
  for (ElementType type : types) shapes.push_back(Shape(type, {2}));
  std::vector<const Shape*> operands;
  for (const Shape& shape : shapes) operands.push_back(&shape);
  Result<Shape> result = InferShape({opcode, operands, attributes, nullptr, {}});
  return result.ok() ? std::string(TypeName(result->type())) : "no";
}

std::string BitsOf(const Shape& operand, ElementType to) {
  const Shape* operands[] = {&operand};
  const Shape declared = Shape::Scalar(to);
  Result<Shape> result = InferShape({Opcode::kBitcastConvert, operands, {}, &declared, {}});
  return result.ok() ? result->ToString() : std::string(result.status().message());
}

TEST(InferenceOfTypes, FunctionsOfComplexNumbers) {
  for (Opcode op : {Opcode::kAcos,        Opcode::kAcosh,
                    Opcode::kAsin,        Opcode::kAsinh,
                    Opcode::kAtanh,       Opcode::kCbrt,
                    Opcode::kCosh,        Opcode::kCosine,
                    Opcode::kExponential, Opcode::kExponentialMinusOne,
                    Opcode::kLog,         Opcode::kLogPlusOne,
                    Opcode::kLogistic,    Opcode::kNegate,
                    Opcode::kRsqrt,       Opcode::kSign,
                    Opcode::kSine,        Opcode::kSinh,
                    Opcode::kSqrt,        Opcode::kTan,
                    Opcode::kTanh}) {
    EXPECT_EQ(TypeOf(op, {kC64}), "c64") << OpcodeName(op);
    EXPECT_EQ(TypeOf(op, {kC128}), "c128") << OpcodeName(op);
    EXPECT_EQ(TypeOf(op, {kF8E4M3FN}), "f8e4m3fn") << OpcodeName(op);
  }
  for (Opcode op : {Opcode::kAdd, Opcode::kAtan2, Opcode::kDivide, Opcode::kMaximum,
                    Opcode::kMultiply, Opcode::kPower, Opcode::kSubtract}) {
    EXPECT_EQ(TypeOf(op, {kC64, kC64}), "c64") << OpcodeName(op);
    EXPECT_EQ(TypeOf(op, {kC64, kC128}), "no") << OpcodeName(op);
    EXPECT_EQ(TypeOf(op, {kC64, kF32}), "no") << OpcodeName(op);
  }
  for (Opcode op : {Opcode::kAbs, Opcode::kReal, Opcode::kImag}) {
    EXPECT_EQ(TypeOf(op, {kC64}), "f32") << OpcodeName(op);
    EXPECT_EQ(TypeOf(op, {kC128}), "f64") << OpcodeName(op);
    EXPECT_EQ(TypeOf(op, {kBF16}), "bf16") << OpcodeName(op);
  }
  for (Opcode op : {Opcode::kCeil, Opcode::kErf, Opcode::kFloor, Opcode::kIsFinite, Opcode::kNot,
                    Opcode::kPopcnt, Opcode::kRoundNearestEven}) {
    EXPECT_EQ(TypeOf(op, {kC64}), "no") << OpcodeName(op);
  }
  for (Opcode op : {Opcode::kRemainder, Opcode::kAnd, Opcode::kShiftLeft, Opcode::kMulhi}) {
    EXPECT_EQ(TypeOf(op, {kC64, kC64}), "no") << OpcodeName(op);
  }
  for (Direction direction : {Direction::kEq, Direction::kNe}) {
    EXPECT_EQ(TypeOf(Opcode::kCompare, {kC64, kC64}, {{Attr::kDirection, direction}}), "pred");
  }
  EXPECT_EQ(TypeOf(Opcode::kCompare, {kC64, kC64}, {{Attr::kDirection, Direction::kGe}}), "no");
}

TEST(InferenceOfTypes, ComplexNumbersAreMadeOfTwo) {
  EXPECT_EQ(TypeOf(Opcode::kComplex, {kF32, kF32}), "c64");
  EXPECT_EQ(TypeOf(Opcode::kComplex, {kF64, kF64}), "c128");
  EXPECT_EQ(TypeOf(Opcode::kComplex, {kF32, kF64}), "no");
  EXPECT_EQ(TypeOf(Opcode::kComplex, {kF16, kF16}), "no");
  EXPECT_EQ(TypeOf(Opcode::kComplex, {kC64, kC64}), "no");
  EXPECT_EQ(TypeOf(Opcode::kComplex, {kS32, kS32}), "no");
}

TEST(InferenceOfTypes, BitsOfAllWidths) {
  EXPECT_EQ(BitsOf(Shape(kC64, {3}), kF32), "f32[3,2]");
  EXPECT_EQ(BitsOf(Shape(kF64, {3, 2}), kC128), "c128[3]");
  EXPECT_EQ(BitsOf(Shape(kC64, {3}), kU64), "u64[3]");
  EXPECT_EQ(BitsOf(Shape(kC128, {}), kC64), "c64[2]");
  EXPECT_EQ(BitsOf(Shape(kS8, {3}), kS4), "s4[3,2]");
  EXPECT_EQ(BitsOf(Shape(kU2, {3, 8}), kU16), "u16[3]");
  EXPECT_EQ(BitsOf(Shape(kF8E5M2, {3}), kF8E8M0FNU), "f8e8m0fnu[3]");
  EXPECT_EQ(BitsOf(Shape(kF6E2M3FN, {3}), kS2), "s2[3,3]");
  EXPECT_EQ(BitsOf(Shape(kF6E2M3FN, {3}), kU8),
            "bitcast-convert: operand has shape f6e2m3fn[3]; 8 bits are no multiple of the 6 of "
            "f6e2m3fn");
  EXPECT_EQ(
      BitsOf(Shape(kU8, {3}), kF6E3M2FN),
      "bitcast-convert: operand has shape u8[3]; 8 bits are no multiple of the 6 of f6e3m2fn");
}

}  // namespace
}  // namespace kiln
