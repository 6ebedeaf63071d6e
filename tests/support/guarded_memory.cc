#include "support/guarded_memory.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace kiln::testing {
namespace {

constexpr unsigned char kFresh = 0xff, kBeyond = 0xa5;

size_t RoundUp(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

struct Extent {
  Extent(size_t bytes, size_t alignment)
      : page(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        rounded(RoundUp(bytes, alignment)),
        inside(RoundUp(rounded, page)) {}
  size_t mapped() const { return inside + 2 * page; }
  // Of the allocation within the mapping.
  size_t offset() const { return page + inside - rounded; }

  size_t page, rounded, inside;
};

void* Allocate(void*, size_t bytes, size_t alignment) {
  Extent e(bytes, alignment);
  void* base = mmap(nullptr, e.mapped(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  auto* start = static_cast<unsigned char*>(base);
  if (mprotect(start + e.page, e.inside, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, e.mapped());
    return nullptr;
  }
  std::memset(start + e.page, kBeyond, e.inside);
  std::memset(start + e.offset(), kFresh, bytes);
  return start + e.offset();
}

void Deallocate(void*, void* memory, size_t bytes, size_t alignment) {
  Extent e(bytes, alignment);
  auto* begin = static_cast<unsigned char*>(memory);
  unsigned char* start = begin - e.offset();
  for (unsigned char* p = start + e.page; p < begin; ++p) {
    if (*p != kBeyond) {
      ADD_FAILURE() << begin - p << " bytes before memory of " << bytes << " bytes were written";
      break;
    }
  }
  for (unsigned char* p = begin + bytes; p < begin + e.rounded; ++p) {
    if (*p != kBeyond) {
      ADD_FAILURE() << "byte " << p - begin << " of memory of " << bytes << " bytes was written";
      break;
    }
  }
  munmap(start, e.mapped());
}

}  // namespace

runtime::AllocatorHooks GuardedMemory() {
  return {.allocate = Allocate, .deallocate = Deallocate, .user_data = nullptr};
}

TEST(GuardedMemory, SeesWhatIsTouchedBeyondItsEnds) {
  runtime::Allocator allocator(GuardedMemory());
  std::byte* memory = allocator.Allocate(4096 + 100).value();
  EXPECT_EQ(memory[4096 + 99], std::byte{0xff});
  // The system says whether an address can be read.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], memory + 4096 + 127, 1), 1);
  EXPECT_EQ(write(ends[1], memory + 4096 + 128, 1), -1);
  EXPECT_EQ(write(ends[1], memory - 8192, 1), -1);
  close(ends[0]);
  close(ends[1]);
  memory[4096 + 100] = std::byte{0};
  EXPECT_NONFATAL_FAILURE(allocator.Deallocate(memory, 4096 + 100), "byte 4196 of memory");
}

}  // namespace kiln::testing
