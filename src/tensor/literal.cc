#include "tensor/literal.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace kiln {
namespace {

Shape RowMajor(Shape shape) {
  shape.set_minor_to_major({});
  return shape;
}

// The bits of a float, and of its mantissa.
template <FloatType T>
struct FloatBits {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  static constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
};

// The payload of a NaN that is not the usual one, so that its bits read back.
template <FloatType T>
void AppendPayload(std::string& out, T value) {
  using Bits = typename FloatBits<T>::Bits;
  constexpr int kMantissa = FloatBits<T>::kMantissa;
  uint64_t payload = std::bit_cast<Bits>(value) & ((uint64_t{1} << kMantissa) - 1);
  if (payload == uint64_t{1} << (kMantissa - 1)) return;
  char buffer[20];
  out.append("(0x");
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), payload, 16).ptr);
  out.append(")");
}

// The shortest text that reads back; of several the nearest.
template <HalfType T>
void AppendHalf(std::string& out, T value) {
  double exact = static_cast<double>(value);
  if (!std::isfinite(exact)) return AppendTo(out, exact);
  std::string shortest;
  AppendTo(shortest, exact);
  for (int digits = 1; digits <= std::numeric_limits<T>::max_digits10; ++digits) {
    char buffer[32];
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), exact, std::chars_format::scientific,
                             digits - 1)
                   .ptr;
    double rounded = 0;
    std::from_chars(buffer, end, rounded);
    if (std::bit_cast<uint16_t>(T(rounded)) != std::bit_cast<uint16_t>(value)) continue;
    std::string text;
    AppendTo(text, rounded);
    if (text.size() < shortest.size()) shortest = std::move(text);
    break;
  }
  out += shortest;
}

void AppendElement(const Literal& l, int64_t i, std::string& out) {
  VisitType(l.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    T value = l.values<T>()[i];
    if constexpr (std::is_same_v<T, bool>) {
      // HLO writes preds in arrays as digits.
      if (l.shape().rank() > 0) {
        out += value ? '1' : '0';
        return;
      }
    }
    if constexpr (HalfType<T>) {
      AppendHalf(out, value);
    } else {
      AppendTo(out, value);
    }
    if constexpr (FloatType<T>) {
      if (value != value) AppendPayload(out, value);
    }
  });
}

// Nested braces in XLA's spacing: "{1, 2}" of rank 1, "{ { 1, 2 }, { 3, 4 } }" and "{ {1}, {2} }"
// of higher ranks.
void AppendArray(const Literal& l, int64_t dim, int64_t& next, std::string& out) {
  const Shape& s = l.shape();
  if (dim == s.rank()) {
    AppendElement(l, next++, out);
    return;
  }
  bool inner = dim + 1 == s.rank();
  bool spaced = s.rank() > 1 && (!inner || s.dim(dim) > 1);
  out += spaced ? "{ " : "{";
  for (int64_t i = 0; i < s.dim(dim); ++i) {
    if (i > 0) out += ", ";
    AppendArray(l, dim + 1, next, out);
  }
  out += spaced ? " }" : "}";
}

}  // namespace

Literal::Literal(const Shape& shape) : shape_(RowMajor(shape)) {
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) elements_.emplace_back(element);
  } else {
    bytes_.resize(shape.byte_size());
  }
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  Literal l;
  std::vector<Shape> shapes;
  for (const Literal& element : elements) shapes.push_back(element.shape());
  l.shape_ = Shape::Tuple(std::move(shapes));
  l.elements_ = std::move(elements);
  return l;
}

Literal Literal::ScalarOf(ElementType type, double value) {
  Literal l(Shape::Scalar(type));
  VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    l.values<T>()[0] = static_cast<T>(value);
  });
  return l;
}

double Literal::AsDouble(int64_t i) const {
  return VisitType(shape_.type(), [&](auto zero) {
    using T = decltype(zero);
    return static_cast<double>(values<T>()[i]);
  });
}

int64_t Literal::AsInt(int64_t i) const {
  return VisitType(shape_.type(), [&](auto zero) {
    using T = decltype(zero);
    return static_cast<int64_t>(values<T>()[i]);
  });
}

bool Literal::IsSplat() const {
  if (!shape_.is_array() || bytes_.empty()) return false;
  // Equal to itself shifted by one element.
  size_t width = ByteWidth(shape_.type());
  return std::memcmp(bytes_.data(), bytes_.data() + width, bytes_.size() - width) == 0;
}

bool Literal::IsAll(double value) const {
  if (!IsSplat()) return false;
  double first = AsDouble(0);
  return first == value && std::signbit(first) == std::signbit(value);
}

bool Literal::operator==(const Literal& other) const {
  return shape_ == other.shape_ && bytes_ == other.bytes_ && elements_ == other.elements_;
}

std::string Literal::ToString() const { return ToString(INT64_MAX); }

std::string Literal::ToString(int64_t limit) const {
  if (shape_.is_token()) return "token";
  if (shape_.is_tuple()) {
    std::string out = "(";
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (i > 0) out += ", ";
      out += elements_[i].ToString(limit);
    }
    return out + ")";
  }
  if (shape_.num_elements() > limit) return "{...}";
  // An empty array can have any number of empty rows.
  constexpr int64_t kMostEmptyRows = 4096;
  int64_t rows = 1;
  for (int64_t i = 0; i < shape_.rank() && shape_.dim(i) > 0; ++i) rows *= shape_.dim(i);
  if (shape_.num_elements() == 0 && rows > kMostEmptyRows) return "{}";
  std::string out;
  int64_t next = 0;
  AppendArray(*this, 0, next, out);
  return out;
}

}  // namespace kiln
