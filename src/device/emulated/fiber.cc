#include "device/emulated/fiber.h"

#include <sys/mman.h>

#include <new>

namespace kiln::device {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 256 << 10;  // its frames are larger
#else
constexpr size_t kStackBytes = 64 << 10;
#endif
// Stacks begin at different places of a page, or all their tops would want the same lines of the
// cache.
constexpr size_t kStride = kStackBytes + 5 * 64;

}  // namespace

FiberStacks::~FiberStacks() {
  fibers_.reset();
  UnmapStacks(memory_, count_ * kStride);
}

bool FiberStacks::Reserve(size_t count) {
  if (count <= count_) return true;
  void* memory = mmap(nullptr, count * kStride, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::unique_ptr<Fiber[]> fibers(new (std::nothrow) Fiber[count]);
  if (!fibers) {
    UnmapStacks(memory, count * kStride);
    return false;
  }
  fibers_ = std::move(fibers);
  UnmapStacks(memory_, count_ * kStride);
  memory_ = static_cast<std::byte*>(memory);
  count_ = count;
  for (size_t i = 0; i < count; ++i) {
    fibers_[i].SetStack(memory_ + i * kStride, kStackBytes);
  }
  return true;
}

}  // namespace kiln::device
