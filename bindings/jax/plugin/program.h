/** @file
 *  Programs, compiled; executables and loaded executables share them. */
#ifndef KILN_JAX_PLUGIN_PROGRAM_H_
#define KILN_JAX_PLUGIN_PROGRAM_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kiln/executable.h"
#include "plugin/api/executable.h"
#include "plugin/client.h"

namespace kiln_jax {

/** A result of a program. */
struct Output {
  PJRT_Buffer_Type type;
  std::vector<int64_t> dims;
  size_t bytes;
};

/** A compiled program. Immutable, but for what is noted. */
struct Program {
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { kiln_executable_release(executable); }

  std::shared_ptr<Client> client;
  kiln_executable* executable = nullptr;
  std::string fingerprint;
  size_t argument_count = 0;
  std::vector<bool> donated;  // arguments whose memory a result takes
  std::vector<Output> outputs;
  // The same, as callers ask for it.
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<const char*> memory_kinds;  // as many as arguments or outputs, whichever are more
  std::vector<size_t> memory_kind_sizes;
  std::vector<PJRT_NamedValue> cost;
};

PJRT_Error* ClientCompile(PJRT_Client_Compile_Args* args);
PJRT_Error* LoadedExecute(PJRT_LoadedExecutable_Execute_Args* args);  // execute.cc

}  // namespace kiln_jax

struct PJRT_Executable {
  std::shared_ptr<const kiln_jax::Program> program;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<const kiln_jax::Program> program;
  std::atomic<bool> deleted = false;
};

#endif  // KILN_JAX_PLUGIN_PROGRAM_H_
