// Modules of HLO text that shape inference refuses and XLA takes.
#pragma once

#include "ir/ir.h"

namespace kiln::ir {

// XLA's parser checks no shapes, and its verifier lets much of it pass: element types that differ
// between operands, or from the result's; layouts that differ along a value's way; attributes left
// to their defaults; copies of tuples; collectives of several operands. Such instructions become
// valid ones of the declared shapes, by conversions, copies and defaults. Tells whether any did.
// The module's structure is valid, up to the number of operands.
bool Accommodate(Module& module);

}  // namespace kiln::ir
