// Names of programs, functions and arrays as names in C.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::aot {

// Whether a program in C or C++ may use it as a name.
bool IsCName(std::string_view text);
// With `_` for what cannot be in a name, and before a digit or a keyword; with `x` before names
// that C reserves, such as "_Bool".
std::string CName(std::string_view text);

// Makes names that differ.
class UniqueNames {
 public:
  // CName(text), with a number where that has been given out. So is the name with the suffix then.
  std::string Make(std::string_view text, std::string_view suffix = "");

 private:
  std::set<std::string> taken_;
};

}  // namespace kiln::aot
