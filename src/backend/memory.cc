#include "backend/memory.h"

#include <cerrno>
#include <cstdlib>
#include <new>

#include "base/block_cache.h"
#include "base/stack.h"

// The C library's malloc and so on.
extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
}

namespace kiln::backend {
namespace {

// More than most passes allocate for a function. It is never written, so it costs address space
// only.
constexpr size_t kReserveBytes = 2 << 20;

thread_local MemoryReserve* current = nullptr;

// Calls allocate() once more if this thread has free blocks, or its work a reserve; does not return
// without memory then. Null without a reserve.
template <typename F>
[[gnu::noinline, gnu::cold]] void* FromReserve(F allocate) {
  if (BlockCache* cache = BlockCache::Current()) {
    cache->Clear();
    if (void* memory = allocate()) return memory;
  }
  if (!current || !IsAbandonable()) return nullptr;
  void* memory = current->Release() ? allocate() : nullptr;
  if (!memory) Abandon(current->failure());
  return memory;
}

// A compilation allocates millions of times: the fast path adds only a comparison.
template <typename F>
inline void* OrFromReserve(void* memory, F allocate) {
  return __builtin_expect(memory != nullptr, 1) ? memory : FromReserve(allocate);
}

}  // namespace

bool MemoryReserve::Refill() {
  if (!block_) block_ = __real_malloc(kReserveBytes);
  return block_ != nullptr;
}

bool MemoryReserve::Release() {
  if (!block_) return false;
  std::free(block_);
  block_ = nullptr;
  return true;
}

ReserveScope::ReserveScope(MemoryReserve& reserve) : outer_(current) { current = &reserve; }
ReserveScope::~ReserveScope() { current = outer_; }

}  // namespace kiln::backend

using kiln::backend::FromReserve;
using kiln::backend::OrFromReserve;

extern "C" {

void* __wrap_malloc(size_t bytes) {
  return OrFromReserve(__real_malloc(bytes), [=] { return __real_malloc(bytes); });
}

// operator new, without the call of malloc between.
void* __wrap__Znwm(size_t bytes) {
  if (kiln::BlockCache* cache = kiln::BlockCache::Current()) {
    if (void* memory = cache->Take(bytes)) return memory;
  }
  void* memory = OrFromReserve(__real_malloc(bytes), [=] { return __real_malloc(bytes); });
  if (!memory) throw std::bad_alloc();
  return memory;
}

// operator delete, without and with the object's size.
void __wrap__ZdlPv(void* memory) {
  kiln::BlockCache* cache = kiln::BlockCache::Current();
  if (!cache || !memory || !cache->Keep(memory)) std::free(memory);
}
void __wrap__ZdlPvm(void* memory, size_t) { __wrap__ZdlPv(memory); }

void* __wrap_calloc(size_t count, size_t bytes) {
  return OrFromReserve(__real_calloc(count, bytes), [=] { return __real_calloc(count, bytes); });
}

void* __wrap_realloc(void* memory, size_t bytes) {
  if (bytes == 0) return __real_realloc(memory, bytes);
  return OrFromReserve(__real_realloc(memory, bytes),
                       [=] { return __real_realloc(memory, bytes); });
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return OrFromReserve(__real_aligned_alloc(alignment, bytes),
                       [=] { return __real_aligned_alloc(alignment, bytes); });
}

int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  int error = __real_posix_memalign(memory, alignment, bytes);
  if (error != ENOMEM) return error;
  FromReserve([&]() -> void* {
    error = __real_posix_memalign(memory, alignment, bytes);
    return error == 0 ? *memory : nullptr;
  });
  return error;
}

}  // extern "C"
