// Every elementwise op as machine code, in vectors and in scalar tails, on the values at which ops
// have their special cases.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "program/program.h"
#include "support/jit.h"
#include "support/kernel.h"

namespace kiln {
namespace {

using testing::Buffer;
using testing::KernelBuilder;
using testing::StageBuilder;

template <typename T>
constexpr ElementType kTypeOf = ElementType::kInvalid;
template <>
constexpr ElementType kTypeOf<bool> = ElementType::kPred;
template <>
constexpr ElementType kTypeOf<uint8_t> = ElementType::kU8;
template <>
constexpr ElementType kTypeOf<int32_t> = ElementType::kS32;
template <>
constexpr ElementType kTypeOf<int64_t> = ElementType::kS64;
template <>
constexpr ElementType kTypeOf<float> = ElementType::kF32;
template <>
constexpr ElementType kTypeOf<double> = ElementType::kF64;

template <typename T>
std::vector<T> Values() {
  if constexpr (std::is_same_v<T, bool>) return {false, true};
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    std::vector<double> numbers = {0,          0.25,
                                   0.5,        1,
                                   1.5,        2,
                                   2.5,        3,
                                   7.75,       126.5,
                                   255,        255.5,
                                   256,        1e6,
                                   2147483583, 2147483647,
                                   3e9,        4503599627370497.5,
                                   9.2e18,     9223372036854775807.0,
                                   1e30,       0.49999997};
    std::vector<T> values = {L::infinity(),   L::quiet_NaN(), L::max(),  L::min(),
                             L::denorm_min(), -L::infinity(), -L::max(), -L::denorm_min()};
    for (double n : numbers) {
      values.push_back(static_cast<T>(n));
      values.push_back(static_cast<T>(-n));
    }
    return values;
  } else {
    std::vector<T> values = {L::min(), L::max(), static_cast<T>(L::min() + 1),
                             static_cast<T>(L::max() - 1)};
    for (int n : {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, 100, 127}) {
      values.push_back(static_cast<T>(n));
      values.push_back(static_cast<T>(-n));
    }
    return values;
  }
}

template <typename T>
bool Same(T a, T b, double ulps) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(b) && b != 0 &&
        std::fabs(a - b) <= ulps * std::numeric_limits<T>::epsilon() * std::fabs(b))
      return true;
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  } else {
    return a == b;
  }
}

using Buffers = std::vector<std::unique_ptr<Buffer>>;

// Runs the kernel on all n elements of the buffers, in vectors of so many bytes; 4: without
// vectors.
void Run(Opcode opcode, const KernelBuilder& k, const Buffers& buffers, int64_t n, int bytes) {
  target::Cpu cpu = target::HostCpuWithVectors(std::max(bytes, 16)).cpu;
  codegen::LoweredProgram lowered;
  program::Program& program = lowered.program;
  program::Launch launch;
  std::vector<void*> addresses;
  for (auto& b : buffers) {
    int64_t size = n * ByteWidth(b->type());
    const auto id = program.allocations.Add({program::Allocation::Kind::kArena, 0, size});
    launch.args.push_back({id, 0, size});
    addresses.push_back(b->data());
  }
  launch.kernel = lowered.kernels.next();
  kernel::CpuNestSchedule schedule;
  schedule.vector_width = bytes / 4;
  schedule.stages = {{kernel::VariableId(bytes == 4 ? -1 : 0), 1}};
  lowered.kernels.push_back({k.kernel, schedule});
  program.steps.push_back({launch});
  codegen::Options options;
  auto objects = codegen::GenerateCpu(lowered, cpu, options);
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  auto jit = testing::Jit::Load(*objects);
  ASSERT_TRUE(jit.ok()) << OpcodeName(opcode) << " " << jit.status().ToString();
  auto entry = reinterpret_cast<kiln_entry_fn>((*jit)->Lookup(program::EntrySymbol({})));
  ASSERT_NE(entry, nullptr) << OpcodeName(opcode);
  testing::TestFrame frame(addresses);
  ASSERT_EQ(entry(&frame.frame()), 0);
}

