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

Status WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Unavailable(std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

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
  if (descriptor < 0) return Unavailable(std::strerror(errno));
  Status status = WriteAll(descriptor, text);
  if (status.ok() && fchmod(descriptor, 0644) != 0) status = Unavailable(std::strerror(errno));
  if (close(descriptor) != 0 && status.ok()) status = Unavailable(std::strerror(errno));
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = Unavailable(std::strerror(errno));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace kiln
