// A cache on disk: contents by key, in a folder that any number of processes use at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

class LockedCacheFolder;

// An entry is a file named by the digest of its key: a header, the key, and the contents, which
// begin at a multiple of kContentsAlignment. Entries never change. The file's time of change is
// that of its last use, and the least recently used entries are removed so that all of them have at
// most the bound's bytes together. A file beside them, kFolderFile, has the sum of their sizes, and
// is locked by whoever adds one; it is made anew where it is missing or wrong.
//
// A process may be killed at any time: what is visible is complete, and files that a killed process
// has left are removed by a later one. No problem of the folder is an error: contents are not found
// or not kept, which is counted, and told once. Any thread.
class DiskCache {
 public:
  static constexpr int64_t kDefaultLimitBytes = int64_t{1} << 30;
  static constexpr size_t kContentsAlignment = 4096;
  static constexpr char kFolderFile[] = "kiln.cache";
  static constexpr std::string_view kEntrySuffix = ".kiln";

  // Called with a problem of the folder, each once; any thread.
  using OnProblem = std::function<void(std::string_view problem)>;
  // The folder is made by the first entry.
  DiskCache(std::string folder, int64_t limit_bytes, OnProblem on_problem = nullptr);

  // For its user alone, as others could put code into it; the folders above it for everybody. No
  // error if it is there.
  static Status MakeFolder(const std::string& folder);

  const std::string& folder() const { return folder_; }
  int64_t limit_bytes() const { return limit_bytes_; }

  // Calls use(contents, owner) if there is an entry of the key. True if that succeeds: a hit. The
  // contents are mapped, and stay until the owner goes, also where the entry is removed meanwhile.
  // The entry is removed if it is damaged or `use` fails, unless for want of memory or of a
  // function.
  using Use =
      std::function<Status(std::string_view contents, const std::shared_ptr<const void>& owner)>;
  bool Find(std::string_view key, const Use& use) noexcept;
  // Keeps the contents, unless there is an entry of the key. Equal keys have equal contents.
  void Insert(std::string_view key, std::string_view contents) noexcept;

  // Of this object, but for the last number.
  struct Counts {
    int64_t hits = 0, misses = 0;
    int64_t written = 0, evicted = 0;  // entries
    int64_t failed = 0;                // entries that could not be read, used or kept
    int64_t read_bytes = 0, written_bytes = 0;
    int64_t folder_bytes = 0;  // of all entries in the folder now
  };
  Counts counts() const;

 private:
  // Whether there is an entry, read or used.
  Result<bool> Read(std::string_view key, const Use& use);
  Status Write(std::string_view key, std::string_view contents);
  // Evicts what has to go for an entry of these bytes; the folder stays locked.
  Result<LockedCacheFolder> MakeRoom(int64_t bytes);
  std::string PathOf(std::string_view key) const;
  void Note(const Status& problem, std::string_view what) noexcept;

  const std::string folder_;
  const int64_t limit_bytes_;
  const OnProblem on_problem_;
  mutable std::mutex mutex_;
  Counts counts_;
  std::set<std::string> noted_;
};

}  // namespace kiln
