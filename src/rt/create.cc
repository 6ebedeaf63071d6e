// Instances with memory of their own.
#include <cstdint>
#include <cstdlib>

#include "rt/error.h"
#include "rt/instance.h"

using kiln::Code;
using kiln::rt::Fail;

kiln_aot_instance* kiln_aot_create(const kiln_aot_program* program, kiln_aot_pool* pool,
                                   kiln_aot_error* error) {
  if (!program) {
    Fail(error, Code::kInvalidArgument, "kiln_aot_create: the program is NULL");
    return nullptr;
  }
  const kiln_aot_code* code = kiln::rt::ChooseCode(*program, error);
  if (!code) return nullptr;
  const int64_t bytes = kiln::rt::LayoutOf(*code).bytes;
  void* allocation = std::malloc(static_cast<size_t>(bytes) + KILN_AOT_ALIGNMENT - 1);
  if (!allocation) {
    Fail(error, Code::kResourceExhausted, "there is no memory for '", program->name, "': ", bytes,
         " bytes");
    return nullptr;
  }
  const auto address = kiln::rt::Aligned(reinterpret_cast<intptr_t>(allocation));
  kiln_aot_instance* instance =
      kiln::rt::PutInstance(*program, *code, reinterpret_cast<void*>(address), pool);
  instance->allocation = allocation;
  int32_t failure = 0;
  for (int64_t i = 0; i < code->call_count && failure == 0; ++i) {
    const kiln_aot_call_step& step = code->calls[i];
    if (!step.library) continue;
    kiln_aot_error inner;
    failure = step.library->make(&step.call, step.signature, step.signature_bytes,
                                 &instance->states[i], &inner);
    if (failure != 0) Fail(error, static_cast<Code>(failure), step.call.name, ": ", inner.text);
  }
  if (failure == 0) failure = kiln::rt::MakeConstants(*instance, error);
  if (failure == 0) return instance;
  kiln_aot_destroy(instance);
  return nullptr;
}

void kiln_aot_destroy(kiln_aot_instance* instance) {
  if (!instance) return;
  for (int64_t i = 0; i < instance->code->call_count; ++i) {
    if (instance->states[i]) instance->code->calls[i].library->destroy(instance->states[i]);
  }
  std::free(instance->allocation);
}
