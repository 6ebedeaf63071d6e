// Updates of variables in their memory: which a plan allows.
#pragma once

#include <vector>

#include "client/device.h"
#include "ir/ir.h"
#include "session/units.h"
#include "session/variables.h"

namespace kiln::session {

// The last unit runs when all others have ended. What can fail has failed before it, and no other
// unit needs the values that it overwrites: so it may update the variables that it reads and
// assigns, if nobody fetches their values. Allows that in the unit's module, by aliases.
std::vector<InPlaceUpdate> FindInPlaceUpdates(Units& units, const VariableUses& uses);

// Removes the aliases of a static module, unless it is brief enough for updates in place, which
// cannot be cancelled and keep the variables' readers waiting: without loops and library functions,
// and of at most 20 ms. That is a guess for one thread of a CPU, from the cost of the ops
// (ir/analysis/cost.h) and the bytes that they move. In a fused module elementwise ops move none of
// their own.
void RemoveAliasesUnlessBrief(ir::Module& module, const client::Device& device, bool is_fused);

}  // namespace kiln::session
