#include "passes/simplify/facts.h"

#include <algorithm>
#include <cmath>

#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// The depth of the search: questions stay cheap.
constexpr int kDepth = 6;

// Whether each element is an element of the first operand, of the same type.
bool IsSameElements(const Instruction* x) {
  return (IsView(x->opcode()) && x->opcode() != Opcode::kBitcast) || x->opcode() == Opcode::kCopy;
}

// The largest number of an iota.
int64_t LastCount(const Instruction* iota) {
  return iota->shape().dim(iota->attributes().Int(Attr::kIotaDimension)) - 1;
}

bool IsNonNegativeAt(const Instruction* x, int depth) {
  ElementType type = x->shape().type();
  if (!x->shape().is_array() || !IsKernelType(type)) return false;
  if (IsUnsigned(type) || IsPred(x)) return true;
  if (depth == 0) return false;
  auto operand = [&](int64_t k) { return IsNonNegativeAt(x->operand(k), depth - 1); };
  if (std::optional<Literal> splat = SplatOf(x)) {
    double value = splat->AsDouble(0);
    return !std::isnan(value) && !std::signbit(value);
  }
  if (IsSameElements(x)) return operand(0);
  switch (x->opcode()) {
    case Opcode::kExponential:
    case Opcode::kLogistic:
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
      return true;
    case Opcode::kIota:
      return IsFloat(x) || LastCount(x) < int64_t{1} << std::min<int64_t>(BitWidth(type) - 1, 62);
    case Opcode::kAbs:
      // Not of integers: the least one's absolute value is itself.
      return IsFloat(x);
    case Opcode::kAnd:
      return operand(0) || operand(1);
    case Opcode::kRemainder:
      return operand(0);
    case Opcode::kSqrt:
      return operand(0);
    case Opcode::kPower:
      // Of integers it wraps.
      return IsFloat(x) && operand(0);
    case Opcode::kConvert:
      // Integers that get narrower wrap.
      return operand(0) && (IsFloat(x) || !IsInt(x->operand(0)) ||
                            BitWidth(type) > BitWidth(x->operand(0)->shape().type()) ||
                            type == x->operand(0)->shape().type());
    case Opcode::kMultiply:
      return IsFloat(x) && (x->operand(0) == x->operand(1) || (operand(0) && operand(1)));
    case Opcode::kAdd:
    case Opcode::kDivide:
      return IsFloat(x) && operand(0) && operand(1);
    case Opcode::kMaximum:
      return operand(0) || operand(1);
    case Opcode::kMinimum:
      return operand(0) && operand(1);
    case Opcode::kClamp:
      return operand(2) && (operand(0) || operand(1));
    case Opcode::kSelect:
      return operand(1) && operand(2);
    default:
      return false;
  }
}

bool IsIntegralAt(const Instruction* x, int depth) {
  if (!x->shape().is_array() || !IsKernelType(x->shape().type())) return false;
  if (!IsFloat(x)) return true;
  if (depth == 0) return false;
  auto operand = [&](int64_t k) { return IsIntegralAt(x->operand(k), depth - 1); };
  if (std::optional<Literal> splat = SplatOf(x)) {
    double value = splat->AsDouble(0);
    return value == std::trunc(value);
  }
  if (IsSameElements(x)) return operand(0);
  switch (x->opcode()) {
    case Opcode::kCeil:
    case Opcode::kFloor:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
    case Opcode::kSign:
    case Opcode::kIota:
      return true;
    case Opcode::kConvert:
      // Conversions keep integral floats integral: all large floats are.
      return operand(0);
    case Opcode::kAbs:
    case Opcode::kNegate:
      return operand(0);
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return operand(0) && operand(1);
    case Opcode::kSelect:
      return operand(1) && operand(2);
    default:
      return false;
  }
}

// The largest possible value of the integer x, if it is known and x is not negative.
std::optional<int64_t> LargestOf(const Instruction* x, int depth) {
  if (depth == 0 || !x->shape().is_array() || !IsInt(x) || !IsKernelType(x->shape().type())) {
    return std::nullopt;
  }
  auto positive = [](const Instruction* c) -> std::optional<int64_t> {
    std::optional<Literal> splat = SplatOf(c);
    if (!splat || splat->AsInt(0) < 0) return std::nullopt;
    return splat->AsInt(0);
  };
  if (std::optional<int64_t> value = positive(x)) return value;
  if (IsSameElements(x)) return LargestOf(x->operand(0), depth - 1);
  switch (x->opcode()) {
    case Opcode::kIota: {
      int64_t last = LastCount(x), bits = BitWidth(x->shape().type());
      bool fits = last < int64_t{1} << std::min<int64_t>(bits - 1, 62);
      return fits ? std::optional(last) : std::nullopt;
    }
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
      return BitWidth(x->shape().type());
    case Opcode::kAnd: {
      std::optional<int64_t> a = positive(x->operand(0)), b = positive(x->operand(1));
      return a && b ? std::min(*a, *b) : a ? a : b;
    }
    case Opcode::kRemainder: {
      std::optional<int64_t> c = positive(x->operand(1));
      if (!c || *c == 0 || !IsNonNegativeAt(x->operand(0), depth - 1)) return std::nullopt;
      return *c - 1;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool IsBelow(const Instruction* x, const Instruction* c) {
  std::optional<int64_t> largest = LargestOf(x, kDepth);
  std::optional<Literal> bound = SplatOf(c);
  return largest && bound && IsInt(c) && *largest < bound->AsInt(0);
}

std::optional<int64_t> LargestValue(const Instruction* x) {
  return IsNonNegative(x) ? LargestOf(x, kDepth) : std::nullopt;
}

bool IsNonNegative(const Instruction* x) { return IsNonNegativeAt(x, kDepth); }

bool IsIntegral(const Instruction* x) { return IsIntegralAt(x, kDepth); }

bool IsFinite(const Instruction* x) {
  if (!IsKernelType(x->shape().type())) return false;
  if (!IsFloat(x)) return true;
  if (std::optional<Literal> splat = SplatOf(x)) return std::isfinite(splat->AsDouble(0));
  // f32 and f64 have every integer in their range.
  if (x->shape().type() != ElementType::kF32 && x->shape().type() != ElementType::kF64)
    return false;
  return x->opcode() == Opcode::kIota ||
         (x->opcode() == Opcode::kConvert && (IsInt(x->operand(0)) || IsPred(x->operand(0))));
}

}  // namespace kiln::passes::simplify
