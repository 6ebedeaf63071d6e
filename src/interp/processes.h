// Communication of processes with each other and with the outside. Groups of processes are those of
// the StableHLO specification and XLA:
//
//   all-gather, all-reduce, reduce-scatter
//       without a channel the listed replicas, each partition by itself; with a channel the listed
//       replicas with all partitions, partition after partition; with a channel and
//       use_global_device_ids the listed processes, by replica * partitions + partition.
//   all-to-all, collective-broadcast, collective-permute
//       without a channel the listed replicas, each partition by itself; with a channel the listed
//       partitions, each replica by itself.
//   send, recv
//       all users of the channel; with source_target_pairs, of global ids, these pairs.
//
// An absent list means all; -1 in a list is no process. A process outside of a grid is replica 0 of
// partition 0: ops that need other processes, queues or channels are UNIMPLEMENTED.
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
