// Names of programs, functions and arrays as names in C.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::aot {

// Whether C and C++ take it as a name.
bool IsCName(std::string_view text);
// With `_` for what cannot be in a name, and before what cannot begin one or is a keyword.
std::string CName(std::string_view text);

// Makes names that differ.
class UniqueNames {
 public:
  // CName(text), with a number where that has been given out.
  std::string Make(std::string_view text);

 private:
  std::set<std::string> taken_;
};

}  // namespace kiln::aot
