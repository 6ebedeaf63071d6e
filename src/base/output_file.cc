#include "base/output_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/files.h"
#include "base/strings.h"

namespace kiln {
namespace {

// Before a random number.
constexpr std::string_view kTemporaryPrefix = ".kiln-";

// A name in the folder that is hardly taken.
std::string RandomName(const std::string& folder) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    number = reinterpret_cast<uintptr_t>(&number) ^ static_cast<uint64_t>(getpid());
  }
  return Cat(folder, "/", kTemporaryPrefix, number);
}

// Calls f(name) -> the system's result for new names until one is free.
template <typename F>
int WithNewName(const std::string& folder, std::string& name, F f) {
  constexpr int kAttempts = 100;
  int result = -1;
  for (int i = 0; i < kAttempts; ++i) {
    name = RandomName(folder);
    result = f(name.c_str());
    if (result >= 0 || errno != EEXIST) break;
  }
  if (result < 0) name.clear();
  return result;
}

// Whether a file without a name can get one later.
bool HasDescriptorLinks() { return access("/proc/self/fd", X_OK) == 0; }

std::string DescriptorLink(int descriptor) { return Cat("/proc/self/fd/", descriptor); }

// A folder that may not be read, or a file system that cannot do it, keeps the folder's entry in
// its own time.
Status SyncFolder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES ? OkStatus() : SystemError(errno);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error == 0 || error == EINVAL ? OkStatus() : SystemError(error);
}

}  // namespace

Result<OutputFile> OutputFile::Create(const std::string& path) {
  if (path.find('\0') != std::string::npos) return InvalidArgument("the path has a NUL");
  OutputFile file;
  file.path_ = path;
  if (char* real = realpath(path.c_str(), nullptr)) {
    file.path_ = real;
    free(real);
    struct stat found;
    if (stat(file.path_.c_str(), &found) != 0) return SystemError(errno);
    if (!S_ISREG(found.st_mode)) return InvalidArgument("it is no regular file");
    if (faccessat(AT_FDCWD, file.path_.c_str(), W_OK, AT_EACCESS) != 0) return SystemError(errno);
    file.mode_ = static_cast<int>(found.st_mode & 07777);
  } else if (errno != ENOENT) {
    return SystemError(errno);
  }
  const size_t slash = file.path_.rfind('/');
  file.folder_ = slash == std::string::npos ? "." : file.path_.substr(0, slash + 1);
  if (slash + 1 == file.path_.size()) return InvalidArgument("the path has no file's name");
  KILN_RETURN_IF_ERROR(file.Open());
  return file;
}

Status OutputFile::Open() {
  constexpr int kMode = 0666;  // less the process's mask
  if (HasDescriptorLinks()) {
    descriptor_ = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
    // Old kernels take it for a folder to be written.
    if (descriptor_ < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
      return SystemError(errno);
    }
  }
  if (descriptor_ < 0) {
    descriptor_ = WithNewName(folder_, temporary_, [&](const char* name) {
      return open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
    });
  }
  if (descriptor_ < 0) return SystemError(errno);
  if (mode_ >= 0 && fchmod(descriptor_, static_cast<mode_t>(mode_)) != 0) return SystemError(errno);
  return OkStatus();
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      mode_(other.mode_) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status OutputFile::Write(std::string_view bytes) { return WriteAll(descriptor_, bytes); }

Status OutputFile::Name() {
  if (!temporary_.empty()) return OkStatus();
  const std::string unnamed = DescriptorLink(descriptor_);
  const int linked = WithNewName(folder_, temporary_, [&](const char* name) {
    return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  });
  return linked == 0 ? OkStatus() : SystemError(errno);
}

Status OutputFile::Commit() {
  if (fsync(descriptor_) != 0) return SystemError(errno);
  KILN_RETURN_IF_ERROR(Name());
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return SystemError(errno);
  temporary_.clear();
  // Some file systems report a full disk here.
  const int error = close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
  if (error != 0 && error != EINTR) return SystemError(error);
  return SyncFolder(folder_);
}

Result<bool> OutputFile::CommitIfAbsent() {
  const std::string from = temporary_.empty() ? DescriptorLink(descriptor_) : temporary_;
  int linked = linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW);
  if (linked != 0 && errno == EEXIST) return false;
  // Some file systems have no links.
  if (linked != 0 && !temporary_.empty()) {
    linked = rename(temporary_.c_str(), path_.c_str());
    if (linked == 0) temporary_.clear();
  }
  if (linked != 0) return SystemError(errno);
  return true;
}

bool OutputFile::IsTemporaryName(std::string_view name) {
  return StartsWith(name, kTemporaryPrefix) && name.size() > kTemporaryPrefix.size() &&
         name.find_first_not_of("0123456789", kTemporaryPrefix.size()) == std::string_view::npos;
}

}  // namespace kiln
