#include "device/cuda/code_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace kiln::device::cuda {
namespace {

// The file: this word, the key, the digest of the code, the code. Its length is told by the digest.
constexpr std::string_view kMagic = "kilncub1";
constexpr size_t kHeaderBytes = kMagic.size() + 2 * sizeof(Digest);

std::string_view AsText(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

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

std::optional<std::string> ReadCodeFile(const std::string& path, const Digest& key) {
  std::unique_ptr<FILE, Close> file(fopen(path.c_str(), "rb"));
  if (file == nullptr) return std::nullopt;
  std::string header(kHeaderBytes, '\0');
  if (fread(header.data(), 1, header.size(), file.get()) != header.size()) return std::nullopt;
  const std::string_view view = header;
  if (!StartsWith(view, kMagic) || view.substr(kMagic.size(), key.size()) != AsText(key)) {
    return std::nullopt;
  }
  std::string code;
  char piece[1 << 14];
  while (size_t bytes = fread(piece, 1, sizeof(piece), file.get())) code.append(piece, bytes);
  if (view.substr(kMagic.size() + key.size()) != AsText(HashOf(code))) return std::nullopt;
  return code;
}

Status WriteCodeFile(const std::string& folder, const std::string& name, const Digest& key,
                     const std::string& code) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Unavailable(error.message());
  std::string temporary = Cat(folder, "/", name, ".XXXXXX");
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) return Unavailable(std::strerror(errno));
  Status status = WriteAll(descriptor, Cat(kMagic, AsText(key), AsText(HashOf(code))));
  if (status.ok()) status = WriteAll(descriptor, code);
  if (close(descriptor) != 0 && status.ok()) status = Unavailable(std::strerror(errno));
  if (status.ok() && rename(temporary.c_str(), Cat(folder, "/", name).c_str()) != 0) {
    status = Unavailable(std::strerror(errno));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace kiln::device::cuda
