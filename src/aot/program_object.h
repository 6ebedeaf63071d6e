// A program as an object for the linkers of others: its code for each target, its constants, and
// their description for the run time (rt/format.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aot/elf_object.h"
#include "base/status.h"
#include "program/program.h"
#include "target/target.h"

namespace kiln::aot {

// The program for one target.
struct Version {
  program::Artefact artefact;
  target::Target target;
};

struct ProgramObject {
  ElfObject object;
  // Of an instance and of its code, the most of all versions.
  int64_t memory_bytes = 0, stack_bytes = 0;
};

// What the required alignment of each argument is, in all versions.
std::vector<int64_t> ArgumentAlignments(const std::vector<Version>& versions);

// The functions of the program's own that it calls, by their targets' names in the program, sorted.
std::vector<std::string> UserTargets(const program::Program& program);
// Their names in C, of which several targets may have the same.
std::vector<std::string> UserFunctions(const program::Program& program);

// All versions are of one module and one kind of machine, the best first. The object defines
// `name`_program, a kiln_aot_program. `threads` is kiln_aot_program::threads. UNIMPLEMENTED names a
// function that the run time lacks, INVALID_ARGUMENT one with a name that is taken.
Result<ProgramObject> MakeProgramObject(std::string_view name, const std::vector<Version>& versions,
                                        int32_t threads);

}  // namespace kiln::aot
