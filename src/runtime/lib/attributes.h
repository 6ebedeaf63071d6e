// The attributes of the library's own calls: words "name=value", separated by spaces.
#pragma once

#include <string_view>

namespace kiln::runtime::lib {

// The value of a name; "" if missing.
std::string_view AttributeOf(std::string_view attributes, std::string_view name);
inline bool FlagOf(std::string_view attributes, std::string_view name) {
  return AttributeOf(attributes, name) == "1";
}

}  // namespace kiln::runtime::lib
