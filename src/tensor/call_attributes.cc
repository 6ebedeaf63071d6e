#include "tensor/call_attributes.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/strings.h"
#include "base/text_scanner.h"
#include "tensor/float_format.h"

namespace kiln {
namespace {

constexpr int64_t kMaxDepth = 100;

class AttributeReader : public TextScanner {
 public:
  explicit AttributeReader(std::string_view text) : TextScanner(text, kSyntax) {}

  Result<std::vector<CallAttribute>> Dictionary(int64_t depth) {
    if (depth == kMaxDepth) return Fail(Cat("at most ", kMaxDepth, " levels"));
    KILN_RETURN_IF_ERROR(Expect("{"));
    std::vector<CallAttribute> members;
    if (Take("}")) return members;
    do {
      CallAttribute& member = members.emplace_back();
      if (Peek() == '"') {
        KILN_ASSIGN_OR_RETURN(member.name, MlirString());
      } else {
        member.name = TakeWord();
        if (member.name.empty()) return Fail("the name of an attribute");
      }
      Status read = Take("=") ? Value(member, depth) : Unsupported();
      if (!read.ok()) return read.WithContext(Cat("attribute '", member.name, "'"));
    } while (Take(","));
    KILN_RETURN_IF_ERROR(Expect("}"));
    std::ranges::sort(members, {}, &CallAttribute::name);
    return members;
  }

 private:
  static constexpr Syntax kSyntax = {.dashes = false,
                                     .mark = '$',
                                     .block_comments = false,
                                     .line_ends = "\n",
                                     .long_strings = true,
                                     .sigils = ""};

  static Status Unsupported() {
    return Unimplemented("is neither a number, a text, an array of numbers nor a dictionary");
  }

  Status Value(CallAttribute& out, int64_t depth) {
    using Kind = CallAttribute::Kind;
    if (Peek() == '{') {
      out.kind = Kind::kDictionary;
      KILN_ASSIGN_OR_RETURN(out.members, Dictionary(depth + 1));
      return OkStatus();
    }
    if (Peek() == '"') {
      out.kind = Kind::kString;
      KILN_ASSIGN_OR_RETURN(const std::string text, MlirString());
      out.count = std::ssize(text);
      const auto* begin = reinterpret_cast<const std::byte*>(text.c_str());
      out.bytes.assign(begin, begin + text.size() + 1);
      return OkStatus();
    }
    if (Peek() == '[') return List(out);
    if (TakeKeyword("array")) return Array(out);
    if (TakeKeyword("dense")) return Elements(out);
    const std::string_view number = Number();
    if (number.empty()) return Unsupported();
    KILN_RETURN_IF_ERROR(TypeBehind(number, out.type));
    return Append(out, number);
  }

  // [1 : i32, 2 : i32]
  Status List(CallAttribute& out) {
    out.kind = CallAttribute::Kind::kArray;
    out.count = 0;
    out.type = ElementType::kS64;
    Take("[");
    if (Take("]")) return OkStatus();
    do {
      const std::string_view number = Number();
      if (number.empty()) return Unsupported();
      ElementType type = ElementType::kInvalid;
      KILN_RETURN_IF_ERROR(TypeBehind(number, type));
      if (out.count > 0 && type != out.type) return Unsupported();
      out.type = type;
      KILN_RETURN_IF_ERROR(Append(out, number));
      ++out.count;
    } while (Take(","));
    return Expect("]");
  }

  // array<i64: 1, 2>, array<i64>
  Status Array(CallAttribute& out) {
    out.kind = CallAttribute::Kind::kArray;
    out.count = 0;
    KILN_RETURN_IF_ERROR(Expect("<"));
    KILN_RETURN_IF_ERROR(Type(TakeWord(), out.type));
    if (Take(":")) {
      do {
        KILN_RETURN_IF_ERROR(Append(out, Number()));
        ++out.count;
      } while (Take(","));
    }
    return Expect(">");
  }

  // dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, of one number for all elements or of their bytes
  Status Elements(CallAttribute& out) {
    out.kind = CallAttribute::Kind::kArray;
    KILN_RETURN_IF_ERROR(Expect("<"));
    std::vector<std::string_view> numbers;
    std::string_view digits;
    if (Peek() == '"') {
      KILN_ASSIGN_OR_RETURN(digits, RawString());
    } else {
      // The type has the dimensions, so brackets say nothing more.
      while (!Take(">")) {
        if (Take("[") || Take("]") || Take(",")) continue;
        numbers.push_back(Number());
        if (numbers.back().empty()) return Unsupported();
      }
    }
    if (!digits.empty()) KILN_RETURN_IF_ERROR(Expect(">"));
    KILN_RETURN_IF_ERROR(Expect(":"));
    KILN_RETURN_IF_ERROR(ExpectKeyword("tensor"));
    KILN_RETURN_IF_ERROR(TensorType(out));
    if (!digits.empty()) return Bytes(digits, out);
    const bool splat = numbers.size() == 1;
    if (!splat && std::ssize(numbers) != out.count) return Fail(Cat(out.count, " elements"));
    for (std::string_view number : numbers) KILN_RETURN_IF_ERROR(Append(out, number));
    const std::vector<std::byte> element = out.bytes;
    if (splat) out.bytes.clear();
    for (int64_t k = 0; splat && k < out.count; ++k) {
      out.bytes.insert(out.bytes.end(), element.begin(), element.end());
    }
    return OkStatus();
  }

