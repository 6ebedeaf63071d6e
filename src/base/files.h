// Files shared by processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// The contents of a file; nothing if it cannot be read.
std::optional<std::string> ReadFile(const std::string& path);

// Creates or replaces the file atomically: readers find the old contents or all of the text. Users
// of the folder may read it. UNAVAILABLE with the reason on failure.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace kiln
