#include "ir/text_values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include "ir/elided.h"
#include "tensor/layouts.h"

namespace kiln::ir {
namespace {

// Types that XLA has and the table of element types does not.
bool IsForeignType(std::string_view name) {
  constexpr std::string_view kNames[] = {"s1", "u1", "opaque"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// A number, or a symbol.
Result<Polynomial> ReadFactor(Scanner& scanner) {
  if (IsDigit(scanner.Peek())) {
    KILN_ASSIGN_OR_RETURN(int64_t value, scanner.Integer());
    return Polynomial(value);
  }
  size_t at = scanner.position();
  std::string_view name = scanner.TakeIdentifier();
  if (name.empty()) return scanner.FailAt(at, "a size or a symbol");
  Result<Polynomial> symbol = Polynomial::Symbol(name);
  if (!symbol.ok()) return symbol.status().WithContext(scanner.Where(at));
  return symbol;
}

// "8", "2*n+1", "n*m-n", "-n+8".
Result<Dimension> ReadSize(Scanner& scanner) {
  size_t at = scanner.position();
  auto here = [&](Result<Polynomial> size) -> Result<Polynomial> {
    if (size.ok()) return size;
    return size.status().WithContext(scanner.Where(at));
  };
  Polynomial sum;
  for (bool first = true;; first = false) {
    int64_t sign = scanner.Take("-") ? -1 : 1;
    if (!first && sign == 1 && !scanner.Take("+")) break;
    KILN_ASSIGN_OR_RETURN(Polynomial term, ReadFactor(scanner));
    while (scanner.Take("*")) {
      KILN_ASSIGN_OR_RETURN(Polynomial factor, ReadFactor(scanner));
      KILN_ASSIGN_OR_RETURN(term, here(Polynomial::Product(term, factor)));
    }
    if (sign < 0) {
      KILN_ASSIGN_OR_RETURN(term, here(Polynomial::Product(term, Polynomial(-1))));
    }
    KILN_ASSIGN_OR_RETURN(sum, here(Polynomial::Sum(sum, term)));
  }
  return Dimension(std::move(sum));
}

// A number of an attribute's, or a size of symbols in its place; in parentheses where its end
// cannot be told else.
Result<int64_t> ReadNumber(Scanner& scanner, bool bare, Attr key, size_t position,
                           SymbolicNumbers& symbolic) {
  const bool enclosed = scanner.Take("(");
  if (!enclosed && !bare) return scanner.Integer();
  if (const size_t at = scanner.position(); !enclosed && IsDigit(scanner.Raw())) {
    KILN_ASSIGN_OR_RETURN(int64_t number, scanner.Integer());
    const char next = scanner.Peek();
    if (next != '*' && next != '+' && next != '-') return number;
    scanner.Rewind(at);
  }
  KILN_ASSIGN_OR_RETURN(Dimension size, ReadSize(scanner));
  if (enclosed) KILN_RETURN_IF_ERROR(scanner.Expect(")"));
  if (!size.is_symbolic()) return size.size();
  symbolic.push_back({key, static_cast<int64_t>(position), std::move(size)});
  return int64_t{-1};
}

Result<Dimension> ReadDimension(Scanner& scanner) {
  if (scanner.Looking("?")) {
    return Unimplemented(scanner.Where(scanner.position()),
                         ": a dimension without a bound is not implemented");
  }
  size_t at = scanner.position();
  // Nearly all dimensions are numbers.
  if (IsDigit(scanner.Raw())) {
    KILN_ASSIGN_OR_RETURN(int64_t number, scanner.Integer());
    if (scanner.Raw() == ',' || scanner.Raw() == ']') return Dimension(number);
    scanner.Rewind(at);
  }
  bool bounded = scanner.Take("<=");
  at = scanner.position();
  KILN_ASSIGN_OR_RETURN(Dimension size, ReadSize(scanner));
  if (size.is_symbolic() && !bounded) return size;
  if (size.is_symbolic()) return scanner.FailAt(at, "a number as the bound");
  if (size.size() < 0) return scanner.FailAt(at, "a size that is not negative");
  return bounded ? Dimension::Bounded(size.size()) : size;
}

// After "{": "1,0:T(8,128)S(1)}". The tiling behind the colon is ignored: the library decides it
// itself.
Status ReadLayout(Scanner& scanner, Shape& shape) {
  size_t begin = scanner.position();
  std::vector<int64_t> order;
  if (IsDigit(scanner.Peek())) {
    do {
      KILN_ASSIGN_OR_RETURN(int64_t dimension, scanner.Integer());
      order.push_back(dimension);
    } while (scanner.Take(","));
    if (!IsPermutation(order, shape.rank())) {
      return scanner.FailAt(begin, Cat("a permutation of the ", shape.rank(), " dimensions"));
    }
  }
  if (scanner.Looking(":")) KILN_RETURN_IF_ERROR(scanner.SkipValue());
  KILN_RETURN_IF_ERROR(scanner.Expect("}"));
  shape.set_minor_to_major(std::move(order));
  return OkStatus();
}

// The brace that opens a computation has no digit or colon behind, and is not empty; "{}" is a
// layout directly behind the brackets.
bool LookingAtLayout(Scanner& scanner) {
  if (scanner.Raw() == '{' && scanner.Raw(1) == '}') return true;
  return scanner.Looking("{") && (IsDigit(scanner.Raw(1)) || scanner.Raw(1) == ':');
}

Result<Shape> ReadShapeAt(Scanner& scanner, int64_t depth) {
  if (scanner.Take("(")) {
    if (depth == kMaxTupleDepth) {
      return scanner.Fail(Cat("tuples nested at most ", kMaxTupleDepth, " deep"));
    }
    std::vector<Shape> elements;
    if (!scanner.Take(")")) {
      do {
        KILN_ASSIGN_OR_RETURN(Shape element, ReadShapeAt(scanner, depth + 1));
        elements.push_back(std::move(element));
      } while (scanner.Take(","));
      KILN_RETURN_IF_ERROR(scanner.Expect(")"));
    }
    return Shape::Tuple(std::move(elements));
  }
  size_t at = scanner.position();
  std::string_view name = scanner.TakeWord();
  // A buffer, which is a value of its shape here.
  if (name == "b" && scanner.Raw() == '(') {
    if (depth == kMaxTupleDepth) {
      return scanner.Fail(Cat("types nested at most ", kMaxTupleDepth, " deep"));
    }
    scanner.Take("(");
    KILN_ASSIGN_OR_RETURN(Shape shape, ReadShapeAt(scanner, depth + 1));
    KILN_RETURN_IF_ERROR(scanner.Expect(")"));
    return shape;
  }
  if (name == "token") {
    KILN_RETURN_IF_ERROR(scanner.Expect("["));
    KILN_RETURN_IF_ERROR(scanner.Expect("]"));
    if (scanner.Raw() == '{' && (scanner.Raw(1) == '}' || scanner.Raw(1) == ':')) {
      KILN_RETURN_IF_ERROR(scanner.SkipValue());
    }
    return Shape::Token();
  }
  std::optional<ElementType> type = TypeByName(name);
  if (IsForeignType(name)) {
    return Unimplemented(scanner.Where(at), ": type '", name, "' is not implemented");
  }
  if (!type) return scanner.FailAt(at, "a shape");
  KILN_RETURN_IF_ERROR(scanner.Expect("["));
  std::vector<Dimension> dimensions;
  if (!scanner.Take("]")) {
    do {
      KILN_ASSIGN_OR_RETURN(Dimension dimension, ReadDimension(scanner));
      dimensions.push_back(dimension);
    } while (scanner.Take(","));
    KILN_RETURN_IF_ERROR(scanner.Expect("]"));
  }
  Shape shape(*type, std::move(dimensions));
  if (LookingAtLayout(scanner)) {
    scanner.Take("{");
    KILN_RETURN_IF_ERROR(ReadLayout(scanner, shape));
  }
  return shape;
}

// "nan", "-nan", "nan(0x400001)": the bits of a NaN with that mantissa.
template <FloatType T>
bool ReadNan(std::string_view text, T* value) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  constexpr FloatFormat kFormat = FormatOf<T>();
  bool negative = text.starts_with("-");
  if (negative) text.remove_prefix(1);
  if (!text.starts_with("nan")) return false;
  text.remove_prefix(3);
  if (kFormat.specials != Specials::kIeee) {
    // One for each sign at most, and none to tell apart.
    *value = std::bit_cast<T>(static_cast<Bits>(EncodeNan(kFormat, negative, 0)));
    return text.empty() && kFormat.specials != Specials::kNone;
  }
  uint64_t mantissa = kFormat.hidden() >> 1;
  if (!text.empty()) {
    if (!text.starts_with("(0x") || !text.ends_with(")")) return false;
    text = text.substr(3, text.size() - 4);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mantissa, 16);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    if (mantissa == 0 || mantissa >= kFormat.hidden()) return false;
  }
  uint64_t sign = negative ? kFormat.sign_bit() : 0;
  *value = std::bit_cast<T>(static_cast<Bits>(sign | kFormat.infinity() | mantissa));
  return true;
}

template <std::floating_point T>
bool ReadFloat(std::string_view text, T* value) {
  if (ReadNan(text, value)) return true;
  std::string_view digits = text;
  bool negative = digits.starts_with("-");
  if (negative || digits.starts_with("+")) digits.remove_prefix(1);
  // Rounded once, to T. Numbers out of T's range go through ParseDouble: overflow is an error,
  // underflow gives 0.
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    auto [end, error] = std::from_chars(digits.data() + 2, digits.data() + digits.size(), *value,
                                        std::chars_format::hex);
    if (end != digits.data() + digits.size() || digits.size() == 2) return false;
    if (error == std::errc()) {
      if (negative) *value = -*value;
      return true;
    }
  } else {
    if (digits.starts_with("-") || digits.starts_with("+")) return false;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return false;
    if (error == std::errc()) {
      if (negative) *value = -*value;
      return true;
    }
  }
  std::optional<double> wide = ParseDouble(text);
  if (!wide || std::abs(*wide) > 1) return false;
  *value = static_cast<T>(*wide);
  return true;
}

// By way of double. Its additional digits are so many that no text of less than 17 digits is
// rounded differently. A finite number that becomes an infinity, or the value in an infinity's
// place, is an error here too; infinities, and NaNs of types without one, become these values.
template <SmallFloatType T>
bool ReadFloat(std::string_view text, T* value) {
  if (ReadNan(text, value)) return true;
  double wide = 0;
  if (!ReadFloat(text, &wide)) return false;
  *value = T(wide);
  if (std::isnan(wide)) return T::format.specials == Specials::kNone;
  return std::isinf(wide) || HoldsRounded(T::format, wide);
}

// Of numbers all but 0 are true.
bool ReadElement(std::string_view text, bool* value) {
  const std::optional<int64_t> number = ParseInt(text);
  *value = text == "true" || number.value_or(0) != 0;
  return number || *value || text == "false";
}
template <FloatType T>
bool ReadElement(std::string_view text, T* value) {
  return ReadFloat(text, value);
}
template <std::integral T>
bool ReadElement(std::string_view text, T* value) {
  auto whole = [&](auto* number) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (whole(value)) return true;
  if constexpr (sizeof(T) == sizeof(int64_t)) {
    // 64 bits may be written with a sign or without one.
    std::conditional_t<std::is_signed_v<T>, uint64_t, int64_t> bits;
    if (!whole(&bits)) return false;
    *value = static_cast<T>(bits);
    return true;
  }
  return false;
}

template <SmallIntType T>
bool ReadElement(std::string_view text, T* value) {
  int8_t wide = 0;
  if (!ReadElement(text, &wide)) return false;
  *value = T(wide);
  return static_cast<int8_t>(*value) == wide;
}

template <typename T>
Status ReadScalar(Scanner& scanner, ElementType type, T* value) {
  size_t at = scanner.position();
  if (ReadElement(scanner.TakeNumber(), value)) return OkStatus();
  return scanner.FailAt(at, Cat("a number that ", TypeName(type), " holds"));
}
// "(1, 2)": the real and the imaginary part.
template <ComplexType T>
Status ReadScalar(Scanner& scanner, ElementType type, T* value) {
  typename T::value_type real, imaginary;
  KILN_RETURN_IF_ERROR(scanner.Expect("("));
  KILN_RETURN_IF_ERROR(ReadScalar(scanner, PartOf(type), &real));
  KILN_RETURN_IF_ERROR(scanner.Expect(","));
  KILN_RETURN_IF_ERROR(ReadScalar(scanner, PartOf(type), &imaginary));
  *value = T(real, imaginary);
  return scanner.Expect(")");
}

template <typename T>
Status ReadArray(Scanner& scanner, const Shape& shape, int64_t dim, T*& next) {
  if (dim == shape.rank()) return ReadScalar(scanner, shape.type(), next++);
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  // As in XLA, space can stand for a comma, and the last element have one behind it.
  for (int64_t i = 0; i < shape.dim(dim); ++i) {
    if (i > 0 && !scanner.Take(",") && scanner.Looking("}")) return scanner.Fail("','");
    KILN_RETURN_IF_ERROR(ReadArray(scanner, shape, dim + 1, next));
  }
  scanner.Take(",");
  if (scanner.Take("}")) return OkStatus();
  return scanner.Fail(Cat("'}' after ", shape.dim(dim), " elements"));
}

Result<AttrValue> ReadSlices(Scanner& scanner, Attr key, SymbolicNumbers& symbolic) {
  std::vector<SliceDimension> slices;
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  if (scanner.Take("}")) return AttrValue(slices);
  do {
    SliceDimension slice;
    KILN_RETURN_IF_ERROR(scanner.Expect("["));
    const size_t at = 3 * slices.size();
    KILN_ASSIGN_OR_RETURN(slice.start, ReadNumber(scanner, true, key, at, symbolic));
    KILN_RETURN_IF_ERROR(scanner.Expect(":"));
    KILN_ASSIGN_OR_RETURN(slice.limit, ReadNumber(scanner, true, key, at + 1, symbolic));
    if (scanner.Take(":")) {
      KILN_ASSIGN_OR_RETURN(slice.stride, scanner.Integer());
    }
    KILN_RETURN_IF_ERROR(scanner.Expect("]"));
    slices.push_back(slice);
  } while (scanner.Take(","));
  KILN_RETURN_IF_ERROR(scanner.Expect("}"));
  return AttrValue(std::move(slices));
}

// "{1,n}".
Result<Ints> ReadSizes(Scanner& scanner, Attr key, SymbolicNumbers& symbolic) {
  Ints values;
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  if (scanner.Take("}")) return values;
  do {
    KILN_ASSIGN_OR_RETURN(int64_t value, ReadNumber(scanner, true, key, values.size(), symbolic));
    values.push_back(value);
  } while (scanner.Take(","));
  KILN_RETURN_IF_ERROR(scanner.Expect("}"));
  return values;
}

// "0_1x2_3_1", "0_(n)x0_0"; of a scalar, nothing.
Result<AttrValue> ReadPadding(Scanner& scanner, Attr key, SymbolicNumbers& symbolic) {
  std::vector<PaddingDimension> padding;
  if (!IsDigit(scanner.Raw()) && scanner.Raw() != '-' && scanner.Raw() != '(') {
    return AttrValue(padding);
  }
  do {
    PaddingDimension pad;
    const size_t at = 3 * padding.size();
    KILN_ASSIGN_OR_RETURN(pad.low, ReadNumber(scanner, false, key, at, symbolic));
    KILN_RETURN_IF_ERROR(scanner.Expect("_"));
    KILN_ASSIGN_OR_RETURN(pad.high, ReadNumber(scanner, false, key, at + 1, symbolic));
    if (scanner.Take("_")) {
      KILN_ASSIGN_OR_RETURN(pad.interior, scanner.Integer());
    }
    padding.push_back(pad);
  } while (scanner.Take("x"));
  return AttrValue(std::move(padding));
}

// "{size=2x2 stride=1x2 pad=0_1x1_1 lhs_dilate=1x2 rhs_dilate=1x2 rhs_reversal=0x1}", in any order;
// of a scalar "{}".
Result<AttrValue> ReadWindow(Scanner& scanner) {
  std::vector<WindowDimension> window;
  std::vector<std::string_view> seen;
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  while (!scanner.Take("}")) {
    size_t at = scanner.position();
    std::string_view key = scanner.TakeWord();
    constexpr std::string_view kKeys[] = {"size",       "stride",     "pad",
                                          "lhs_dilate", "rhs_dilate", "rhs_reversal"};
    const bool first = seen.empty(), known = std::ranges::find(kKeys, key) != std::end(kKeys);
    if (!known || std::ranges::find(seen, key) != seen.end()) {
      return scanner.FailAt(at,
                            "each of size, stride, pad, lhs_dilate, rhs_dilate and rhs_reversal "
                            "once at most, or '}'");
    }
    seen.push_back(key);
    KILN_RETURN_IF_ERROR(scanner.Expect("="));
    // Nothing follows where there are no dimensions.
    bool none = !IsDigit(scanner.Raw()) && scanner.Raw() != '-';
    for (size_t d = 0; !none; ++d) {
      at = scanner.position();
      if (first) window.emplace_back();
      if (d >= window.size()) return scanner.FailAt(at, Cat(window.size(), " dimensions"));
      WindowDimension& w = window[d];
      KILN_ASSIGN_OR_RETURN(int64_t number, scanner.Integer());
      if (key == "size") w.size = number;
      if (key == "stride") w.stride = number;
      if (key == "lhs_dilate") w.base_dilation = number;
      if (key == "rhs_dilate") w.window_dilation = number;
      if (key == "rhs_reversal") w.reversed = number != 0;
      if (key == "pad") {
        w.low = number;
        KILN_RETURN_IF_ERROR(scanner.Expect("_"));
        KILN_ASSIGN_OR_RETURN(w.high, scanner.Integer());
      }
      if (scanner.Take("x")) continue;
      if (d + 1 != window.size()) return scanner.Fail(Cat(window.size(), " dimensions"));
      break;
    }
    if (none && !window.empty()) return scanner.Fail(Cat(window.size(), " dimensions"));
  }
  if (!window.empty() && std::ranges::find(seen, "size") == seen.end()) {
    return scanner.Fail("size in the window");
  }
  return AttrValue(std::move(window));
}

// "{{0}: (1, {}), {1}: (0, {2})}".
Result<AttrValue> ReadAliases(Scanner& scanner) {
  std::vector<OperandAlias> aliases;
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  if (scanner.Take("}")) return AttrValue(std::move(aliases));
  do {
    OperandAlias& alias = aliases.emplace_back();
    KILN_ASSIGN_OR_RETURN(alias.output_index, ReadInts(scanner));
    KILN_RETURN_IF_ERROR(scanner.Expect(":"));
    KILN_RETURN_IF_ERROR(scanner.Expect("("));
    KILN_ASSIGN_OR_RETURN(alias.operand, scanner.Integer());
    KILN_RETURN_IF_ERROR(scanner.Expect(","));
    KILN_ASSIGN_OR_RETURN(alias.operand_index, ReadInts(scanner));
    KILN_RETURN_IF_ERROR(scanner.Expect(")"));
  } while (scanner.Take(",") && !scanner.Looking("}"));
  KILN_RETURN_IF_ERROR(scanner.Expect("}"));
  return AttrValue(std::move(aliases));
}

}  // namespace

