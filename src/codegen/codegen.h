// From a program to code. Needs a target, not a device; includes no LLVM header.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace kiln::codegen {

// What is optimised: by size, as effort.h tells; as little as it tells of large programs, whatever
// the size; or everything.
enum class Optimization { kAuto, kQuick, kFull };

struct Options {
  Optimization optimization = Optimization::kAuto;
  // Run LLVM's verifier over what was emitted.
  bool verify = false;
  // How many threads may generate code at once: kernels are dealt out to so many LLVM modules.
  int threads = 1;
  // Receives "ir-no-opt.ll" or ".ptx" texts under a name, when set.
  std::function<void(std::string_view suffix, std::string_view text)> dump;
};

// Relocatable objects that define kEntrySymbol, kPrologueSymbol (where there is a prologue) and
// whatever kernels they call; no undefined symbol is left but the frame's.
Result<std::vector<std::string>> GenerateCpu(const plan::Program& program, const target::Cpu& cpu,
                                             const Options& options);

// PTX of one kernel for an architecture, as an entry of the kernel's name. A bundle comes with the
// kernels that it is made of.
Result<std::string> GeneratePtx(const plan::ScheduledKernel& kernel, const target::Gpu& gpu,
                                const Options& options,
                                std::span<const plan::ScheduledKernel> parts = {});

// The same GPU kernel for the emulator: an x86 object whose undefined symbols are kiln.gpu.*.
Result<std::string> GenerateEmulated(const plan::ScheduledKernel& kernel, const target::Gpu& gpu,
                                     const target::Cpu& host, const Options& options,
                                     std::span<const plan::ScheduledKernel> parts = {});

}  // namespace kiln::codegen
