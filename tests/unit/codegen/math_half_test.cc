// Every elementary function of one f16 or bf16 at every bit pattern, and those of two at many
// pairs, as programs compute them, against the C library's double, or the evaluator's where it has
// none.

#include <random>

#include "support/labels.h"
#include "support/math_functions.h"

namespace kiln {
namespace {

using testing::CheckMath;
using testing::Expected;
using testing::kMathBlock;
using testing::MathFunction;

// The first block has all patterns but the last, the second all but the first.
template <typename T>
void FillPatterns(int64_t block, T* x, T*) {
  for (int64_t i = 0; i < kMathBlock; ++i) x[i] = T::FromBits(static_cast<uint16_t>(i + block));
}

// Any bits, numbers of everyday sizes, whole numbers, and what is next to the first one.
template <typename T>
void FillPairs(int64_t block, T* x, T* y) {
  std::mt19937_64 random(static_cast<uint64_t>(block) + 1);
  auto any = [&] { return T::FromBits(static_cast<uint16_t>(random())); };
  auto modest = [&] { return T(static_cast<double>(random() >> 11) * 0x1p-53 * 40 - 20); };
  auto whole = [&] { return T(static_cast<double>(random() % 41) - 20); };
  for (int64_t i = 0; i < kMathBlock; ++i) {
    x[i] = random() % 2 ? any() : modest();
    switch (random() % 4) {
      case 0:
        y[i] = any();
        break;
      case 1:
        y[i] = modest();
        break;
      case 2:
        y[i] = whole();
        break;
      default:
        y[i] = T::FromBits(static_cast<uint16_t>(x[i].bits() + random() % 64 - 32));
        break;
    }
  }
}

template <typename T>
void Check(const MathFunction& f, ElementType type, int64_t pairs) {
  const bool unary = f.op.operands == 1;
  const int64_t blocks = unary ? 2 : pairs;
  CheckMath<T>(f.op, type, blocks, unary ? 2 : 1, unary ? FillPatterns<T> : FillPairs<T>,
               [&f](const T* x, const T* y, Expected<T>* out, int64_t n) {
                 for (int64_t i = 0; i < n; ++i) {
                   out[i].value = f.in_double(static_cast<double>(x[i]), static_cast<double>(y[i]));
                 }
               });
}

class MathHalf : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathHalf, F16) { Check<Float16>(GetParam(), ElementType::kF16, 8); }
TEST_P(MathHalf, BF16) { Check<BFloat16>(GetParam(), ElementType::kBF16, 8); }

class MathHalfMany : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathHalfMany, F16) { Check<Float16>(GetParam(), ElementType::kF16, 1024); }
TEST_P(MathHalfMany, BF16) { Check<BFloat16>(GetParam(), ElementType::kBF16, 1024); }

auto name_of = [](const auto& info) { return testing::TestNameOf(info.param); };
INSTANTIATE_TEST_SUITE_P(EveryBitPattern, MathHalf,
                         ::testing::ValuesIn(testing::UnaryMathFunctions()), name_of);
INSTANTIATE_TEST_SUITE_P(Pairs, MathHalf, ::testing::ValuesIn(testing::BinaryMathFunctions()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(SlowMath, MathHalfMany,
                         ::testing::ValuesIn(testing::BinaryMathFunctions()), name_of);

KILN_LABEL(slow, "SlowMath/MathHalfMany");

}  // namespace
}  // namespace kiln
