// Compilation for a device, and loading: from a module to an executable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/executable.h"
#include "compiler/compiler.h"
#include "ir/ir.h"

namespace kiln::client {

struct CompileOptions {
  // The client sets threads, the module's number, and the destinations of dumps and events.
  compiler::Options compiler;
  // Numbers of arguments that executions may donate, beside those with a result in their memory.
  std::vector<size_t> donors;
  // The folder for every stage; empty: by the client's flags.
  std::string dump_folder;
  int64_t start_ns = 0;  // when the user's call began, by TraceSink::Now
};

Result<Ref<CompiledExecutable>> Compile(Device& device, std::unique_ptr<ir::Module> module,
                                        CompileOptions options);

}  // namespace kiln::client
