// Values by name.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace kiln::capi {

// The number of the value with a name: its own name, or else the origin (op_name) of a single
// value, with or without the ":0" of TensorFlow's first outputs. `names` and `op_names` give the
// names of a number below `count`. INVALID_ARGUMENT for an origin of several values.
template <typename Names, typename OpNames>
Result<std::optional<size_t>> FindByName(std::string_view graph, std::string_view wanted,
                                         size_t count, const Names& names,
                                         const OpNames& op_names) {
  for (size_t i = 0; i < count; ++i) {
    if (std::string_view(names(i)) == wanted) return i;
  }
  std::string_view origin = wanted;
  if (origin.ends_with(":0")) origin.remove_suffix(2);
  std::optional<size_t> found;
  for (size_t i = 0; i < count && !origin.empty(); ++i) {
    if (std::string_view(op_names(i)) != origin) continue;
    if (found) {
      return InvalidArgument("the graph '", graph, "' has several values of the op name '", origin,
                             "', '", names(*found), "' and '", names(i), "' among them");
    }
    found = i;
  }
  return found;
}

}  // namespace kiln::capi
