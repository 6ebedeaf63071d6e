#include "interp/elementwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "interp/complex.h"
#include "interp/narrow.h"
#include "interp/scalar.h"
#include "interp/special.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// The mask bit of a kernel's type.
template <typename T>
constexpr uint32_t MaskOf() {
  if (std::same_as<T, bool>) return kPredType;
  return FloatType<T> ? kFloatType : kIntType;
}

struct Job {
  const Instruction& instruction;
  std::span<const ElementwiseOperand> operands;
  ElementType result;
  std::byte* out;
  int64_t count;
  int bits;  // of the first operand's elements, where they are integers

  template <typename T>
  T* Out() const {
    return reinterpret_cast<T*>(out);
  }
  Status NoCode(ElementType type) const {
    return Unimplemented(OpcodeName(instruction.opcode()),
                         ": the evaluator has no code for element type ", TypeName(type));
  }
};

// Calls f<T>() with the C++ type of operand `typed_by`, if the op's row in ops.def allows the type:
// code is instantiated for allowed types only.
template <uint32_t mask, typename F>
Status ForType(const Job& job, size_t typed_by, F&& f) {
  ElementType type = job.operands[typed_by].type;
  return VisitKernelType(type, [&](auto zero) -> Status {
    using T = decltype(zero);
    if constexpr ((MaskOf<T>() & mask) != 0) {
      f(zero);
      return OkStatus();
    } else {
      return job.NoCode(type);
    }
  });
}

// Stores a result of an op on elements of type T: a pred, or rounded to T.
template <typename T, typename R>
void Put(const Job& job, int64_t k, R result) {
  if constexpr (FloatType<T> && Float<R>) {
    job.Out<T>()[k] = RoundTo<T>(result);
  } else {
    job.Out<R>()[k] = result;
  }
}

// f maps values of the type of computation.
template <uint32_t mask, typename F>
Status Unary(const Job& job, F&& f) {
  return ForType<mask>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> x(job.operands[0]);
    for (int64_t k = 0; k < job.count; ++k) Put<T>(job, k, f(x[k]));
  });
}

// A function that rounds: f has the wider type.
template <typename F>
Status Rounded(const Job& job, F&& f) {
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> x(job.operands[0]);
    for (int64_t k = 0; k < job.count; ++k) Put<T>(job, k, f(Wider<T>{x[k]}));
  });
}

template <typename F>
Status RoundedBinary(const Job& job, F&& f) {
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> x(job.operands[0]), y(job.operands[1]);
    for (int64_t k = 0; k < job.count; ++k) Put<T>(job, k, f(Wider<T>{x[k]}, Wider<T>{y[k]}));
  });
}

template <uint32_t mask, typename F>
Status Binary(const Job& job, F&& f) {
  return ForType<mask>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> x(job.operands[0]), y(job.operands[1]);
    for (int64_t k = 0; k < job.count; ++k) Put<T>(job, k, f(x[k], y[k]));
  });
}

Status PowerElements(const Job& job) {
  return ForType<kIntType | kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> x(job.operands[0]), y(job.operands[1]);
    for (int64_t k = 0; k < job.count; ++k) {
      if constexpr (FloatType<T>) {
        Put<T>(job, k, std::pow(Wider<T>{x[k]}, Wider<T>{y[k]}));
      } else {
        Put<T>(job, k, Power(x[k], y[k]));
      }
    }
  });
}

// By the bits, because a conversion might change a NaN.
Status CompareTotalOrder(const Job& job) {
  Direction direction = job.instruction.attributes().DirectionOf(Attr::kDirection);
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using Bits = SignedBits<sizeof(zero)>;
    auto key = [&](size_t operand, int64_t k) {
      const ElementwiseOperand& from = job.operands[operand];
      Bits bits;
      std::memcpy(&bits, from.data + (from.repeats ? 0 : k) * static_cast<int64_t>(sizeof(Bits)),
                  sizeof(Bits));
      return TotalOrderKey(bits);
    };
    for (int64_t k = 0; k < job.count; ++k) {
      job.Out<bool>()[k] = Compare(direction, key(0, k), key(1, k));
    }
  });
}

