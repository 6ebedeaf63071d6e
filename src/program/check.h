// The consistency of a program from a file.
#pragma once

#include "base/status.h"
#include "program/program.h"

namespace kiln::program {

// INVALID_ARGUMENT for ids, numbers and slices beyond what they refer to, lists of different
// lengths, and shapes without a size. Code is not looked at.
Status CheckProgram(const Program& program);

}  // namespace kiln::program
