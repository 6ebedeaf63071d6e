// Reads the tokens of HLO text, one at a time and on demand: what a run of characters is depends on
// what is expected at its place ("0_1x2_3", "b01f", "f32[2]"). Private to the text reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::ir {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Skips white space and comments. A comment without an end is left, and fails as what it is.
  void SkipSpace();
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
  // Goes back to a position that it was at.
  void Rewind(size_t position) { at_ = position; }

  bool Looking(std::string_view token);
  // Takes the token if it is next.
  bool Take(std::string_view token);
  Status Expect(std::string_view token);

  // A word: a letter or '_', then letters, digits, '_', '.' and '-' (but not "->"). Empty if none.
  std::string_view PeekWord();
  std::string_view TakeWord();
  // A letter or '_', then letters, digits and '_'. Empty if none.
  std::string_view TakeIdentifier();
  // Takes the word if it is next, as a whole.
  bool TakeKeyword(std::string_view word);
  // A name, with '%' in front or without; `what` names it in the error.
  Result<std::string_view> Name(std::string_view what);
  Result<int64_t> Integer();
  // The characters of a number, or of what stands for one: "1.5e-3", "nan(0x400001)", "-inf",
  // "true".
  std::string_view TakeNumber();
  // The labels of a convolution's dimensions: "b01f_01io->b01f".
  std::string_view TakeLabels();
  // A string in double quotes, with C's escapes.
  Result<std::string> String();
  // Skips whatever value an attribute has: up to a comma, white space or closing bracket, and over
  // brackets and strings that lie before.
  Status SkipValue();
  // The same, and gives it.
  Result<std::string_view> TakeValue();

  // "line L, column C: found X; expected Y", at the next token or at a given position.
  Status Fail(std::string_view expected) { return FailAt(position(), expected); }
  Status FailAt(size_t position, std::string_view expected) const;
  std::string Where(size_t position) const;  // "line L, column C"

 private:
  std::string Found(size_t position) const;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace kiln::ir
