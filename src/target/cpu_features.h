// CPUs other than the machine's own.
#pragma once

#include <string>
#include <vector>

#include "target/target.h"

namespace kiln::target {

// A CPU of x86-64 with those of the features (LLVM's names) that targets have, in the order in
// which HostCpu has them; caches of a usual size.
Target X86WithFeatures(const std::vector<std::string>& features);
// AArch64 with what all of its processors have.
Target BaselineAArch64();

}  // namespace kiln::target