void Fail(Opcode opcode, const std::vector<double>& arguments, double actual, double expected,
          ElementType type, int bytes) {
  FAIL() << OpcodeName(opcode) << "(" << Join(arguments, ", ") << ") is " << actual << ", not "
         << expected << "; " << TypeName(type) << " in " << bytes << " bytes";
}

// Runs op(operands...) over all combinations of special values and compares with f: bit by bit, or
// within so many units in the last place.
template <typename R, typename... A>
void Check(Opcode opcode, const std::function<R(A...)>& f, Direction direction = Direction::kEq,
           double ulps = 0) {
  std::vector<std::tuple<A...>> cases = {{}};
  auto expand = [&]<size_t I>(std::integral_constant<size_t, I>) {
    std::vector<std::tuple<A...>> more;
    for (const auto& c : cases) {
      for (auto v : Values<std::tuple_element_t<I, std::tuple<A...>>>()) {
        more.push_back(c);
        std::get<I>(more.back()) = v;
      }
    }
    cases = std::move(more);
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    (expand(std::integral_constant<size_t, I>()), ...);
  }
  (std::index_sequence_for<A...>());

  auto n = static_cast<int64_t>(cases.size());
  KernelBuilder k({n});
  Buffers buffers;
  StageBuilder s = k.Stage();
  std::vector<kernel::NodeId> operands;
  auto input = [&]<size_t I>(std::integral_constant<size_t, I>) {
    using T = std::tuple_element_t<I, std::tuple<A...>>;
    buffers.push_back(std::make_unique<Buffer>(kTypeOf<T>, n));
    for (int64_t i = 0; i < n; ++i) {
      buffers.back()->template as<T>()[i] = std::get<I>(cases[static_cast<size_t>(i)]);
    }
    operands.push_back(s.Load(k.Input(kTypeOf<T>, n), k.Var(0)));
  };
  [&]<size_t... I>(std::index_sequence<I...>) { (input(std::integral_constant<size_t, I>()), ...); }
  (std::index_sequence_for<A...>());
  const auto out = k.Output(kTypeOf<R>, n);
  buffers.push_back(std::make_unique<Buffer>(kTypeOf<R>, n));
  s.Store(out, k.Var(0), s.Op(opcode, kTypeOf<R>, operands, direction));

  for (int bytes : {4, 16, 32, 64}) {
    Run(opcode, k, buffers, n, bytes);
    if (::testing::Test::HasFatalFailure()) return;
    for (int64_t i = 0; i < n; ++i) {
      const auto& c = cases[static_cast<size_t>(i)];
      R expected = std::apply(f, c);
      R actual = buffers.back()->template as<R>()[i];
      if (Same(actual, expected, ulps)) continue;
      auto doubles = [](auto... a) { return std::vector<double>{static_cast<double>(a)...}; };
      return Fail(opcode, std::apply(doubles, c), static_cast<double>(actual),
                  static_cast<double>(expected), kTypeOf<R>, bytes);
    }
  }
}

template <typename T>
void Unary(Opcode opcode, T (*f)(T)) {
  Check<T, T>(opcode, std::function<T(T)>(f));
}
template <typename T>
void Binary(Opcode opcode, T (*f)(T, T)) {
  Check<T, T, T>(opcode, std::function<T(T, T)>(f));
}

template <typename T>
using U = std::make_unsigned_t<T>;

