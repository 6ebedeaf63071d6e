// The additional tokens of MLIR text ("%0", "@main", "0x7FC0"). Private to the text reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text_scanner.h"
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

class Scanner : public TextScanner {
 public:
  Scanner(std::string_view text, int64_t first_line) : TextScanner(text, kSyntax, first_line) {}

  // The name behind '%', '^', '#' or '!': digits, or a word, maybe with '-' in it.
  Result<std::string_view> Name(char sigil, std::string_view what);
  // '@' and a word or a string; without the '@'.
  Result<std::string> Symbol();
  Result<Number> TakeNumber();
  bool LookingAtNumber();
  // A string in double quotes, with MLIR's escapes.
  Result<std::string> String() { return MlirString(); }
  // Skips brackets of any kind with their contents.
  Status SkipBalanced();

  mlir::Location LocationOf(size_t position) const;

 private:
  static constexpr Syntax kSyntax = {.dashes = false,
                                     .mark = '$',
                                     .block_comments = false,
                                     .line_ends = "\n",
                                     .long_strings = false,
                                     .sigils = "%^#!@-\""};
};

}  // namespace kiln::stablehlo
