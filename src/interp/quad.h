// Numbers of 113 bits, for functions with cancellation: C's long double if wide enough, otherwise
// the C library's 128-bit floats, if available.
#pragma once

#include <cmath>

namespace kiln::interp {

#if __LDBL_MANT_DIG__ < 113 && defined(__HAVE_FLOAT128) && __HAVE_FLOAT128
using Quad = _Float128;
inline Quad Exp(Quad x) { return expf128(x); }
inline Quad Expm1(Quad x) { return expm1f128(x); }
inline Quad Log(Quad x) { return logf128(x); }
inline Quad Log1p(Quad x) { return log1pf128(x); }
inline Quad Sin(Quad x) { return sinf128(x); }
inline Quad Cos(Quad x) { return cosf128(x); }
inline Quad Atan2(Quad y, Quad x) { return atan2f128(y, x); }
inline Quad Hypot(Quad x, Quad y) { return hypotf128(x, y); }
inline Quad NearbyInt(Quad x) { return nearbyintf128(x); }
#else
using Quad = long double;
inline Quad Exp(Quad x) { return std::exp(x); }
inline Quad Expm1(Quad x) { return std::expm1(x); }
inline Quad Log(Quad x) { return std::log(x); }
inline Quad Log1p(Quad x) { return std::log1p(x); }
inline Quad Sin(Quad x) { return std::sin(x); }
inline Quad Cos(Quad x) { return std::cos(x); }
inline Quad Atan2(Quad y, Quad x) { return std::atan2(y, x); }
inline Quad Hypot(Quad x, Quad y) { return std::hypot(x, y); }
inline Quad NearbyInt(Quad x) { return std::nearbyint(x); }
#endif

}  // namespace kiln::interp
