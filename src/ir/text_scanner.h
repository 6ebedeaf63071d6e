// The additional tokens of HLO text ("0_1x2_3", "b01f", "nan(0x400001)"). Private to the text
// reader.
#pragma once

#include <string>
#include <string_view>

#include "base/text_scanner.h"

namespace kiln::ir {

class Scanner : public TextScanner {
 public:
  explicit Scanner(std::string_view text) : TextScanner(text, kSyntax) {}

  // A letter or '_', then letters, digits and '_'. Empty if none.
  std::string_view TakeIdentifier();
  // A name, with '%' in front or without; `what` names it in the error.
  Result<std::string_view> Name(std::string_view what);
  // The characters of a number, or of a word in its place: "1.5e-3", "nan(0x400001)", "-inf",
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
  // Whether short forms of groups may stand for so many more numbers: 2^23 in all, so that a short
  // text cannot ask for much memory.
  bool AffordNumbers(int64_t count) { return (numbers_ += count) <= int64_t{1} << 23; }

 private:
  static constexpr Syntax kSyntax = {.dashes = true,
                                     .mark = '.',
                                     .block_comments = true,
                                     .line_ends = "\r\n",
                                     .long_strings = true,
                                     .sigils = "%-"};

  int64_t numbers_ = 0;
};

}  // namespace kiln::ir
