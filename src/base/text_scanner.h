// Reads the tokens of a text one by one, on demand: the kind of a token depends on its place. A
// language derives its own scanner, with its additional tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/characters.h"
#include "base/status.h"

namespace kiln {

class TextScanner {
 public:
  // Skips white space and comments. A comment without an end stays, and fails as a token.
  void SkipSpace() {
    if (at_ < text_.size() && (IsSpace(text_[at_]) || text_[at_] == '/')) SkipAnySpace();
  }
  // Where the next token begins.
  size_t position() {
    SkipSpace();
    return at_;
  }
  bool AtEnd() { return position() == text_.size(); }
  // The first character of the next token; 0 at the end.
  char Peek() { return AtEnd() ? '\0' : text_[at_]; }
  // The character `ahead` of the last token's end, white space included; 0 beyond the end.
  char Raw(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  size_t size() const { return text_.size(); }
  // Where the last token ended.
  size_t end() const { return at_; }
  std::string_view Text(size_t begin, size_t end) const { return text_.substr(begin, end - begin); }
  // Goes back to a position that it was at.
  void Rewind(size_t position) { at_ = position; }

  bool Looking(std::string_view token);
  // Takes the token if it is next.
  bool Take(std::string_view token);
  Status Expect(std::string_view token);

  // A word: a letter or '_', then letters, digits, '_', '.' and what the language has beside these.
  // Empty if none.
  std::string_view PeekWord();
  std::string_view TakeWord();
  // Takes the word if it is next, as a whole.
  bool TakeKeyword(std::string_view word);
  Status ExpectKeyword(std::string_view word);
  // Digits that fit an int64_t, without sign or with '-'.
  Result<int64_t> Integer();
  // A string in double quotes as it is written, without the quotes and without a copy.
  Result<std::string_view> RawString();

  // "line L, column C: found X; expected Y", at the next token or at a given position.
  Status Fail(std::string_view expected) { return FailAt(position(), expected); }
  Status FailAt(size_t position, std::string_view expected) const;
  // "line L, column C", both from 1.
  std::string Where(size_t position) const;

 protected:
  // How languages differ in the tokens that they share.
  struct Syntax {
    bool dashes;                 // words may have '-', but not the one of "->"
    char mark;                   // words may have it beside '.'
    bool block_comments;         // there are comments in "/*" and "*/" beside those behind "//"
    std::string_view line_ends;  // one of these ends a comment behind "//"
    bool long_strings;           // strings may go over several lines
    std::string_view sigils;     // what tokens may begin with before a word
  };
  struct Place {
    int64_t line, column;
  };

  // The syntax lives as long as the scanner.
  TextScanner(std::string_view text, const Syntax& syntax, int64_t first_line = 1)
      : text_(text), syntax_(&syntax), first_line_(first_line) {}

  // Behind the characters of a word, or the digits, from `at` on.
  size_t WordEnd(size_t at, bool dashes) const;
  size_t DigitsEnd(size_t at) const;
  // Behind the quote that ends the string at `at`, or npos.
  size_t StringEnd(size_t at) const;
  Place PlaceOf(size_t position) const;

  // Replaces the escapes in a string from RawString(). read(i, value) -> Result<size_t> appends the
  // character of the escape whose first character behind the backslash is body[i], and returns the
  // escape's end.
  template <typename Read>
  Result<std::string> Unescaped(std::string_view body, Read read) const {
    std::string value;
    value.reserve(body.size());
    for (size_t i = 0; i < body.size();) {
      if (body[i] != '\\') {
        value += body[i++];
        continue;
      }
      KILN_ASSIGN_OR_RETURN(i, read(i + 1, value));  // a string does not end with a backslash
    }
    return value;
  }
  // A string with MLIR's escapes: \n, \t, \", \\ and two hexadecimal digits.
  Result<std::string> MlirString();
  // Where in the text a piece of it begins.
  size_t PositionOf(std::string_view piece) const {
    return static_cast<size_t>(piece.data() - text_.data());
  }

  std::string_view text_;
  size_t at_ = 0;  // where the last token ended

 private:
  void SkipAnySpace();
  std::string Found(size_t position) const;

  const Syntax* syntax_;
  int64_t first_line_;
  mutable std::vector<size_t> lines_;  // where each begins, once somebody asks
};

}  // namespace kiln
