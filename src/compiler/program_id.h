// A name for a program's code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/lowered_program.h"
#include "target/target.h"

namespace kiln::compiler {

// What tells a program from others, in 16 hexadecimal digits: its target, the texts of its kernels,
// its steps, its memory and what is in its constants. Equal programs have one id.
std::string ProgramId(const program::Program& program, const target::Target& target,
                      const std::vector<std::string_view>& kernel_texts);

}  // namespace kiln::compiler
