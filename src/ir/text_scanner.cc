#include "ir/text_scanner.h"

#include <algorithm>

namespace kiln::ir {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsOctal(char c) { return c >= '0' && c <= '7'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The end of a word's characters from `at` on.
size_t WordEnd(std::string_view text, size_t at) {
  while (at < text.size()) {
    char c = text[at];
    if (c == '-' && at + 1 < text.size() && text[at + 1] == '>') break;
    if (!IsLetter(c) && !IsDigit(c) && c != '.' && c != '-') break;
    ++at;
  }
  return at;
}

// The end of the string that begins at `at`, or npos.
size_t StringEnd(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

void Scanner::SkipSpace() {
  while (at_ < text_.size()) {
    if (IsSpace(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return;
      at_ = end + 2;
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
  if (at_ == text_.size() || !IsLetter(text_[at_])) return {};
  return text_.substr(at_, WordEnd(text_, at_) - at_);
}

std::string_view Scanner::TakeWord() {
  std::string_view word = PeekWord();
  at_ += word.size();
  return word;
}

std::string_view Scanner::TakeIdentifier() {
  SkipSpace();
  const size_t begin = at_;
  if (at_ == text_.size() || !IsLetter(text_[at_])) return {};
  while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) ++at_;
  return text_.substr(begin, at_ - begin);
}

bool Scanner::TakeKeyword(std::string_view word) {
  if (PeekWord() != word) return false;
  at_ += word.size();
  return true;
}

Result<std::string_view> Scanner::Name(std::string_view what) {
  SkipSpace();
  if (!Looking("%")) {
    std::string_view word = TakeWord();
    if (word.empty()) return Fail(what);
    return word;
  }
  size_t begin = at_ + 1, end = WordEnd(text_, at_ + 1);
  if (begin == end) return Fail(what);
  at_ = end;
  return text_.substr(begin, end - begin);
}

Result<int64_t> Scanner::Integer() {
  size_t begin = position(), end = begin;
  if (end < text_.size() && text_[end] == '-') ++end;
  while (end < text_.size() && IsDigit(text_[end])) ++end;
  std::optional<int64_t> value = ParseInt(text_.substr(begin, end - begin));
  if (!value) return Fail("an integer of 64 bits");
  at_ = end;
  return *value;
}

std::string_view Scanner::TakeNumber() {
  size_t begin = position(), end = begin;
  while (end < text_.size()) {
    char c = text_[end];
    bool sign =
        (c == '-' || c == '+') && (end == begin || text_[end - 1] == 'e' || text_[end - 1] == 'E' ||
                                   text_[end - 1] == 'p' || text_[end - 1] == 'P');
    if (!sign && !IsLetter(c) && !IsDigit(c) && c != '.') break;
    ++end;
  }
  // A NaN may be followed by its payload.
  if (text_.substr(begin, end - begin).ends_with("nan") && end < text_.size() &&
      text_[end] == '(') {
    size_t close = text_.find_first_of(")\n", end);
    if (close != std::string_view::npos && text_[close] == ')') end = close + 1;
  }
  at_ = end;
  return text_.substr(begin, end - begin);
}

std::string_view Scanner::TakeLabels() {
  size_t begin = position(), end = begin;
  while (end < text_.size()) {
    char c = text_[end];
    if (!IsLetter(c) && !IsDigit(c) && c != '-' && c != '>') break;
    ++end;
  }
  at_ = end;
  return text_.substr(begin, end - begin);
}

Result<std::string> Scanner::String() {
  size_t begin = position();
  if (Raw() != '"') return Fail("a string");
  size_t end = StringEnd(text_, begin);
  if (end == std::string_view::npos) return FailAt(begin, "a string that ends");
  std::string_view body = text_.substr(begin + 1, end - begin - 2);
  std::string value;
  value.reserve(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      value += body[i];
      continue;
    }
    char c = body[++i];
    switch (c) {
      case 'n':
        value += '\n';
        continue;
      case 't':
        value += '\t';
        continue;
      case 'r':
        value += '\r';
        continue;
      case '\\':
      case '"':
      case '\'':
      case '?':
        value += c;
        continue;
      default:
        break;
    }
    int code = 0;
    if (c == 'x' && i + 1 < body.size() && HexValue(body[i + 1]) >= 0) {
      for (int digits = 0; digits < 2 && i + 1 < body.size() && HexValue(body[i + 1]) >= 0;
           ++digits) {
        code = code * 16 + HexValue(body[++i]);
      }
    } else if (IsOctal(c)) {
      code = c - '0';
      for (int digits = 1; digits < 3 && i + 1 < body.size() && IsOctal(body[i + 1]); ++digits) {
        code = code * 8 + (body[++i] - '0');
      }
    } else {
      return FailAt(begin + i, "an escape of C after '\\'");
    }
    value += static_cast<char>(code);
  }
  at_ = end;
  return value;
}

Status Scanner::SkipValue() {
  size_t begin = position();
  int64_t depth = 0;
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '"') {
      size_t end = StringEnd(text_, at_);
      if (end == std::string_view::npos) return Fail("a string that ends");
      at_ = end;
    } else if (c == '{' || c == '(' || c == '[') {
      ++depth;
      ++at_;
    } else if (c == '}' || c == ')' || c == ']') {
      if (depth == 0) break;
      --depth;
      ++at_;
    } else if (depth == 0 && (c == ',' || IsSpace(c))) {
      break;
    } else {
      ++at_;
    }
  }
  if (depth > 0) return FailAt(begin, "a value whose brackets are closed");
  if (at_ == begin) return Fail("a value");
  return OkStatus();
}

Result<std::string_view> Scanner::TakeValue() {
  size_t begin = position();
  KILN_RETURN_IF_ERROR(SkipValue());
  return text_.substr(begin, at_ - begin);
}

Status Scanner::FailAt(size_t position, std::string_view expected) const {
  return InvalidArgument(Where(position), ": found ", Found(position), "; expected ", expected);
}

std::string Scanner::Where(size_t position) const {
  std::string_view before = text_.substr(0, position);
  size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  size_t newline = before.rfind('\n');
  size_t column = newline == std::string_view::npos ? position + 1 : position - newline;
  return Cat("line ", line, ", column ", column);
}

std::string Scanner::Found(size_t position) const {
  constexpr size_t kLongest = 40;
  if (position >= text_.size()) return "the end of the text";
  char c = text_[position];
  if (text_.substr(position, 2) == "/*") return "a comment that does not end";
  size_t begin = position + (c == '%' || c == '-');
  size_t end = std::max(WordEnd(text_, begin), position + 1);
  std::string token(text_.substr(position, std::min(end - position, kLongest)));
  if (end - position > kLongest) token += "...";
  if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
    constexpr char kHex[] = "0123456789abcdef";
    return Cat("byte 0x", kHex[(c >> 4) & 15], kHex[c & 15]);
  }
  return Cat("'", token, "'");
}

}  // namespace kiln::ir
