#include "stablehlo/text/scanner.h"

#include <algorithm>
#include <charconv>

namespace kiln::stablehlo {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool InWord(char c) { return IsLetter(c) || IsDigit(c) || c == '.' || c == '$'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Behind the last digit from `at` on.
size_t DigitsEnd(std::string_view text, size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// Behind the quote that ends the string at `at`, or npos: strings end on their line.
size_t StringEnd(std::string_view text, size_t at) {
  size_t quote = at++;
  while (true) {
    if (quote < at) quote = text.find('"', at);
    if (quote == std::string_view::npos) return quote;
    // What stands behind a backslash ends nothing.
    const std::string_view piece = text.substr(at, quote - at);
    const size_t escape = piece.find('\\');
    if (piece.substr(0, escape).find('\n') != std::string_view::npos) return std::string_view::npos;
    if (escape == std::string_view::npos) return quote + 1;
    at += escape + 2;
  }
}

}  // namespace

bool Number::IsInt(int64_t* value) const {
  if (is_float || !fits) return false;
  const uint64_t limit = uint64_t{INT64_MAX} + (negative ? 1 : 0);
  if (magnitude > limit) return false;
  *value = static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
  return true;
}

Scanner::Scanner(std::string_view text, int64_t first_line)
    : text_(text), first_line_(first_line), lines_({0}) {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    lines_.push_back(at + 1);
  }
}

void Scanner::SkipSpace() {
  while (at_ < text_.size()) {
    if (IsSpace(text_[at_])) {
      ++at_;
    } else if (text_[at_] == '/' && Raw(1) == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool Scanner::Looking(std::string_view token) {
  SkipSpace();
  return text_.substr(at_, token.size()) == token;
}

bool Scanner::Take(std::string_view token) {
  if (!Looking(token)) return false;
  at_ += token.size();
  return true;
}

Status Scanner::Expect(std::string_view token) {
  if (Take(token)) return OkStatus();
  return Fail(Cat("'", token, "'"));
}

std::string_view Scanner::PeekWord() {
  SkipSpace();
  if (!IsLetter(Raw())) return {};
  size_t end = at_ + 1;
  while (end < text_.size() && InWord(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

std::string_view Scanner::TakeWord() {
  std::string_view word = PeekWord();
  at_ += word.size();
  return word;
}

bool Scanner::TakeKeyword(std::string_view word) {
  if (PeekWord() != word) return false;
  at_ += word.size();
  return true;
}

Status Scanner::ExpectKeyword(std::string_view word) {
  if (TakeKeyword(word)) return OkStatus();
  return Fail(Cat("'", word, "'"));
}

Result<std::string_view> Scanner::Name(char sigil, std::string_view what) {
  SkipSpace();
  size_t begin = at_ + 1, end = begin;
  if (Raw() == sigil) {
    end = DigitsEnd(text_, begin);
    if (end == begin) {
      // A name may not end with what may be an arrow's beginning.
      while (end < text_.size() &&
             (InWord(text_[end]) || (text_[end] == '-' && text_.substr(end, 2) != "->"))) {
        ++end;
      }
    }
  }
  if (begin == end) return Fail(what);
  at_ = end;
  return text_.substr(begin, end - begin);
}

Result<std::string> Scanner::Symbol() {
  SkipSpace();
  if (Raw() == '@' && Raw(1) == '"') {
    ++at_;
    return String();
  }
  size_t end = at_ + 1;
  if (Raw() == '@' && IsLetter(Raw(1))) {
    while (end < text_.size() && (InWord(text_[end]) || text_[end] == '-')) ++end;
  }
  if (end == at_ + 1) return Fail("'@' and a name");
  std::string name(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end;
  return name;
}

Result<int64_t> Scanner::Integer() {
  size_t begin = position();
  size_t end = DigitsEnd(text_, begin + (Raw() == '-'));
  int64_t value = 0;
  auto [stop, error] = std::from_chars(text_.data() + begin, text_.data() + end, value);
  if (error != std::errc() || stop != text_.data() + end) return Fail("an integer of 64 bits");
  at_ = end;
  return value;
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
  size_t end = DigitsEnd(text_, begin);
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
    end = DigitsEnd(text_, end + 1);
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      if (DigitsEnd(text_, exponent) > exponent) end = DigitsEnd(text_, exponent);
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

Result<std::string_view> Scanner::RawString() {
  size_t begin = position();
  if (Raw() != '"') return Fail("a string");
  size_t end = StringEnd(text_, begin);
  if (end == std::string_view::npos) return FailAt(begin, "a string that ends on its line");
  at_ = end;
  return text_.substr(begin + 1, end - begin - 2);
}

Result<std::string> Scanner::String() {
  KILN_ASSIGN_OR_RETURN(std::string_view body, RawString());
  std::string value;
  value.reserve(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      value += body[i];
      continue;
    }
    char c = body[++i];  // a string does not end with a backslash
    if (c == 'n' || c == 't') {
      value += c == 'n' ? '\n' : '\t';
    } else if (c == '"' || c == '\\') {
      value += c;
    } else if (i + 1 < body.size() && HexValue(c) >= 0 && HexValue(body[i + 1]) >= 0) {
      value += static_cast<char>(HexValue(c) * 16 + HexValue(body[++i]));
    } else {
      return FailAt(static_cast<size_t>(body.data() - text_.data()) + i,
                    "'n', 't', a quote, a backslash or two hexadecimal digits after a backslash");
    }
  }
  return value;
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

mlir::Location Scanner::Where(size_t position) const {
  auto line = std::upper_bound(lines_.begin(), lines_.end(), position) - 1;
  mlir::Location where;
  where.line = static_cast<int32_t>(line - lines_.begin() + first_line_);
  where.column = static_cast<int32_t>(position - *line + 1);
  where.offset = static_cast<int64_t>(position);
  return where;
}

Status Scanner::FailAt(size_t position, std::string_view expected) const {
  return InvalidArgument(Where(position), ": found ", Found(position), "; expected ", expected);
}

std::string Scanner::Found(size_t position) const {
  constexpr size_t kLongest = 40;
  if (position >= text_.size()) return "the end of the text";
  const char c = text_[position];
  if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
    constexpr char kHex[] = "0123456789abcdef";
    return Cat("byte 0x", kHex[(c >> 4) & 15], kHex[c & 15]);
  }
  constexpr std::string_view kSigils = "%^#!@-\"";
  size_t end = position + (kSigils.find(c) != std::string_view::npos);
  while (end < text_.size() && (InWord(text_[end]) || text_[end] == '-')) ++end;
  end = std::max(end, position + 1);
  std::string token(text_.substr(position, std::min(end - position, kLongest)));
  if (end - position > kLongest) token += "...";
  return Cat("'", token, "'");
}

}  // namespace kiln::stablehlo
