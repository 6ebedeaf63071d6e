// The syntax of flags in an environment variable, as in XLA and Abseil:
//   --name=value   --name="a value"   --name='a value'   --name   --noname
// Flags are separated by white space. One dash is as good as two. In double quotes a backslash
// keeps the next character as it is; single quotes keep all characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::flags {

struct Token {
  std::string_view text;  // all of it
  std::string name;       // without dashes
  std::optional<std::string> value;
  std::string_view mistake;  // of the syntax; empty: none
};

// The pieces of `text`, which must outlive them. Malformed pieces end at white space.
std::vector<Token> Tokenise(std::string_view text);

}  // namespace kiln::flags
