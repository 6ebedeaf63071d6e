#include "device/emulated/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)

// void kiln_fiber_switch(void** save, void* load): keeps what a call must keep on the stack that is
// left, and goes on where the other one was left. The return is an indirect jump, since a `ret`
// that no call belongs to is always predicted wrongly.
extern "C" void kiln_fiber_switch(void** save, void* load);
asm(R"(
.text
.local kiln_fiber_switch
.type kiln_fiber_switch,@function
kiln_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size kiln_fiber_switch,.-kiln_fiber_switch
)");

#endif

namespace kiln::device {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// ThreadSanitizer follows calls and returns, and must be told that another stack goes on.
#if defined(__SANITIZE_THREAD__)
void* NewName() { return __tsan_create_fiber(0); }
void DeleteName(void* name) {
  if (name) __tsan_destroy_fiber(name);
}
void* NameOfThis() { return __tsan_get_current_fiber(); }
inline __attribute__((always_inline)) void Announce(void* name) { __tsan_switch_to_fiber(name, 0); }
#else
void* NewName() { return nullptr; }
void DeleteName(void*) {}
void* NameOfThis() { return nullptr; }
void Announce(void*) {}
#endif

}  // namespace

Fiber::Fiber() {
  // One mapping without a guard page: a guard each would use up the kernel's number of mappings,
  // and kernels have neither recursion nor large frames.
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stack_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

Fiber::~Fiber() {
  DeleteName(inside_name_);
  if (stack_) munmap(stack_, kStackBytes);
}

#if defined(__x86_64__)

void Fiber::Enter(Fiber* fiber) {
  while (true) {
    fiber->function_(fiber->argument_);
    fiber->done_ = true;
    fiber->Yield();
  }
}

namespace {

thread_local Fiber* starting = nullptr;

}  // namespace

void Fiber::Start(void (*function)(void*), void* argument) {
  function_ = function;
  argument_ = argument;
  // A run that has ended waits in Enter for the next one.
  bool waits = done_ && inside_;
  done_ = false;
  if (waits) return;
  DeleteName(inside_name_);
  inside_name_ = NewName();
  // As if `start` had been called with an aligned stack: the six saved registers, where to go on,
  // and the address that `start` would return to.
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes - 64);
  void (*start)() = [] { Enter(starting); };
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(start);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  inside_ = top;
}

bool Fiber::Resume() {
  starting = this;
  outside_name_ = NameOfThis();
  Announce(inside_name_);
  kiln_fiber_switch(&outside_, inside_);
  return done_;
}

void Fiber::Yield() {
  Announce(outside_name_);
  kiln_fiber_switch(&inside_, outside_);
}

#endif

}  // namespace kiln::device
