// How programs for a CPU want their arguments aligned.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/lowered_program.h"
#include "target/target.h"

namespace kiln::compiler {

// The required alignment of each parameter.
std::vector<int64_t> ArgumentAlignments(const codegen::LoweredProgram& lowered,
                                        const target::Cpu& cpu);

}  // namespace kiln::compiler
