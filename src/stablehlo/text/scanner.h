// Reads the tokens of MLIR text, one at a time and on demand: what a run of characters is depends
// on what is expected at its place ("2x?xf32", "0x7FC0", "e5m10"). Private to the text reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "stablehlo/mlir/location.h"

namespace kiln::stablehlo {

// An integer or a float as it is written.
struct Number {
  std::string_view text;  // all of it, with its sign
  size_t position = 0;
  bool negative = false;
  bool hex = false;
  bool is_float = false;   // it has a point
  uint64_t magnitude = 0;  // of an integer
  bool fits = true;        // whether the magnitude does

  // As an int64_t, if it is one.
  bool IsInt(int64_t* value) const;
};

class Scanner {
 public:
  Scanner(std::string_view text, int64_t first_line);

  // Skips white space and comments.
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
  // Where the last token ended.
  size_t end() const { return at_; }
  std::string_view Text(size_t begin, size_t end) const { return text_.substr(begin, end - begin); }
  // Goes to a position that it was at.
  void Rewind(size_t position) { at_ = position; }

  bool Looking(std::string_view token);
  // Takes the token if it is next.
  bool Take(std::string_view token);
  Status Expect(std::string_view token);

  // A word: a letter or '_', then letters, digits, '_', '.' and '$'. Empty if none.
  std::string_view PeekWord();
  std::string_view TakeWord();
  // Takes the word if it is next, as a whole.
  bool TakeKeyword(std::string_view word);
  Status ExpectKeyword(std::string_view word);
  // What stands behind '%', '^', '#' or '!': digits, or a word that may have '-' in it.
  Result<std::string_view> Name(char sigil, std::string_view what);
  // '@' and a word or a string; without the '@'.
  Result<std::string> Symbol();
  // Digits that fit an int64_t, without sign or with '-'.
  Result<int64_t> Integer();
  Result<Number> TakeNumber();
  bool LookingAtNumber();
  // A string in double quotes, with MLIR's escapes.
  Result<std::string> String();
  // The same, where there are no escapes, without a copy: of the long ones.
  Result<std::string_view> RawString();
  // Skips what stands in brackets of any kind, from the one that opens to the one that closes it.
  Status SkipBalanced();

  // "line L, column C: found X; expected Y", at the next token or at a given position.
  Status Fail(std::string_view expected) { return FailAt(position(), expected); }
  Status FailAt(size_t position, std::string_view expected) const;
  mlir::Location Where(size_t position) const;

 private:
  std::string Found(size_t position) const;

  std::string_view text_;
  size_t at_ = 0;
  int64_t first_line_;
  std::vector<size_t> lines_;  // where each begins
};

}  // namespace kiln::stablehlo