// To any integer type.
Status StochasticConvertElements(const Job& job) {
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    using Random =
        std::conditional_t<std::same_as<T, double>, uint64_t,
                           std::conditional_t<std::same_as<T, float>, uint32_t, uint16_t>>;
    Elements<T> x(job.operands[0]);
    // The number is as wide as the declared operand, which may be stored in a wider type.
    const ElementwiseOperand& random = job.operands[1];
    auto number = [&](int64_t k) -> uint64_t {
      if (random.type == ElementType::kU8) return Elements<uint8_t>(random)[k];
      return Elements<Random>(random)[k];
    };
    VisitType(job.result, [&](auto to) {
      using To = decltype(to);
      if constexpr (IntType<To>) {
        for (int64_t k = 0; k < job.count; ++k) {
          job.Out<To>()[k] = StochasticConvert<To>(x[k], number(k), job.bits);
        }
      }
    });
  });
}

// Calls f with an unsigned integer as wide as the first operand's elements are in memory.
template <typename F>
Status ForBits(const Job& job, F&& f) {
  switch (ByteWidth(job.operands[0].type)) {
    case 1:
      f(uint8_t{});
      return OkStatus();
    case 2:
      f(uint16_t{});
      return OkStatus();
    case 4:
      f(uint32_t{});
      return OkStatus();
    default:
      f(uint64_t{});
      return OkStatus();
  }
}

Status ReduceElements(const Job& job) {
  const Attributes& a = job.instruction.attributes();
  const FloatFormat format = *FormatOf(job.operands[0].type);
  return ForBits(job, [&](auto word) {
    using Bits = decltype(word);
    Elements<Bits> x(job.operands[0]);
    for (int64_t k = 0; k < job.count; ++k) {
      job.Out<Bits>()[k] = ReducePrecision<Bits>(format, x[k], a.Int(Attr::kExponentBits),
                                                 a.Int(Attr::kMantissaBits));
    }
  });
}

Status NextAfterElements(const Job& job) {
  const FloatFormat format = *FormatOf(job.operands[0].type);
  return ForBits(job, [&](auto word) {
    using Bits = decltype(word);
    Elements<Bits> x(job.operands[0]), y(job.operands[1]);
    for (int64_t k = 0; k < job.count; ++k) {
      job.Out<Bits>()[k] = NextAfter<Bits>(format, x[k], y[k]);
    }
  });
}

Status ClampElements(const Job& job) {
  return ForType<kAny>(job, 1, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> low(job.operands[0]), x(job.operands[1]), high(job.operands[2]);
    for (int64_t k = 0; k < job.count; ++k) {
      Put<T>(job, k, Minimum(Maximum(x[k], low[k]), high[k]));
    }
  });
}

// Moves bits: NaNs are unchanged.
Status CopyElements(const Job& job) {
  const ElementwiseOperand& x = job.operands[0];
  const auto width = static_cast<size_t>(ByteWidth(x.type)), count = static_cast<size_t>(job.count);
  if (!x.repeats) {
    if (count > 0) std::memcpy(job.out, x.data, count * width);
    return OkStatus();
  }
  for (size_t k = 0; k < count; ++k) std::memcpy(job.out + k * width, x.data, width);
  return OkStatus();
}

Status SelectElements(const Job& job) {
  Elements<bool> pred(job.operands[0]);
  size_t width = static_cast<size_t>(ByteWidth(job.operands[1].type));
  for (int64_t k = 0; k < job.count; ++k) {
    const ElementwiseOperand& from = job.operands[pred[k] ? 1 : 2];
    size_t at = static_cast<size_t>(k) * width;
    std::memcpy(job.out + at, from.data + (from.repeats ? 0 : at), width);
  }
  return OkStatus();
}

