#include "base/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/disk_cache_folder.h"
#include "base/exception.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/input_file.h"
#include "base/integers.h"
#include "base/output_file.h"
#include "base/strings.h"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNENT\n";
// Problems that are told; the others are counted only.
constexpr size_t kMostNotes = 16;

// The first bytes of an entry; the key follows.
struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t contents_bytes;
};

size_t ContentsOffset(size_t key_bytes) {
  return RoundUp(sizeof(Header) + key_bytes, DiskCache::kContentsAlignment);
}

std::string HeaderText(std::string_view key, size_t contents_bytes) {
  Header header;
  std::memcpy(header.magic, kMagic.data(), sizeof(header.magic));
  header.key_bytes = key.size();
  header.contents_bytes = contents_bytes;
  std::string text(reinterpret_cast<const char*>(&header), sizeof(header));
  text += key;
  text.resize(ContentsOffset(key.size()));
  return text;
}

// The contents of an entry, which must be of that key.
Result<std::string_view> ContentsOf(std::string_view file, std::string_view key) {
  Header header;
  if (file.size() < sizeof(header)) return InvalidArgument("it ends early");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::string_view(header.magic, sizeof(header.magic)) != kMagic) {
    return InvalidArgument("it is no entry");
  }
  if (header.key_bytes != key.size() || file.substr(sizeof(header), key.size()) != key) {
    return InvalidArgument("it is of another key");
  }
  const size_t offset = ContentsOffset(key.size());
  if (file.size() < offset || file.size() - offset != header.contents_bytes) {
    return InvalidArgument("its size is wrong");
  }
  const size_t padding = sizeof(header) + key.size();
  if (file.substr(padding, offset - padding).find_first_not_of('\0') != std::string_view::npos) {
    return InvalidArgument("its header is damaged");
  }
  return file.substr(offset);
}

// Whether a failed use says nothing against the entry.
bool IsInnocent(const Status& status) {
  switch (status.code()) {
    case Code::kNotFound:
    case Code::kResourceExhausted:
    case Code::kCancelled:
    case Code::kDeadlineExceeded:
      return true;
    default:
      return false;
  }
}

bool IsFile(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

DiskCache::DiskCache(std::string folder, int64_t limit_bytes, OnProblem on_problem)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes), on_problem_(std::move(on_problem)) {}

std::string DiskCache::PathOf(std::string_view key) const {
  return Cat(folder_, "/", HexText(HashOf(key)), kEntrySuffix);
}

bool DiskCache::Find(std::string_view key, const Use& use) noexcept {
  bool is_hit = false;
  const Status status = Try([&] {
    KILN_ASSIGN_OR_RETURN(is_hit, Read(key, use));
    return OkStatus();
  });
  if (!status.ok()) Note(status, "an entry is not used");
  std::lock_guard lock(mutex_);
  ++(is_hit ? counts_.hits : counts_.misses);
  return is_hit;
}

Result<bool> DiskCache::Read(std::string_view key, const Use& use) {
  const std::string path = PathOf(key);
  // A pipe in its place is not waited for, a link not followed.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const bool is_link = !file.is_open() && errno == ELOOP;
  if (!file.is_open() && !is_link) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return SystemError(errno);
  }
  struct stat info = {};
  if (!is_link && fstat(file.number(), &info) != 0) return SystemError(errno);
  auto read_and_use = [&]() -> Status {
    if (!S_ISREG(info.st_mode)) return InvalidArgument("it is no file");
    if (info.st_size == 0) return InvalidArgument("it ends early");
    KILN_ASSIGN_OR_RETURN(FilePages mapped, FilePages::Map(file, 0, info.st_size, true));
    const auto pages = std::make_shared<const FilePages>(std::move(mapped));
    KILN_ASSIGN_OR_RETURN(std::string_view contents, ContentsOf(pages->text(), key));
    return use(contents, pages);
  };
  const Status status = read_and_use();
  if (!status.ok()) {
    // Another process may have put a good one in its place.
    if (!IsInnocent(status) && (is_link || file.IsAt(path))) unlink(path.c_str());
    return status;
  }
  // Its time of use. Who may not set it uses a folder of others.
  futimens(file.number(), nullptr);
  std::lock_guard lock(mutex_);
  counts_.read_bytes += info.st_size;
  return true;
}

