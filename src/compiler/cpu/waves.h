// Waves of small launches: threads share the launches, where a single launch is too small to be
// shared by threads.
#pragma once

#include "codegen/lowered_program.h"
#include "compiler/waves.h"
#include "target/target.h"

namespace kiln::compiler {

// Finds the waves of a program for so many threads, in loops and branches, too. Moves launches and
// copies of its steps to the front within a bounded distance, where that makes a wave: steps that
// touch the same bytes, unless both only read them, stay in order, and all stay in order with
// calls, loops and conditionals. Steps without waves do not change.
Waves FindWaves(codegen::LoweredProgram& lowered, const target::Cpu& cpu, int threads);

}  // namespace kiln::compiler
