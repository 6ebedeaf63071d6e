// A file of assembled code, which says what it is of and whether it is whole.
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "base/status.h"

namespace kiln::device::cuda {

// Nothing where there is no such file, or none that is whole and of this key.
std::optional<std::string> ReadCodeFile(const std::string& path, const Digest& key);

// Wholly or not at all, so that other processes may read and write the same name. Makes the folder
// where it is missing.
Status WriteCodeFile(const std::string& folder, const std::string& name, const Digest& key,
                     const std::string& code);

}  // namespace kiln::device::cuda
