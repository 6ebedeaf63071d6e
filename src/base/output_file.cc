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
#include <iterator>
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
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return errno == EACCES ? OkStatus() : SystemError(errno);
  return fsync(opened.number()) == 0 || errno == EINVAL ? OkStatus() : SystemError(errno);
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
    // It may be removed meanwhile.
    if (stat(file.path_.c_str(), &found) == 0) {
      if (!S_ISREG(found.st_mode)) return InvalidArgument("it is no regular file");
      if (faccessat(AT_FDCWD, file.path_.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
        return SystemError(errno);
      }
      file.mode_ = static_cast<int>(found.st_mode & 07777);
    } else if (errno != ENOENT) {
      return SystemError(errno);
    }
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
    file_ = Descriptor(open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
    // Old kernels take it for a folder to be written.
    if (!file_.is_open() && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
      return SystemError(errno);
    }
  }
  if (!file_.is_open()) {
    file_ = Descriptor(WithNewName(folder_, temporary_, [&](const char* name) {
      return open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
    }));
  }
  if (!file_.is_open()) return SystemError(errno);
  if (mode_ >= 0 && fchmod(file_.number(), static_cast<mode_t>(mode_)) != 0) {
    return SystemError(errno);
  }
  return OkStatus();
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)),
      bytes_(other.bytes_),
      mode_(other.mode_) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status OutputFile::Write(std::string_view bytes) {
  bytes_ += std::ssize(bytes);
  KILN_RETURN_IF_ERROR(CheckFileSize(bytes_));
  return WriteAll(file_.number(), bytes);
}

Status OutputFile::Name() {
  if (!temporary_.empty()) return OkStatus();
  const std::string unnamed = DescriptorLink(file_.number());
  const int linked = WithNewName(folder_, temporary_, [&](const char* name) {
    return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  });
  return linked == 0 ? OkStatus() : SystemError(errno);
}

Status OutputFile::Commit() {
  if (fsync(file_.number()) != 0) return SystemError(errno);
  KILN_RETURN_IF_ERROR(Name());
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return SystemError(errno);
  temporary_.clear();
  // Some file systems report a full disk here.
  if (const int error = file_.Close(); error != 0) return SystemError(error);
  return SyncFolder(folder_);
}

Result<bool> OutputFile::CommitIfAbsent() {
  const std::string from = temporary_.empty() ? DescriptorLink(file_.number()) : temporary_;
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