std::optional<Attr> TextAttributeOf(Opcode opcode) {
  if (IsHloOp(opcode)) return std::nullopt;
  for (std::string_view name : Split(InfoOf(opcode).attributes, ' ')) {
    if (name.ends_with("?")) name.remove_suffix(1);
    const AttrInfo* info = AttrByName(name);
    if (info && info->kind == AttrKind::kQuoted) return info->key;
  }
  return std::nullopt;
}

bool LookingAtShape(Scanner& scanner) {
  if (scanner.Looking("(")) return true;
  std::string_view word = scanner.PeekWord();
  if (word.empty()) return false;
  size_t behind = word.size();
  if (word == "b" && scanner.Raw(behind) == '(') return true;
  while (scanner.Raw(behind) == ' ') ++behind;
  return scanner.Raw(behind) == '[';
}

Result<Shape> ReadShape(Scanner& scanner) {
  size_t at = scanner.position();
  KILN_ASSIGN_OR_RETURN(Shape shape, ReadShapeAt(scanner, 0));
  Status valid = ValidateShape(shape);
  if (!valid.ok()) return valid.WithContext(scanner.Where(at));
  return shape;
}

Result<Literal> ReadLiteral(Scanner& scanner, const Shape& shape, ElidedLiterals& elided) {
  size_t at = scanner.position();
  if (shape.is_token()) return scanner.FailAt(at, "a constant that is no token");
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    const bool whole = scanner.Take("{...}");
    if (!whole) KILN_RETURN_IF_ERROR(scanner.Expect("("));
    for (const Shape& element : shape.elements()) {
      if (whole) {
        scanner.Rewind(at);  // it is in the place of each element
      } else if (!elements.empty()) {
        KILN_RETURN_IF_ERROR(scanner.Expect(","));
      }
      KILN_ASSIGN_OR_RETURN(Literal literal, ReadLiteral(scanner, element, elided));
      elements.push_back(std::move(literal));
    }
    if (!whole) KILN_RETURN_IF_ERROR(scanner.Expect(")"));
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.is_static()) return scanner.FailAt(at, "a constant whose dimensions are numbers");
  if (scanner.Take("{...}")) {
    if (shape.byte_size() > ElidedLiterals::kMostBytes - elided.bytes) {
      return ResourceExhausted(scanner.Where(at), ": constants that were left out have more than ",
                               ElidedLiterals::kMostBytes, " bytes");
    }
    elided.bytes += shape.byte_size();
    Literal literal(shape);
    FillSeeded(literal, static_cast<uint64_t>(elided.count++));
    return literal;
  }
  if (shape.num_elements() == 0 && scanner.Take("{")) {
    if (scanner.Take("}")) return Literal(shape);
    scanner.Rewind(at);
  }
  // Each element takes a character at least, so that a short text cannot ask for much memory.
  if (shape.num_elements() > static_cast<int64_t>(scanner.size() - at)) {
    return scanner.FailAt(at, Cat(shape.num_elements(), " elements"));
  }
  if (shape.num_elements() == 0) {
    KILN_RETURN_IF_ERROR(scanner.SkipValue());
    return Literal(shape);
  }
  Literal literal(shape);
  Status status = VisitType(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    T* next = literal.values<T>().data();
    return ReadArray(scanner, literal.shape(), 0, next);
  });
  KILN_RETURN_IF_ERROR(status);
  return literal;
}

