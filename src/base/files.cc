#include "base/files.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace kiln {
namespace {

struct Close {
  void operator()(FILE* file) const { fclose(file); }
};

}  // namespace

std::optional<std::string> ReadFile(const std::string& path) {
  std::unique_ptr<FILE, Close> file(fopen(path.c_str(), "rb"));
  if (file == nullptr) return std::nullopt;
  std::string text;
  char piece[1 << 14];
  while (size_t bytes = fread(piece, 1, sizeof(piece), file.get())) text.append(piece, bytes);
  if (ferror(file.get()) != 0) return std::nullopt;
  return text;
}

Status CheckFileSize(int64_t bytes) {
  rlimit limit;
  const bool fits =
      getrlimit(RLIMIT_FSIZE, &limit) != 0 || static_cast<rlim_t>(bytes) <= limit.rlim_cur;
  return fits ? OkStatus() : SystemError(EFBIG);
}

Status WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(written < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status SystemError(int error) {
  Code code = Code::kUnavailable;
  switch (error) {
    case ENOENT:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      code = Code::kResourceExhausted;
      break;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      code = Code::kInvalidArgument;
      break;
    default:
      break;
  }
  return Status(code, std::strerror(error));
}

}  // namespace kiln
