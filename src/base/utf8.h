// Untrusted texts, made valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

bool IsUtf8(std::string_view text);
// The text with U+FFFD, the replacement character, for each invalid byte.
std::string ToUtf8(std::string_view text);

}  // namespace kiln
