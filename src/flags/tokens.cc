#include "flags/tokens.h"

#include <algorithm>

namespace kiln::flags {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

bool IsSpace(char c) { return kSpace.find(c) != std::string_view::npos; }

bool IsOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

class Tokeniser {
 public:
  explicit Tokeniser(std::string_view text) : text_(text) {}

  std::vector<Token> Run() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
      if (at_ == text_.size()) return tokens;
      const size_t begin = at_;
      Token token;
      token.mistake = Read(token);
      if (!token.mistake.empty()) ToSpace();
      token.text = text_.substr(begin, at_ - begin);
      tokens.push_back(std::move(token));
    }
  }

 private:
  bool AtEnd() const { return at_ == text_.size() || IsSpace(text_[at_]); }

  std::string_view ToSpace() {
    const size_t begin = at_;
    at_ = std::min(text_.find_first_of(kSpace, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  // Returns the mistake.
  std::string_view Read(Token& token) {
    if (text_[at_] != '-') return "a flag begins with --";
    at_ += text_.substr(at_).starts_with("--") ? 2 : 1;
    while (at_ < text_.size() && IsOfName(text_[at_])) token.name += text_[at_++];
    if (token.name.empty()) return "the flag has no name";
    if (AtEnd()) return {};
    if (text_[at_] != '=') return "a name has letters, digits, - and _";
    ++at_;
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote == '"' || quote == '\'') return ReadQuoted(quote, token.value.emplace());
    token.value = ToSpace();
    return {};
  }

  std::string_view ReadQuoted(char quote, std::string& value) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    if (at_ == text_.size()) return "a quote has no end";
    ++at_;
    return AtEnd() ? "" : "white space must follow a closing quote";
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Token> Tokenise(std::string_view text) { return Tokeniser(text).Run(); }

}  // namespace kiln::flags
