// Functions that C++ lacks, or has for some arguments only, in double and long double; see ops.def
// for what they mean. Results are right to a few of its last places where they are not much smaller
// than the terms they are sums of, as next to a zero of digamma or zeta.
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
