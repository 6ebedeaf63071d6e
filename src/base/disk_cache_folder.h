// The folder of a disk cache: its entries, their sizes, and its lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/status.h"

namespace kiln {

// The right to add entries, which one thread of one process has at a time (base/file_lock.h).
// Folders on file systems without locks have no bound that holds between processes.
class LockedCacheFolder {
 public:
  // Waits for others: UNAVAILABLE as by FileLock. The folder must be there.
  static Result<LockedCacheFolder> Lock(const std::string& folder);
  // Removes the least recently used entries where there is no room for `bytes` more, and, as often
  // as the sizes are taken anew, what killed processes have left. The number of removed entries.
  Result<int64_t> MakeRoom(int64_t bytes, int64_t limit);
  // Tells that an entry is about to be added, or with a negative number has not been. A process
  // killed in between leaves a sum that is too large, and is corrected when room is made.
  Status Add(int64_t bytes);

  // The sum of the sizes of all entries, by the folder's file; 0 if it is missing. Needs no lock.
  static int64_t BytesOf(const std::string& folder);

 private:
  struct State {
    char magic[8];
    int64_t bytes;       // of all entries, or more
    int64_t measured_s;  // when their sizes were taken, in seconds since 1970
  };
  LockedCacheFolder(std::string folder, FileLock lock);
  static State ReadState(const Descriptor& file);
  Status WriteState() const;

  std::string folder_;
  FileLock lock_;  // of the folder's file
  State state_;
};

}  // namespace kiln
