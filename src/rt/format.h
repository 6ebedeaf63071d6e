// What kiln-aot writes into objects for the run time, beside the public description in kiln/aot.h.
// A change here, there, or of the frame's version raises KILN_AOT_VERSION.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/frame.h"
#include "kiln/aot.h"

static_assert(KILN_AOT_VERSION == 2 && KILN_FRAME_VERSION == 3);

extern "C" {

// A function of the run time's library that a program calls: a symbol of its own, so that programs
// are linked with those that they call and no others.
typedef struct kiln_aot_library {
  // Makes the state of a call with this signature (tensor/call_signature.h).
  int32_t (*make)(const kiln_aot_call* call, const void* signature, int64_t signature_bytes,
                  void** state, kiln_aot_error* error);
  // Runs it: `args` are operands, results and scratch.
  int32_t (*run)(void* state, const kiln_frame* frame, void* const* args, kiln_aot_error* error);
  void (*destroy)(void* state);
} kiln_aot_library;

// A call step.
typedef struct kiln_aot_call_step {
  kiln_aot_call call;
  int64_t launch;  // its number in the frame's `call`; steps are sorted by it
  // One of the two.
  const kiln_aot_library* library;
  kiln_aot_function* function;
  const void* signature;
  int64_t signature_bytes;
} kiln_aot_call_step;

// An allocation of the program (program::Allocation).
typedef struct kiln_aot_buffer {
  int64_t kind;      // KILN_AOT_PARAMETER, ...
  int64_t number;    // of a parameter or result
  int64_t bytes;     // of a made constant
  const void* data;  // of a constant in the object
} kiln_aot_buffer;
enum {
  KILN_AOT_PARAMETER = 0,
  KILN_AOT_RESULT = 1,
  KILN_AOT_CONSTANT = 2,
  KILN_AOT_MADE = 3,  // a constant that the prologue writes, in the instance's memory
  KILN_AOT_ARENA = 4
};

// The program for one target.
typedef struct kiln_aot_code {
  const char* target;
  uint64_t features;  // by number in kCpuFeatures, those that the processor must have
  kiln_entry_fn entry;
  kiln_entry_fn prologue;  // NULL: all constants are in the object
  const kiln_aot_buffer* buffers;
  int64_t buffer_count;
  const kiln_aot_call_step* calls;
  int64_t call_count;
  int64_t arena_bytes;
} kiln_aot_code;

}  // extern "C"

namespace kiln::rt {

// The memory of an instance: the instance itself, the addresses of buffers, states of calls, made
// constants, the arena.
inline constexpr int64_t kInstanceBytes = 256;

constexpr int64_t Aligned(int64_t bytes) {
  return (bytes + KILN_AOT_ALIGNMENT - 1) & ~int64_t{KILN_AOT_ALIGNMENT - 1};
}

struct Layout {
  int64_t states = 0, made = 0, arena = 0, bytes = 0;  // offsets, and all
};
constexpr Layout LayoutOf(const kiln_aot_code& code) {
  constexpr auto kPointer = static_cast<int64_t>(sizeof(void*));
  Layout layout;
  layout.states = Aligned(kInstanceBytes + code.buffer_count * kPointer);
  layout.made = Aligned(layout.states + code.call_count * kPointer);
  layout.arena = layout.made;
  for (int64_t i = 0; i < code.buffer_count; ++i) {
    if (code.buffers[i].kind == KILN_AOT_MADE) layout.arena += Aligned(code.buffers[i].bytes);
  }
  layout.bytes = layout.arena + Aligned(code.arena_bytes);
  return layout;
}

}  // namespace kiln::rt
