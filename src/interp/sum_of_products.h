// The sums of products in dots and convolutions.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <vector>

#include "interp/narrow.h"
#include "interp/scalar.h"
#include "interp/sums.h"
#include "tensor/literal.h"

namespace kiln::interp {

// The sum of x[xk] * y[yk]; for negative xk, x's element is 0. As in other implementations,
// products of floats in dots are fused with their sums (`fused`), and products in convolutions are
// rounded.
template <typename To, bool fused, typename From>
To SumOfProducts(const From* x, const From* y, const std::vector<int64_t>& xk,
                 const std::vector<int64_t>& yk) {
  auto at = [&](size_t k) { return xk[k] < 0 ? From{} : x[xk[k]]; };
  if constexpr (std::same_as<To, bool>) {
    bool any = false;
    for (size_t k = 0; k < xk.size(); ++k) any |= at(k) && y[yk[k]];
    return any;
  } else if constexpr (Int<To>) {
    Wide<To> sum = 0;
    for (size_t k = 0; k < xk.size(); ++k) {
      sum += static_cast<Wide<To>>(static_cast<To>(at(k))) *
             static_cast<Wide<To>>(static_cast<To>(y[yk[k]]));
    }
    return Wrap<To>(sum);
  } else {
    Sum<To> sum(0);
    for (size_t k = 0; k < xk.size(); ++k) {
      using Compute = typename Sum<To>::Compute;
      const Compute u = static_cast<Compute>(at(k)), v = static_cast<Compute>(y[yk[k]]);
      if constexpr (fused && !ComplexType<To>) {
        sum.AddFused(u, v);
      } else {
        sum.Add(Times(u, v));
      }
    }
    return sum.Rounded();
  }
}

// The types of products: kernels' types, and complex numbers.
template <typename F>
void VisitProductType(ElementType type, F&& f) {
  if (type == ElementType::kC64) {
    f(std::complex<float>{});
  } else if (type == ElementType::kC128) {
    f(std::complex<double>{});
  } else {
    VisitKernelType(type, f);
  }
}

// The visitor of operands in VisitProductTypes. A class, because GCC 12 drops code under a
// constexpr condition in nested generic lambdas inside a template.
template <typename To, typename F>
struct WithResult {
  F& f;
  template <typename From>
  void operator()(From from) const {
    if constexpr (FloatType<To> == FloatType<From> && Int<To> == Int<From> &&
                  ComplexType<To> == ComplexType<From>) {
      f(To{}, from);
    }
  }
};

// Calls f(to, from) with values of the types of the result and the operands. Inference lets the
// result be of the operands' type or a wider one of its kind.
template <typename F>
void VisitProductTypes(ElementType result, ElementType operands, F&& f) {
  VisitProductType(result,
                   [&](auto to) { VisitProductType(operands, WithResult<decltype(to), F>{f}); });
}

// A product of that shape; `multiply(lhs, rhs, shape)` computes the types of VisitProductTypes, and
// narrow types are multiplied as wider ones.
template <typename F>
Literal Product(const Literal& lhs, const Literal& rhs, Shape shape, F&& multiply) {
  if (!IsNarrow(lhs.shape().type())) return multiply(lhs, rhs, shape);
  const Shape result = shape;
  const ElementType type = shape.type();
  // Small floats are doubles as results, which are rounded once.
  const bool is_small_float = IsNarrow(type) && IsFloat(type);
  shape.set_type(is_small_float ? ElementType::kF64 : WideOf(type));
  Literal wide = multiply(Widened(lhs), Widened(rhs), shape);
  if (!IsNarrow(type)) return wide;
  if (is_small_float) return Rounded(type, wide);
  Literal out(result);
  Narrow(type, wide.data(), result.num_elements(), out.data());
  return out;
}

}  // namespace kiln::interp
