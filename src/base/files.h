// Files that processes share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// All of a file; nothing where it cannot be read.
std::optional<std::string> ReadFile(const std::string& path);

// Makes the file, or replaces it: whoever reads it finds what was there before or all of the text.
// Whoever may use the folder may read it. UNAVAILABLE says why it cannot be done.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace kiln
