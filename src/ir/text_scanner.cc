#include "ir/text_scanner.h"

#include <algorithm>

namespace kiln::ir {
namespace {

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

}  // namespace

std::string_view Scanner::TakeIdentifier() {
  const size_t begin = position();
  if (!IsLetter(Raw())) return {};
  size_t end = begin + 1;
  while (end < size() && (IsLetter(text_[end]) || IsDigit(text_[end]))) ++end;
  at_ = end;
  return Text(begin, end);
}

Result<std::string_view> Scanner::Name(std::string_view what) {
  if (!Looking("%")) {
    std::string_view word = TakeWord();
    if (word.empty()) return Fail(what);
    return word;
  }
  const size_t begin = position() + 1, end = WordEnd(begin, true);
  if (begin == end) return Fail(what);
  at_ = end;
  return Text(begin, end);
}

std::string_view Scanner::TakeNumber() {
  const size_t begin = position();
  const std::string_view rest = text_.substr(begin);
  size_t end = 0;
  for (; end < rest.size(); ++end) {
    const char c = rest[end];
    const bool sign =
        (c == '-' || c == '+') &&
        (end == 0 || std::string_view("eEpP").find(rest[end - 1]) != std::string_view::npos);
    if (!sign && !IsLetter(c) && !IsDigit(c) && c != '.') break;
  }
  // A NaN may be followed by its payload.
  if (rest.substr(0, end).ends_with("nan") && end < rest.size() && rest[end] == '(') {
    const size_t close = rest.find_first_of(")\n", end);
    if (close != std::string_view::npos && rest[close] == ')') end = close + 1;
  }
  at_ = begin + end;
  return rest.substr(0, end);
}

std::string_view Scanner::TakeLabels() {
  const size_t begin = position();
  size_t end = begin;
  for (; end < size(); ++end) {
    const char c = text_[end];
    if (!IsLetter(c) && !IsDigit(c) && c != '-' && c != '>') break;
  }
  at_ = end;
  return Text(begin, end);
}

Result<std::string> Scanner::String() {
  KILN_ASSIGN_OR_RETURN(const std::string_view body, RawString());
  return Unescaped(body, [&](size_t i, std::string& value) -> Result<size_t> {
    const char c = body[i];
    constexpr std::string_view kPlain = "\\\"'?", kLetters = "ntrabfv", kMeant = "\n\t\r\a\b\f\v";
    if (kPlain.find(c) != std::string_view::npos) {
      value += c;
      return i + 1;
    }
    if (const size_t letter = kLetters.find(c); letter != std::string_view::npos) {
      value += kMeant[letter];
      return i + 1;
    }
    int code = 0;
    size_t end = i;
    if (c == 'x') {
      const size_t digits = i + 1;
      for (end = digits; end < std::min(body.size(), digits + 2) && HexValue(body[end]) >= 0;) {
        code = code * 16 + HexValue(body[end++]);
      }
      if (end == digits) end = i;
    } else {
      while (end < std::min(body.size(), i + 3) && IsOctal(body[end])) {
        code = code * 8 + (body[end++] - '0');
      }
    }
    if (end == i) return FailAt(PositionOf(body) + i - 1, "an escape of C after '\\'");
    value += static_cast<char>(code);
    return end;
  });
}

Status Scanner::SkipValue() {
  const size_t begin = position();
  int64_t depth = 0;
  size_t at = begin;
  for (; at < size(); ++at) {
    const char c = text_[at];
    if (c == '"') {
      const size_t end = StringEnd(at);
      if (end == std::string_view::npos) return FailAt(at, "a string that ends");
      at = end - 1;
    } else if (c == '{' || c == '(' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ')' || c == ']') {
      if (depth == 0) break;
      --depth;
    } else if (depth == 0 && (c == ',' || IsSpace(c))) {
      break;
    }
  }
  at_ = at;
  if (depth > 0) return FailAt(begin, "a value whose brackets are closed");
  if (at == begin) return Fail("a value");
  return OkStatus();
}

Result<std::string_view> Scanner::TakeValue() {
  const size_t begin = position();
  KILN_RETURN_IF_ERROR(SkipValue());
  return Text(begin, end());
}

}  // namespace kiln::ir
