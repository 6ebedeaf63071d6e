#include "interp/narrow.h"

#include <algorithm>
#include <cstring>

#include "interp/scalar.h"

namespace kiln::interp {
namespace {

// Calls f(T{}, W{}) with the C++ type of a narrow type and that of WideOf.
template <typename F>
void VisitNarrow(ElementType type, F&& f) {
  VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (SmallIntType<T>) {
      f(zero, typename T::Byte{});
    } else if constexpr (SmallFloatType<T> && !HalfType<T>) {
      f(zero, float{});
    }
  });
}

template <typename To, typename From>
void ConvertAll(const From* from, int64_t step, To* to, int64_t count) {
  for (int64_t k = 0; k < count; ++k) to[k] = Convert<To>(from[k * step]);
}

// Numbers in the widest real type of their kind.
template <typename From>
void FromWidest(const From* from, int64_t step, ElementType type, std::byte* to, int64_t count) {
  VisitType(type, [&](auto zero) {
    using To = decltype(zero);
    if constexpr (!ComplexType<To>) ConvertAll(from, step, reinterpret_cast<To*>(to), count);
  });
}

// Between two real types, one of them narrow: through a double, or an integer of 64 bits.
void ConvertNarrow(ElementType from, const std::byte* elements, int64_t step, ElementType to,
                   std::byte* out, int64_t count) {
  VisitType(from, [&](auto zero) {
    using From = decltype(zero);
    if constexpr (!ComplexType<From>) {
      using Widest = std::conditional_t<
          FloatType<From>, double,
          std::conditional_t<std::numeric_limits<From>::is_signed, int64_t, uint64_t>>;
      const int64_t numbers = step == 0 ? std::min<int64_t>(count, 1) : count;
      std::vector<Widest> widest(static_cast<size_t>(numbers));
      auto* values = reinterpret_cast<const From*>(elements);
      for (int64_t k = 0; k < numbers; ++k) {
        widest[static_cast<size_t>(k)] = static_cast<Widest>(values[k]);
      }
      FromWidest(widest.data(), step, to, out, count);
    }
  });
}

// The real or imaginary parts of complex numbers as an array, or the inverse.
void CopyParts(size_t width, const std::byte* from, size_t from_step, std::byte* to, size_t to_step,
               int64_t count) {
  for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
    std::memcpy(to + k * to_step, from + k * from_step, width);
  }
}

}  // namespace

void Widen(ElementType type, const std::byte* from, int64_t count, std::byte* to) {
  VisitNarrow(type, [&](auto narrow, auto wide) {
    using T = decltype(narrow);
    using W = decltype(wide);
    auto* values = reinterpret_cast<const T*>(from);
    auto* out = reinterpret_cast<W*>(to);
    for (int64_t k = 0; k < count; ++k) out[k] = static_cast<W>(values[k]);
  });
}

Literal Widened(const Literal& narrow) {
  Shape shape = narrow.shape();
  shape.set_type(WideOf(shape.type()));
  Literal wide(shape);
  Widen(narrow.shape().type(), narrow.data(), shape.num_elements(), wide.data());
  return wide;
}

void Narrow(ElementType type, const std::byte* from, int64_t count, std::byte* to) {
  VisitNarrow(type, [&](auto narrow, auto wide) {
    using T = decltype(narrow);
    using W = decltype(wide);
    auto* values = reinterpret_cast<const W*>(from);
    auto* out = reinterpret_cast<T*>(to);
    for (int64_t k = 0; k < count; ++k) out[k] = static_cast<T>(values[k]);
  });
}

Literal Rounded(ElementType type, const Literal& doubles) {
  Shape shape = doubles.shape();
  shape.set_type(type);
  Literal rounded(shape);
  FromWidest(doubles.values<double>().data(), 1, type, rounded.data(), shape.num_elements());
  return rounded;
}

void Normalise(ElementType type, std::byte* elements, int64_t count) {
  if (IsPred(type)) {
    for (int64_t k = 0; k < count; ++k) elements[k] = std::byte{elements[k] != std::byte{0}};
    return;
  }
  if (BitWidth(type) >= 8) return;
  VisitNarrow(type, [&](auto narrow, auto) {
    using T = decltype(narrow);
    auto* values = reinterpret_cast<T*>(elements);
    for (int64_t k = 0; k < count; ++k) {
      if constexpr (SmallIntType<T>) {
        values[k] = T(values[k].value());
      } else {
        values[k] = T::FromBits(values[k].bits() & ((1 << T::format.bits()) - 1));
      }
    }
  });
}

void Convert(ElementType from, const std::byte* elements, bool repeats, ElementType to,
             std::byte* out, int64_t count) {
  const int64_t step = repeats ? 0 : 1;
  const auto width = static_cast<size_t>(ByteWidth(from));
  if (from == to) {
    CopyParts(width, elements, repeats ? 0 : width, out, width, count);
  } else if (IsComplex(from) || IsComplex(to)) {
    // The parts one after the other, through separate arrays.
    const ElementType from_part = PartOf(from), to_part = PartOf(to);
    const auto part = static_cast<size_t>(ByteWidth(from_part));
    const auto to_width = static_cast<size_t>(ByteWidth(to_part));
    const int64_t numbers = repeats ? std::min<int64_t>(count, 1) : count;
    std::vector<std::byte> parts(part * static_cast<size_t>(numbers));
    std::vector<std::byte> converted(to_width * static_cast<size_t>(count));
    const size_t out_step = static_cast<size_t>(ByteWidth(to));
    for (size_t p = 0; p < (IsComplex(to) ? 2 : 1); ++p) {
      if (p == 1 && !IsComplex(from)) {
        std::fill(converted.begin(), converted.end(), std::byte{0});
      } else {
        CopyParts(part, elements + p * part, width, parts.data(), part, numbers);
        Convert(from_part, parts.data(), repeats, to_part, converted.data(), count);
      }
      CopyParts(to_width, converted.data(), to_width, out + p * to_width, out_step, count);
    }
  } else if (IsKernelType(from) && IsKernelType(to)) {
    VisitKernelType(from, [&](auto of_from) {
      VisitKernelType(to, [&](auto of_to) {
        using From = decltype(of_from);
        using To = decltype(of_to);
        ConvertAll(reinterpret_cast<const From*>(elements), step, reinterpret_cast<To*>(out),
                   count);
      });
    });
  } else {
    ConvertNarrow(from, elements, step, to, out, count);
  }
}

}  // namespace kiln::interp
