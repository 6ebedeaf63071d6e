#include "interp/complex.h"

#include "interp/quad.h"
#include "interp/scalar.h"

namespace kiln::interp {
namespace {

template <typename W>
using Complex = std::complex<W>;

// Without C's exceptions for an infinite real part with an invalid angle.
template <typename W>
Complex<W> ExpOf(const Complex<W>& z) {
  const W size = std::exp(z.real());
  if (z.imag() == 0) return {size, z.imag()};
  return {size * std::cos(z.imag()), size * std::sin(z.imag())};
}

// exp(x) cos(y) - 1, where cos(y) is 1 - 2 sin(y / 2)^2. Near its zeros this is a difference of
// numbers as close as the parts' type can represent.
Complex<Quad> ExpMinusOne(const Complex<Quad>& z) {
  const Quad x = z.real(), y = z.imag();
  if (y == 0) return {Expm1(x), y};
  const Quad half = Sin(y / 2);
  return {Expm1(x) * Cos(y) - 2 * half * half, Exp(x) * Sin(y)};
}

// x + y as a sum and its rounding error.
template <typename W>
void AddTo(W& sum, W& rest, W x) {
  const W next = sum + x, back = next - sum;
  rest += (sum - (next - back)) + (x - back);
  sum = next;
}

// |1 + z|^2 - 1, if small.
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

// conj(sqrt(z)) / |z|
template <typename W>
Complex<W> ReciprocalRoot(const Complex<W>& z) {
  const W size = std::hypot(z.real(), z.imag());
  if (std::isinf(size)) return {W{0}, std::copysign(W{0}, -z.imag())};
  if (size == 0) return {std::numeric_limits<W>::infinity(), std::numeric_limits<W>::quiet_NaN()};
  const Complex<W> root = std::sqrt(z);
  return {root.real() / size, -root.imag() / size};
}

// With e = exp(-|x|): (1 + e cos(y) + i e sin(y)) / |1 + e exp(iy)|^2, and e (e + cos(y) + i
// sin(y)) / |1 + e exp(iy)|^2 below 0. 1 + cos(y) is 2 cos(y / 2)^2, and the divisor (1 - e)^2 + 4
// e cos(y / 2)^2, which are accurate next to the poles.
Complex<Quad> LogisticOf(const Complex<Quad>& z) {
  const bool below = z.real() < 0;
  const Quad x = below ? z.real() : -z.real();
  const Quad e = Exp(x), rest = -Expm1(x), s = Sin(z.imag() / 2), c = Cos(z.imag() / 2);
  const Quad square = rest * rest + 4 * e * c * c;
  return {(below ? e * (2 * c * c - rest) : rest + 2 * e * c * c) / square, 2 * e * s * c / square};
}

template <typename W>
Complex<W> SignOf(const Complex<W>& z) {
  const W size = std::hypot(z.real(), z.imag());
  if (size == 0) return {};
  return {z.real() / size, z.imag() / size};
}

// log|z|, near 0 by |z|^2 - 1.
Quad LogOfSize(const Complex<Quad>& z) {
  const Quad xx = z.real() * z.real(), yy = z.imag() * z.imag();
  const Quad size = Hypot(z.real(), z.imag());
  if (size < Quad{0.5} || size > 2) return Log(size);
  return Log1p(xx > yy ? (xx - 1) + yy : (yy - 1) + xx) / 2;
}

// exp(y log(x)). The exponent may be large, and its imaginary part is an angle: its integral digits
// are irrelevant to the result.
Complex<Quad> PowerOf(const Complex<Quad>& x, const Complex<Quad>& y) {
  const Quad c = y.real(), d = y.imag();
  const bool is_zero = x.real() == 0 && x.imag() == 0;
  if (c == 0 && d == 0) return {Quad{1}, Quad{0}};
  if (is_zero && d == 0 && c > 0) return {};
  const Quad log = LogOfSize(x), angle = Atan2(x.imag(), x.real());
  // A factor of 0 is ignored, even with an infinity.
  const Quad of_size = d == 0 ? c * log : c * log - d * angle;
  const Quad of_angle = d == 0 ? c * angle : c * angle + d * log;
  const Quad size = Exp(of_size);
  if (of_angle == 0) return {size, of_angle};
  return {size * Cos(of_angle), size * Sin(of_angle)};
}

// -i log((x + iy) / sqrt(x^2 + y^2)), by p = x + iy and m = x - iy: the root's square is p m, so
// that it is the logarithm of sqrt(p / m) or -sqrt(p / m), by arg(p) and arg(m). With p conj(m) =
// |x|^2 - |y|^2 + 2i Re(x conj(y)) and |p|^2 - |m|^2 = -4 Im(x conj(y)) both parts are accurate if
// small.
Complex<Quad> AngleOf(const Complex<Quad>& y, const Complex<Quad>& x) {
  const Quad a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  const Quad p_real = a - d, p_imag = b + c, m_real = a + d, m_imag = b - c;
  const Quad angle_p = Atan2(p_imag, p_real), angle_m = Atan2(m_imag, m_real);
  const Quad difference = angle_p - angle_m, sum = angle_p + angle_m;
  // The angle of p conj(m) is the difference up to whole turns, and the angle of p m, halved by the
  // root, is the sum. On the negative axis their side decides.
  auto angle_of = [](Quad imag, Quad real, Quad nearly) {
    const Quad angle = Atan2(imag, real);
    return imag == 0 && (angle < 0) != (nearly < 0) ? -angle : angle;
  };
  const Quad angle = angle_of(2 * (a * c + b * d), p_real * m_real + p_imag * m_imag, difference);
  const Quad angle_of_square =
      angle_of(2 * (a * b + c * d), p_real * m_real - p_imag * m_imag, sum);
  const Quad pi = Atan2(Quad{0}, Quad{-1});
  const Quad half_turns =
      NearbyInt((difference - angle) / (2 * pi)) + NearbyInt((sum - angle_of_square) / (2 * pi));
  // Half a turn, up or down, so that it is within one.
  Quad real = angle / 2;
  if (2 * NearbyInt(half_turns / 2) != half_turns) real += real > 0 ? -pi : pi;
  const Quad pp = p_real * p_real + p_imag * p_imag, mm = m_real * m_real + m_imag * m_imag;
  const Quad excess = 4 * (a * d - b * c);
  const Quad log = excess < 0 ? -Log1p(-excess / mm) : Log1p(excess / pp);
  return {real, log / 4};
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
  // f maps elements of type X to type R.
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
  // In the widest type, for functions with cancellation.
  Status UnaryOfQuads(Complex<Quad> (*f)(const Complex<Quad>&)) const {
    return Map<T, T>([&](const T& x) { return RoundTo<T>(f({x.real(), x.imag()})); });
  }
  Status BinaryOfQuads(Complex<Quad> (*f)(const Complex<Quad>&, const Complex<Quad>&)) const {
    return Zip<T, T>([&](const T& x, const T& y) {
      return RoundTo<T>(f({x.real(), x.imag()}, {y.real(), y.imag()}));
    });
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
      // Inference allows no other direction.
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
      return Unary([](const W& x) { return ExpOf(x); });
    case Opcode::kExponentialMinusOne:
      return UnaryOfQuads(ExpMinusOne);
    case Opcode::kLog:
      return Unary([](const W& x) { return std::log(x); });
    case Opcode::kLogPlusOne:
      return Unary([](const W& x) { return LogPlusOne(x); });
    case Opcode::kLogistic:
      return UnaryOfQuads(LogisticOf);
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
      return BinaryOfQuads(PowerOf);
    case Opcode::kAtan2:
      return BinaryOfQuads(AngleOf);
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
