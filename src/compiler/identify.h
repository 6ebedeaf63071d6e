// The id of a program's code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/lowered_program.h"
#include "target/target.h"

namespace kiln::compiler {

// The id of a program whose code is a module's text.
std::string IdOfText(const program::Program& program, const target::Target& target,
                     std::string_view text);

// Sets the program's target, the version of its frame, the names of its kernels, and its id: 16
// hexadecimal digits, a digest of the target, of the program's name without its number, of the
// texts of the kernels, and of the program's steps, memory and constants. Equal programs have one
// id.
void Identify(codegen::LoweredProgram& lowered, const target::Target& target,
              const std::vector<std::string_view>& kernel_texts);

}  // namespace kiln::compiler
