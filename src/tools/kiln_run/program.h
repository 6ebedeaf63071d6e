// A program in a file, as text for the library and as a module for what the tool asks of it.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "ir/ir.h"
#include "tools/kiln_run/handles.h"

namespace kiln::run {

enum class Format { kAuto, kHlo, kStableHlo };

struct Program {
  std::string name;  // of its file, without folder and extension; or the module's
  Format format = Format::kHlo;
  std::string text;  // or bytecode
  std::unique_ptr<ir::Module> module;
};

// Errors name the file, and the place in it.
Result<Program> ReadProgram(const std::string& path, Format format);
// The program of a module.
Program ProgramOf(const ir::Module& module);

// The graph of the program.
Result<Graph> GraphOf(kiln_context* context, const Program& program);

}  // namespace kiln::run
