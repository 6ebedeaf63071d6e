// How long a run of a program takes, roughly.
#pragma once

#include "codegen/lowered_program.h"

namespace kiln::compiler {

// Nanoseconds of a launch, a byte, an operation, and an element that is sorted, scattered or
// scanned. A core moves some ten bytes in a nanosecond, and computes with vectors.
namespace duration {
inline constexpr double kLaunch = 10, kByte = 0.1, kOperation = 0.1, kElement = 10;
}  // namespace duration

// On one thread of a CPU, in nanoseconds, to tell small programs from others: a guess from the
// bytes and operations of its kernels. Infinite where it is not known, as of loops that stop by
// themselves and of functions outside generated code.
double NanosecondsOf(const codegen::LoweredProgram& lowered);

}  // namespace kiln::compiler
