// Elementary functions of f64 at seeded operands of all sizes, as programs compute them, against
// MPFR.

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include "math_test_util.h"

namespace kiln {
namespace {

using testing::CheckMath;
using testing::Expected;
using testing::kMathBlock;

constexpr double kNearest = 0.5;
constexpr mpfr_prec_t kPrecision = 160;
constexpr mpfr_rnd_t kRound = MPFR_RNDN;

// A number of so many bits, and room for two more.
class Big {
 public:
  Big() { mpfr_inits2(kPrecision, value, other, third, nullptr); }
  ~Big() { mpfr_clears(value, other, third, nullptr); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;

  Expected<double> Rounded() {
    Expected<double> e;
    e.value = mpfr_get_d(value, kRound);
    if (mpfr_nan_p(value) || mpfr_inf_p(value)) return e;
    if (std::isinf(e.value)) {
      // Any rest says that the infinity is not exact.
      e.rest = std::numeric_limits<double>::min();
      return e;
    }
    int exponent = e.value == 0 ? -1022 : std::max(std::ilogb(e.value), -1022);
    mpfr_sub_d(other, value, e.value, kRound);
    mpfr_mul_2si(other, other, 52 - exponent, kRound);
    e.rest = mpfr_get_d(other, kRound);
    return e;
  }

  mpfr_t value, other, third;
};

struct Function {
  const char* op;
  int operands;
  // Of b.value, and y.
  void (*reference)(Big& b, double y);
  double bound;
};
void PrintTo(const Function& f, std::ostream* to) { *to << f.op; }

const Function kFunctions[] = {
    {"acos", 1, [](Big& b, double) { mpfr_acos(b.value, b.value, kRound); }, 3},
    {"acosh", 1, [](Big& b, double) { mpfr_acosh(b.value, b.value, kRound); }, 3},
    {"asin", 1, [](Big& b, double) { mpfr_asin(b.value, b.value, kRound); }, 3},
    {"asinh", 1, [](Big& b, double) { mpfr_asinh(b.value, b.value, kRound); }, 3},
    {"atanh", 1, [](Big& b, double) { mpfr_atanh(b.value, b.value, kRound); }, 3},
    {"atan2", 2,
     [](Big& b, double x) {
       mpfr_set_d(b.other, x, kRound);
       mpfr_atan2(b.value, b.value, b.other, kRound);
     },
     3},
    {"cbrt", 1, [](Big& b, double) { mpfr_cbrt(b.value, b.value, kRound); }, 3},
    {"cosh", 1, [](Big& b, double) { mpfr_cosh(b.value, b.value, kRound); }, 3},
    {"cosine", 1, [](Big& b, double) { mpfr_cos(b.value, b.value, kRound); }, 3},
    {"erf", 1, [](Big& b, double) { mpfr_erf(b.value, b.value, kRound); }, 3},
    {"exponential", 1, [](Big& b, double) { mpfr_exp(b.value, b.value, kRound); }, 3},
    {"exponential-minus-one", 1, [](Big& b, double) { mpfr_expm1(b.value, b.value, kRound); }, 3},
    {"log", 1, [](Big& b, double) { mpfr_log(b.value, b.value, kRound); }, 3},
    {"log-plus-one", 1, [](Big& b, double) { mpfr_log1p(b.value, b.value, kRound); }, 3},
    {"logistic", 1,
     [](Big& b, double) {
       mpfr_neg(b.other, b.value, kRound);
       mpfr_exp(b.other, b.other, kRound);
       mpfr_add_ui(b.other, b.other, 1, kRound);
       mpfr_ui_div(b.value, 1, b.other, kRound);
     },
     3},
    {"rsqrt", 1,
     [](Big& b, double) {
       mpfr_sqrt(b.value, b.value, kRound);
       mpfr_ui_div(b.value, 1, b.value, kRound);
     },
     3},
    {"sine", 1, [](Big& b, double) { mpfr_sin(b.value, b.value, kRound); }, 3},
    {"sinh", 1, [](Big& b, double) { mpfr_sinh(b.value, b.value, kRound); }, 3},
    {"tan", 1, [](Big& b, double) { mpfr_tan(b.value, b.value, kRound); }, 3},
    {"sqrt", 1, [](Big& b, double) { mpfr_sqrt(b.value, b.value, kRound); }, kNearest},
    {"tanh", 1, [](Big& b, double) { mpfr_tanh(b.value, b.value, kRound); }, 3},
    {"power", 2,
     [](Big& b, double y) {
       mpfr_set_d(b.other, y, kRound);
       mpfr_pow(b.value, b.value, b.other, kRound);
     },
     3},
    {"remainder", 2,
     [](Big& b, double y) {
       mpfr_set_d(b.other, y, kRound);
       mpfr_fmod(b.value, b.value, b.other, kRound);
     },
     kNearest},
};

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

void Fill(int64_t block, double* x, double* y) {
  std::mt19937_64 random(static_cast<uint64_t>(block) + 1);
  for (int64_t i = 0; i < kMathBlock; ++i) {
    x[i] = Operand(random);
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

void Check(const Function& f, int64_t blocks) {
  CheckMath<double>(f.op, f.operands, blocks, f.bound, Fill,
                    [&f](const double* x, const double* y, Expected<double>* out, int64_t n) {
                      Big b;
                      for (int64_t i = 0; i < n; ++i) {
                        mpfr_set_d(b.value, x[i], kRound);
                        f.reference(b, y[i]);
                        out[i] = b.Rounded();
                      }
                      mpfr_free_cache();
                    });
}

class MathF64 : public ::testing::TestWithParam<Function> {};
TEST_P(MathF64, Few) { Check(GetParam(), 1); }

class MathF64Many : public ::testing::TestWithParam<Function> {};
TEST_P(MathF64Many, Many) { Check(GetParam(), 64); }

auto name_of = [](const auto& info) {
  std::string name = info.param.op;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Sampled, MathF64, ::testing::ValuesIn(kFunctions), name_of);
// Tests whose names begin with Slow run in `make test-all`.
INSTANTIATE_TEST_SUITE_P(SlowMath, MathF64Many, ::testing::ValuesIn(kFunctions), name_of);

}  // namespace
}  // namespace kiln
