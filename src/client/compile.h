// Compilation for a device, and loading: from a module to an executable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/executable.h"
#include "compiler/compiler.h"
#include "ir/ir.h"

namespace kiln::client {

struct CompileOptions {
  // Whether the executable can be saved: its code is kept.
  bool can_be_saved = false;
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

// The executable as bytes or as a file (program/saved.h), made by Compile with `can_be_saved`, or
// loaded.
Result<std::string> SaveExecutable(const CompiledExecutable& executable);
Status SaveExecutableFile(const CompiledExecutable& executable, const std::string& path);

// An executable from such bytes or such a file, whose constants stay in the mapped file on a device
// with the host's memory: the same program, without a compilation. The device's target may have
// more features than that of the compilation. FAILED_PRECONDITION if it does not fit, NOT_FOUND if
// it calls a function that the client lacks.
Result<Ref<CompiledExecutable>> LoadExecutable(Device& device, std::string_view bytes);
Result<Ref<CompiledExecutable>> LoadExecutableFile(Device& device, const std::string& path);

}  // namespace kiln::client
