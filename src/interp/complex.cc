#include "interp/complex.h"

#include <numbers>

#include "interp/scalar.h"

namespace kiln::interp {
namespace {

template <typename W>
using Complex = std::complex<W>;

// No exceptions are made for an infinite real part with an angle that is none, as C has them.
template <typename W>
Complex<W> Exp(const Complex<W>& z) {
  const W size = std::exp(z.real());
  if (z.imag() == 0) return {size, z.imag()};
  return {size * std::cos(z.imag()), size * std::sin(z.imag())};
}

template <typename W>
Complex<W> ExpMinusOne(const Complex<W>& z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  // exp(x) cos(y) - 1, where cos(y) is 1 - 2 sin(y / 2)^2.
  const W half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
          std::exp(z.real()) * std::sin(z.imag())};
}

// x + y as a sum and what that lacks.
template <typename W>
void AddTo(W& sum, W& rest, W x) {
  const W next = sum + x, back = next - sum;
  rest += (sum - (next - back)) + (x - back);
  sum = next;
}

// |1 + z|^2 - 1, where that is small.
template <typename W>
W SquareMinusOne(const Complex<W>& z) {
  const W x = z.real(), y = z.imag(), xx = x * x, yy = y * y;
  W sum = 0, rest = 0;
  for (W term : {2 * x, yy, xx, std::fma(y, y, -yy), std::fma(x, x, -xx)}) AddTo(sum, rest, term);
  return sum + rest;
}

template <typename W>
Complex<W> LogPlusOne(const Complex<W>& z) {
  const W x = z.real() + 1;
  const W angle = std::atan2(z.imag(), x);
  const W square = std::fabs(z.real()) < 4 && std::fabs(z.imag()) < 4 ? SquareMinusOne(z) : W{4};
  if (std::fabs(square) < W{0.5}) return {std::log1p(square) / 2, angle};
  return {std::log(std::hypot(x, z.imag())), angle};
}

// The root whose angle is a third of z's.
template <typename W>
Complex<W> CubeRoot(const Complex<W>& z) {
  const W size = std::cbrt(std::hypot(z.real(), z.imag()));
  if (size == 0) return {size, z.imag()};
  const W angle = std::atan2(z.imag(), z.real()) / 3;
  return {size * std::cos(angle), size * std::sin(angle)};
}

template <typename W>
Complex<W> ReciprocalRoot(const Complex<W>& z) {
  return ComplexQuotient(Complex<W>(1), std::sqrt(z));
}

// Each form keeps its digits where the other ones' sums cancel: at the poles, where exp(-z) is -1,
// the one by tanh does.
template <typename W>
Complex<W> LogisticOf(const Complex<W>& z) {
  if (std::fabs(z.real()) <= 1) {
    const Complex<W> t = std::tanh(Complex<W>(z.real() / 2, z.imag() / 2));
    return {(1 + t.real()) / 2, t.imag() / 2};
  }
  const Complex<W> e = Exp(z.real() < 0 ? z : -z), divisor(1 + e.real(), e.imag());
  return ComplexQuotient(z.real() < 0 ? e : Complex<W>(1), divisor);
}

template <typename W>
Complex<W> SignOf(const Complex<W>& z) {
  const W size = std::hypot(z.real(), z.imag());
  if (size == 0) return {};
  return {z.real() / size, z.imag() / size};
}

// exp(y log(x)): in the widest type there is, as the exponent may be large.
template <typename W>
Complex<W> PowerOf(const Complex<W>& x, const Complex<W>& y) {
  using L = long double;
  if (y == Complex<W>()) return W{1};
  if (x == Complex<W>() && y.imag() == 0 && y.real() > 0) return W{0};
  const L log = std::log(Complex<L>(x)).real(), angle = std::atan2(L{x.imag()}, L{x.real()});
  const L c = y.real(), d = y.imag();
  // A factor of 0 takes no part, also beside an infinity.
  const L of_size = d == 0 ? c * log : c * log - d * angle;
  const L of_angle = d == 0 ? c * angle : c * angle + d * log;
  const Complex<L> power = Exp(Complex<L>(of_size, of_angle));
  return {static_cast<W>(power.real()), static_cast<W>(power.imag())};
}

// -i * log((x + i * y) / sqrt(x * x + y * y)). That differs from atan(y / x) by a multiple of pi,
// of which it says which one; the latter is exact where it is small.
template <typename W>
Complex<W> AngleOf(const Complex<W>& y, const Complex<W>& x) {
  const Complex<W> point(x.real() - y.imag(), x.imag() + y.real());
  const Complex<W> square = ComplexProduct(x, x) + ComplexProduct(y, y);
  const Complex<W> log = std::log(ComplexQuotient(point, std::sqrt(square)));
  const Complex<W> exact = std::atan(ComplexQuotient(y, x));
  constexpr W kPi = std::numbers::pi_v<W>;
  const W turns = std::nearbyint((log.imag() - exact.real()) / kPi);
  if (!std::isfinite(turns) || !std::isfinite(exact.imag())) return {log.imag(), -log.real()};
  return {exact.real() + turns * kPi, exact.imag()};
}

// By the real parts, then by the imaginary ones.
template <typename T>
bool IsGreater(const T& x, const T& y) {
  return x.real() == y.real() ? x.imag() > y.imag() : x.real() > y.real();
}
template <typename T>
T Greater(const T& x, const T& y) {
  return IsGreater(x, y) ? x : y;
}
template <typename T>
T Less(const T& x, const T& y) {
  return IsGreater(y, x) ? x : y;
}

template <typename T>
class Job {
 public:
  using Part = typename T::value_type;
  using W = WiderComplex<T>;