// Ops on the types of kernels.
Status EvaluateWide(const Job& job) {
  const Instruction& i = job.instruction;
  switch (i.opcode()) {
    case Opcode::kAbs:
      return Unary<kIntType | kFloatType>(job, [](auto x) { return Abs(x); });
    case Opcode::kAcos:
      return Rounded(job, [](auto x) { return std::acos(x); });
    case Opcode::kAcosh:
      return Rounded(job, [](auto x) { return std::acosh(x); });
    case Opcode::kAsin:
      return Rounded(job, [](auto x) { return std::asin(x); });
    case Opcode::kAsinh:
      return Rounded(job, [](auto x) { return std::asinh(x); });
    case Opcode::kAtanh:
      return Rounded(job, [](auto x) { return std::atanh(x); });
    case Opcode::kCbrt:
      return Rounded(job, [](auto x) { return std::cbrt(x); });
    case Opcode::kCeil:
      return Unary<kFloatType>(job, [](auto x) { return std::ceil(x); });
    case Opcode::kReal:
      return CopyElements(job);
    case Opcode::kCosh:
      return Rounded(job, [](auto x) { return std::cosh(x); });
    case Opcode::kCosine:
      return Rounded(job, [](auto x) { return std::cos(x); });
    case Opcode::kCountLeadingZeros:
      return Unary<kIntType>(job, [&](auto x) { return CountLeadingZeros(x, job.bits); });
    case Opcode::kErf:
      return Rounded(job, [](auto x) { return std::erf(x); });
    case Opcode::kExponential:
      return Rounded(job, [](auto x) { return std::exp(x); });
    case Opcode::kExponentialMinusOne:
      return Rounded(job, [](auto x) { return std::expm1(x); });
    case Opcode::kFloor:
      return Unary<kFloatType>(job, [](auto x) { return std::floor(x); });
    case Opcode::kImag:
      return Unary<kFloatType>(job, [](auto x) { return decltype(x){0}; });
    case Opcode::kIsFinite:
      return Unary<kFloatType>(job, [](auto x) { return static_cast<bool>(std::isfinite(x)); });
    case Opcode::kLog:
      return Rounded(job, [](auto x) { return std::log(x); });
    case Opcode::kLogPlusOne:
      return Rounded(job, [](auto x) { return std::log1p(x); });
    case Opcode::kLogistic:
      return Rounded(job, [](auto x) { return Logistic(x); });
    case Opcode::kNegate:
      return Unary<kIntType | kFloatType>(job, [](auto x) { return Negate(x); });
    case Opcode::kNot:
      return Unary<kLogic>(job, [](auto x) { return Not(x); });
    case Opcode::kPopcnt:
      return Unary<kIntType>(job, [&](auto x) { return PopulationCount(x, job.bits); });
    case Opcode::kRoundNearestAfz:
      return Unary<kFloatType>(job, [](auto x) { return std::round(x); });
    case Opcode::kRoundNearestEven:
      // The evaluator's environment rounds to nearest even.
      return Unary<kFloatType>(job, [](auto x) { return std::nearbyint(x); });
    case Opcode::kRsqrt:
      return Rounded(job, [](auto x) { return 1 / std::sqrt(x); });
    case Opcode::kSign:
      return Unary<kIntType | kFloatType>(job, [](auto x) { return Sign(x); });
    case Opcode::kSine:
      return Rounded(job, [](auto x) { return std::sin(x); });
    case Opcode::kSinh:
      return Rounded(job, [](auto x) { return std::sinh(x); });
    case Opcode::kSqrt:
      return Unary<kFloatType>(job, [](auto x) { return std::sqrt(x); });
    case Opcode::kTan:
      return Rounded(job, [](auto x) { return std::tan(x); });
    case Opcode::kTanh:
      return Rounded(job, [](auto x) { return std::tanh(x); });
    case Opcode::kAdd:
      return Binary<kAny>(job, [](auto x, auto y) { return Add(x, y); });
    case Opcode::kAnd:
      return Binary<kLogic>(job, [](auto x, auto y) { return static_cast<decltype(x)>(x & y); });
    case Opcode::kAtan2:
      return RoundedBinary(job, [](auto y, auto x) { return std::atan2(y, x); });
    case Opcode::kCompare: {
      if (i.attributes().Has(Attr::kOrderType)) return CompareTotalOrder(job);
      Direction direction = i.attributes().DirectionOf(Attr::kDirection);
      return Binary<kAny>(job, [=](auto x, auto y) { return Compare(direction, x, y); });
    }
    case Opcode::kDivide:
      return Binary<kIntType | kFloatType>(job, [](auto x, auto y) { return Divide(x, y); });
    case Opcode::kMaximum:
      return Binary<kAny>(job, [](auto x, auto y) { return Maximum(x, y); });
    case Opcode::kMinimum:
      return Binary<kAny>(job, [](auto x, auto y) { return Minimum(x, y); });
    case Opcode::kMulhi:
      return Binary<kIntType>(job, [&](auto x, auto y) { return MultiplyHigh(x, y, job.bits); });
    case Opcode::kMultiply:
      return Binary<kAny>(job, [](auto x, auto y) { return Multiply(x, y); });
    case Opcode::kMultiplyNoNan:
      return Binary<kFloatType>(job, [](auto x, auto y) {
        return x == decltype(x)(0) ? decltype(x)(0) : Multiply(x, y);
      });
    case Opcode::kOr:
      return Binary<kLogic>(job, [](auto x, auto y) { return static_cast<decltype(x)>(x | y); });
    case Opcode::kPower:
      return PowerElements(job);
    case Opcode::kRemainder:
      return Binary<kIntType | kFloatType>(job, [](auto x, auto y) { return Remainder(x, y); });
    case Opcode::kShiftLeft:
      return Binary<kIntType>(job, [&](auto x, auto y) { return ShiftLeft(x, y, job.bits); });
    case Opcode::kShiftRightArithmetic:
      return Binary<kIntType>(job,
                              [&](auto x, auto y) { return ShiftRightArithmetic(x, y, job.bits); });
    case Opcode::kShiftRightLogical:
      return Binary<kIntType>(job,
                              [&](auto x, auto y) { return ShiftRightLogical(x, y, job.bits); });
    case Opcode::kStochasticConvert:
      return StochasticConvertElements(job);
    case Opcode::kSubtract:
      return Binary<kIntType | kFloatType>(job, [](auto x, auto y) { return Subtract(x, y); });
    case Opcode::kXor:
      return Binary<kLogic>(job, [](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); });
    case Opcode::kBesselI1e:
      return Rounded(job, [](auto x) { return BesselI1e(x); });
    case Opcode::kDigamma:
      return Rounded(job, [](auto x) { return Digamma(x); });
    case Opcode::kErfInv:
      return Rounded(job, [](auto x) { return ErfInv(x); });
    case Opcode::kErfc:
      return Rounded(job, [](auto x) { return Erfc(x); });
    case Opcode::kHypot:
      // By C the same, but for signalling NaNs beside an infinity.
      return RoundedBinary(job, [](auto x, auto y) {
        return std::isinf(x) || std::isinf(y) ? INFINITY : std::hypot(x, y);
      });
    case Opcode::kLgamma:
      return Rounded(job, [](auto x) { return Lgamma(x); });
    case Opcode::kPolygamma:
      return RoundedBinary(job, [](auto n, auto x) { return Polygamma(n, x); });
    case Opcode::kZeta:
      return RoundedBinary(job, [](auto s, auto q) { return Zeta(s, q); });
    case Opcode::kClamp:
      return ClampElements(job);
    // Evaluated before, or for complex numbers only.
    case Opcode::kComplex:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kSelect:
    case Opcode::kNextAfter:
    case Opcode::kReducePrecision:
#define KILN_OP(Name, ...) case Opcode::k##Name:
#define KILN_ELEMENTWISE_OP(...)
#include "ops/ops.def"
      break;
  }
  return Internal(OpcodeName(i.opcode()), " is not elementwise");
}

