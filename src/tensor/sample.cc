#include "tensor/sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

namespace kiln {
namespace {

// The largest index that the type can hold.
int64_t LargestOf(ElementType type) {
  const int64_t bits = BitWidth(type) - IsSigned(type);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
}

// Numbers from 0 to `count` - 1, sorted or distinct if the range says so.
std::vector<uint64_t> Draw(std::mt19937_64& random, size_t size, uint64_t count,
                           const SampleRange& range) {
  std::vector<uint64_t> numbers(size);
  if (range.distinct && size <= count && count < 4 * size) {
    // Most of them are taken: the first ones of a permutation.
    std::vector<uint64_t> all(count);
    for (uint64_t i = 0; i < count; ++i) all[i] = i;
    for (size_t i = 0; i < size; ++i) {
      std::swap(all[i], all[i + random() % (count - i)]);
      numbers[i] = all[i];
    }
  } else {
    std::unordered_set<uint64_t> taken;
    const bool distinct = range.distinct && size <= count;
    for (uint64_t& number : numbers) {
      do {
        number = random() % count;
      } while (distinct && !taken.insert(number).second);
    }
  }
  if (range.sorted) std::ranges::sort(numbers);
  return numbers;
}

// Index vectors, as numbers of which the components are the digits.
void FillIndices(Literal& literal, uint64_t seed, const SampleRange& range) {
  std::mt19937_64 random(seed);
  const ElementType type = literal.shape().type();
  const int64_t elements = literal.shape().num_elements();
  const int64_t components = elements % range.components == 0 ? range.components : 1;
  const auto base =
      static_cast<uint64_t>(std::clamp<int64_t>(range.high, 0, LargestOf(type) - 1)) + 1;
  uint64_t count = 1;
  for (int64_t c = 0; c < components; ++c) {
    if (count > (uint64_t{1} << 62) / base) break;
    count *= base;
  }
  std::vector<uint64_t> numbers =
      Draw(random, static_cast<size_t>(elements / components), count, range);
  VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!FloatType<T> && !ComplexType<T>) {
      const std::span<T> values = literal.values<T>();
      for (size_t n = 0; n < numbers.size(); ++n) {
        for (int64_t c = components; c-- > 0; numbers[n] /= base) {
          values[n * static_cast<size_t>(components) + static_cast<size_t>(c)] =
              static_cast<T>(static_cast<int64_t>(numbers[n] % base));
        }
      }
    }
  });
}

double InRange(double number, const SampleRange& range) {
  // From [-2, 2).
  number *= range.magnitude / 2;
  return range.positive ? range.magnitude / 16 + std::abs(number) * 15 / 16 : number;
}

void FillKernelType(Literal& literal, ElementType type, uint64_t seed, const SampleRange& range) {
  std::mt19937_64 random(seed);
  const uint64_t span = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low) + 1;
  VisitKernelType(type, [&](auto zero) {
    using T = decltype(zero);
    for (T& value : literal.values<T>()) {
      uint64_t bits = random();
      if constexpr (std::same_as<T, bool>) {
        value = bits & 1;
      } else if constexpr (FloatType<T>) {
        const double number = bits % 16 == 0 ? static_cast<double>(bits / 16 % 2)
                                             : static_cast<double>(bits >> 12) / (1ull << 50) - 2;
        value = static_cast<T>(InRange(number, range));
      } else {
        value = static_cast<T>(static_cast<int64_t>(bits % span) + range.low);
      }
    }
  });
}

void DominateByDiagonal(Literal& literal) {
  const Shape& shape = literal.shape();
  if (shape.rank() < 2 || (!IsFloat(shape.type()) && !IsComplex(shape.type()))) return;
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  const int64_t matrices = rows * columns > 0 ? shape.num_elements() / (rows * columns) : 0;
  const double size = 4.0 * static_cast<double>(std::max(rows, columns)) + 1;
  const Literal diagonal = Literal::ScalarOf(shape.type(), size);
  const int64_t bytes = ByteWidth(shape.type());
  for (int64_t m = 0; m < matrices; ++m) {
    for (int64_t d = 0; d < std::min(rows, columns); ++d) {
      std::memcpy(literal.data() + ((m * rows + d) * columns + d) * bytes, diagonal.data(),
                  static_cast<size_t>(bytes));
    }
  }
}

// Elements of an array whose type is narrower than those of kernels, from wider ones.
void FillNarrowType(Literal& literal, ElementType type, uint64_t seed, const SampleRange& range) {
  Shape wide = literal.shape();
  wide.set_type(WideOf(type));
  const Literal numbers = SampleLiteral(wide, seed, range);
  VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    const std::span<T> values = literal.values<T>();
    for (size_t k = 0; k < values.size(); ++k) {
      if constexpr (FloatType<T>) {
        // Without a sign there is nothing below 0, and 0 is a NaN.
        const double number = numbers.AsDouble(static_cast<int64_t>(k));
        values[k] = T(FormatOf(type)->has_sign ? number : std::abs(number));
      } else if constexpr (!ComplexType<T>) {
        values[k] = static_cast<T>(numbers.AsInt(static_cast<int64_t>(k)));
      }
    }
  });
}

}  // namespace

Literal SampleLiteral(const Shape& shape, uint64_t seed, const SampleRange& range) {
  Literal literal(shape);
  if (shape.is_tuple()) {
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      literal.elements()[i] = SampleLiteral(shape.elements()[i], seed * 31 + i, range);
    }
    return literal;
  }
  if (!shape.is_array()) return literal;
  // Of complex numbers the parts; of less than a byte what is in bytes.
  const ElementType type = PartOf(shape.type());
  SampleRange within = range;
  // The default range wraps in types of less.
  if (IsInteger(type) && range != SampleRange()) {
    within.high = std::min(range.high, LargestOf(type));
    within.low = std::min(std::max(range.low, IsSigned(type) ? -LargestOf(type) : 0), within.high);
  }
  if (IsInteger(type) && (range.sorted || range.distinct)) {
    FillIndices(literal, seed, within);
  } else if (IsKernelType(type)) {
    FillKernelType(literal, type, seed, within);
  } else {
    FillNarrowType(literal, type, seed, within);
  }
  if (range.dominant_diagonal) DominateByDiagonal(literal);
  return literal;
}

}  // namespace kiln