  // <2x3xi32>
  Status TensorType(CallAttribute& out) {
    KILN_RETURN_IF_ERROR(Expect("<"));
    out.count = 1;
    const size_t begin = position(), end = text_.find('>', begin);
    if (end == std::string_view::npos) return Fail("the type of a tensor");
    std::string_view type = Text(begin, end);
    while (!type.empty() && IsDigit(type[0])) {
      const size_t x = type.find('x');
      const std::optional<int64_t> size = ParseInt(type.substr(0, x));
      if (!size || x == std::string_view::npos || *size < 0) return Fail("the type of a tensor");
      if (__builtin_mul_overflow(out.count, *size, &out.count) || out.count > kMaxElements) {
        return Fail(Cat("at most ", kMaxElements, " elements"));
      }
      type.remove_prefix(x + 1);
    }
    Rewind(end + 1);
    return Type(type, out.type);
  }

  Status Bytes(std::string_view digits, CallAttribute& out) {
    const auto size = static_cast<size_t>(out.count * ByteWidth(out.type));
    const bool are_digits = std::ranges::all_of(digits.substr(std::min<size_t>(2, digits.size())),
                                                [](char c) { return HexValue(c) >= 0; });
    if (digits.size() != 2 * size + 2 || !are_digits)
      return Fail(Cat(size, " bytes in hexadecimal digits"));
    for (size_t i = 2; i < digits.size(); i += 2) {
      out.bytes.push_back(
          static_cast<std::byte>(16 * HexValue(digits[i]) + HexValue(digits[i + 1])));
    }
    return OkStatus();
  }

  // The characters of a number or of a word in its place.
  std::string_view Number() {
    const size_t begin = position();
    size_t end = begin;
    for (; end < size(); ++end) {
      const char c = text_[end];
      if (!IsDigit(c) && !IsLetter(c) && c != '.' && c != '+' && c != '-') break;
    }
    Rewind(end);
    return Text(begin, end);
  }

  // ": i32"; MLIR omits the types of booleans, and of i64 and f64 in some lists.
  Status TypeBehind(std::string_view number, ElementType& type) {
    if (Take(":")) return Type(TakeWord(), type);
    type = number == "true" || number == "false"                   ? ElementType::kPred
           : number.find_first_of(".eE") != std::string_view::npos ? ElementType::kF64
                                                                   : ElementType::kS64;
    return OkStatus();
  }

  Status Type(std::string_view name, ElementType& type) {
    std::string own;
    for (char c : name) own += ToLower(c);
    if (own == "i1") own = "pred";
    if (own == "index") own = "s64";
    if (own.starts_with("si") || own.starts_with("ui")) own.erase(1, 1);
    if (own.starts_with("i")) own[0] = 's';
    const std::optional<ElementType> found = TypeByName(own);
    if (!found || IsComplex(*found)) return Unsupported();
    type = *found;
    return OkStatus();
  }

  // Appends the bytes of a number.
  Status Append(CallAttribute& out, std::string_view number) {
    uint64_t bits = 0;
    const char *begin = number.data(), *end = begin + number.size();
    auto all = [end](std::from_chars_result r) { return r.ec == std::errc() && r.ptr == end; };
    bool fits = false;
    if (number.starts_with("0x")) {
      fits = all(std::from_chars(begin + 2, end, bits, 16));
    } else if (number == "true" || number == "false") {
      bits = number == "true";
      fits = IsPred(out.type);
    } else if (out.type == ElementType::kF32) {
      float value = 0;
      fits = all(std::from_chars(begin, end, value));
      std::memcpy(&bits, &value, sizeof value);
    } else if (IsFloat(out.type)) {
      double value = 0;
      fits = all(std::from_chars(begin, end, value));
      bits = EncodeFloat(*FormatOf(out.type), value);
    } else if (number.starts_with("-")) {
      int64_t value = 0;
      fits = all(std::from_chars(begin, end, value));
      bits = static_cast<uint64_t>(value);
    } else {
      fits = all(std::from_chars(begin, end, bits));
    }
    if (!fits) return Fail(Cat("a number of type ", TypeName(out.type)));
    if (IsPred(out.type)) bits &= 1;
    const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
    out.bytes.insert(out.bytes.end(), bytes, bytes + ByteWidth(out.type));
    return OkStatus();
  }

  static constexpr int64_t kMaxElements = int64_t{1} << 28;
};

}  // namespace

Result<std::vector<CallAttribute>> ParseCallAttributes(std::string_view text) {
  AttributeReader reader(text);
  KILN_ASSIGN_OR_RETURN(std::vector<CallAttribute> attributes, reader.Dictionary(0));
  if (!reader.AtEnd()) return reader.Fail("the end of the dictionary");
  return attributes;
}

}  // namespace kiln