void DiskCache::Insert(std::string_view key, std::string_view contents) noexcept {
  const Status status = Try([&] { return Write(key, contents); });
  if (!status.ok()) Note(status, "entries are not kept");
}

Status DiskCache::MakeFolder(const std::string& folder) {
  std::filesystem::path path(folder);
  // The parent of "a/b/" would be "a/b".
  while ((!path.has_filename() || path.filename() == ".") &&
         path.parent_path().has_relative_path()) {
    path = path.parent_path();
  }
  auto make = [&] { return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST; };
  if (make()) return OkStatus();
  if (errno != ENOENT) return SystemError(errno);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  return make() ? OkStatus() : SystemError(errno);
}

Result<LockedCacheFolder> DiskCache::MakeRoom(int64_t bytes) {
  KILN_ASSIGN_OR_RETURN(LockedCacheFolder folder, LockedCacheFolder::Lock(folder_));
  KILN_ASSIGN_OR_RETURN(const int64_t evicted, folder.MakeRoom(bytes, limit_bytes_));
  std::lock_guard lock(mutex_);
  counts_.evicted += evicted;
  return folder;
}

Status DiskCache::Write(std::string_view key, std::string_view contents) {
  const std::string header = HeaderText(key, contents.size());
  const auto bytes = static_cast<int64_t>(header.size() + contents.size());
  if (bytes > limit_bytes_) {
    return ResourceExhausted("one has ", bytes, " bytes, and the bound is ", limit_bytes_);
  }
  KILN_RETURN_IF_ERROR(CheckFileSize(bytes));
  KILN_RETURN_IF_ERROR(MakeFolder(folder_));
  const std::string path = PathOf(key);
  // Another process's, perhaps of another user, who alone may write it.
  if (IsFile(path)) return OkStatus();
  // A disk that is full of entries has no room before they go.
  KILN_RETURN_IF_ERROR(MakeRoom(bytes).status());
  KILN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  KILN_RETURN_IF_ERROR(file.Write(header));
  KILN_RETURN_IF_ERROR(file.Write(contents));
  // Others may have added some meanwhile.
  KILN_ASSIGN_OR_RETURN(LockedCacheFolder folder, MakeRoom(bytes));
  KILN_RETURN_IF_ERROR(folder.Add(bytes));
  const Result<bool> placed = file.CommitIfAbsent();
  if (!placed.ok() || !*placed) {
    KILN_RETURN_IF_ERROR(folder.Add(-bytes));
    return placed.status();
  }
  std::lock_guard lock(mutex_);
  ++counts_.written;
  counts_.written_bytes += bytes;
  return OkStatus();
}

void DiskCache::Note(const Status& problem, std::string_view what) noexcept {
  // Without memory for a text it is counted only.
  (void)Try([&] {
    {
      std::lock_guard lock(mutex_);
      ++counts_.failed;
    }
    const std::string text = Cat("the cache in ", folder_, ": ", what, ": ", problem.message());
    {
      std::lock_guard lock(mutex_);
      if (noted_.size() == kMostNotes || !noted_.insert(text).second) return OkStatus();
    }
    if (on_problem_) on_problem_(text);
    return OkStatus();
  });
}

DiskCache::Counts DiskCache::counts() const {
  Counts counts;
  {
    std::lock_guard lock(mutex_);
    counts = counts_;
  }
  counts.folder_bytes = LockedCacheFolder::BytesOf(folder_);
  return counts;
}

}  // namespace kiln
