// Groups of processes in modules for several of them.
#pragma once

#include "ir/ir.h"

namespace kiln::ir {

// Writes the groups of collectives out where they depend on the numbers of replicas and partitions:
// absent ones, and those of replicas with all their partitions. There are at most 2^16 processes.
// RESOURCE_EXHAUSTED if that is very many numbers.
Status StateGroups(Module& module, int64_t replicas, int64_t partitions);

}  // namespace kiln::ir
