#include "device/cuda/code_file.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/strings.h"

namespace kiln::device::cuda {
namespace {

// The file: this word, the key, the digest of the code, the code. The digest also covers the
// length.
constexpr std::string_view kMagic = "kilncub1";
constexpr size_t kHeaderBytes = kMagic.size() + 2 * sizeof(Digest);

std::string_view AsText(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

std::optional<std::string> ReadCodeFile(const std::string& path, const Digest& key) {
  std::optional<std::string> text = ReadFile(path);
  if (!text || text->size() < kHeaderBytes) return std::nullopt;
  const std::string_view view = *text;
  if (!StartsWith(view, kMagic) || view.substr(kMagic.size(), key.size()) != AsText(key)) {
    return std::nullopt;
  }
  std::string code = text->substr(kHeaderBytes);
  const std::string_view digest = view.substr(kMagic.size() + key.size(), sizeof(Digest));
  if (digest != AsText(HashOf(code))) return std::nullopt;
  return code;
}

Status WriteCodeFile(const std::string& folder, const std::string& name, const Digest& key,
                     const std::string& code) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Unavailable(error.message());
  return ReplaceFile(Cat(folder, "/", name), Cat(kMagic, AsText(key), AsText(HashOf(code)), code));
}

}  // namespace kiln::device::cuda
