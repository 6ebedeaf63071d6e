// What processes do together, and what goes to and comes from elsewhere. Which processes are a
// group is what the StableHLO specification and XLA say:
//
//   all-gather, all-reduce, reduce-scatter
//       without a channel the replicas that a list names, each partition for itself; with one the
//       same replicas with all partitions, partition after partition; with a channel and
//       use_global_device_ids the processes that it names, by replica * partitions + partition.
//   all-to-all, collective-broadcast, collective-permute
//       without a channel replicas, with one partitions, each other number for itself.
//   send, recv
//       whoever uses the channel; with source_target_pairs, of global ids, from and to those.
//
// A list that is absent names all there are; -1 in it is no number. One process alone, which no
// grid runs, is replica 0 of partition 0: ops that need others, queues or channels are
// UNIMPLEMENTED.
#pragma once

#include <functional>
#include <vector>

#include "interp/grid.h"
#include "interp/region.h"

namespace kiln::interp {

Result<Value> EvaluateProcessOp(const ir::Instruction& i, std::vector<Value> operands,
                                const Process& process, const RegionContext& context);

// The custom call interpreter.run_parallel (harness.h). `call` runs a computation in a process.
using CallIn = std::function<Result<Value>(const ir::Computation& computation,
                                           std::vector<Value> arguments, const Process& process)>;
// `live` counts the simultaneous processes.
Result<Value> RunParallel(const ir::Instruction& i, std::vector<Value> operands, int64_t& live,
                          const CallIn& call);

}  // namespace kiln::interp
