// Calls of functions are replaced by the bodies of the functions before placement, as in
// TensorFlow.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::session {

struct InlineOptions {
  // The first parameters, which stay whether they are needed or not; others go if they are not.
  size_t kept_parameters = 0;
  // Names of instructions of the entry that are needed without results. Of a call these are the
  // result and the side effects.
  std::span<const std::string> targets = {};
  // The marks of ops in bodies count. If not, those of calls alone do.
  bool reads_marks = true;
};

// Replaces the calls in the entry of a Subgraph's module, and calls in the bodies, by the called
// functions' bodies; calls that must be compiled, and those in loops and branches, stay. Without
// calls the module is unchanged.
//
// - An op of a body has its own device, JIT mark and scope, each else the call's.
// - It is named "call_op", and its origin (op_name) is "call/op", made unique by a number. Ops of
//   the entry keep their names. Long names of calls in calls are left out.
// - What the call waits for, all ops of the body wait for, by control dependencies or by operands;
//   what waits for the call waits for the result and for the side effects.
// - Ops that no result of the entry, no target and no side effect needs are left out.
// - Results of the entry that become the same value are copies of it.
//
// Linear in the size of the result. RESOURCE_EXHAUSTED where that is more than passes allow.
Result<std::unique_ptr<ir::Module>> InlineCalls(std::unique_ptr<ir::Module> module,
                                                const InlineOptions& options);

}  // namespace kiln::session
