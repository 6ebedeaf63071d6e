// The functions whose accuracy is tested, each with what it should give.
#pragma once

#include <mpfr.h>

#include <ostream>
#include <span>
#include <string>

#include "support/math.h"

namespace kiln::testing {

// A number of so many bits, of which a root next to 1 has 109, and room for more.
class Big {
 public:
  static constexpr mpfr_prec_t kPrecision = 128;

  Big() { mpfr_inits2(kPrecision, value, other, third, fourth, nullptr); }
  ~Big() { mpfr_clears(value, other, third, fourth, nullptr); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;

  Expected<double> Rounded();

  mpfr_t value, other, third, fourth;
};

struct MathFunction {
  MathOp op;
  // For types narrower than double.
  double (*in_double)(double x, double y);
  // Of b.value, which it replaces, and y.
  void (*in_mpfr)(Big& b, double y);
};
void PrintTo(const MathFunction& f, std::ostream* to);
// "kiln_lgamma": what a test may be called.
std::string TestNameOf(const MathFunction& f);

// Those of one operand (atan2 with 1 among them), and of two.
std::span<const MathFunction> UnaryMathFunctions();
std::span<const MathFunction> BinaryMathFunctions();

}  // namespace kiln::testing
