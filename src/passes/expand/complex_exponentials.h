// Exponentials and angles, as functions of complex numbers take them.
#pragma once

#include "passes/expand/complex_functions.h"

namespace kiln::passes::expand {

// cos and sin of an angle. For parts of f32 they are of f32, which is enough for a factor.
struct Circle {
  Real cos, sin;
};
Circle CircleAt(Real angle, bool is_double);

// factor * e^x for f64, in three factors where it may overflow and a product of it not.
struct Growth {
  Truth large;
  Real x;  // exp of which is to be taken
  Real first, last;

  // factor * e^x times y, of size e^(growth.x), |y| <= 1.
  Real Times(Real size, Real y) const { return size * (y * first) * last; }
};
Growth GrowthOf(Real x, double factor = 1);

}  // namespace kiln::passes::expand
