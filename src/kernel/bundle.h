// Bundles: kernels that do not depend on each other and share nothing, run side by side as one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::kernel {

// A bundle is a fusion of fusions: its computation holds parameters, fusions of these,
// get-tuple-elements of their results, and a tuple of all results as the root.
bool IsBundle(const ir::Instruction& instruction);

struct BundlePart {
  const ir::Instruction* kernel = nullptr;  // a fusion of the bundle's computation
  std::vector<int64_t> operands;            // of the kernel's operands: the bundle's
  std::vector<int64_t> results;             // of the kernel's results: elements of the bundle's
};

// The parts in order. UNIMPLEMENTED where a fusion of fusions is anything but a bundle.
Result<std::vector<BundlePart>> PartsOf(const ir::Instruction& bundle);

}  // namespace kiln::kernel