// Widened operands, with memory for elements of another type; a few are stored inline.
class Scratch {
 public:
  std::byte* Room(ElementType type, int64_t count) {
    const size_t bytes = static_cast<size_t>(count * ByteWidth(type));
    if (bytes <= sizeof(Few) && used_ < std::size(few_)) return few_[used_++].bytes;
    return rooms_.emplace_back(bytes).data();
  }

 private:
  struct Few {
    alignas(16) std::byte bytes[16];
  };
  Few few_[4];
  size_t used_ = 0;
  std::vector<std::vector<std::byte>> rooms_;
};

// An op with narrow types, in the wider ones.
Status EvaluateNarrow(const Job& job) {
  Scratch scratch;
  std::vector<ElementwiseOperand> wide(job.operands.begin(), job.operands.end());
  for (ElementwiseOperand& operand : wide) {
    if (!IsNarrow(operand.type)) continue;
    const int64_t count = operand.repeats ? std::min<int64_t>(job.count, 1) : job.count;
    std::byte* room = scratch.Room(WideOf(operand.type), count);
    Widen(operand.type, operand.data, count, room);
    operand.data = room;
    operand.type = WideOf(operand.type);
  }
  Job widened{job.instruction, wide, job.result, job.out, job.count, job.bits};
  // It rounds to any integer type by itself.
  if (job.instruction.opcode() == Opcode::kStochasticConvert || !IsNarrow(job.result)) {
    return EvaluateWide(widened);
  }
  widened.result = WideOf(job.result);
  widened.out = scratch.Room(widened.result, job.count);
  KILN_RETURN_IF_ERROR(EvaluateWide(widened));
  Narrow(job.result, widened.out, job.count, job.out);
  return OkStatus();
}

