// From a module to an object and its header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aot/elf_object.h"
#include "base/status.h"
#include "compiler/compiler.h"
#include "ir/ir.h"
#include "target/target.h"

namespace kiln::aot {

struct Options {
  std::string name;        // of what is in the header: NAME_program, NAME_run
  std::string class_name;  // of the class for C++, "ns::Class"; "": none
  // Of CPUs of one machine, the best first: the first that the processor has is run.
  std::vector<target::Target> targets;
  int32_t threads = 0;  // kiln_aot_program::threads
  // Whether operands that are packed once are packed now, where this machine runs the target's
  // code, and not by each instance.
  bool packs = true;
  compiler::Options compiler;
};

struct Built {
  ElfObject object;
  std::string header;
};

// The code is that of libkiln for the same target. The module must be static. UNIMPLEMENTED names
// what programs compiled ahead of time cannot have.
Result<Built> Build(const ir::Module& module, const Options& options);

}  // namespace kiln::aot
