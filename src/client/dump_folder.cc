#include "client/dump_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/strings.h"

namespace kiln::client {
namespace {

Status Refused(std::string_view what, const std::string& path, const std::error_code& error) {
  Code code = error == std::errc::permission_denied    ? Code::kPermissionDenied
              : error == std::errc::no_space_on_device ? Code::kResourceExhausted
                                                       : Code::kUnavailable;
  return Status(code, Cat(what, " '", path, "': ", error.message()));
}

std::error_code LastError() { return {errno, std::generic_category()}; }

// A file under a name of its own, until it is complete.
struct Part {
  std::string name;
  std::FILE* file;
};

// Opens a file for the text of `path`. It is new: other writers of `path` have files of their own,
// and no link made by another user of a shared folder is followed.
Result<Part> OpenPart(const std::string& path) {
  static std::atomic<int64_t> parts{0};
  constexpr int kTries = 100;
  std::error_code error;
  for (int i = 0; i < kTries; ++i) {
    std::string name = Cat(path, ".", getpid(), ".", ++parts, ".part");
    const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      if (std::FILE* file = fdopen(descriptor, "wb")) return Part{std::move(name), file};
      error = LastError();
      close(descriptor);
      std::remove(name.c_str());
      break;
    }
    error = LastError();
    if (error != std::errc::file_exists) break;
  }
  return Refused("cannot write", path, error);
}

}  // namespace

Result<DumpFolder> DumpFolder::Open(std::string_view path) {
  std::string name(path);
  std::error_code error;
  std::filesystem::create_directories(name, error);
  if (error) return Refused("cannot make the folder", name, error);
  return DumpFolder(std::move(name));
}

void DumpFolder::Write(const std::string& name, std::string_view text) {
  std::lock_guard lock(*mutex_);
  if (status_.ok()) status_ = WriteFile(name, text);
}

Status DumpFolder::WriteFile(const std::string& name, std::string_view text) const {
  const std::string path = Cat(path_, "/", name);
  KILN_ASSIGN_OR_RETURN(Part part, OpenPart(path));
  bool written = std::fwrite(text.data(), 1, text.size(), part.file) == text.size();
  std::error_code error = LastError();
  if (std::fclose(part.file) != 0 && written) {
    error = LastError();
    written = false;
  }
  if (written && std::rename(part.name.c_str(), path.c_str()) == 0) return OkStatus();
  if (written) error = LastError();
  std::remove(part.name.c_str());
  return Refused("cannot write", path, error);
}

Status DumpToStdout(const std::string& name, std::string_view text) {
  // One call, so that texts of several threads are not mixed.
  const std::string all = Cat("*** Begin ", name, " ***\n", text, "\n*** End ", name, " ***\n");
  if (std::fwrite(all.data(), 1, all.size(), stdout) == all.size() && std::fflush(stdout) == 0) {
    return OkStatus();
  }
  return Refused("cannot write", "standard output", LastError());
}

}  // namespace kiln::client