  Job(const ir::Instruction& instruction, std::span<const ElementwiseOperand> operands,
      std::byte* out, int64_t count)
      : instruction_(instruction), operands_(operands), out_(out), count_(count) {}

  Status Run() const;

 private:
  // f gives elements of type R of those of type X.
  template <typename X, typename R, typename F>
  Status Map(F&& f) const {
    Elements<X> x(operands_[0]);
    for (int64_t k = 0; k < count_; ++k) reinterpret_cast<R*>(out_)[k] = f(x[k]);
    return OkStatus();
  }
  template <typename X, typename R, typename F>
  Status Zip(F&& f) const {
    Elements<X> x(operands_[0]), y(operands_[1]);
    for (int64_t k = 0; k < count_; ++k) reinterpret_cast<R*>(out_)[k] = f(x[k], y[k]);
    return OkStatus();
  }
  // The same in the wider type, rounded.
  template <typename F>
  Status Unary(F&& f) const {
    return Map<T, T>([&](const T& x) { return RoundTo<T>(f(W(x))); });
  }
  template <typename F>
  Status Binary(F&& f) const {
    return Zip<T, T>([&](const T& x, const T& y) { return RoundTo<T>(f(W(x), W(y))); });
  }
  Status Clamp() const {
    Elements<T> low(operands_[0]), x(operands_[1]), high(operands_[2]);
    for (int64_t k = 0; k < count_; ++k) {
      reinterpret_cast<T*>(out_)[k] = Less(Greater(x[k], low[k]), high[k]);
    }
    return OkStatus();
  }

