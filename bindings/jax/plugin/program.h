/** @file
 *  Programs, compiled; executables and loaded executables share them. */
#ifndef KILN_JAX_PLUGIN_PROGRAM_H_
#define KILN_JAX_PLUGIN_PROGRAM_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/executable.h"
#include "plugin/api/executable.h"
#include "plugin/buffer.h"

namespace kiln_jax {

/** An argument of a program. */
struct Argument {
  std::vector<int64_t> dims;
  Layout layout;
  bool is_token = false;
  bool is_donated = false;  // by executions, unless the caller keeps it
};

/** A compiled program. Immutable, but for what is noted. */
struct Program {
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { kiln_executable_release(executable); }

  std::shared_ptr<Client> client;
  PJRT_Device* device = nullptr;
  std::string assignment;  // a serialised DeviceAssignmentProto
  kiln_executable* executable = nullptr;
  std::string fingerprint;
  bool calls_python = false;
  std::string code, options;  // as they were given: bytecode, and a CompileOptionsProto
  std::vector<Argument> arguments;
  std::vector<BufferSpec> outputs;
  // The same, as callers ask for it.
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<const char*> argument_kinds, output_kinds;  // of memory
  std::vector<size_t> argument_kind_sizes, output_kind_sizes;
  std::vector<PJRT_NamedValue> cost;
};

/** 128 bits of the program, its options and the library, in hexadecimal digits: equal inputs give
 *  equal texts, also in another process. */
std::string FingerprintOf(std::string_view code, std::string_view options, std::string_view build);

/** Makes a program of bytecode and a CompileOptionsProto. `saved` is Kiln's executable of it, from
 *  kiln_executable_serialize(), or empty: then it is compiled. */
PJRT_Error* MakeProgram(std::shared_ptr<Client> client, std::string_view code,
                        std::string_view options, std::string_view saved,
                        std::shared_ptr<const Program>* program);

/** UNIMPLEMENTED for programs that are not in MLIR. */
PJRT_Error* CheckFormat(const PJRT_Program& program);

PJRT_Error* ClientCompile(PJRT_Client_Compile_Args* args);
PJRT_Error* LoadedExecute(PJRT_LoadedExecutable_Execute_Args* args);  // execute.cc

}  // namespace kiln_jax

struct PJRT_Executable {
  explicit PJRT_Executable(std::shared_ptr<const kiln_jax::Program> program);
  std::shared_ptr<const kiln_jax::Program> program;
  // The orders of arguments and results, and the lists that callers get.
  std::vector<PJRT_Layouts_MemoryLayout> layouts;
  std::vector<PJRT_Layouts_MemoryLayout*> argument_layouts, output_layouts;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<const kiln_jax::Program> program;
  std::atomic<bool> deleted = false;
};

#endif  // KILN_JAX_PLUGIN_PROGRAM_H_
