// Files that are written completely before they are visible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace kiln {

// A file in the making, which takes the place of another at once: readers find the old file or all
// of the new one, also after the end of the process or of the machine. Without Commit() nothing is
// left of it. It has no name meanwhile where the file system supports that: then a killed process
// leaves nothing either, unless it is killed between the two calls that replace a file. One thread
// at a time.
class OutputFile {
 public:
  // The place is the target of a symbolic link, and otherwise the path itself. An existing file
  // there must be a regular file (INVALID_ARGUMENT) that may be written; its permissions are kept.
  static Result<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) = delete;
  ~OutputFile();

  // Appends. RESOURCE_EXHAUSTED on a full disk and beyond a limit on the sizes of files
  // (CheckFileSize).
  Status Write(std::string_view bytes);
  // Waits until the bytes are on the disk, and takes the place. Once, as the last call.
  Status Commit();
  // The same, but a file that has the path stays, and the disk is not waited for: after a failure
  // of the machine the file may be incomplete. Whether it took the place.
  Result<bool> CommitIfAbsent();

  // Whether a file of that name is one in the making, which a killed process may have left.
  static bool IsTemporaryName(std::string_view name);

 private:
  OutputFile() = default;
  Status Open();
  Status Name();

  std::string folder_, path_;
  std::string temporary_;  // the name until Commit(); empty: none
  Descriptor file_;
  int64_t bytes_ = 0;  // written
  int mode_ = -1;      // the permissions of the file in its place; -1: none
};

}  // namespace kiln
