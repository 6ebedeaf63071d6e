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

// All numbers from low to high, of integers of any type.
struct Range {
  __int128 low, high;

  bool Has(const Range& other) const { return low <= other.low && other.high <= high; }
};

Range RangeOfSigned(int64_t bits) {
  const __int128 end = __int128{1} << (bits - 1);
  return {-end, end - 1};
}

Range RangeOfType(ElementType type) {
  const int64_t bits = BitWidth(type);
  return IsUnsigned(type) ? Range{0, (__int128{1} << bits) - 1} : RangeOfSigned(bits);
}

// Factors whose products are in reach of a range's numbers.
constexpr Range kFactors{-(__int128{1} << 62), __int128{1} << 62};

// The numbers that elements of an integer value may be.
Range RangeAt(const Instruction* x, int depth);

Range OfShift(const Instruction* x, const Range& all, const Range& a, const Range& b) {
  const int64_t bits = BitWidth(x->shape().type());
  if (b.low != b.high || b.low < 0 || b.low >= bits) return all;
  const auto by = static_cast<int>(b.low);
  if (x->opcode() == Opcode::kShiftLeft) {
    if (!kFactors.Has(a)) return all;
    return {a.low * (__int128{1} << by), a.high * (__int128{1} << by)};
  }
  const bool is_logical = x->opcode() == Opcode::kShiftRightLogical;
  if (is_logical ? a.low >= 0 : RangeOfSigned(bits).Has(a)) return {a.low >> by, a.high >> by};
  return all;
}

// Of x, if no operation left the type.
Range OfBinary(const Instruction* x, const Range& all, const Range& a, const Range& b) {
  const bool are_counts = a.low >= 0 && b.low >= 0;
  switch (x->opcode()) {
    case Opcode::kAdd:
      return {a.low + b.low, a.high + b.high};
    case Opcode::kSubtract:
      return {a.low - b.high, a.high - b.low};
    case Opcode::kMultiply: {
      if (!kFactors.Has(a) || !kFactors.Has(b)) return all;
      const auto [low, high] =
          std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
      return {low, high};
    }
    case Opcode::kDivide:
      if (b.low != b.high || b.low <= 0) return all;
      return {a.low / b.low, a.high / b.low};
    case Opcode::kRemainder: {
      if (b.low != b.high || b.low <= 0) return all;
      const __int128 most = b.low - 1;
      return {a.low < 0        ? std::max(a.low, -most)
              : a.high <= most ? a.low
                               : 0,
              a.high > 0       ? std::min(a.high, most)
              : a.low >= -most ? a.high
                               : 0};
    }
    case Opcode::kAnd:
      if (are_counts) return {0, std::min(a.high, b.high)};
      if (a.low >= 0) return {0, a.high};
      return b.low >= 0 ? Range{0, b.high} : all;
    case Opcode::kOr:
    case Opcode::kXor: {
      if (!are_counts) return all;
      __int128 end = 1;
      while (end <= std::max(a.high, b.high)) end *= 2;
      return {0, end - 1};
    }
    case Opcode::kMaximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Opcode::kMinimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    default:
      return OfShift(x, all, a, b);
  }
}

Range OfOp(const Instruction* x, const Range& all, int depth) {
  auto operand = [&](int64_t k) { return RangeAt(x->operand(k), depth - 1); };
  switch (x->opcode()) {
    case Opcode::kIota:
      return {0, x->shape().dim(x->attributes().Int(Attr::kIotaDimension)) - 1};
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
      return {0, BitWidth(x->shape().type())};
    case Opcode::kSign:
      return {IsUnsigned(x->shape().type()) ? 0 : -1, 1};
    case Opcode::kNegate: {
      const Range a = operand(0);
      return {-a.high, -a.low};
    }
    case Opcode::kAbs: {
      const Range a = operand(0);
      return {a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, std::max(-a.low, a.high)};
    }
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
    case Opcode::kDivide:
    case Opcode::kRemainder:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightLogical:
    case Opcode::kShiftRightArithmetic:
      return OfBinary(x, all, operand(0), operand(1));
    case Opcode::kClamp: {
      const Range l = operand(0), a = operand(1), h = operand(2);
      return {std::min(std::max(l.low, a.low), h.low), std::min(std::max(l.high, a.high), h.high)};
    }
    case Opcode::kSelect: {
      const Range a = operand(1), b = operand(2);
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    case Opcode::kConvert:
      if (IsPred(x->operand(0))) return {0, 1};
      return IsInt(x->operand(0)) ? operand(0) : all;
    case Opcode::kGetTupleElement: {
      // Places, such as those of the first elements of a sorted row.
      const Instruction* made = x->operand(0);
      const int64_t index = x->attributes().Int(Attr::kIndex);
      if (made->opcode() == Opcode::kSort) return RangeAt(made->operand(index), depth - 1);
      if (made->opcode() != Opcode::kTopK || index != 1) return all;
      return {0, made->operand(0)->shape().dims().back() - 1};
    }
    default:
      return all;
  }
}

Range RangeAt(const Instruction* x, int depth) {
  const Range all = RangeOfType(x->shape().type());
  if (depth == 0) return all;
  if (std::optional<Literal> splat = SplatOf(x)) {
    const int64_t value = splat->AsInt(0);
    if (IsUnsigned(x->shape().type()))
      return {static_cast<uint64_t>(value), static_cast<uint64_t>(value)};
    return {value, value};
  }
  if (IsSameElements(x)) return RangeAt(x->operand(0), depth - 1);
  const Range range = OfOp(x, all, depth);
  // Numbers that leave the type come back anywhere in it.
  return all.Has(range) ? range : all;
}

std::optional<Range> RangeOf(const Instruction* x) {
  if (!x->shape().is_array() || !IsInt(x) || !IsKernelType(x->shape().type())) return std::nullopt;
  return RangeAt(x, kDepth);
}

bool IsNonNegativeAt(const Instruction* x, int depth) {
  if (!x->shape().is_array() || !IsKernelType(x->shape().type())) return false;
  if (IsPred(x)) return true;
  if (IsInt(x)) return RangeAt(x, depth).low >= 0;
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
    case Opcode::kIota:
    case Opcode::kAbs:
      return true;
    case Opcode::kRemainder:
    case Opcode::kSqrt:
    case Opcode::kPower:
    case Opcode::kConvert:
      return operand(0);
    case Opcode::kMultiply:
      return x->operand(0) == x->operand(1) || (operand(0) && operand(1));
    case Opcode::kAdd:
    case Opcode::kDivide:
    case Opcode::kMinimum:
      return operand(0) && operand(1);
    case Opcode::kMaximum:
      return operand(0) || operand(1);
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

}  // namespace

bool IsBelow(const Instruction* x, const Instruction* y) {
  const std::optional<Range> a = RangeOf(x), b = RangeOf(y);
  return a && b && a->low >= 0 && a->high < b->low;
}

std::optional<int64_t> LargestValue(const Instruction* x) {
  const std::optional<Range> range = RangeOf(x);
  if (!range || range->low < 0 || range->high > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(range->high);
}

Order OrderOf(const Instruction* x, const Instruction* y) {
  const std::optional<Range> a = RangeOf(x), b = RangeOf(y);
  if (!a || !b) return {};
  Order order;
  order.is_less = a->high < b->low;
  order.is_not_greater = a->high <= b->low;
  order.is_not_less = a->low >= b->high;
  order.is_greater = a->low > b->high;
  return order;
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
