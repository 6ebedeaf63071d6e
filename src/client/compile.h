// Compiling for a device, and loading: from a module to what can be executed.
#pragma once

#include <memory>
#include <string>

#include "base/ref.h"
#include "base/status.h"
#include "client/executable.h"
#include "compiler/compiler.h"
#include "ir/ir.h"

namespace kiln::client {

struct CompileOptions {
  // Threads, the module's number, and where dumps and events go are the client's to set.
  compiler::Options compiler;
  // Where every stage is written; empty: nowhere.
  std::string dump_folder;
  int64_t start_ns = 0;  // when the user's call began, by TraceSink::Now
};

Result<Ref<CompiledExecutable>> Compile(Device& device, std::unique_ptr<ir::Module> module,
                                        CompileOptions options);

}  // namespace kiln::client
