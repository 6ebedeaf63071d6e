#include "interp/elementwise.h"

#include "base/strings.h"
#include "interp/scalar.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// Transcendental functions of f32 are computed in double and rounded once; those of f64 in long
// double.
template <Float T>
using More = std::conditional_t<std::same_as<T, float>, double, long double>;

template <Float T>
bool UnaryFloat(Opcode opcode, T x, T& out) {
  const More<T> w = x;
  switch (opcode) {
    case Opcode::kCeil:
      out = std::ceil(x);
      return true;
    case Opcode::kFloor:
      out = std::floor(x);
      return true;
    case Opcode::kRoundNearestAfz:
      out = std::round(x);
      return true;
    case Opcode::kRoundNearestEven:
      out = std::nearbyint(x);
      return true;
    case Opcode::kExponential:
      out = static_cast<T>(std::exp(w));
      return true;
    case Opcode::kExponentialMinusOne:
      out = static_cast<T>(std::expm1(w));
      return true;
    case Opcode::kLog:
      out = static_cast<T>(std::log(w));
      return true;
    case Opcode::kLogPlusOne:
      out = static_cast<T>(std::log1p(w));
      return true;
    case Opcode::kLogistic:
      // The form that does not overflow keeps the small results of large negative x.
      out = static_cast<T>(w < 0 ? std::exp(w) / (1 + std::exp(w)) : 1 / (1 + std::exp(-w)));
      return true;
    case Opcode::kRsqrt:
      out = static_cast<T>(1 / std::sqrt(w));
      return true;
    case Opcode::kSqrt:
      out = std::sqrt(x);
      return true;
    case Opcode::kTanh:
      out = static_cast<T>(std::tanh(w));
      return true;
    case Opcode::kAbs:
      out = std::abs(x);
      return true;
    case Opcode::kNegate:
      out = -x;
      return true;
    case Opcode::kSign:
      out = Sign(x);
      return true;
    default:
      return false;
  }
}

template <Int T>
bool UnaryInt(Opcode opcode, T x, T& out) {
  using U = std::make_unsigned_t<T>;
  switch (opcode) {
    case Opcode::kAbs:
      out = x < 0 ? Wrap<T>(Wide<T>(0) - static_cast<Wide<T>>(x)) : x;
      return true;
    case Opcode::kNegate:
      out = Wrap<T>(Wide<T>(0) - static_cast<Wide<T>>(x));
      return true;
    case Opcode::kSign:
      out = Sign(x);
      return true;
    case Opcode::kNot:
      out = static_cast<T>(~x);
      return true;
    case Opcode::kPopcnt:
      out = static_cast<T>(std::popcount(static_cast<U>(x)));
      return true;
    case Opcode::kCountLeadingZeros:
      out = static_cast<T>(std::countl_zero(static_cast<U>(x)));
      return true;
    default:
      return false;
  }
}

template <typename T>
bool Unary(Opcode opcode, T x, T& out) {
  if (opcode == Opcode::kCopy) {
    out = x;
    return true;
  }
  if constexpr (Float<T>) return UnaryFloat(opcode, x, out);
  if constexpr (Int<T>) return UnaryInt(opcode, x, out);
  if (opcode == Opcode::kNot) {
    out = !x;
    return true;
  }
  return false;
}

template <typename T>
bool BinaryLogic(Opcode opcode, T x, T y, T& out) {
  switch (opcode) {
    case Opcode::kAnd:
      out = static_cast<T>(x & y);
      return true;
    case Opcode::kOr:
      out = static_cast<T>(x | y);
      return true;
    case Opcode::kXor:
      out = static_cast<T>(x ^ y);
      return true;
    default:
      return false;
  }
}

template <Int T>
bool BinaryInt(Opcode opcode, T x, T y, T& out) {
  const auto a = static_cast<Wide<T>>(x), b = static_cast<Wide<T>>(y);
  switch (opcode) {
    case Opcode::kAdd:
      out = Wrap<T>(a + b);
      return true;
    case Opcode::kSubtract:
      out = Wrap<T>(a - b);
      return true;
    case Opcode::kMultiply:
      out = Wrap<T>(a * b);
      return true;
    case Opcode::kDivide:
      out = Divide(x, y);
      return true;
    case Opcode::kRemainder:
      out = Remainder(x, y);
      return true;
    case Opcode::kPower:
      out = Power(x, y);
      return true;
    case Opcode::kShiftLeft:
      out = ShiftLeft(x, y);
      return true;
    case Opcode::kShiftRightArithmetic:
      out = ShiftRightArithmetic(x, y);
      return true;
    case Opcode::kShiftRightLogical:
      out = ShiftRightLogical(x, y);
      return true;
    default:
      return BinaryLogic(opcode, x, y, out);
  }
}

