// Small files, read and written as a whole, and the system's errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// The contents of a file; nothing if it cannot be read.
std::optional<std::string> ReadFile(const std::string& path);

// RESOURCE_EXHAUSTED if this process may not write files of that many bytes (RLIMIT_FSIZE): trying
// it ends the process by SIGXFSZ.
Status CheckFileSize(int64_t bytes);

// Writes all bytes to an open file.
Status WriteAll(int descriptor, std::string_view bytes);

// The failure of a call of the system by its errno, with the system's text: NOT_FOUND,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk, memory, descriptors), INVALID_ARGUMENT for paths
// that cannot name a file, otherwise UNAVAILABLE.
Status SystemError(int error);

}  // namespace kiln
