// Random programs over the rows of an array, as softmax and normalisations are: what row kernels
// are made of.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/ir.h"

namespace kiln::testing {

// The same module for the same seed: some of its values are arrays of a shape, others have an
// element for each of the array's rows, along any of its dimensions; reductions and broadcasts lead
// from one kind to the other. Values stay small.
std::unique_ptr<ir::Module> RandomRowsModule(uint64_t seed);

}  // namespace kiln::testing
