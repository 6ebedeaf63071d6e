// The program that kiln-aot compiles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::aot {

// As on the command line.
struct ModuleOptions {
  std::string file;   // or tools::kStandardInput
  std::string entry;  // the function of StableHLO; "": the usual one
  std::vector<std::string>
      arguments;                     // the shape of each argument, "f32[2,3]"; none: the program's
  std::vector<std::string> symbols;  // sizes of HLO's symbols, "name=size"
};

// A program in HLO text, StableHLO text or portable bytecode, all sizes of which are known. Errors
// name the file, with the place in it, or the option.
Result<std::unique_ptr<ir::Module>> ReadModule(const ModuleOptions& options);

}  // namespace kiln::aot
