// Transfers and queues of a process that runs alone.
#pragma once

#include "ir/ir.h"

namespace kiln::passes {

// Replaces transfers by values where no other process takes part:
//   a send and a recv of one channel in one computation, without source_target_pairs or from
//   process
//     0 to itself: the recv has the value sent;
//   a recv that is no pair's target: zeros; a send that is no pair's source: nothing;
//   an infeed: the value of the outfeed of the same number in its computation;
//   an outfeed: nothing, as nobody reads the queue.
// Others stay, and are refused by name. Programs of grids keep all of theirs.
void ResolveTransfers(ir::Module& module);

}  // namespace kiln::passes
