// The folders that tools write into.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "base/status.h"

namespace kiln::tools {

// Makes a folder, and those around it, where they are missing.
inline Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Unavailable("cannot make ", path, ": ", error.message());
  return OkStatus();
}

}  // namespace kiln::tools
