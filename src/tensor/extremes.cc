#include "tensor/extremes.h"

#include <limits>

namespace kiln {
namespace {

template <typename T>
T Extreme(bool greatest) {
  if constexpr (ComplexType<T>) {
    const auto part = Extreme<typename T::value_type>(greatest);
    return T(part, part);
  } else {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity) {
      return greatest ? Limits::infinity() : static_cast<T>(-Limits::infinity());
    }
    return greatest ? Limits::max() : Limits::lowest();
  }
}

Literal ExtremeOf(ElementType type, bool greatest) {
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    return Literal::Scalar<T>(type, Extreme<T>(greatest));
  });
}

}  // namespace

Literal Lowest(ElementType type) { return ExtremeOf(type, false); }
Literal Highest(ElementType type) { return ExtremeOf(type, true); }

Literal AllOnes(ElementType type) {
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::same_as<T, bool>) return Literal::Scalar<T>(type, true);
    if constexpr (IntType<T>) return Literal::Scalar<T>(type, static_cast<T>(-1));
    return Literal(Shape::Scalar(type));
  });
}

}  // namespace kiln