  const ir::Instruction& instruction_;
  std::span<const ElementwiseOperand> operands_;
  std::byte* out_;
  int64_t count_;
};

template <typename T>
Status Job<T>::Run() const {
  switch (instruction_.opcode()) {
    case Opcode::kComplex:
      return Zip<Part, T>([](Part x, Part y) { return T(x, y); });
    case Opcode::kReal:
      return Map<T, Part>([](const T& x) { return x.real(); });
    case Opcode::kImag:
      return Map<T, Part>([](const T& x) { return x.imag(); });
    case Opcode::kAbs:
      return Map<T, Part>(
          [](const T& x) { return static_cast<Part>(std::hypot(W(x).real(), W(x).imag())); });
    case Opcode::kCompare: {
      // Inference lets no other direction through.
      const bool equal = instruction_.attributes().DirectionOf(Attr::kDirection) == Direction::kEq;
      return Zip<T, bool>([=](const T& x, const T& y) { return (x == y) == equal; });
    }
    case Opcode::kAcos:
      return Unary([](const W& x) { return std::acos(x); });
    case Opcode::kAcosh:
      return Unary([](const W& x) { return std::acosh(x); });
    case Opcode::kAsin:
      return Unary([](const W& x) { return std::asin(x); });
    case Opcode::kAsinh:
      return Unary([](const W& x) { return std::asinh(x); });
    case Opcode::kAtanh:
      return Unary([](const W& x) { return std::atanh(x); });
    case Opcode::kCbrt:
      return Unary([](const W& x) { return CubeRoot(x); });
    case Opcode::kCosh:
      return Unary([](const W& x) { return std::cosh(x); });
    case Opcode::kCosine:
      return Unary([](const W& x) { return std::cos(x); });
    case Opcode::kExponential:
      return Unary([](const W& x) { return Exp(x); });
    case Opcode::kExponentialMinusOne:
      return Unary([](const W& x) { return ExpMinusOne(x); });
    case Opcode::kLog:
      return Unary([](const W& x) { return std::log(x); });
    case Opcode::kLogPlusOne:
      return Unary([](const W& x) { return LogPlusOne(x); });
    case Opcode::kLogistic:
      return Unary([](const W& x) { return LogisticOf(x); });
    case Opcode::kNegate:
      return Map<T, T>([](const T& x) { return -x; });
    case Opcode::kRsqrt:
      return Unary([](const W& x) { return ReciprocalRoot(x); });
    case Opcode::kSign:
      return Unary([](const W& x) { return SignOf(x); });
    case Opcode::kSine:
      return Unary([](const W& x) { return std::sin(x); });
    case Opcode::kSinh:
      return Unary([](const W& x) { return std::sinh(x); });
    case Opcode::kSqrt:
      return Unary([](const W& x) { return std::sqrt(x); });
    case Opcode::kTan:
      return Unary([](const W& x) { return std::tan(x); });
    case Opcode::kTanh:
      return Unary([](const W& x) { return std::tanh(x); });
    case Opcode::kAdd:
      return Zip<T, T>([](const T& x, const T& y) { return x + y; });
    case Opcode::kSubtract:
      return Zip<T, T>([](const T& x, const T& y) { return x - y; });
    case Opcode::kMultiply:
      return Binary([](const W& x, const W& y) { return NearestProduct(x, y); });
    case Opcode::kDivide:
      return Binary([](const W& x, const W& y) { return ComplexQuotient(x, y); });
    case Opcode::kPower:
      return Binary([](const W& x, const W& y) { return PowerOf(x, y); });
    case Opcode::kAtan2:
      return Binary([](const W& x, const W& y) { return AngleOf(x, y); });
    case Opcode::kMaximum:
      return Zip<T, T>([](const T& x, const T& y) { return Greater(x, y); });
    case Opcode::kMinimum:
      return Zip<T, T>([](const T& x, const T& y) { return Less(x, y); });
    case Opcode::kClamp:
      return Clamp();
    default:
      return Unimplemented(OpcodeName(instruction_.opcode()),
                           ": the evaluator has no code for complex numbers");
  }
}

}  // namespace

Status EvaluateComplex(const ir::Instruction& i, std::span<const ElementwiseOperand> operands,
                       std::byte* out, int64_t count) {
  ElementType type = operands[0].type;
  if (i.opcode() == Opcode::kComplex) type = ComplexOf(type);
  if (type == ElementType::kC64) return Job<std::complex<float>>(i, operands, out, count).Run();
  return Job<std::complex<double>>(i, operands, out, count).Run();
}

}  // namespace kiln::interp
