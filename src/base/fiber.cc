#include "base/fiber.h"

#include <sys/mman.h>

#include <cstdlib>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)

// void kiln_fiber_switch(void** save, void* load): saves the callee-saved registers on the old
// stack and continues on the other one where that was left. The return is an indirect jump, because
// a `ret` without a matching call is always mispredicted.
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

// The entry of a fiber: calls the function in r12 with the argument in rbx.
extern "C" void kiln_fiber_begin();
asm(R"(
.text
.local kiln_fiber_begin
.type kiln_fiber_begin,@function
kiln_fiber_begin:
  movq %rbx, %rdi
  callq *%r12
  ud2
.size kiln_fiber_begin,.-kiln_fiber_begin
)");

#endif

namespace kiln {
namespace {

// The sanitizers follow calls and returns, and must be told of a switch: before it, and
// AddressSanitizer also behind it.
#if defined(__SANITIZE_THREAD__)
void MakeName(FiberContext& context) {
  if (context.name) __tsan_destroy_fiber(context.name);
  context.name = __tsan_create_fiber(0);
}
void DeleteName(FiberContext& context) {
  if (context.name) __tsan_destroy_fiber(context.name);
}
inline __attribute__((always_inline)) void Leave(FiberContext& from, FiberContext& to, void**) {
  from.name = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.name, 0);
}
inline void Arrive(void*) {}
#elif defined(__SANITIZE_ADDRESS__)
thread_local FiberContext* left = nullptr;

void MakeName(FiberContext& context) {
  __asan_unpoison_memory_region(context.bottom, context.bytes);
}
void DeleteName(FiberContext&) {}
// The address of thread-local memory must not be kept over a switch: a fiber may continue on
// another thread.
__attribute__((noinline)) void Leave(FiberContext& from, FiberContext& to, void** fake) {
  left = &from;
  __sanitizer_start_switch_fiber(fake, to.bottom, to.bytes);
}
__attribute__((noinline)) void Arrive(void* fake) {
  __sanitizer_finish_switch_fiber(fake, &left->bottom, &left->bytes);
}
#else
void MakeName(FiberContext&) {}
void DeleteName(FiberContext&) {}
inline void Leave(FiberContext&, FiberContext&, void**) {}
inline void Arrive(void*) {}
#endif

}  // namespace

Fiber::~Fiber() { DeleteName(context_); }

void Fiber::SetStack(std::byte* memory, size_t bytes) {
  stack_ = memory;
  context_.bottom = memory;
  context_.bytes = bytes;
}

#if defined(__x86_64__)

void SwitchFiber(FiberContext& from, FiberContext& to) {
  void* fake = nullptr;
  Leave(from, to, &fake);
  kiln_fiber_switch(&from.stack_pointer, to.stack_pointer);
  Arrive(fake);
}

void Fiber::Start(FiberFunction function, void* argument) {
  function_ = function;
  argument_ = argument;
  if (waits_) return;
  MakeName(context_);
  auto** top = reinterpret_cast<void**>(stack_ + context_.bytes);
  *--top = nullptr;
  *--top = nullptr;
  // The frame popped by SwitchFiber: return address, rbp, rbx, r12 and so on.
  *--top = reinterpret_cast<void*>(&kiln_fiber_begin);
  *--top = nullptr;
  *--top = this;
  *--top = reinterpret_cast<void*>(&Fiber::Enter);
  for (int i = 0; i < 3; ++i) *--top = nullptr;
  context_.stack_pointer = top;
}

void LeaveFiber(FiberContext& to) {
  FiberContext gone;
  Leave(gone, to, nullptr);
  kiln_fiber_switch(&gone.stack_pointer, to.stack_pointer);
  std::abort();  // never reached
}

#else

void SwitchFiber(FiberContext&, FiberContext&) {}
void LeaveFiber(FiberContext&) { std::abort(); }
void Fiber::Start(FiberFunction, void*) {}

#endif

void Fiber::Enter(Fiber* fiber) {
  Arrive(nullptr);
  while (true) {
    fiber->waits_ = false;
    FiberContext* next = fiber->function_(fiber->argument_);
    fiber->waits_ = true;
    SwitchFiber(fiber->context_, *next);
  }
}

void UnmapStacks(void* memory, size_t bytes) {
  if (!memory) return;
#if defined(__SANITIZE_ADDRESS__)
  // The next mapping at this address belongs to another owner.
  __asan_unpoison_memory_region(memory, bytes);
#endif
  munmap(memory, bytes);
}

}  // namespace kiln
