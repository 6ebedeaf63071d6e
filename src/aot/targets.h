// The targets of programs compiled ahead of time, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aot/elf_object.h"
#include "base/status.h"
#include "target/target.h"

namespace kiln::aot {

// "native" is this machine, "aarch64" what all processors of AArch64 have; other names are LLVM's
// of x86-64's processors and levels. INVALID_ARGUMENT, with all names, for others, and for
// processors without SSE4.1.
Result<target::Target> TargetByName(std::string_view name);

// The targets of --multi-version, the best first.
std::vector<target::Target> X86Levels();

Machine MachineOf(const target::Target& target);

// The bits of its features, by their numbers in kCpuFeatures.
Result<uint64_t> FeatureBits(const target::Target& target);

}  // namespace kiln::aot
