// Fusion within one computation: parts of the passes row-fusion and fusion.
#pragma once

#include "ir/ir.h"
#include "target/target.h"

namespace kiln::passes {

// Gives each fusion of the module a computation of its own: what FuseIn asks for.
void PartFusions(ir::Module& module);

// Reductions and what uses their results on the same rows; whether there were any.
bool FuseRowsIn(ir::Computation& c, const target::Target& target);
// Producers into consumers, and siblings with each other; whether there were any.
bool FuseIn(ir::Computation& c, const target::Target& target);

}  // namespace kiln::passes
