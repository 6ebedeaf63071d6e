#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "stablehlo/mlir/floats.h"
#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {
namespace {

using mlir::Signedness;
using mlir::TypeKind;

// The values of hexadecimal digits, 16 for other characters.
constexpr std::array<uint8_t, 256> kHexValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(16);
  for (uint8_t i = 0; i < 16; ++i) {
    values[static_cast<uint8_t>("0123456789abcdef"[i])] = i;
    values[static_cast<uint8_t>("0123456789ABCDEF"[i])] = i;
  }
  return values;
}();

// "0x00FF" as bytes; false where it is something else.
bool DecodeHex(std::string_view text, std::string* bytes) {
  if (!text.starts_with("0x") || text.size() % 2 != 0) return false;
  text.remove_prefix(2);
  bytes->resize(text.size() / 2);
  uint8_t other = 0;
  for (size_t i = 0; i < bytes->size(); ++i) {
    const uint8_t high = kHexValues[static_cast<uint8_t>(text[2 * i])];
    const uint8_t low = kHexValues[static_cast<uint8_t>(text[2 * i + 1])];
    other |= (high | low) & 16;
    (*bytes)[i] = static_cast<char>(high << 4 | low);
  }
  return other == 0;
}

// A signless type accepts values of its bits with or without a sign.
std::optional<uint64_t> IntegerBits(const Number& number, const mlir::Type& type) {
  if (number.is_float || !number.fits) return std::nullopt;
  const int64_t width = type.is(TypeKind::kIndex) ? 64 : type.width;
  const uint64_t half = uint64_t{1} << (width - 1);
  const uint64_t most = type.signedness == Signedness::kSigned ? half - 1 : half - 1 + half;
  if (number.negative) {
    const uint64_t least = type.signedness == Signedness::kUnsigned ? 0 : half;
    if (number.magnitude > least) return std::nullopt;
    return uint64_t{0} - number.magnitude;
  }
  if (number.magnitude > most) return std::nullopt;
  if (type.is_bool() || type.signedness == Signedness::kUnsigned) return number.magnitude;
  // Extended by the sign.
  const int shift = static_cast<int>(64 - width);
  return static_cast<uint64_t>(static_cast<int64_t>(number.magnitude << shift) >> shift);
}

// Rounded once: f32 from the digits; narrower types by way of double, whose additional digits are
// so many that no text of less than 17 digits is rounded differently. Underflow gives 0.
std::optional<uint64_t> FloatBits(const Number& number, mlir::FloatKind kind) {
  const mlir::FloatFormat& format = mlir::FormatOf(kind);
  if (number.hex) {
    if (number.negative || !number.fits) return std::nullopt;
    if (format.bits < 64 && number.magnitude >> format.bits != 0) return std::nullopt;
    return number.magnitude;
  }
  if (!number.is_float) return std::nullopt;
  if (kind == mlir::FloatKind::kF32) {
    float value = 0;
    auto [end, error] =
        std::from_chars(number.text.data(), number.text.data() + number.text.size(), value);
    if (error == std::errc()) return mlir::EncodeFloat(kind, value);
  }
  std::optional<double> value = ParseDouble(number.text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return mlir::EncodeFloat(kind, *value);
}

void AppendBits(uint64_t bits, int64_t size, std::string& bytes) {
  char buffer[8];
  std::memcpy(buffer, &bits, sizeof(bits));
  bytes.append(buffer, static_cast<size_t>(size));
}

}  // namespace

std::optional<uint64_t> BitsOf(const Number& number, const mlir::Type& type) {
  if (type.is(TypeKind::kFloat)) return FloatBits(number, type.float_kind);
  if (type.is(TypeKind::kInteger) || type.is(TypeKind::kIndex)) return IntegerBits(number, type);
  return std::nullopt;
}

