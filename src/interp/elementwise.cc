#include "interp/elementwise.h"

#include <cstring>

#include "interp/scalar.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

template <typename T>
constexpr uint32_t MaskOf() {
  if (std::same_as<T, bool>) return kPredType;
  return FloatType<T> ? kFloatType : kIntType;
}

// Elements of one operand, halves as floats. Buffers are aligned for their elements.
template <typename T>
class Elements {
 public:
  explicit Elements(const ElementwiseOperand& operand)
      : data_(reinterpret_cast<const T*>(operand.data)), step_(operand.repeats ? 0 : 1) {}
  ComputeType<T> operator[](int64_t k) const {
    return static_cast<ComputeType<T>>(data_[k * step_]);
  }

 private:
  const T* data_;
  int64_t step_;
};

struct Job {
  const Instruction& instruction;
  std::span<const ElementwiseOperand> operands;
  std::byte* out;
  int64_t count;

  template <typename T>
  T* Out() const {
    return reinterpret_cast<T*>(out);
  }
  Status NoCode(ElementType type) const {
    return Unimplemented(OpcodeName(instruction.opcode()),
                         ": the evaluator has no code for element type ", TypeName(type));
  }
};

// Calls f<T>() with the C++ type of the operand whose number is `typed_by`, where the op's row in
// ops.def allows the type: the functions behind it have code for those types alone.
template <uint32_t mask, typename F>
Status ForType(const Job& job, size_t typed_by, F&& f) {
  ElementType type = job.operands[typed_by].type;
  if (!IsSupported(type)) return job.NoCode(type);
  return VisitType(type, [&](auto zero) -> Status {
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

// f takes and gives what elements are computed in.
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

Status Atan2Elements(const Job& job) {
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    Elements<T> y(job.operands[0]), x(job.operands[1]);
    for (int64_t k = 0; k < job.count; ++k) {
      Put<T>(job, k, std::atan2(Wider<T>{y[k]}, Wider<T>{x[k]}));
    }
  });
}

// By the bits, which count up with magnitudes.
Status NextAfterElements(const Job& job) {
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    using Bits = SignedBits<sizeof(T)>;
    Elements<T> x(job.operands[0]), y(job.operands[1]);
    for (int64_t k = 0; k < job.count; ++k) {
      const auto from = x[k], to = y[k];
      T& out = job.Out<T>()[k];
      if (std::isnan(from) || std::isnan(to)) {
        out = std::numeric_limits<T>::quiet_NaN();
      } else if (from == to) {
        out = static_cast<T>(to);
      } else if (from == 0) {
        out = std::bit_cast<T>(Bits{1});
        if (to < 0) out = -out;
      } else {
        const Bits bits = std::bit_cast<Bits>(static_cast<T>(from));
        const bool away = (from < to) == (from > 0);
        out = std::bit_cast<T>(static_cast<Bits>(away ? bits + 1 : bits - 1));
      }
    }
  });
}

// By the bits, which a conversion of a NaN might change.
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

Status StochasticConvertElements(const Job& job) {
  return ForType<kFloatType>(job, 0, [&](auto zero) {
    using T = decltype(zero);
    using Random = std::make_unsigned_t<SignedBits<sizeof(T)>>;
    Elements<T> x(job.operands[0]);
    Elements<Random> random(job.operands[1]);
    VisitType(job.instruction.shape().type(), [&](auto to) {
      using To = decltype(to);
      if constexpr (std::signed_integral<To>) {
        for (int64_t k = 0; k < job.count; ++k) {
          job.Out<To>()[k] = StochasticConvert<To>(x[k], random[k]);
        }
      }
    });
  });
}

Status ConvertElements(const Job& job) {
  ElementType to = job.instruction.shape().type();
  if (!IsSupported(to)) return job.NoCode(to);
  return ForType<kAny>(job, 0, [&](auto from) {
    using From = decltype(from);
    const ElementwiseOperand& x = job.operands[0];
    auto* in = reinterpret_cast<const From*>(x.data);
    VisitType(to, [&](auto zero) {
      using To = decltype(zero);
      To* out = job.Out<To>();
      for (int64_t k = 0; k < job.count; ++k) out[k] = Convert<To>(in[x.repeats ? 0 : k]);
    });
  });
}

