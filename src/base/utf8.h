// Texts that strangers have made, for those who rely on UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

bool IsUtf8(std::string_view text);
// The text with U+FFFD, the replacement character, for each byte that is not part of UTF-8.
std::string ToUtf8(std::string_view text);

}  // namespace kiln
