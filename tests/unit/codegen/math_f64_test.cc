// Every elementary function of f64 at seeded operands of all sizes, as programs compute them,
// against MPFR.

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include "support/labels.h"
#include "support/math_functions.h"

namespace kiln {
namespace {

using testing::CheckMath;
using testing::Expected;
using testing::kMathBlock;
using testing::MathFunction;

// One operand: any bits, the sizes of everyday, what is near 0, near 1, and near multiples of
// ln2 / 2, where arguments are reduced; the ends of what overflows and underflows.
double Operand(std::mt19937_64& random) {
  constexpr double kSpecial[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -0.5,
                                 2.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1p-1022,
                                 -0x1p-1022,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1.fffffffffffffp1023,
                                 -0x1.fffffffffffffp1023,
                                 0x1.fffffffffffffp-1,
                                 0x1.0000000000001p0,
                                 0x1.62e42fefa39efp9,
                                 0x1.62e42fefa39f0p9,
                                 -0x1.74385446d71c3p9,
                                 -0x1.74385446d71c4p9,
                                 -0x1.74910d52d3052p9,
                                 1e300,
                                 0x1p52,
                                 0x1.8p52};
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  switch (random() % 10) {
    case 8: {
      // The numbers nearest to a multiple of pi/2, of all sizes.
      double turns = std::floor(std::ldexp(1 + unit(), static_cast<int>(random() % 52)));
      return turns * 0x1.921fb54442d18p0;
    }
    case 9:
      // Of all sizes that have a sine to speak of; the hardest of all cases among them.
      return random() % 64 ? std::ldexp(2 * unit() - 1, static_cast<int>(random() % 1024))
                           : 0x1.6ac5b262ca1ffp849;
    case 0:
      return std::bit_cast<double>(random());
    case 1:
      return unit() * 100 - 50;
    case 2:
      return unit() * 1500 - 750;
    case 3:
      return std::ldexp(unit() * 2 - 1, -static_cast<int>(random() % 64));
    case 4:
      return 1 + std::ldexp(unit() * 2 - 1, -static_cast<int>(random() % 53));
    case 5: {
      double multiple = static_cast<double>(static_cast<int64_t>(random() % 4096) - 2048);
      return multiple * 0x1.62e42fefa39efp-2 * (1 + (unit() - 0.5) * 0x1p-40);
    }
    case 6:
      return std::abs(std::bit_cast<double>(random()));
    default:
      return kSpecial[random() % std::size(kSpecial)];
  }
}

// Besides: what is within -1 and 1, next to their ends, next to whole numbers, and next to the
// zeros of lgamma and digamma.
double SpecialOperand(std::mt19937_64& random) {
  constexpr double kZeros[] = {1,
                               2,
                               1.4616321449683622,
                               -2.4570247382208006,
                               -2.7476826467274127,
                               -3.14358088834998,
                               -3.955294284858598,
                               -4.039361839740537,
                               -4.991544640560048,
                               -0.5040830082644554,
                               -1.5734984731623904,
                               -2.6107208684441447,
                               -9.702672540001864};
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  auto near = [&](double x) {
    return x + x * std::ldexp(unit() - 0.5, -static_cast<int>(random() % 53));
  };
  switch (random() % 6) {
    case 0:
      return unit() * 2 - 1;
    case 1:
      return (random() % 2 ? 1 : -1) * (1 - std::ldexp(unit(), -static_cast<int>(random() % 53)));
    case 2:
      return near(-static_cast<double>(random() % 40));
    case 3:
      return near(kZeros[random() % std::size(kZeros)]);
    case 4:
      return unit() * 60 - 30;
    default:
      return Operand(random);
  }
}

void Fill(int64_t block, double* x, double* y) {
  std::mt19937_64 random(static_cast<uint64_t>(block) + 1);
  for (int64_t i = 0; i < kMathBlock; ++i) {
    x[i] = i % 2 ? Operand(random) : SpecialOperand(random);
    switch (random() % 4) {
      case 0:
        y[i] = Operand(random);
        break;
      case 1:  // powers that neither vanish nor overflow
        y[i] = (static_cast<double>(random() >> 11) * 0x1p-52 - 1) * 745 / std::log(std::abs(x[i]));
        break;
      case 2:
        y[i] = static_cast<double>(static_cast<int64_t>(random() % 129) - 64);
        break;
      default:  // of like size
        y[i] = x[i] * (1 + static_cast<double>(random() >> 11) * 0x1p-43);
        break;
    }
  }
}

void Check(const MathFunction& f, int64_t blocks, int64_t gpu_blocks) {
  CheckMath<double>(f.op, ElementType::kF64, blocks, gpu_blocks, Fill,
                    [&f](const double* x, const double* y, Expected<double>* out, int64_t n) {
                      testing::Big b;
                      for (int64_t i = 0; i < n; ++i) {
                        mpfr_set_d(b.value, x[i], MPFR_RNDN);
                        f.in_mpfr(b, y[i]);
                        out[i] = b.Rounded();
                      }
                      mpfr_free_cache();
                    });
}

class MathF64 : public ::testing::TestWithParam<MathFunction> {};
TEST_P(MathF64, Few) { Check(GetParam(), 1, 1); }

class MathF64Many : public ::testing::TestWithParam<MathFunction> {};
// Ten million.
TEST_P(MathF64Many, Many) { Check(GetParam(), 153, 3); }

auto name_of = [](const auto& info) { return testing::TestNameOf(info.param); };
const auto kUnary = ::testing::ValuesIn(testing::UnaryMathFunctions());
const auto kBinary = ::testing::ValuesIn(testing::BinaryMathFunctions());
INSTANTIATE_TEST_SUITE_P(Sampled, MathF64, kUnary, name_of);
INSTANTIATE_TEST_SUITE_P(SampledPairs, MathF64, kBinary, name_of);
INSTANTIATE_TEST_SUITE_P(SlowMath, MathF64Many, kUnary, name_of);
INSTANTIATE_TEST_SUITE_P(SlowMathPairs, MathF64Many, kBinary, name_of);

KILN_LABEL(slow, "SlowMath/MathF64Many", "SlowMathPairs/MathF64Many");

}  // namespace
}  // namespace kiln
