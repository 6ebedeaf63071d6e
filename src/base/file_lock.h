// Locks of files.
#pragma once

#include <utility>

#include "base/descriptor.h"
#include "base/status.h"

namespace kiln {

// The lock of an open file, which one object has at a time, in this process or another. The end of
// the process frees it, and so does the destructor, also where a child of fork() has the descriptor
// too. On a file system without locks it holds off nobody.
class FileLock {
 public:
  // Waits for others up to two seconds: UNAVAILABLE.
  static Result<FileLock> Take(Descriptor file);
  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  const Descriptor& file() const { return file_; }

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
};

}  // namespace kiln
