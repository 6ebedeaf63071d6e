#include "stablehlo/text/scanner.h"

#include <charconv>

namespace kiln::stablehlo {

bool Number::IsInt(int64_t* value) const {
  if (is_float || !fits) return false;
  const uint64_t limit = uint64_t{INT64_MAX} + (negative ? 1 : 0);
  if (magnitude > limit) return false;
  *value = static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
  return true;
}

Result<std::string_view> Scanner::Name(char sigil, std::string_view what) {
  const size_t begin = position() + 1;
  size_t end = begin;
  if (Raw() == sigil) {
    end = DigitsEnd(begin);
    // A name may not end with what may be an arrow's beginning.
    if (end == begin) end = WordEnd(begin, true);
  }
  if (begin == end) return Fail(what);
  at_ = end;
  return Text(begin, end);
}

Result<std::string> Scanner::Symbol() {
  const size_t begin = position() + 1;
  if (Raw() == '@' && Raw(1) == '"') {
    at_ = begin;
    return String();
  }
  if (Raw() != '@' || !IsLetter(Raw(1))) return Fail("'@' and a name");
  size_t end = WordEnd(begin, false);
  while (end < text_.size() && text_[end] == '-') end = WordEnd(end + 1, false);
  at_ = end;
  return std::string(Text(begin, end));
}

bool Scanner::LookingAtNumber() {
  char c = Peek();
  return IsDigit(c) || (c == '-' && IsDigit(Raw(1)));
}

Result<Number> Scanner::TakeNumber() {
  if (!LookingAtNumber()) return Fail("a number");
  Number number;
  number.position = at_;
  number.negative = Raw() == '-';
  const size_t begin = at_ + (number.negative ? 1 : 0);
  size_t end = DigitsEnd(begin);
  const char* digits = text_.data() + begin;
  int base = 10;
  if (text_[begin] == '0' && end == begin + 1 && end + 1 < text_.size() && text_[end] == 'x' &&
      HexValue(text_[end + 1]) >= 0) {
    number.hex = true;
    base = 16;
    digits += 2;
    for (end += 1; end < text_.size() && HexValue(text_[end]) >= 0;) ++end;
  } else if (end < text_.size() && text_[end] == '.') {
    number.is_float = true;
    end = DigitsEnd(end + 1);
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      if (DigitsEnd(exponent) > exponent) end = DigitsEnd(exponent);
    }
  }
  number.text = text_.substr(at_, end - at_);
  if (!number.is_float) {
    auto [stop, error] = std::from_chars(digits, text_.data() + end, number.magnitude, base);
    number.fits = error == std::errc() && stop == text_.data() + end;
  }
  at_ = end;
  return number;
}

Status Scanner::SkipBalanced() {
  const size_t begin = position();
  std::string open;
  do {
    SkipSpace();
    if (at_ == text_.size()) return FailAt(begin, "brackets that are closed");
    const char c = text_[at_];
    constexpr std::string_view kOpen = "<([{", kClose = ">)]}";
    if (c == '"') {
      KILN_RETURN_IF_ERROR(RawString().status());
      continue;
    }
    if (c == '-' && Raw(1) == '>') {
      ++at_;
    } else if (kOpen.find(c) != std::string_view::npos) {
      open += kClose[kOpen.find(c)];
    } else if (kClose.find(c) != std::string_view::npos) {
      if (open.empty() || open.back() != c) {
        return open.empty() ? Fail("an opening bracket") : Fail(Cat("'", open.back(), "'"));
      }
      open.pop_back();
    }
    ++at_;
  } while (!open.empty());
  return OkStatus();
}

mlir::Location Scanner::LocationOf(size_t position) const {
  const Place place = PlaceOf(position);
  return {.line = static_cast<int32_t>(place.line),
          .column = static_cast<int32_t>(place.column),
          .offset = static_cast<int64_t>(position)};
}

}  // namespace kiln::stablehlo
