#include "device/emulated/fiber.h"

#include <sys/mman.h>

#include <new>

namespace kiln::device {
namespace {

// For callees, and for frames of common sizes.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kLeastBytes = 256 << 10;  // its frames are larger
#else
constexpr size_t kLeastBytes = 64 << 10;
#endif
constexpr size_t kSmallCodeBytes = 16 << 10;
// Stacks begin at different offsets of a page, otherwise all their tops would map to the same cache
// lines.
constexpr size_t kShift = 5 * 64;

size_t StackBytes(size_t code_bytes) {
  if (code_bytes <= kSmallCodeBytes) return kLeastBytes;
  return kLeastBytes + (code_bytes + 63) / 64 * 64;
}

}  // namespace

FiberStacks::~FiberStacks() {
  fibers_.reset();
  UnmapStacks(memory_, count_ * stride_);
}

bool FiberStacks::Reserve(size_t count, size_t code_bytes) {
  const size_t bytes = StackBytes(code_bytes), stride = bytes + kShift;
  if (count <= count_ && stride <= stride_) return true;
  void* memory = mmap(nullptr, count * stride, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::unique_ptr<Fiber[]> fibers(new (std::nothrow) Fiber[count]);
  if (!fibers) {
    UnmapStacks(memory, count * stride);
    return false;
  }
  fibers_ = std::move(fibers);
  UnmapStacks(memory_, count_ * stride_);
  memory_ = static_cast<std::byte*>(memory);
  count_ = count;
  stride_ = stride;
  for (size_t i = 0; i < count; ++i) {
    fibers_[i].SetStack(memory_ + i * stride, bytes);
  }
  return true;
}

}  // namespace kiln::device
