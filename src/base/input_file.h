// Files of any size, read from the beginning to the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/status.h"

namespace kiln {

// Pages with a part of a file, read-only, until the object's end.
class FilePages {
 public:
  // Maps `bytes` bytes, at least one, of an open file from `begin` on. They are
  // read here if they are few and `at_once`, otherwise page by page when they are used.
  static Result<FilePages> Map(const Descriptor& file, int64_t begin, int64_t bytes, bool at_once);

  FilePages() = default;
  FilePages(FilePages&& other) noexcept;
  FilePages& operator=(FilePages other) noexcept;
  ~FilePages();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  friend class InputFile;

  void* base_ = nullptr;  // null: no pages
  size_t length_ = 0;
  std::span<const std::byte> bytes_;
};

// An open file, closed by the destructor. One thread at a time.
class InputFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED and other errors of the system. Waits for the writer of a pipe.
  static Result<InputFile> Open(const std::string& path);

  // The bytes that remain, if known before they are read: not of pipes.
  std::optional<int64_t> remaining() const;
  // The next `bytes` bytes; fewer only at the end of the file. Memory grows with what is there.
  Result<std::string> Read(int64_t bytes);
  // The remaining bytes, which must be exactly `bytes`: INVALID_ARGUMENT otherwise. They are mapped
  // where the system can: then they have the alignment of their place in the file, and must not be
  // changed or cut off in the file. Otherwise they are read, at the beginning of a page.
  Result<FilePages> Rest(int64_t bytes);

 private:
  explicit InputFile(Descriptor file) : file_(std::move(file)) {}
  // Up to `bytes` bytes; 0 at the end.
  Result<size_t> ReadSome(void* to, size_t bytes);
  Result<FilePages> ReadRest(int64_t bytes);

  Descriptor file_;
  std::optional<int64_t> size_;  // of a regular file
  int64_t position_ = 0;
};

}  // namespace kiln
