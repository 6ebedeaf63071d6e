// The units of a graph: the parts that a session launches, each on one device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/status.h"
#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {

struct Unit;
using UnitId = Id<Unit>;

// An array that is fed, or made by one unit for others or for the caller.
struct Value {
  std::string name;  // of its instruction
  Shape shape;
  UnitId producer;  // none if it is fed
};
using ValueId = Id<Value>;

struct Unit {
  std::string name;  // of the cluster, or of the graph
  int device = 0;    // as in the placement
  int cluster = -1;  // none: its ops are run one by one
  // It has an op that only the host can run (ir/analysis/session_only.h), beside those that
  // exchange tuples with it; `device` has the results.
  bool is_on_host = false;
  // Its parameters are the inputs, and its result is the tuple of the outputs.
  std::unique_ptr<ir::Module> module;
  std::vector<ValueId> inputs, outputs;
  // Values used by no later unit, and not fetched.
  std::vector<ValueId> last_uses;
};

struct Units {
  IdVector<ValueId, Value> values;
  IdVector<UnitId, Unit> units;  // producers before consumers
  std::vector<ValueId> feeds, fetches;
};

// Splits a module, a Subgraph's. A unit is a cluster, an op for the host, or the most other ops of
// one device that can run in a row without results of other units in between. Side effects keep
// their order.
Result<Units> SplitIntoUnits(const ir::Module& module, const Placement& placement,
                             const Clustering& clustering);

}  // namespace kiln::session
