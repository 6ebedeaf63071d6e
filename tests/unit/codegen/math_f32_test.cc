// Every elementary function of one f32 operand at every bit pattern, and those of two at many, as
// programs compute them, against the C library's double, or the evaluator's where it has none.
// docs/numerics.md has what the slow ones print.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/labels.h"
#include "support/math_functions.h"

namespace kiln {
namespace {

using testing::CheckMath;
using testing::Expected;
using testing::kMathBlock;
using testing::MathFunction;

// Bit patterns `stride` apart, all of them once around; before them, for the GPU, blocks that go
// once around each.
void CheckUnary(const MathFunction& f, uint64_t stride, int64_t gpu_blocks) {
  int64_t blocks = static_cast<int64_t>((1ull << 32) / (stride * kMathBlock)) + 1;
  CheckMath<float>(
      f.op, ElementType::kF32, gpu_blocks + blocks, gpu_blocks,
      [=](int64_t block, float* x, float*) {
        uint64_t first = static_cast<uint64_t>(block), step = 65537;
        if (block >= gpu_blocks) {
          first = static_cast<uint64_t>((block - gpu_blocks) * kMathBlock) * stride;
          step = stride;
        }
        auto bits = static_cast<uint32_t>(first);
        for (int64_t i = 0; i < kMathBlock; ++i, bits += static_cast<uint32_t>(step)) {
          x[i] = std::bit_cast<float>(bits);
        }
      },
      [&f](const float* x, const float*, Expected<float>* out, int64_t n) {
        for (int64_t i = 0; i < n; ++i) out[i].value = f.in_double(static_cast<double>(x[i]), 0);
      });
}

// Pairs: any bits, numbers of everyday sizes, bases near 1 with large exponents, whole numbers,
// operands close to each other, and every pair of special values.
void FillPairs(int64_t block, float* x, float* y) {
  std::mt19937_64 random(static_cast<uint64_t>(block) + 1);
  auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  auto modest = [&] {
    return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53 * 100 - 50);
  };
  auto whole = [&] { return static_cast<float>(static_cast<int64_t>(random() % 401) - 200); };
  constexpr float kSpecial[] = {0.0f,
                                -0.0f,
                                1.0f,
                                -1.0f,
                                0.5f,
                                -0.5f,
                                2.0f,
                                -2.0f,
                                3.0f,
                                -3.0f,
                                0x1p24f,
                                -0x1p24f,
                                0x1p23f,
                                0x1.8p23f,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                0x1p-126f,
                                -0x1p-126f,
                                0x1p-149f,
                                -0x1p-149f,
                                0x1.fffffep127f,
                                -0x1.fffffep127f,
                                0x1.fffffep-1f,
                                0x1.000002p0f,
                                128.0f,
                                -128.0f,
                                1e10f,
                                149.0f,
                                -149.0f};
  for (int64_t i = 0; i < kMathBlock; ++i) {
    switch (random() % 6) {
      case 0:
        x[i] = any(), y[i] = any();
        break;
      case 1:
        x[i] = modest(), y[i] = modest();
        break;
      case 2: {
        float near =
            1 + static_cast<float>(static_cast<int64_t>(random() % 8192) - 4096) * 0x1p-23f;
        x[i] = near, y[i] = modest() * static_cast<float>(1 << random() % 24);
        break;
      }
      case 3:
        x[i] = random() % 2 ? modest() : any(), y[i] = whole();
        break;
      case 4:
        x[i] = any();
        y[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(x[i]) +
                                    static_cast<uint32_t>(random() % (1 << 27)) - (1u << 26));
        break;
      case 5:
        x[i] = kSpecial[random() % std::size(kSpecial)];
        y[i] = kSpecial[random() % std::size(kSpecial)];
        break;
    }
  }
}

void CheckBinary(const MathFunction& f, int64_t blocks, int64_t gpu_blocks) {
  CheckMath<float>(f.op, ElementType::kF32, blocks, gpu_blocks, FillPairs,
                   [&f](const float* x, const float* y, Expected<float>* out, int64_t n) {
                     for (int64_t i = 0; i < n; ++i) {
                       out[i].value =
                           f.in_double(static_cast<double>(x[i]), static_cast<double>(y[i]));
                     }
                   });
}

// What must come out to the bit, subnormal operands and results among it.
TEST(MathF32, SpecialValues) {
  constexpr float kTiny = 0x1p-149f, kSubnormal = 0x1.23456p-130f, kMin = 0x1p-126f;
  struct Case {
    const char* op;
    float x, y, expected;
  };
  const Case cases[] = {
      {"acos", 1, 0, 0},
      {"acos", -1, 0, 0x1.921fb6p1f},
      {"acos", 0x1.000002p0f, 0, NAN},
      {"acosh", 1, 0, 0},
      {"acosh", 0x1.fffffep-1f, 0, NAN},
      {"acosh", -2.5f, 0, NAN},
      {"acosh", INFINITY, 0, INFINITY},
      {"asin", -0.0f, 0, -0.0f},
      {"asin", -kSubnormal, 0, -kSubnormal},
      {"asin", -1, 0, -0x1.921fb6p0f},
      {"asin", 2, 0, NAN},
      {"asinh", -0.0f, 0, -0.0f},
      {"asinh", -kTiny, 0, -kTiny},
      {"asinh", kSubnormal, 0, kSubnormal},
      {"asinh", -INFINITY, 0, -INFINITY},
      {"atanh", -0.0f, 0, -0.0f},
      {"atanh", kTiny, 0, kTiny},
      {"atanh", -1, 0, -INFINITY},
      {"atanh", 1, 0, INFINITY},
      {"atanh", 1.5f, 0, NAN},
      {"atanh", -INFINITY, 0, NAN},
      {"cbrt", -0.0f, 0, -0.0f},
      {"cbrt", -8, 0, -2},
      {"cbrt", 0x1p-147f, 0, 0x1p-49f},
      {"cbrt", -INFINITY, 0, -INFINITY},
      {"cosh", -0.0f, 0, 1},
      {"cosh", -INFINITY, 0, INFINITY},
      {"cosh", 90, 0, INFINITY},
      {"cosine", -0.0f, 0, 1},
      {"cosine", INFINITY, 0, NAN},
      {"cosine", -INFINITY, 0, NAN},
      {"erf", -0.0f, 0, -0.0f},
      {"erf", -INFINITY, 0, -1},
      {"erf", 4, 0, 1},
      {"kiln.bessel-i1e", -0.0f, 0, -0.0f},
      {"kiln.bessel-i1e", kTiny, 0, 0},
      {"kiln.bessel-i1e", -0x1.2468p-130f, 0, -0x1.2468p-131f},
      {"kiln.bessel-i1e", INFINITY, 0, 0},
      {"kiln.bessel-i1e", -INFINITY, 0, -0.0f},
      {"kiln.digamma", 0, 0, -INFINITY},
      {"kiln.digamma", -0.0f, 0, -INFINITY},
      {"kiln.digamma", -2, 0, NAN},
      {"kiln.digamma", -0x1p24f, 0, NAN},
      {"kiln.digamma", -INFINITY, 0, NAN},
      {"kiln.digamma", INFINITY, 0, INFINITY},
      {"kiln.digamma", kTiny, 0, -INFINITY},
      {"kiln.digamma", -kSubnormal, 0, INFINITY},
      {"kiln.erf-inv", -0.0f, 0, -0.0f},
      {"kiln.erf-inv", -kTiny, 0, -kTiny},
      {"kiln.erf-inv", 1, 0, INFINITY},
      {"kiln.erf-inv", -1, 0, -INFINITY},
      {"kiln.erf-inv", 0x1.000002p0f, 0, NAN},
      {"kiln.erf-inv", -INFINITY, 0, NAN},
      {"kiln.erfc", -0.0f, 0, 1},
      {"kiln.erfc", -kTiny, 0, 1},
      {"kiln.erfc", INFINITY, 0, 0},
      {"kiln.erfc", -INFINITY, 0, 2},
      {"kiln.erfc", 10, 0, kTiny},
      {"kiln.erfc", 11, 0, 0},
      {"kiln.lgamma", 0, 0, INFINITY},
      {"kiln.lgamma", -0.0f, 0, INFINITY},
      {"kiln.lgamma", 1, 0, 0},
      {"kiln.lgamma", 2, 0, 0},
      {"kiln.lgamma", -1, 0, INFINITY},
      {"kiln.lgamma", -0x1p100f, 0, INFINITY},
      {"kiln.lgamma", INFINITY, 0, INFINITY},
      {"kiln.lgamma", -INFINITY, 0, INFINITY},
      {"kiln.lgamma", 0x1p122f, 0, INFINITY},
      {"sine", -0.0f, 0, -0.0f},
      {"sine", kTiny, 0, kTiny},
      {"sine", -kSubnormal, 0, -kSubnormal},
      {"sine", INFINITY, 0, NAN},
      {"sine", 0x1.921fb6p127f, 0, 0x1.113df6p-1f},
      {"sinh", -0.0f, 0, -0.0f},
      {"sinh", kSubnormal, 0, kSubnormal},
      {"sinh", -INFINITY, 0, -INFINITY},
      {"sinh", 90, 0, INFINITY},
      {"tan", -0.0f, 0, -0.0f},
      {"tan", -kTiny, 0, -kTiny},
      {"tan", -INFINITY, 0, NAN},
      {"atan2", 0.0f, -0.0f, 0x1.921fb6p1f},
      {"atan2", -0.0f, -0.0f, -0x1.921fb6p1f},
      {"atan2", -0.0f, 0.0f, -0.0f},
      {"atan2", 0.0f, -1, 0x1.921fb6p1f},
      {"atan2", 1, -0.0f, 0x1.921fb6p0f},
      {"atan2", INFINITY, -INFINITY, 0x1.2d97c8p1f},
      {"atan2", 1, INFINITY, 0},
      {"atan2", NAN, 1, NAN},
      {"atan2", kSubnormal, 1, kSubnormal},
      {"exponential", -0.0f, 0, 1},
      {"exponential", kTiny, 0, 1},
      {"exponential", -INFINITY, 0, 0},
      {"exponential", INFINITY, 0, INFINITY},
      {"exponential", -104, 0, 0},
      {"exponential", -103.5f, 0, kTiny},
      {"exponential", 89, 0, INFINITY},
      {"exponential-minus-one", -0.0f, 0, -0.0f},
      {"exponential-minus-one", kTiny, 0, kTiny},
      {"exponential-minus-one", -kSubnormal, 0, -kSubnormal},
      {"exponential-minus-one", -INFINITY, 0, -1},
      {"exponential-minus-one", INFINITY, 0, INFINITY},
      {"log", 0.0f, 0, -INFINITY},
      {"log", -0.0f, 0, -INFINITY},
      {"log", 1, 0, 0},
      {"log", -kTiny, 0, NAN},
      {"log", INFINITY, 0, INFINITY},
      {"log", -INFINITY, 0, NAN},
      {"log-plus-one", -0.0f, 0, -0.0f},
      {"log-plus-one", -kTiny, 0, -kTiny},
      {"log-plus-one", kSubnormal, 0, kSubnormal},
      {"log-plus-one", -1, 0, -INFINITY},
      {"log-plus-one", -0x1.000002p0f, 0, NAN},
      {"log-plus-one", INFINITY, 0, INFINITY},
      {"logistic", -0.0f, 0, 0.5f},
      {"logistic", kTiny, 0, 0.5f},
      {"logistic", -INFINITY, 0, 0},
      {"logistic", INFINITY, 0, 1},
      {"logistic", -103.5f, 0, kTiny},
      {"rsqrt", 0.0f, 0, INFINITY},
      {"rsqrt", -0.0f, 0, -INFINITY},
      {"rsqrt", 0x1p-148f, 0, 0x1p74f},
      {"rsqrt", -kTiny, 0, NAN},
      {"rsqrt", INFINITY, 0, 0},
      {"sqrt", -0.0f, 0, -0.0f},
      {"sqrt", 0x1p-148f, 0, 0x1p-74f},
      {"sqrt", -kTiny, 0, NAN},
      {"sqrt", INFINITY, 0, INFINITY},
      {"tanh", -0.0f, 0, -0.0f},
      {"tanh", kTiny, 0, kTiny},
      {"tanh", -kSubnormal, 0, -kSubnormal},
      {"tanh", -INFINITY, 0, -1},
      {"tanh", INFINITY, 0, 1},
      {"power", NAN, 0, 1},
      {"power", 1, NAN, 1},
      {"power", -1, INFINITY, 1},
      {"power", 2, -149, kTiny},
      {"power", 2, -151, 0},
      {"power", kSubnormal, 1, kSubnormal},
      {"power", -0.0f, 3, -0.0f},
      {"power", -0.0f, -3, -INFINITY},
      {"power", -0.0f, 2, 0},
      {"power", -2, 0.5f, NAN},
      {"power", -INFINITY, 3, -INFINITY},
      {"power", 0.5f, -INFINITY, INFINITY},
      {"remainder", -0.0f, 1, -0.0f},
      {"remainder", kSubnormal, kMin, kSubnormal},
      {"remainder", -kMin, kSubnormal, -(kMin - 14 * kSubnormal)},
      {"remainder", 5, INFINITY, 5},
      {"remainder", INFINITY, 5, NAN},
      {"remainder", 5, 0, NAN},
      {"remainder", -6, 3, -0.0f},
  };
  testing::MathBlock<float> x, y, out;
  std::set<std::string> ops;
  for (const Case& c : cases) ops.insert(c.op);
  for (const std::string& op : ops) {
    bool binary = op == "atan2" || op == "power" || op == "remainder";
    std::vector<Case> own;
    for (const Case& c : cases) {
      if (op == c.op) own.push_back(c);
    }
    for (int v = 0; v < testing::kMathVariants; ++v) {
      auto variant = static_cast<testing::MathVariant>(v);
      auto program =
          testing::CompileMath({*OpcodeByName(op), binary ? 2 : 1}, ElementType::kF32, variant);
      ASSERT_TRUE(program);
      std::fill_n(x.get(), kMathBlock, NAN);
      std::fill_n(y.get(), kMathBlock, 2.0f);
      for (size_t i = 0; i < own.size(); ++i) x.get()[i] = own[i].x, y.get()[i] = own[i].y;
      const void* arguments[] = {x.get(), y.get()};
      void* results[] = {out.get()};
      ASSERT_TRUE(program->Run(std::span(arguments, binary ? 2 : 1), results).ok());
      for (size_t i = 0; i < own.size(); ++i) {
        float got = out.get()[i], expected = own[i].expected;
        EXPECT_TRUE(std::isnan(expected)
                        ? std::isnan(got)
                        : std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(expected))
            << op << " " << testing::NameOf(variant) << " of " << own[i].x << ", " << own[i].y
            << ": " << got << " for " << expected;
      }
      // NaN for NaN, in whole vectors and in the rest.
      for (int64_t i = std::ssize(own); i < kMathBlock; ++i) {
        ASSERT_TRUE(std::isnan(out.get()[i])) << op << " at " << i;
      }
    }
  }
}

class MathF32Sampled : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathF32Sampled, SampledBitPatterns) { CheckUnary(GetParam(), 4099, 1); }

class MathF32All : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathF32All, EveryBitPattern) { CheckUnary(GetParam(), 1, 64); }

class MathF32Pairs : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathF32Pairs, Few) { CheckBinary(GetParam(), 8, 1); }

class MathF32ManyPairs : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathF32ManyPairs, Many) { CheckBinary(GetParam(), 1024, 8); }

auto name_of = [](const auto& info) { return testing::TestNameOf(info.param); };
const auto kUnary = ::testing::ValuesIn(testing::UnaryMathFunctions());
const auto kBinary = ::testing::ValuesIn(testing::BinaryMathFunctions());
INSTANTIATE_TEST_SUITE_P(Sampled, MathF32Sampled, kUnary, name_of);
INSTANTIATE_TEST_SUITE_P(Sampled, MathF32Pairs, kBinary, name_of);
INSTANTIATE_TEST_SUITE_P(SlowMath, MathF32All, kUnary, name_of);
INSTANTIATE_TEST_SUITE_P(SlowMath, MathF32ManyPairs, kBinary, name_of);

KILN_LABEL(slow, "SlowMath/MathF32All", "SlowMath/MathF32ManyPairs");

}  // namespace
}  // namespace kiln
