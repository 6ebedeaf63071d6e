#include "client/dump_folder.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

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
  const std::string unfinished = Cat(path, ".part");
  std::FILE* file = std::fopen(unfinished.c_str(), "wbe");
  if (!file) return Refused("cannot write", path, LastError());
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  std::error_code error = LastError();
  if (std::fclose(file) != 0 && written) {
    error = LastError();
    written = false;
  }
  if (written && std::rename(unfinished.c_str(), path.c_str()) == 0) return OkStatus();
  if (written) error = LastError();
  std::remove(unfinished.c_str());
  return Refused("cannot write", path, error);
}

}  // namespace kiln::client
