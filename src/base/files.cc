#include "base/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/strings.h"

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

Status ReplaceFile(const std::string& path, std::string_view text) {
  std::string temporary = Cat(path, ".XXXXXX");
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) return SystemError(errno);
  Status status = WriteAll(descriptor, text);
  if (status.ok() && fchmod(descriptor, 0644) != 0) status = SystemError(errno);
  if (close(descriptor) != 0 && status.ok()) status = SystemError(errno);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(errno);
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
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
