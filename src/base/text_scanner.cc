#include "base/text_scanner.h"

#include <algorithm>

namespace kiln {

size_t TextScanner::WordEnd(size_t at, bool dashes) const {
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (IsLetter(c) || IsDigit(c) || c == '.' || c == syntax_->mark) continue;
    if (c != '-' || !dashes || (at + 1 < text_.size() && text_[at + 1] == '>')) break;
  }
  return at;
}

size_t TextScanner::DigitsEnd(size_t at) const {
  while (at < text_.size() && IsDigit(text_[at])) ++at;
  return at;
}

size_t TextScanner::StringEnd(size_t at) const {
  size_t quote = at++;
  while (true) {
    if (quote < at) quote = text_.find('"', at);
    if (quote == std::string_view::npos) return quote;
    // An escaped quote does not end the string.
    const std::string_view piece = text_.substr(at, quote - at);
    const size_t escape = piece.find('\\');
    if (!syntax_->long_strings && piece.substr(0, escape).find('\n') != std::string_view::npos) {
      return std::string_view::npos;
    }
    if (escape == std::string_view::npos) return quote + 1;
    at += escape + 2;
  }
}

void TextScanner::SkipAnySpace() {
  while (at_ < text_.size()) {
    if (IsSpace(text_[at_])) {
      ++at_;
    } else if (text_[at_] == '/' && Raw(1) == '/') {
      at_ = std::min(text_.find_first_of(syntax_->line_ends, at_), text_.size());
    } else if (syntax_->block_comments && text_[at_] == '/' && Raw(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return;
      at_ = end + 2;
    } else {
      return;
    }
  }
}

bool TextScanner::Looking(std::string_view token) {
  SkipSpace();
  return text_.substr(at_, token.size()) == token;
}

bool TextScanner::Take(std::string_view token) {
  if (!Looking(token)) return false;
  at_ += token.size();
  return true;
}

Status TextScanner::Expect(std::string_view token) {
  if (Take(token)) return OkStatus();
  return Fail(Cat("'", token, "'"));
}

std::string_view TextScanner::PeekWord() {
  SkipSpace();
  if (!IsLetter(Raw())) return {};
  return text_.substr(at_, WordEnd(at_ + 1, syntax_->dashes) - at_);
}

std::string_view TextScanner::TakeWord() {
  std::string_view word = PeekWord();
  at_ += word.size();
  return word;
}

bool TextScanner::TakeKeyword(std::string_view word) {
  if (PeekWord() != word) return false;
  at_ += word.size();
  return true;
}

Status TextScanner::ExpectKeyword(std::string_view word) {
  if (TakeKeyword(word)) return OkStatus();
  return Fail(Cat("'", word, "'"));
}

Result<int64_t> TextScanner::Integer() {
  const size_t begin = position();
  const size_t end = DigitsEnd(begin + (Raw() == '-'));
  std::optional<int64_t> value = ParseInt(text_.substr(begin, end - begin));
  if (!value) return Fail("an integer of 64 bits");
  at_ = end;
  return *value;
}

Result<std::string_view> TextScanner::RawString() {
  const size_t begin = position();
  if (Raw() != '"') return Fail("a string");
  const size_t end = StringEnd(begin);
  if (end == std::string_view::npos) {
    return FailAt(begin,
                  syntax_->long_strings ? "a string that ends" : "a string that ends on its line");
  }
  at_ = end;
  return text_.substr(begin + 1, end - begin - 2);
}

Result<std::string> TextScanner::MlirString() {
  KILN_ASSIGN_OR_RETURN(const std::string_view body, RawString());
  return Unescaped(body, [&](size_t i, std::string& value) -> Result<size_t> {
    constexpr std::string_view kLetters = "nt\"\\", kMeant = "\n\t\"\\";
    if (const size_t letter = kLetters.find(body[i]); letter != std::string_view::npos) {
      value += kMeant[letter];
      return i + 1;
    }
    if (i + 1 >= body.size() || HexValue(body[i]) < 0 || HexValue(body[i + 1]) < 0) {
      return FailAt(PositionOf(body) + i,
                    "'n', 't', a quote, a backslash or two hexadecimal digits after a backslash: "
                    "an escape of MLIR");
    }
    value += static_cast<char>(16 * HexValue(body[i]) + HexValue(body[i + 1]));
    return i + 2;
  });
}

TextScanner::Place TextScanner::PlaceOf(size_t position) const {
  if (lines_.empty()) {
    lines_.push_back(0);
    for (size_t at = text_.find('\n'); at != std::string_view::npos;
         at = text_.find('\n', at + 1)) {
      lines_.push_back(at + 1);
    }
  }
  auto line = std::upper_bound(lines_.begin(), lines_.end(), position) - 1;
  return {line - lines_.begin() + first_line_, static_cast<int64_t>(position - *line) + 1};
}

std::string TextScanner::Where(size_t position) const {
  const Place place = PlaceOf(position);
  return Cat("line ", place.line, ", column ", place.column);
}

Status TextScanner::FailAt(size_t position, std::string_view expected) const {
  return InvalidArgument(Where(position), ": found ", Found(position), "; expected ", expected);
}

std::string TextScanner::Found(size_t position) const {
  constexpr size_t kLongest = 40;
  if (position >= text_.size()) return "the end of the text";
  const char c = text_[position];
  if (syntax_->block_comments && text_.substr(position, 2) == "/*") {
    return "a comment that does not end";
  }
  if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
    constexpr char kHex[] = "0123456789abcdef";
    return Cat("byte 0x", kHex[(c >> 4) & 15], kHex[c & 15]);
  }
  const size_t begin = position + (syntax_->sigils.find(c) != std::string_view::npos);
  const size_t end = std::max(WordEnd(begin, true), position + 1);
  std::string token(text_.substr(position, std::min(end - position, kLongest)));
  if (end - position > kLongest) token += "...";
  return Cat("'", token, "'");
}

}  // namespace kiln