template <typename T>
void CheckInts() {
  constexpr bool kSigned = std::is_signed_v<T>;
  constexpr int kBits = sizeof(T) * 8;
  Binary<T>(Opcode::kAdd,
            [](T a, T b) { return static_cast<T>(static_cast<U<T>>(a) + static_cast<U<T>>(b)); });
  Binary<T>(Opcode::kSubtract,
            [](T a, T b) { return static_cast<T>(static_cast<U<T>>(a) - static_cast<U<T>>(b)); });
  Binary<T>(Opcode::kMultiply, [](T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  });
  Binary<T>(Opcode::kDivide, [](T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (kSigned && b == static_cast<T>(-1)) return static_cast<T>(U<T>{0} - static_cast<U<T>>(a));
    return static_cast<T>(a / b);
  });
  Binary<T>(Opcode::kRemainder, [](T a, T b) {
    if (b == 0) return a;
    if (kSigned && b == static_cast<T>(-1)) return T{0};
    return static_cast<T>(a % b);
  });
  Binary<T>(Opcode::kMaximum, [](T a, T b) { return std::max(a, b); });
  Binary<T>(Opcode::kMinimum, [](T a, T b) { return std::min(a, b); });
  Binary<T>(Opcode::kAnd, [](T a, T b) { return static_cast<T>(a & b); });
  Binary<T>(Opcode::kOr, [](T a, T b) { return static_cast<T>(a | b); });
  Binary<T>(Opcode::kXor, [](T a, T b) { return static_cast<T>(a ^ b); });
  Binary<T>(Opcode::kShiftLeft, [](T a, T b) {
    return static_cast<U<T>>(b) < kBits ? static_cast<T>(static_cast<U<T>>(a) << b) : T{0};
  });
  Binary<T>(Opcode::kShiftRightLogical, [](T a, T b) {
    return static_cast<U<T>>(b) < kBits ? static_cast<T>(static_cast<U<T>>(a) >> b) : T{0};
  });
  Binary<T>(Opcode::kShiftRightArithmetic, [](T a, T b) {
    auto s = static_cast<std::make_signed_t<T>>(a);
    return static_cast<T>(s >> (static_cast<U<T>>(b) < kBits ? b : kBits - 1));
  });
  Binary<T>(Opcode::kPower, [](T a, T b) {
    if (kSigned && b < 0) {
      if (a == 1) return T{1};
      if (a == static_cast<T>(-1)) return static_cast<T>((b & 1) ? -1 : 1);
      return T{0};
    }
    uint64_t result = 1, base = static_cast<uint64_t>(a);
    for (auto e = static_cast<U<T>>(b); e != 0; e = static_cast<U<T>>(e >> 1), base *= base) {
      if (e & 1) result *= base;
    }
    return static_cast<T>(result);
  });
  Unary<T>(Opcode::kNegate, [](T a) { return static_cast<T>(U<T>{0} - static_cast<U<T>>(a)); });
  Unary<T>(Opcode::kNot, [](T a) { return static_cast<T>(~a); });
  Unary<T>(Opcode::kCopy, [](T a) { return a; });
  Unary<T>(Opcode::kAbs, [](T a) {
    return kSigned && a < 0 ? static_cast<T>(U<T>{0} - static_cast<U<T>>(a)) : a;
  });
  Unary<T>(Opcode::kSign, [](T a) { return static_cast<T>((a > 0) - (kSigned && a < 0)); });
  Unary<T>(Opcode::kPopcnt,
           [](T a) { return static_cast<T>(std::popcount(static_cast<U<T>>(a))); });
  Unary<T>(Opcode::kCountLeadingZeros,
           [](T a) { return static_cast<T>(std::countl_zero(static_cast<U<T>>(a))); });
}

TEST(Elemental, IntsU8) { CheckInts<uint8_t>(); }
TEST(Elemental, IntsS32) { CheckInts<int32_t>(); }
TEST(Elemental, IntsS64) { CheckInts<int64_t>(); }

