// A file of assembled code, with its key and a digest.
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "base/status.h"

namespace kiln::device::cuda {

// Nothing if the file is missing, incomplete, or of another key.
std::optional<std::string> ReadCodeFile(const std::string& path, const Digest& key);

// Atomically, so that other processes may read and write the same name. Creates the folder if
// missing.
Status WriteCodeFile(const std::string& folder, const std::string& name, const Digest& key,
                     const std::string& code);

}  // namespace kiln::device::cuda
