// A folder for the stages of a compilation.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::client {

class DumpFolder {
 public:
  // Creates the folder if missing.
  static Result<DumpFolder> Open(std::string_view path);

  // Writes a file completely or not at all. Any thread; the first failure is kept.
  void Write(const std::string& name, std::string_view text);
  const Status& status() const { return status_; }

 private:
  explicit DumpFolder(std::string path) : path_(std::move(path)) {}
  Status WriteFile(const std::string& name, std::string_view text) const;

  std::string path_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  Status status_;
};

// Writes a text to standard output, between lines with its name. Any thread.
Status DumpToStdout(const std::string& name, std::string_view text);

}  // namespace kiln::client
