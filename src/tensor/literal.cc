#include "tensor/literal.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace kiln {
namespace {

template <typename T>
auto RealPart(const T& value) {
  if constexpr (ComplexType<T>) {
    return value.real();
  } else {
    return value;
  }
}

Shape RowMajor(Shape shape) {
  shape.set_minor_to_major({});
  return shape;
}

// The payload of an unusual NaN, so that its bits read back.
template <FloatType T>
void AppendPayload(std::string& out, T value) {
  constexpr FloatFormat kFormat = FormatOf<T>();
  if (kFormat.specials != Specials::kIeee) return;
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  uint64_t payload = std::bit_cast<Bits>(value) & (kFormat.hidden() - 1);
  if (payload == kFormat.hidden() >> 1) return;
  char buffer[20];
  out.append("(0x");
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), payload, 16).ptr);
  out.append(")");
}

// The shortest text that reads back; among equals the nearest.
template <SmallFloatType T>
void AppendSmallFloat(std::string& out, T value) {
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
    if (!HoldsRounded(T::format, rounded) || T(rounded).bits() != value.bits()) continue;
    std::string text;
    AppendTo(text, rounded);
    if (text.size() < shortest.size()) shortest = std::move(text);
    break;
  }
  out += shortest;
}

template <FloatType T>
void AppendNumber(std::string& out, T value) {
  if constexpr (SmallFloatType<T>) {
    AppendSmallFloat(out, value);
  } else {
    AppendTo(out, value);
  }
  if (value != value) AppendPayload(out, value);
}
template <IntType T>
void AppendNumber(std::string& out, T value) {
  AppendTo(out, static_cast<std::conditional_t<SmallIntType<T>, int, T>>(value));
}
template <ComplexType T>
void AppendNumber(std::string& out, T value) {
  out += '(';
  AppendNumber(out, value.real());
  out += ", ";
  AppendNumber(out, value.imag());
  out += ')';
}

void AppendElement(const Literal& l, int64_t i, std::string& out) {
  VisitType(l.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    T value = l.values<T>()[i];
    if constexpr (std::is_same_v<T, bool>) {
      // HLO writes preds in arrays as digits.
      if (l.shape().rank() > 0) {
        out += value ? '1' : '0';
      } else {
        AppendTo(out, value);
      }
    } else {
      AppendNumber(out, value);
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

Literal Literal::Borrowed(const Shape& shape, const std::byte* elements,
                          std::shared_ptr<const void> owner) {
  Literal l;
  l.shape_ = RowMajor(shape);
  l.borrowed_ = {std::move(owner), elements};
  return l;
}

void Literal::Own() {
  bytes_.assign(borrowed_.get(), borrowed_.get() + size());
  borrowed_ = nullptr;
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
    return static_cast<double>(RealPart(values<T>()[i]));
  });
}

int64_t Literal::AsInt(int64_t i) const {
  return VisitType(shape_.type(), [&](auto zero) {
    using T = decltype(zero);
    return static_cast<int64_t>(RealPart(values<T>()[i]));
  });
}

bool Literal::IsSplat() const {
  if (!shape_.is_array() || size() == 0) return false;
  // Equal to itself shifted by one element.
  size_t width = ByteWidth(shape_.type());
  return std::memcmp(data(), data() + width, size() - width) == 0;
}

bool Literal::IsAll(double value) const {
  if (!IsSplat()) return false;
  double first = AsDouble(0);
  if (first != value || std::signbit(first) != std::signbit(value)) return false;
  if (!IsComplex(shape_.type())) return true;
  Literal real = ScalarOf(shape_.type(), value);
  return std::memcmp(data(), real.data(), static_cast<size_t>(real.byte_size())) == 0;
}

bool Literal::operator==(const Literal& other) const {
  return shape_ == other.shape_ && elements_ == other.elements_ && size() == other.size() &&
         (size() == 0 || std::memcmp(data(), other.data(), size()) == 0);
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