template <typename T>
T Larger(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename T>
T Smaller(T a, T b) {
  return -Larger<T>(-a, -b);
}

template <typename T>
void CheckFloats() {
  Binary<T>(Opcode::kAdd, [](T a, T b) { return a + b; });
  Binary<T>(Opcode::kSubtract, [](T a, T b) { return a - b; });
  Binary<T>(Opcode::kMultiply, [](T a, T b) { return a * b; });
  Binary<T>(Opcode::kDivide, [](T a, T b) { return a / b; });
  Binary<T>(Opcode::kRemainder, [](T a, T b) { return std::fmod(a, b); });
  Binary<T>(Opcode::kMaximum, Larger<T>);
  Binary<T>(Opcode::kMinimum, Smaller<T>);
  Unary<T>(Opcode::kAbs, [](T a) { return std::fabs(a); });
  Unary<T>(Opcode::kCeil, [](T a) { return std::ceil(a); });
  Unary<T>(Opcode::kFloor, [](T a) { return std::floor(a); });
  Unary<T>(Opcode::kRoundNearestEven, [](T a) { return std::nearbyint(a); });
  Unary<T>(Opcode::kRoundNearestAfz, [](T a) { return std::round(a); });
  Unary<T>(Opcode::kNegate, [](T a) { return -a; });
  Unary<T>(Opcode::kSqrt, [](T a) { return std::sqrt(a); });
  Unary<T>(Opcode::kSign, [](T a) { return std::isnan(a) || a == 0 ? a : std::copysign(T{1}, a); });
  Check<bool, T>(Opcode::kIsFinite, std::function<bool(T)>([](T a) { return std::isfinite(a); }));
  Check<T, T, T, T>(Opcode::kClamp, std::function<T(T, T, T)>([](T low, T x, T high) {
                      return Smaller(Larger(x, low), high);
                    }));
}

TEST(Elemental, FloatsF32) { CheckFloats<float>(); }
TEST(Elemental, FloatsF64) { CheckFloats<double>(); }

template <typename T>
void CheckTranscendental(double ulps) {
  struct Case {
    Opcode opcode;
    double (*f)(double);
  };
  const Case cases[] = {
      {Opcode::kExponential, std::exp},
      {Opcode::kExponentialMinusOne, std::expm1},
      {Opcode::kLog, std::log},
      {Opcode::kLogPlusOne, std::log1p},
      {Opcode::kTanh, std::tanh},
      {Opcode::kLogistic, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Opcode::kRsqrt, [](double x) { return 1 / std::sqrt(x); }},
  };
  constexpr int64_t n = 37;
  for (const Case& c : cases) {
    KernelBuilder k({n});
    StageBuilder s = k.Stage();
    const auto x = k.Input(kTypeOf<T>, n), out = k.Output(kTypeOf<T>, n);
    s.Store(out, k.Var(0), s.Op(c.opcode, kTypeOf<T>, {s.Load(x, k.Var(0))}));
    codegen::LoweredProgram lowered;
    program::Program& program = lowered.program;
    const auto from = program.allocations.Add({}), to = program.allocations.Add({});
    target::Cpu cpu = target::HostCpu().cpu;
    const auto kernel = lowered.kernels.Add({k.kernel, kernel::ScheduleNest(k.kernel, cpu)});
    int64_t bytes = n * static_cast<int64_t>(sizeof(T));
    program.steps.push_back({program::Launch{kernel, {{from, 0, bytes}, {to, 0, bytes}}}});
    auto objects = codegen::GenerateCpu(lowered, cpu, {});
    ASSERT_TRUE(objects.ok()) << objects.status().ToString();
    auto jit = testing::Jit::Load(*objects);
    ASSERT_TRUE(jit.ok()) << jit.status().ToString();
    auto entry = reinterpret_cast<kiln_entry_fn>((*jit)->Lookup(program::EntrySymbol({})));
    ASSERT_NE(entry, nullptr);
    Buffer in(kTypeOf<T>, n), result(kTypeOf<T>, n);
    for (int64_t i = 0; i < n; ++i) in.Set(i, 0.03 + 0.4 * static_cast<double>(i), 0);
    testing::TestFrame frame({in.data(), result.data()});
    ASSERT_EQ(entry(&frame.frame()), 0);
    for (int64_t i = 0; i < n; ++i) {
      double expected = c.f(in.Float(i));
      EXPECT_NEAR(result.Float(i), expected,
                  ulps * std::numeric_limits<T>::epsilon() * std::fabs(expected))
          << OpcodeName(c.opcode) << " of " << in.Float(i);
    }
  }
}

TEST(Elemental, TranscendentalF32) { CheckTranscendental<float>(4); }
TEST(Elemental, TranscendentalF64) { CheckTranscendental<double>(4); }

TEST(Elemental, PowerOfFloats) {
  Check<double, double, double>(
      Opcode::kPower,
      std::function<double(double, double)>([](double a, double b) { return std::pow(a, b); }),
      Direction::kEq, 2);
}

template <typename T>
void CheckOrder() {
  using F = std::function<bool(T, T)>;
  Check<bool, T, T>(Opcode::kCompare, F([](T a, T b) { return a == b; }), Direction::kEq);
  Check<bool, T, T>(Opcode::kCompare, F([](T a, T b) { return a != b; }), Direction::kNe);
  Check<bool, T, T>(Opcode::kCompare, F([](T a, T b) { return a >= b; }), Direction::kGe);
  Check<bool, T, T>(Opcode::kCompare, F([](T a, T b) { return a > b; }), Direction::kGt);
  Check<bool, T, T>(Opcode::kCompare, F([](T a, T b) { return a <= b; }), Direction::kLe);
  Check<bool, T, T>(Opcode::kCompare, F([](T a, T b) { return a < b; }), Direction::kLt);
  Check<T, bool, T, T>(Opcode::kSelect,
                       std::function<T(bool, T, T)>([](bool p, T a, T b) { return p ? a : b; }));
}

TEST(Elemental, CompareAndSelect) {
  CheckOrder<bool>();
  CheckOrder<uint8_t>();
  CheckOrder<int32_t>();
  CheckOrder<int64_t>();
  CheckOrder<float>();
  CheckOrder<double>();
}

TEST(Elemental, Preds) {
  using F = std::function<bool(bool, bool)>;
  for (Opcode o : {Opcode::kOr, Opcode::kAdd, Opcode::kMaximum}) {
    Check<bool, bool, bool>(o, F([](bool a, bool b) { return a || b; }));
  }
  for (Opcode o : {Opcode::kAnd, Opcode::kMultiply, Opcode::kMinimum}) {
    Check<bool, bool, bool>(o, F([](bool a, bool b) { return a && b; }));
  }
  Check<bool, bool, bool>(Opcode::kXor, F([](bool a, bool b) { return a != b; }));
  Check<bool, bool>(Opcode::kNot, std::function<bool(bool)>([](bool a) { return !a; }));
}

template <typename To, typename From>
void CheckConvert() {
  Check<To, From>(Opcode::kConvert, std::function<To(From)>([](From x) {
                    if constexpr (std::is_same_v<To, bool>) {
                      return x != From{0};
                    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
                      if (std::isnan(x)) return To{0};
                      using L = std::numeric_limits<To>;
                      if (x <= static_cast<From>(L::min())) return L::min();
                      if (x >= std::ldexp(From{1}, L::digits)) return L::max();
                      return static_cast<To>(x);
                    } else {
                      return static_cast<To>(x);
                    }
                  }));
}
template <typename To>
void CheckConvertTo() {
  CheckConvert<To, bool>();
  CheckConvert<To, uint8_t>();
  CheckConvert<To, int32_t>();
  CheckConvert<To, int64_t>();
  CheckConvert<To, float>();
  CheckConvert<To, double>();
}

TEST(Elemental, ConvertToPred) { CheckConvertTo<bool>(); }
TEST(Elemental, ConvertToU8) { CheckConvertTo<uint8_t>(); }
TEST(Elemental, ConvertToS32) { CheckConvertTo<int32_t>(); }
TEST(Elemental, ConvertToS64) { CheckConvertTo<int64_t>(); }
TEST(Elemental, ConvertToF32) { CheckConvertTo<float>(); }
TEST(Elemental, ConvertToF64) { CheckConvertTo<double>(); }

// An op that has no code is an error that names it.
TEST(Elemental, WhatHasNoCodeIsNamed) {
  KernelBuilder k({4});
  const auto x = k.Input(ElementType::kF32, 4), out = k.Output(ElementType::kF32, 4);
  StageBuilder s = k.Stage();
  s.Store(out, k.Var(0), s.Op(Opcode::kAnd, ElementType::kF32, {s.Load(x, 0), s.Load(x, 1)}));
  codegen::LoweredProgram lowered;
  lowered.kernels.push_back({k.kernel, kernel::CpuNestSchedule{.stages = {{}}}});
  auto objects = codegen::GenerateCpu(lowered, target::HostCpu().cpu, {});
  ASSERT_FALSE(objects.ok());
  EXPECT_NE(objects.status().message().find("and"), std::string::npos);
}

}  // namespace
}  // namespace kiln