Result<Ints> ReadInts(Scanner& scanner) {
  Ints values;
  const bool square = scanner.Take("[");
  const std::string_view end = square ? "]" : "}";
  if (!square) KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  if (scanner.Take(end)) return values;
  do {
    KILN_ASSIGN_OR_RETURN(int64_t value, scanner.Integer());
    values.push_back(value);
  } while (scanner.Take(","));
  KILN_RETURN_IF_ERROR(scanner.Expect(end));
  return values;
}

Result<AttrValue> ReadAttribute(Scanner& scanner, const AttrInfo& info, SymbolicNumbers& symbolic) {
  switch (info.kind) {
    case AttrKind::kInt: {
      KILN_ASSIGN_OR_RETURN(int64_t value, scanner.Integer());
      return AttrValue(value);
    }
    case AttrKind::kInts: {
      const bool sizes = info.key == Attr::kDynamicSliceSizes || info.key == Attr::kSliceSizes;
      KILN_ASSIGN_OR_RETURN(Ints values,
                            sizes ? ReadSizes(scanner, info.key, symbolic) : ReadInts(scanner));
      return AttrValue(std::move(values));
    }
    case AttrKind::kBool: {
      if (scanner.TakeKeyword("true")) return AttrValue(true);
      if (scanner.TakeKeyword("false")) return AttrValue(false);
      return scanner.Fail("true or false");
    }
    case AttrKind::kDirection: {
      std::optional<Direction> direction = DirectionByName(scanner.PeekWord());
      if (!direction) return scanner.Fail("EQ, NE, GE, GT, LE or LT");
      scanner.TakeWord();
      return AttrValue(*direction);
    }
    case AttrKind::kSlices:
      return ReadSlices(scanner, info.key, symbolic);
    case AttrKind::kPadding:
      return ReadPadding(scanner, info.key, symbolic);
    case AttrKind::kWindow:
      return ReadWindow(scanner);
    case AttrKind::kText: {
      if (scanner.Peek() == '"') {
        KILN_ASSIGN_OR_RETURN(std::string text, scanner.String());
        return AttrValue(std::move(text));
      }
      std::string_view word = scanner.TakeWord();
      if (word.empty()) return scanner.Fail("a word");
      return AttrValue(std::string(word));
    }
    case AttrKind::kFloat: {
      size_t at = scanner.position();
      double value = 0;
      if (!ReadFloat(scanner.TakeNumber(), &value)) return scanner.FailAt(at, "a number");
      return AttrValue(value);
    }
    case AttrKind::kGroups: {
      KILN_ASSIGN_OR_RETURN(Groups groups, ReadGroups(scanner));
      return AttrValue(std::move(groups));
    }
    case AttrKind::kConvolution: {
      size_t at = scanner.position();
      auto dimensions = ParseConvolutionDimensions(scanner.TakeLabels());
      if (!dimensions.ok()) return dimensions.status().WithContext(scanner.Where(at));
      return AttrValue(*std::move(dimensions));
    }
    case AttrKind::kQuoted: {
      if (scanner.Peek() != '{') {
        KILN_ASSIGN_OR_RETURN(std::string text, scanner.String());
        return AttrValue(QuotedText{std::move(text)});
      }
      // JSON, as it stands there.
      KILN_ASSIGN_OR_RETURN(std::string_view text, scanner.TakeValue());
      return AttrValue(QuotedText{std::string(text)});
    }
    case AttrKind::kAliases:
      return ReadAliases(scanner);
    case AttrKind::kSymbolic:
      break;  // stands in the values of other attributes
  }
  return scanner.Fail("an attribute");
}

std::string ShapeText(const Shape& shape, bool layouts) {
  if (!shape.is_tuple()) {
    if (layouts || shape.is_token()) return shape.ToString(true);
    return Cat(TypeName(shape.type()), "[", Join(shape.dimensions(), ","), "]");
  }
  std::string text = "(";
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    if (i > 0) text += ", ";
    if (i > 0 && i % 5 == 0) text += Cat("/*index=", i, "*/");
    text += ShapeText(shape.elements()[i], layouts);
  }
  return text + ")";
}

}  // namespace kiln::ir