template <Float T>
bool BinaryFloat(Opcode opcode, T x, T y, T& out) {
  switch (opcode) {
    case Opcode::kAdd:
      out = x + y;
      return true;
    case Opcode::kSubtract:
      out = x - y;
      return true;
    case Opcode::kMultiply:
      out = x * y;
      return true;
    case Opcode::kDivide:
      out = x / y;
      return true;
    case Opcode::kRemainder:
      out = std::fmod(x, y);
      return true;
    case Opcode::kPower:
      out = static_cast<T>(std::pow(More<T>(x), More<T>(y)));
      return true;
    default:
      return false;
  }
}

template <typename T>
bool Binary(Opcode opcode, T x, T y, T& out) {
  if (opcode == Opcode::kMaximum || opcode == Opcode::kMinimum) {
    out = opcode == Opcode::kMaximum ? Maximum(x, y) : Minimum(x, y);
    return true;
  }
  if constexpr (Float<T>) return BinaryFloat(opcode, x, y, out);
  if constexpr (Int<T>) return BinaryInt(opcode, x, y, out);
  if constexpr (std::same_as<T, bool>) {
    if (opcode == Opcode::kAdd) opcode = Opcode::kOr;
    if (opcode == Opcode::kMultiply) opcode = Opcode::kAnd;
    return BinaryLogic(opcode, x, y, out);
  }
  return false;
}

Status NoSuchOp(const Instruction& i) {
  return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for shape ", i.shape());
}

Result<Literal> EvaluateCompare(const Instruction& i, const Literal& x, const Literal& y) {
  Literal out(i.shape());
  Direction direction = i.attributes().DirectionOf(Attr::kDirection);
  VisitType(x.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    auto a = x.values<T>(), b = y.values<T>();
    auto o = out.values<bool>();
    for (size_t k = 0; k < o.size(); ++k) o[k] = Compare(direction, a[k], b[k]);
  });
  return out;
}

Result<Literal> EvaluateSelect(const Instruction& i, const Literal& pred, const Literal& on_true,
                               const Literal& on_false) {
  Literal out(i.shape());
  auto p = pred.values<bool>();
  size_t width = static_cast<size_t>(ByteWidth(i.shape().type()));
  size_t n = static_cast<size_t>(i.shape().num_elements());
  for (size_t k = 0; k < n; ++k) {
    const Literal& from = p[pred.shape().rank() == 0 ? 0 : k] ? on_true : on_false;
    std::memcpy(out.data() + k * width, from.data() + k * width, width);
  }
  return out;
}

Result<Literal> EvaluateClamp(const Instruction& i, const Literal& low, const Literal& x,
                              const Literal& high) {
  Literal out(i.shape());
  VisitType(i.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    auto o = out.values<T>();
    auto l = low.values<T>(), h = high.values<T>(), v = x.values<T>();
    for (size_t k = 0; k < o.size(); ++k) {
      T least = l[low.shape().rank() == 0 ? 0 : k], most = h[high.shape().rank() == 0 ? 0 : k];
      o[k] = Minimum(Maximum(v[k], least), most);
    }
  });
  return out;
}

Result<Literal> EvaluateConvert(const Instruction& i, const Literal& operand) {
  Literal out(i.shape());
  VisitType(operand.shape().type(), [&](auto from) {
    using From = decltype(from);
    VisitType(i.shape().type(), [&](auto to) {
      using To = decltype(to);
      auto x = operand.values<From>();
      auto o = out.values<To>();
      for (size_t k = 0; k < o.size(); ++k) o[k] = Convert<To>(x[k]);
    });
  });
  return out;
}

}  // namespace

Result<Literal> EvaluateElementwise(const Instruction& i,
                                    std::span<const Literal* const> operands) {
  switch (i.opcode()) {
    case Opcode::kConvert:
      return EvaluateConvert(i, *operands[0]);
    case Opcode::kCompare:
      return EvaluateCompare(i, *operands[0], *operands[1]);
    case Opcode::kSelect:
      return EvaluateSelect(i, *operands[0], *operands[1], *operands[2]);
    case Opcode::kClamp:
      return EvaluateClamp(i, *operands[0], *operands[1], *operands[2]);
    case Opcode::kIsFinite: {
      Literal out(i.shape());
      auto o = out.values<bool>();
      for (size_t k = 0; k < o.size(); ++k) {
        o[k] = std::isfinite(operands[0]->AsDouble(static_cast<int64_t>(k)));
      }
      return out;
    }
    default:
      break;
  }
  Literal out(i.shape());
  bool known = true;
  VisitType(i.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    auto o = out.values<T>();
    auto x = operands[0]->values<T>();
    if (operands.size() == 1) {
      for (size_t k = 0; k < o.size() && known; ++k) {
        T value{};
        known = Unary<T>(i.opcode(), x[k], value);
        o[k] = value;
      }
    } else {
      auto y = operands[1]->values<T>();
      for (size_t k = 0; k < o.size() && known; ++k) {
        T value{};
        known = Binary<T>(i.opcode(), x[k], y[k], value);
        o[k] = value;
      }
    }
  });
  if (!known) return NoSuchOp(i);
  return out;
}

}  // namespace kiln::interp
