// An instance of a program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/aot.h"
#include "rt/format.h"

struct kiln_aot_instance {
  const kiln_aot_program* program;
  const kiln_aot_code* code;
  kiln_aot_pool* pool;  // NULL: none
  void** buffers;       // `code->buffer_count`, those of arguments and results set by each run
  void** states;        // of calls, by number; NULL for the program's own functions
  void* allocation;     // of kiln_aot_create, to be freed
};

static_assert(sizeof(kiln_aot_instance) <= kiln::rt::kInstanceBytes);

namespace kiln::rt {

// The best code for this processor; null after an error.
const kiln_aot_code* ChooseCode(const kiln_aot_program& program, kiln_aot_error* error);

// An instance in memory of LayoutOf's size, without states of calls.
kiln_aot_instance* PutInstance(const kiln_aot_program& program, const kiln_aot_code& code,
                               void* memory, kiln_aot_pool* pool);

// Runs the prologue, where the code has one.
int32_t MakeConstants(const kiln_aot_instance& instance, kiln_aot_error* error);

}  // namespace kiln::rt
