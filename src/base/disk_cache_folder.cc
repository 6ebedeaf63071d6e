#include "base/disk_cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/disk_cache.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/strings.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;

constexpr char kMagic[] = "KILNDIR";
constexpr milliseconds kLongestWait(2000);
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

// False where there are no locks.
Result<bool> WaitForLock(int descriptor) {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    if (std::chrono::steady_clock::now() > end) return Unavailable("another process has locked it");
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

std::string FileOf(const std::string& folder) { return Cat(folder, "/", DiskCache::kFolderFile); }

}  // namespace

Result<LockedCacheFolder> LockedCacheFolder::Lock(const std::string& folder) {
  const int descriptor = open(FileOf(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                              0666);  // less the process's mask
  if (descriptor < 0) return SystemError(errno);
  LockedCacheFolder locked(folder, descriptor);
  KILN_RETURN_IF_ERROR(WaitForLock(descriptor).status());
  locked.state_ = ReadState(descriptor);
  return locked;
}

LockedCacheFolder::LockedCacheFolder(std::string folder, int descriptor)
    : folder_(std::move(folder)), descriptor_(descriptor), state_() {}

LockedCacheFolder::LockedCacheFolder(LockedCacheFolder&& other) noexcept
    : folder_(std::move(other.folder_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      state_(other.state_) {}

LockedCacheFolder::~LockedCacheFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

LockedCacheFolder::State LockedCacheFolder::ReadState(int descriptor) {
  State state;
  if (pread(descriptor, &state, sizeof(state), 0) != sizeof(state) ||
      std::memcmp(state.magic, kMagic, sizeof(kMagic)) != 0 || state.bytes < 0) {
    return {};
  }
  return state;
}

int64_t LockedCacheFolder::BytesOf(const std::string& folder) {
  const int descriptor = open(FileOf(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return 0;
  const State state = ReadState(descriptor);
  close(descriptor);
  return state.bytes;
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
  const ssize_t written = pwrite(descriptor_, &state_, sizeof(state_), 0);
  if (written == sizeof(state_)) return OkStatus();
  return SystemError(written < 0 ? errno : ENOSPC);
}

}  // namespace kiln
