// Functions missing from C++, or defined there for some arguments only, in double and long double;
// their definitions are in ops.def. Results are accurate to a few last places, except where they
// are much smaller than the terms of their sums, as next to a zero of digamma or zeta.
#pragma once

#include <concepts>

namespace kiln::interp {

template <std::floating_point T>
T BesselI1e(T x);
template <std::floating_point T>
T Digamma(T x);
template <std::floating_point T>
T ErfInv(T x);
template <std::floating_point T>
T Erfc(T x);
template <std::floating_point T>
T Lgamma(T x);
template <std::floating_point T>
T Polygamma(T order, T x);
template <std::floating_point T>
T Zeta(T s, T q);

}  // namespace kiln::interp
