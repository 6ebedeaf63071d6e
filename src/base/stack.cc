#include "base/stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "base/fiber.h"

namespace kiln {
namespace {

// The part of a cached stack that stays in memory.
constexpr size_t kKeptBytes = 512 << 10;
constexpr uint32_t kUsesBetweenTrims = 16;

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// A mapping: a guard page, then the stack.
struct Stack {
  std::byte* memory = nullptr;
  Fiber fiber;
  uint32_t uses = 0;

  static Stack* Make() {
    const size_t guard = PageBytes(), bytes = guard + kOwnStackBytes;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* stack = mprotect(memory, guard, PROT_NONE) == 0 ? new (std::nothrow) Stack : nullptr;
    if (!stack) {
      munmap(memory, bytes);
      return nullptr;
    }
    stack->memory = static_cast<std::byte*>(memory);
    stack->fiber.SetStack(stack->memory + guard, kOwnStackBytes);
    return stack;
  }
  ~Stack() {
    if (memory) UnmapStacks(memory, PageBytes() + kOwnStackBytes);
  }
};

// Cached stacks. If the list is locked it is not used: after a fork it may stay locked forever.
class IdleStacks {
 public:
  ~IdleStacks() {
    while (count_ > 0) delete stacks_[--count_];
  }

  Stack* Take() {
    Stack* stack = nullptr;
    if (!busy_.test_and_set(std::memory_order_acquire)) {
      if (count_ > 0) stack = stacks_[--count_];
      busy_.clear(std::memory_order_release);
    }
    return stack ? stack : Stack::Make();
  }

  void Give(Stack* stack) {
    // Few uses go deep, and a system call takes longer than many uses.
    if (++stack->uses % kUsesBetweenTrims == 0) {
      madvise(stack->memory + PageBytes(), kOwnStackBytes - kKeptBytes, MADV_DONTNEED);
    }
    if (!busy_.test_and_set(std::memory_order_acquire)) {
      if (count_ < stacks_.size()) stacks_[count_++] = std::exchange(stack, nullptr);
      busy_.clear(std::memory_order_release);
    }
    delete stack;
  }

 private:
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::array<Stack*, 8> stacks_ = {};
  size_t count_ = 0;
};

IdleStacks idle_stacks;

// One piece of work on a separate stack. Lives on the caller's stack.
struct Work {
  const StackWork* run = nullptr;
  Work* outer = nullptr;  // that this one is within
  Stack* stack = nullptr;
  FiberContext caller;
  std::exception_ptr thrown;

  // A function to be run on the caller's stack, and the context to resume afterwards.
  const StackWork* wanted = nullptr;
  FiberContext* wanted_by = nullptr;
  std::exception_ptr thrown_by_wanted;

  bool abandonable = false, abandoned = false;
  Status status;  // of work that was abandoned
};

thread_local Work* innermost = nullptr;
thread_local int held = 0;  // scopes of NotAbandonable that the thread is in

FiberContext* Main(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  try {
    (*work.run)();
  } catch (...) {
    work.thrown = std::current_exception();
  }
  return &work.caller;
}

Status RunOnStack(Work& work) {
  work.stack = idle_stacks.Take();
  if (!work.stack) return ResourceExhausted("no memory for a stack of ", kOwnStackBytes, " bytes");
  work.outer = innermost;
  innermost = &work;
  work.stack->fiber.Start(&Main, &work);
  FiberContext* to = &work.stack->fiber.context();
  while (true) {
    SwitchFiber(work.caller, *to);
    if (!work.wanted) break;
    // Calls of the library from the function are separate calls.
    Work* inside = std::exchange(innermost, nullptr);
    try {
      (*work.wanted)();
    } catch (...) {
      work.thrown_by_wanted = std::current_exception();
    }
    innermost = inside;
    work.wanted = nullptr;
    to = work.wanted_by;
  }
  innermost = work.outer;
  if (work.abandoned) return std::move(work.status);
  idle_stacks.Give(work.stack);
  if (work.thrown) std::rethrow_exception(std::move(work.thrown));
  return OkStatus();
}

}  // namespace

Status OnOwnStack(StackWork run) {
  if (innermost || !kHasOwnStacks) {
    run();
    return OkStatus();
  }
  Work work;
  work.run = &run;
  return RunOnStack(work);
}

void OnCallersStack(StackWork function) {
  if (!innermost) {
    function();
    return;
  }
  Work* outermost = innermost;
  while (outermost->outer) outermost = outermost->outer;
  outermost->wanted = &function;
  outermost->wanted_by = &innermost->stack->fiber.context();
  SwitchFiber(*outermost->wanted_by, outermost->caller);
  if (outermost->thrown_by_wanted) {
    std::rethrow_exception(std::exchange(outermost->thrown_by_wanted, nullptr));
  }
}

Status RunAbandonable(StackWork run) {
  if (!kHasOwnStacks) {
    run();
    return OkStatus();
  }
  Work work;
  work.run = &run;
  work.abandonable = true;
  return RunOnStack(work);
}

NotAbandonable::NotAbandonable() { ++held; }
NotAbandonable::~NotAbandonable() { --held; }

bool IsAbandonable() {
  if (held > 0) return false;
  for (Work* work = innermost; work; work = work->outer) {
    if (work->abandonable) return true;
  }
  return false;
}

void Abandon(const Status& status) {
  Work* work = innermost;
  while (!work->abandonable) work = work->outer;
  work->status = status;
  work->abandoned = true;
  LeaveFiber(work->caller);
}

}  // namespace kiln