// After "dense". The type of the elements comes behind them.
Result<const mlir::Attribute*> Reader::ReadElements() {
  const size_t begin = scanner_.position();
  if (!scanner_.Looking("<")) return scanner_.Fail("'<'");
  KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
  Attribute elements{.kind = AttributeKind::kElements};
  KILN_ASSIGN_OR_RETURN(elements.type, ReadElementsType());
  const size_t end = scanner_.end();
  const Type& tensor = *elements.type;
  scanner_.Rewind(begin + 1);
  if (scanner_.Looking("\"")) {
    KILN_RETURN_IF_ERROR(ReadHexElements(tensor, elements));
  } else if (scanner_.Looking("[")) {
    // Each element takes at least one character, so a short text cannot request much memory.
    const int64_t count = tensor.num_elements();
    if (count > static_cast<int64_t>(end - begin)) return scanner_.Fail(Cat(count, " elements"));
    elements.bytes.reserve(static_cast<size_t>(count * mlir::ElementBytes(*tensor.element)));
    KILN_RETURN_IF_ERROR(ReadElementList(tensor, 0, elements.bytes));
  } else if (tensor.num_elements() > 0 || !scanner_.Looking(">")) {
    elements.splat = true;
    KILN_RETURN_IF_ERROR(ReadElement(*tensor.element, elements.bytes));
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  scanner_.Rewind(end);
  return Make(std::move(elements), begin);
}

// ": tensor<...>", with elements that can be written.
Result<const mlir::Type*> Reader::ReadElementsType() {
  KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
  if (!type->is_static()) return scanner_.FailAt(at, "a tensor whose sizes are numbers");
  if (mlir::ElementBytes(*type->element) == 0) {
    return Unimplemented(scanner_.Where(at), ": elements of ", *type->element,
                         " are not implemented");
  }
  return type;
}

Status Reader::ReadElementList(const Type& tensor, size_t dimension, std::string& bytes) {
  if (dimension == tensor.dimensions.size()) return ReadElement(*tensor.element, bytes);
  KILN_RETURN_IF_ERROR(scanner_.Expect("["));
  const int64_t size = tensor.dimensions[dimension];
  for (int64_t i = 0; i < size; ++i) {
    // An empty list may be omitted from the enclosing ones.
    if (i == 0 && tensor.num_elements() == 0 && scanner_.Looking("]")) break;
    if (i > 0) KILN_RETURN_IF_ERROR(scanner_.Expect(","));
    KILN_RETURN_IF_ERROR(ReadElementList(tensor, dimension + 1, bytes));
  }
  if (scanner_.Take("]")) return OkStatus();
  return scanner_.Fail(Cat("']' after ", size, " elements"));
}

Status Reader::ReadElement(const Type& type, std::string& bytes) {
  if (type.is(TypeKind::kComplex)) {
    KILN_RETURN_IF_ERROR(scanner_.Expect("("));
    KILN_RETURN_IF_ERROR(ReadElement(*type.element, bytes));
    KILN_RETURN_IF_ERROR(scanner_.Expect(","));
    KILN_RETURN_IF_ERROR(ReadElement(*type.element, bytes));
    return scanner_.Expect(")");
  }
  if (type.is_bool() && !scanner_.LookingAtNumber()) {
    const bool value = scanner_.TakeKeyword("true");
    if (!value && !scanner_.TakeKeyword("false")) return scanner_.Fail("true or false");
    bytes += value ? '\1' : '\0';
    return OkStatus();
  }
  const size_t at = scanner_.position();
  std::optional<uint64_t> bits;
  if (scanner_.LookingAtNumber()) {
    KILN_ASSIGN_OR_RETURN(Number number, scanner_.TakeNumber());
    bits = BitsOf(number, type);
  }
  if (!bits) return scanner_.FailAt(at, Cat("a number that ", type, " holds"));
  AppendBits(type.is_bool() ? *bits & 1 : *bits, mlir::ElementBytes(type), bytes);
  return OkStatus();
}

// "0x..." holds all elements, or a splat. Booleans are packed, the first in the lowest bit, and all
// are set where there is one byte of ones.
Status Reader::ReadHexElements(const Type& tensor, Attribute& elements) {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view digits, scanner_.RawString());
  if (!DecodeHex(digits, &elements.bytes)) {
    return scanner_.FailAt(at, "bytes in hexadecimal digits after 0x");
  }
  const auto count = static_cast<size_t>(tensor.num_elements());
  const Type& element = *tensor.element;
  std::string& bytes = elements.bytes;
  if (element.is_bool()) {
    const uint8_t first = bytes.empty() ? 1 : static_cast<uint8_t>(bytes[0]);
    if (bytes.size() == 1 && (first == 0 || first == 0xff)) {
      elements.splat = true;
      bytes[0] = static_cast<char>(first & 1);
      return OkStatus();
    }
    if (bytes.size() == count && count > 1) {
      for (char& c : bytes) c = c != 0 ? '\1' : '\0';
      return OkStatus();
    }
    if (bytes.size() != count / 8 + (count % 8 != 0)) {
      return scanner_.FailAt(at, Cat("the bits of ", count, " booleans"));
    }
    std::string unpacked(count, '\0');
    for (size_t i = 0; i < count; ++i) {
      unpacked[i] = static_cast<char>(static_cast<uint8_t>(bytes[i / 8]) >> (i % 8) & 1);
    }
    bytes = std::move(unpacked);
    return OkStatus();
  }
  const auto size = static_cast<size_t>(mlir::ElementBytes(element));
  elements.splat = bytes.size() == size;
  if (!elements.splat && (bytes.size() % size != 0 || bytes.size() / size != count)) {
    return scanner_.FailAt(at, Cat(count, " elements of ", size, " bytes"));
  }
  mlir::ClearUnusedBits(element, bytes);
  return OkStatus();
}

// After "dense_resource". The bytes are at the end of the text, behind four bytes with their
// alignment; elements below a byte take one each, or booleans are packed.
Result<const mlir::Attribute*> Reader::ReadResource() {
  KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
  const size_t at = scanner_.position();
  std::string name;
  if (scanner_.Looking("\"")) {
    KILN_ASSIGN_OR_RETURN(name, scanner_.String());
  } else {
    name = std::string(scanner_.TakeWord());
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  Attribute elements{.kind = AttributeKind::kElements};
  KILN_ASSIGN_OR_RETURN(elements.type, ReadElementsType());
  const size_t end = scanner_.end();
  if (!resources_read_) {
    resources_read_ = true;
    for (size_t position : resource_positions_) {
      scanner_.Rewind(position);
      KILN_RETURN_IF_ERROR(ReadResources());
    }
    scanner_.Rewind(end);
  }
  auto found = resources_.find(name);
  if (found == resources_.end()) {
    return scanner_.FailAt(at, "a resource that the text has at its end");
  }
  constexpr size_t kAlignment = 4;
  std::string bytes;
  const Type& element = *elements.type->element;
  const auto count = static_cast<size_t>(elements.type->num_elements());
  const auto size = static_cast<size_t>(mlir::ElementBytes(element));
  if (!DecodeHex(found->second, &bytes) || bytes.size() < kAlignment ||
      (bytes.size() - kAlignment) % size != 0 || (bytes.size() - kAlignment) / size != count) {
    return scanner_.FailAt(at, Cat("a resource of ", count, " elements of ", size, " bytes"));
  }
  elements.bytes = bytes.substr(kAlignment);
  if (element.is_bool()) {
    for (char& c : elements.bytes) c = c != 0 ? '\1' : '\0';
  }
  mlir::ClearUnusedBits(element, elements.bytes);
  return Make(std::move(elements), at);
}

}  // namespace kiln::stablehlo
