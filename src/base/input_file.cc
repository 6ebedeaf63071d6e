#include "base/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.h"

namespace kiln {

Result<FilePages> FilePages::Map(const Descriptor& file, int64_t begin, int64_t bytes,
                                 bool at_once) {
  constexpr size_t kFew = 4 << 20;
  FilePages pages;
  // From the beginning of a page on.
  const auto length = static_cast<size_t>(begin + bytes);
  const int flags = MAP_PRIVATE | (at_once && length <= kFew ? MAP_POPULATE : 0);
  void* base = mmap(nullptr, length, PROT_READ, flags, file.number(), 0);
  if (base == MAP_FAILED) return SystemError(errno);
  pages.base_ = base;
  pages.length_ = length;
  pages.bytes_ = {static_cast<const std::byte*>(base) + begin, static_cast<size_t>(bytes)};
  return pages;
}

FilePages::FilePages(FilePages&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      length_(other.length_),
      bytes_(std::exchange(other.bytes_, {})) {}

FilePages& FilePages::operator=(FilePages other) noexcept {
  std::swap(base_, other.base_);
  std::swap(length_, other.length_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

FilePages::~FilePages() {
  if (base_) munmap(base_, length_);
}

Result<InputFile> InputFile::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return InvalidArgument("the path has a NUL");
  int number = -1;
  do {
    number = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return SystemError(errno);
  InputFile file{Descriptor(number)};
  struct stat found;
  if (fstat(number, &found) != 0) return SystemError(errno);
  // Files that the system makes up while they are read have the size 0.
  if (S_ISREG(found.st_mode) && found.st_size > 0) file.size_ = found.st_size;
  return file;
}

std::optional<int64_t> InputFile::remaining() const {
  if (!size_) return std::nullopt;
  return std::max<int64_t>(*size_ - position_, 0);
}

Result<size_t> InputFile::ReadSome(void* to, size_t bytes) {
  ssize_t got = -1;
  do {
    got = read(file_.number(), to, bytes);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return SystemError(errno);
  position_ += got;
  return static_cast<size_t>(got);
}

Result<std::string> InputFile::Read(int64_t bytes) {
  constexpr size_t kPiece = 1 << 16;
  std::string text;
  const auto wanted = static_cast<size_t>(bytes);
  while (text.size() < wanted) {
    const size_t before = text.size();
    text.resize(before + std::min(kPiece, wanted - before));
    KILN_ASSIGN_OR_RETURN(size_t got, ReadSome(text.data() + before, text.size() - before));
    text.resize(before + got);
    if (got == 0) break;
  }
  return text;
}

Result<FilePages> InputFile::Rest(int64_t bytes) {
  if (std::optional<int64_t> left = remaining(); left && *left != bytes) {
    return InvalidArgument("the file has ", *left, " more bytes instead of ", bytes);
  }
  if (bytes > 0 && size_) {
    Result<FilePages> mapped = FilePages::Map(file_, position_, bytes, false);
    if (mapped.ok()) return mapped;
  }
  return ReadRest(bytes);
}

Result<FilePages> InputFile::ReadRest(int64_t bytes) {
  FilePages pages;
  // Untouched pages take no memory, so a wrong size takes none either.
  const size_t length = static_cast<size_t>(bytes) + 1;
  void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return SystemError(errno);
  pages.base_ = base;
  pages.length_ = length;
  // One byte more, to see the end.
  size_t filled = 0;
  while (filled < length) {
    KILN_ASSIGN_OR_RETURN(size_t got,
                          ReadSome(static_cast<std::byte*>(base) + filled, length - filled));
    if (got == 0) break;
    filled += got;
  }
  if (filled != static_cast<size_t>(bytes)) {
    return InvalidArgument("the file has ", filled > static_cast<size_t>(bytes) ? "more than " : "",
                           std::min(filled, static_cast<size_t>(bytes)), " more bytes instead of ",
                           bytes);
  }
  if (mprotect(base, length, PROT_READ) != 0) return SystemError(errno);
  pages.bytes_ = {static_cast<const std::byte*>(base), filled};
  return pages;
}

}  // namespace kiln
