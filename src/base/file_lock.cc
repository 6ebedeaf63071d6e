#include "base/file_lock.h"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace kiln {

Result<FileLock> FileLock::Take(Descriptor file) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) break;  // there are no locks
    if (std::chrono::steady_clock::now() > end) return Unavailable("another process has locked it");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return FileLock(std::move(file));
}

FileLock::~FileLock() {
  if (file_.is_open()) flock(file_.number(), LOCK_UN);
}

}  // namespace kiln