Status ReduceElements(const Job& job) {
  const Attributes& a = job.instruction.attributes();
  auto reduce = [&](auto word, int mantissa) {
    using Bits = decltype(word);
    Elements<Bits> x(job.operands[0]);
    for (int64_t k = 0; k < job.count; ++k) {
      job.Out<Bits>()[k] = ReducePrecision<Bits>(x[k], mantissa, a.Int(Attr::kExponentBits),
                                                 a.Int(Attr::kMantissaBits));
    }
    return OkStatus();
  };
  switch (job.operands[0].type) {
    case ElementType::kF64:
      return reduce(uint64_t{}, 52);
    case ElementType::kF32:
      return reduce(uint32_t{}, 23);
    case ElementType::kF16:
      return reduce(uint16_t{}, 10);
    case ElementType::kBF16:
      return reduce(uint16_t{}, 7);
    default:
      return job.NoCode(job.operands[0].type);
  }
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

// Moves bits: a NaN comes out as it went in.
Status CopyElements(const Job& job) {
  const ElementwiseOperand& x = job.operands[0];
  size_t width = static_cast<size_t>(ByteWidth(x.type));
  for (size_t k = 0; k < static_cast<size_t>(job.count); ++k) {
    std::memcpy(job.out + k * width, x.data + (x.repeats ? 0 : k * width), width);
  }
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

}  // namespace

Status EvaluateElementwise(const Instruction& i, std::span<const ElementwiseOperand> operands,
                           std::byte* out, int64_t count) {
  Job job{i, operands, out, count};
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
    case Opcode::kConvert:
      return ConvertElements(job);
    case Opcode::kCopy:
    case Opcode::kReal:
      return CopyElements(job);
    case Opcode::kCosh:
      return Rounded(job, [](auto x) { return std::cosh(x); });
    case Opcode::kCosine:
      return Rounded(job, [](auto x) { return std::cos(x); });
    case Opcode::kCountLeadingZeros:
      return Unary<kIntType>(job, [](auto x) {
        return static_cast<decltype(x)>(
            std::countl_zero(static_cast<std::make_unsigned_t<decltype(x)>>(x)));
      });
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
      return Unary<kIntType>(job, [](auto x) {
        return static_cast<decltype(x)>(
            std::popcount(static_cast<std::make_unsigned_t<decltype(x)>>(x)));
      });
    case Opcode::kReducePrecision:
      return ReduceElements(job);
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
      return Atan2Elements(job);
    case Opcode::kNextAfter:
      return NextAfterElements(job);
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
      return Binary<kIntType>(job, [](auto x, auto y) { return MultiplyHigh(x, y); });
    case Opcode::kMultiply:
      return Binary<kAny>(job, [](auto x, auto y) { return Multiply(x, y); });
    case Opcode::kOr:
      return Binary<kLogic>(job, [](auto x, auto y) { return static_cast<decltype(x)>(x | y); });
    case Opcode::kPower:
      return PowerElements(job);
    case Opcode::kRemainder:
      return Binary<kIntType | kFloatType>(job, [](auto x, auto y) { return Remainder(x, y); });
    case Opcode::kShiftLeft:
      return Binary<kIntType>(job, [](auto x, auto y) { return ShiftLeft(x, y); });
    case Opcode::kShiftRightArithmetic:
      return Binary<kIntType>(job, [](auto x, auto y) { return ShiftRightArithmetic(x, y); });
    case Opcode::kShiftRightLogical:
      return Binary<kIntType>(job, [](auto x, auto y) { return ShiftRightLogical(x, y); });
    case Opcode::kStochasticConvert:
      return StochasticConvertElements(job);
    case Opcode::kSubtract:
      return Binary<kIntType | kFloatType>(job, [](auto x, auto y) { return Subtract(x, y); });
    case Opcode::kXor:
      return Binary<kLogic>(job, [](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); });
    case Opcode::kBesselI1e:
    case Opcode::kDigamma:
    case Opcode::kErfInv:
    case Opcode::kErfc:
    case Opcode::kLgamma:
    case Opcode::kPolygamma:
    case Opcode::kZeta:
      return job.NoCode(job.operands[0].type);
    case Opcode::kClamp:
      return ClampElements(job);
    case Opcode::kSelect:
      return SelectElements(job);
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
    case Opcode::kConvolution:
    case Opcode::kSelectAndScatter:
    case Opcode::kSetDimensionSize:
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kPartitionId:
    case Opcode::kReduceScatter:
    case Opcode::kReplicaId:
    case Opcode::kAfterAll:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kIota:
    case Opcode::kBitcast:
    case Opcode::kBitcastConvert:
    case Opcode::kBroadcast:
    case Opcode::kConcatenate:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kGather:
    case Opcode::kGetDimensionSize:
    case Opcode::kPad:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kScatter:
    case Opcode::kSlice:
    case Opcode::kSort:
    case Opcode::kTopK:
    case Opcode::kTranspose:
    case Opcode::kDot:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kFusion:
    case Opcode::kGetTupleElement:
    case Opcode::kMap:
    case Opcode::kOptBarrier:
    case Opcode::kTuple:
    case Opcode::kWhile:
      break;
  }
  return Internal(OpcodeName(i.opcode()), " is not elementwise");
}

}  // namespace kiln::interp
