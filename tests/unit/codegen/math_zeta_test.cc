// zeta and polygamma as programs compute them, against the evaluator's in double and long double,
// which interp/special_test.cc holds against MPFR.

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "interp/special.h"
#include "support/labels.h"
#include "support/math.h"

namespace kiln {
namespace {

using testing::CheckMath;
using testing::Expected;
using testing::kMathBlock;

// Exponents and orders of all sizes that a result is left of, next to 1 too; operands of all sizes,
// below 0 as far as no zero of the function is near, where its error is that of its parts.
template <typename T>
void Fill(int64_t block, bool polygamma, T* s, T* q) {
  std::mt19937_64 random(static_cast<uint64_t>(block) + 1);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const int bits = FormatOf<T>().mantissa + 1;
  for (int64_t i = 0; i < kMathBlock; ++i) {
    double exponent = 2, operand = 1;
    switch (random() % 5) {
      case 0:
        exponent = 2 + static_cast<double>(random() % 12);
        break;
      case 1:
        exponent = 1 + std::ldexp(1 + unit(), -static_cast<int>(random() % 20));
        break;
      case 2:
        exponent = 1 + unit() * 60;
        break;
      case 3:
        exponent = 2 + static_cast<double>(random() % 180);
        break;
      case 4:
        exponent = 1 + std::ldexp(1 + unit(), static_cast<int>(random() % 10));
        break;
    }
    if (polygamma) exponent = std::ceil(exponent);
    switch (random() % 5) {
      case 0:
        operand = unit() * 10;
        break;
      case 1:
        operand = unit() * 200;
        break;
      case 2:
        operand = std::ldexp(1 + unit(), static_cast<int>(random() % 120) - 60);
        break;
      case 3:  // where neither the power nor the factorial are much of the product
        operand = exponent * (0.2 + 2 * unit());
        break;
      case 4: {
        exponent = std::min(std::ceil(exponent), 40.0);
        bool odd = std::fmod(exponent, 2) != 0;
        double from_whole = std::ldexp(odd ? 0.35 : 0.5, -static_cast<int>(random() % bits));
        operand = -static_cast<double>(random() % 30) + from_whole * (2 * unit() - 1);
        break;
      }
    }
    s[i] = static_cast<T>(polygamma ? exponent - 1 : exponent);
    q[i] = static_cast<T>(operand);
  }
}

template <typename T>
void Check(Opcode op, ElementType type, int64_t blocks) {
  const bool polygamma = op == Opcode::kPolygamma;
  CheckMath<T>(
      {op, 2}, type, blocks, 1, [=](int64_t block, T* s, T* q) { Fill(block, polygamma, s, q); },
      [=](const T* s, const T* q, Expected<T>* out, int64_t n) {
        using Wide = std::conditional_t<std::is_same_v<T, double>, long double, double>;
        for (int64_t i = 0; i < n; ++i) {
          Wide x = static_cast<double>(s[i]), y = static_cast<double>(q[i]);
          Wide value = polygamma ? interp::Polygamma<Wide>(x, y) : interp::Zeta<Wide>(x, y);
          if constexpr (std::is_same_v<T, double>) {
            out[i] = testing::RoundedOf(value);
          } else {
            out[i].value = value;
          }
        }
      });
}

void CheckAll(Opcode op, int64_t blocks) {
  Check<Float16>(op, ElementType::kF16, blocks);
  Check<BFloat16>(op, ElementType::kBF16, blocks);
  Check<float>(op, ElementType::kF32, blocks);
  Check<double>(op, ElementType::kF64, blocks);
}

TEST(MathZeta, Sampled) { CheckAll(Opcode::kZeta, 1); }
TEST(MathPolygamma, Sampled) { CheckAll(Opcode::kPolygamma, 1); }
TEST(SlowMathZeta, Many) { CheckAll(Opcode::kZeta, 32); }
TEST(SlowMathPolygamma, Many) { CheckAll(Opcode::kPolygamma, 32); }

// What has a value of its own, and what must come to an end.
template <typename T>
void SpecialValues() {
  constexpr T inf = INFINITY, nan = NAN;
  const ElementType type = sizeof(T) == 4 ? ElementType::kF32 : ElementType::kF64;
  struct Case {
    const char* op;
    T s, q, expected;
  };
  const Case cases[] = {
      {"kiln.zeta", 1, 3, inf},
      {"kiln.zeta", 1, -2, inf},
      {"kiln.zeta", 1, inf, inf},
      {"kiln.zeta", T(0.5), 3, nan},
      {"kiln.zeta", -3, T(1e-30), nan},
      {"kiln.zeta", -inf, 2, nan},
      {"kiln.zeta", 2, 0, inf},
      {"kiln.zeta", 3, T(-0.0), nan},
      {"kiln.zeta", 2, -5, inf},
      {"kiln.zeta", 3, -5, nan},
      {"kiln.zeta", 2, -inf, inf},
      {"kiln.zeta", T(2.5), T(-1.5), nan},
      {"kiln.zeta", T(2.5), -2, nan},
      {"kiln.zeta", inf, 2, 0},
      {"kiln.zeta", inf, 1, 1},
      {"kiln.zeta", inf, T(0.5), inf},
      {"kiln.zeta", inf, T(-0.5), nan},
      {"kiln.zeta", 2, inf, 0},
      {"kiln.zeta", inf, inf, 0},
      {"kiln.zeta", nan, 1, nan},
      {"kiln.zeta", 2, nan, nan},
      {"kiln.zeta", std::numeric_limits<T>::max(), std::numeric_limits<T>::max(), 0},
      {"kiln.zeta", T(1e15), T(1e15), 0},
      {"kiln.zeta", 2, T(0x1p-100), sizeof(T) == 4 ? inf : T(0x1p200)},
      {"kiln.zeta", 3, T(-0x1p-100), sizeof(T) == 4 ? -inf : T(-0x1p300)},
      {"kiln.polygamma", 0, T(0.0), -inf},
      {"kiln.polygamma", 0, -1, nan},
      {"kiln.polygamma", 0, inf, inf},
      {"kiln.polygamma", T(0.5), 2, nan},
      {"kiln.polygamma", -1, 2, nan},
      {"kiln.polygamma", inf, 2, nan},
      {"kiln.polygamma", nan, 2, nan},
      {"kiln.polygamma", 1, nan, nan},
      {"kiln.polygamma", 0, nan, nan},
      {"kiln.polygamma", 1, -3, inf},
      {"kiln.polygamma", 2, -3, nan},
      {"kiln.polygamma", 1, 0, inf},
      {"kiln.polygamma", 1, inf, 0},
      {"kiln.polygamma", 2, inf, T(-0.0)},
      {"kiln.polygamma", 200, inf, T(-0.0)},
      {"kiln.polygamma", 1000, 1, -inf},
      {"kiln.polygamma", 1001, 1, inf},
      {"kiln.polygamma", T(1e20), 1, -inf},
  };
  testing::MathBlock<T> x, y, out;
  for (const char* op : {"kiln.zeta", "kiln.polygamma"}) {
    for (int v = 0; v < testing::kMathVariants; ++v) {
      auto variant = static_cast<testing::MathVariant>(v);
      auto program = testing::CompileMath({*OpcodeByName(op), 2}, type, variant);
      ASSERT_TRUE(program);
      for (int64_t i = 0; i < kMathBlock; ++i) {
        const Case& c = cases[static_cast<size_t>(i) % std::size(cases)];
        x.get()[i] = c.op == std::string(op) ? c.s : 2;
        y.get()[i] = c.op == std::string(op) ? c.q : 1;
      }
      const void* arguments[] = {x.get(), y.get()};
      void* results[] = {out.get()};
      ASSERT_TRUE(program->Run(arguments, results).ok());
      for (int64_t i = 0; i < kMathBlock; ++i) {
        const Case& c = cases[static_cast<size_t>(i) % std::size(cases)];
        if (c.op != std::string(op)) continue;
        T got = out.get()[i];
        ASSERT_TRUE(std::isnan(c.expected)
                        ? std::isnan(got)
                        : got == c.expected && std::signbit(got) == std::signbit(c.expected))
            << op << " " << testing::NameOf(variant) << " of " << c.s << ", " << c.q << ": " << got
            << " for " << c.expected;
        T judge = op == std::string("kiln.zeta")
                      ? static_cast<T>(interp::Zeta<long double>(c.s, c.q))
                      : static_cast<T>(interp::Polygamma<long double>(c.s, c.q));
        ASSERT_TRUE(std::isnan(c.expected) ? std::isnan(judge) : judge == c.expected)
            << "evaluator's " << op << " of " << c.s << ", " << c.q << ": " << judge;
      }
    }
  }
}
TEST(MathZeta, SpecialValuesF32) { SpecialValues<float>(); }
TEST(MathZeta, SpecialValuesF64) { SpecialValues<double>(); }

KILN_LABEL(slow, "SlowMathZeta", "SlowMathPolygamma");

}  // namespace
}  // namespace kiln
