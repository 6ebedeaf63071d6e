#include "base/disk_cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/disk_cache.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/strings.h"

namespace kiln {
namespace {

constexpr char kMagic[] = "KILNDIR";
// Of locking the folder's file.
constexpr int kAttempts = 10;
// The sizes are taken anew after this time, in seconds.
constexpr int64_t kMeasureEvery = 3600;
// A temporary file that nobody has written to for this time, in seconds, is a killed process's.
constexpr int64_t kAbandonedAfter = 600;
// Part of the bound that is made free at once, so that not every entry takes a look at all others.
constexpr int64_t kFreedPart = 8;

struct Entry {
  std::string name;
  int64_t bytes;
  timespec used;
};

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

bool IsEntryName(std::string_view name) {
  return name.ends_with(DiskCache::kEntrySuffix) &&
         name.find_first_not_of("0123456789abcdef") == 64 &&
         name.size() == 64 + DiskCache::kEntrySuffix.size();
}

// Removes abandoned files on the way.
Result<std::vector<Entry>> EntriesOf(const std::string& folder) {
  const std::unique_ptr<DIR, CloseFolder> open(opendir(folder.c_str()));
  if (!open) return SystemError(errno);
  const int descriptor = dirfd(open.get());
  const int64_t now = time(nullptr);
  std::vector<Entry> entries;
  while (const dirent* found = readdir(open.get())) {
    const char* name = found->d_name;
    const bool is_entry = IsEntryName(name);
    if (!is_entry && !OutputFile::IsTemporaryName(name)) continue;
    struct stat info;
    if (fstatat(descriptor, name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (is_entry) {
      entries.push_back({name, info.st_size, info.st_mtim});
    } else if (now - info.st_mtim.tv_sec > kAbandonedAfter) {
      unlinkat(descriptor, name, 0);
    }
  }
  return entries;
}

std::string FileOf(const std::string& folder) { return Cat(folder, "/", DiskCache::kFolderFile); }

}  // namespace

Result<LockedCacheFolder> LockedCacheFolder::Lock(const std::string& folder) {
  const std::string path = FileOf(folder);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                         0666));  // less the process's mask
    if (!file.is_open()) return SystemError(errno);
    KILN_ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(std::move(file)));
    // Whoever empties the folder takes the file away from those who wait for its lock.
    if (lock.file().IsAt(path)) return LockedCacheFolder(folder, std::move(lock));
  }
  return Unavailable("its file is replaced again and again");
}

LockedCacheFolder::LockedCacheFolder(std::string folder, FileLock lock)
    : folder_(std::move(folder)), lock_(std::move(lock)), state_(ReadState(lock_.file())) {}

LockedCacheFolder::State LockedCacheFolder::ReadState(const Descriptor& file) {
  State state;
  if (pread(file.number(), &state, sizeof(state), 0) != sizeof(state) ||
      std::memcmp(state.magic, kMagic, sizeof(kMagic)) != 0 || state.bytes < 0) {
    return {};
  }
  return state;
}

int64_t LockedCacheFolder::BytesOf(const std::string& folder) {
  const Descriptor file(
      open(FileOf(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file.is_open() ? ReadState(file).bytes : 0;
}

Result<int64_t> LockedCacheFolder::MakeRoom(int64_t bytes, int64_t limit) {
  const int64_t now = time(nullptr);
  const bool is_known =
      state_.measured_s != 0 && state_.measured_s <= now && now - state_.measured_s < kMeasureEvery;
  if (is_known && state_.bytes <= limit - bytes) return 0;
  KILN_ASSIGN_OR_RETURN(std::vector<Entry> entries, EntriesOf(folder_));
  std::memcpy(state_.magic, kMagic, sizeof(kMagic));
  state_.measured_s = now;
  state_.bytes = 0;
  for (const Entry& entry : entries) state_.bytes += entry.bytes;
  if (state_.bytes <= limit - bytes) {
    KILN_RETURN_IF_ERROR(WriteState());
    return 0;
  }
  std::ranges::sort(entries, {}, [](const Entry& entry) {
    return std::pair(entry.used.tv_sec, entry.used.tv_nsec);
  });
  int64_t removed = 0;
  int error = 0;
  for (const Entry& entry : entries) {
    if (state_.bytes <= limit - limit / kFreedPart - bytes) break;
    if (unlink(Cat(folder_, "/", entry.name).c_str()) == 0) {
      ++removed;
    } else if (errno != ENOENT) {
      error = errno;
      continue;
    }
    state_.bytes -= entry.bytes;
  }
  KILN_RETURN_IF_ERROR(WriteState());
  if (state_.bytes > limit - bytes) return SystemError(error);
  return removed;
}

Status LockedCacheFolder::Add(int64_t bytes) {
  state_.bytes += bytes;
  return WriteState();
}

Status LockedCacheFolder::WriteState() const {
  const ssize_t written = pwrite(lock_.file().number(), &state_, sizeof(state_), 0);
  if (written == sizeof(state_)) return OkStatus();
  return SystemError(written < 0 ? errno : ENOSPC);
}

}  // namespace kiln
