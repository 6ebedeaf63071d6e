#include "rt/instance.h"

#include <cstring>

#include "base/machine_features.h"
#include "rt/error.h"

namespace kiln::rt {
namespace {

std::byte* At(void* memory, int64_t offset) { return static_cast<std::byte*>(memory) + offset; }

// The names of features.
struct FeatureNames {
  char text[KILN_AOT_TEXT_BYTES];

  explicit FeatureNames(uint64_t features) {
    ErrorText names(text);
    const char* separator = "";
    for (const char* name : kCpuFeatures) {
      if (features & 1) {
        names.Add(separator).Add(name);
        separator = ", ";
      }
      features >>= 1;
    }
  }
};

}  // namespace

const kiln_aot_code* ChooseCode(const kiln_aot_program& program, kiln_aot_error* error) {
  if (program.version != KILN_AOT_VERSION) {
    Fail(error, Code::kFailedPrecondition, "the program is of version ", int64_t{program.version},
         ", and the run time of version ", int64_t{KILN_AOT_VERSION});
    return nullptr;
  }
  const uint64_t features = FeaturesOfMachine();
  for (int32_t i = 0; i < program.code_count; ++i) {
    if ((program.codes[i].features & ~features) == 0) return &program.codes[i];
  }
  const FeatureNames missing(program.codes[program.code_count - 1].features & ~features);
  Fail(error, Code::kFailedPrecondition, "'", program.name, "' was compiled for a CPU with ",
       missing.text, ", which this machine lacks");
  return nullptr;
}

kiln_aot_instance* PutInstance(const kiln_aot_program& program, const kiln_aot_code& code,
                               void* memory, kiln_aot_pool* pool) {
  auto* instance = static_cast<kiln_aot_instance*>(memory);
  const Layout layout = LayoutOf(code);
  instance->program = &program;
  instance->code = &code;
  instance->pool = pool;
  instance->buffers = reinterpret_cast<void**>(At(memory, kInstanceBytes));
  instance->states = reinterpret_cast<void**>(At(memory, layout.states));
  instance->allocation = nullptr;
  std::byte* made = At(memory, layout.made);
  for (int64_t i = 0; i < code.buffer_count; ++i) {
    const kiln_aot_buffer& buffer = code.buffers[i];
    void*& address = instance->buffers[i];
    address = nullptr;
    if (buffer.kind == KILN_AOT_CONSTANT) address = const_cast<void*>(buffer.data);
    if (buffer.kind == KILN_AOT_ARENA) address = At(memory, layout.arena);
    if (buffer.kind != KILN_AOT_MADE) continue;
    // The gaps in what the prologue writes.
    std::memset(made, 0, static_cast<size_t>(buffer.bytes));
    address = made;
    made += Aligned(buffer.bytes);
  }
  for (int64_t i = 0; i < code.call_count; ++i) instance->states[i] = nullptr;
  return instance;
}

}  // namespace kiln::rt

using kiln::Code;
using kiln::rt::Fail;

kiln_aot_instance* kiln_aot_place(const kiln_aot_program* program, void* memory, size_t bytes,
                                  kiln_aot_pool* pool, kiln_aot_error* error) {
  if (!program || !memory) {
    Fail(error, Code::kInvalidArgument, "kiln_aot_place: an argument is NULL");
    return nullptr;
  }
  if (reinterpret_cast<uintptr_t>(memory) % KILN_AOT_ALIGNMENT != 0) {
    Fail(error, Code::kInvalidArgument, "kiln_aot_place: the memory is not aligned to ",
         int64_t{KILN_AOT_ALIGNMENT}, " bytes");
    return nullptr;
  }
  const kiln_aot_code* code = kiln::rt::ChooseCode(*program, error);
  if (!code) return nullptr;
  const int64_t needed = kiln::rt::LayoutOf(*code).bytes;
  if (bytes < static_cast<size_t>(needed)) {
    Fail(error, Code::kInvalidArgument, "kiln_aot_place: '", program->name, "' needs ", needed,
         " bytes of memory");
    return nullptr;
  }
  for (int64_t i = 0; i < code->call_count; ++i) {
    if (!code->calls[i].library) continue;
    Fail(error, Code::kFailedPrecondition, "kiln_aot_place: ", code->calls[i].call.name,
         " needs memory of its own; use kiln_aot_create");
    return nullptr;
  }
  kiln_aot_instance* instance = kiln::rt::PutInstance(*program, *code, memory, pool);
  return kiln::rt::MakeConstants(*instance, error) == 0 ? instance : nullptr;
}

const char* kiln_aot_target(const kiln_aot_instance* instance) { return instance->code->target; }