Status EvaluateBlock(const Instruction& i, std::span<const ElementwiseOperand> operands,
                     std::byte* out, int64_t count) {
  const int bits = operands.empty() ? 0 : static_cast<int>(BitWidth(operands[0].type));
  const Job job{i, operands, i.shape().type(), out, count, bits};
  auto is_complex = [](const ElementwiseOperand& operand) { return IsComplex(operand.type); };
  auto is_narrow = [](const ElementwiseOperand& operand) { return IsNarrow(operand.type); };
  switch (i.opcode()) {
    case Opcode::kConvert:
      Convert(operands[0].type, operands[0].data, operands[0].repeats, job.result, out, count);
      return OkStatus();
    case Opcode::kCopy:
      return CopyElements(job);
    case Opcode::kSelect:
      return SelectElements(job);
    case Opcode::kNextAfter:
      return NextAfterElements(job);
    case Opcode::kReducePrecision:
      return ReduceElements(job);
    default:
      break;
  }
  if (IsComplex(job.result) || std::ranges::any_of(operands, is_complex)) {
    return EvaluateComplex(i, operands, out, count);
  }
  if (IsNarrow(job.result) || std::ranges::any_of(operands, is_narrow)) return EvaluateNarrow(job);
  return EvaluateWide(job);
}

}  // namespace

Status EvaluateElementwise(const Instruction& i, std::span<const ElementwiseOperand> operands,
                           std::byte* out, int64_t count) {
  // What a block's elements are converted to stays in a cache.
  constexpr int64_t kBlock = 1 << 14;
  if (count <= kBlock) return EvaluateBlock(i, operands, out, count);
  std::vector<ElementwiseOperand> block(operands.begin(), operands.end());
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    KILN_RETURN_IF_ERROR(EvaluateBlock(i, block, out, size));
    for (ElementwiseOperand& operand : block) {
      if (!operand.repeats) operand.data += size * ByteWidth(operand.type);
    }
    out += size * ByteWidth(i.shape().type());
  }
  return OkStatus();
}

}  // namespace kiln::interp
