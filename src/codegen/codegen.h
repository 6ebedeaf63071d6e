// From a program to code. Needs a target, not a device; includes no LLVM header.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "base/trace.h"
#include "codegen/lowered_program.h"
#include "target/target.h"

namespace kiln::codegen {

// The effort of optimisation: by size (effort.h); as for large programs at any size; or everything.
enum class Optimization { kAuto, kQuick, kFull };

struct Options {
  Optimization optimization = Optimization::kAuto;
  // The number of threads that generate code: kernels are distributed over as many LLVM modules.
  int threads = 1;
  // Looked at between kernels and between modules.
  Interrupt interrupt;
  // Gets a bar for each module's making, unless it is null.
  TraceSink* trace = nullptr;
  // Receives generated code as text, under the names "ir-no-opt.ll" and "ptx", when set.
  std::function<void(std::string_view suffix, std::string_view text)> dump;
};

// Relocatable objects that define the program's entry, its prologue (where it has one) and whatever
// kernels they call; no undefined symbol is left but the frame's. All symbols end in the program's
// id.
Result<std::vector<std::string>> GenerateCpu(const LoweredProgram& lowered, const target::Cpu& cpu,
                                             const Options& options);

// What the program's launches need on a GPU: modules of PTX or, where the target is an emulated
// GPU, objects for device/emulated. The grids of the program's kernels name the code of a launch,
// which is in one of them.
Result<std::vector<std::string>> GenerateGpu(const LoweredProgram& lowered,
                                             const target::Target& target, const Options& options);

}  // namespace kiln::codegen
