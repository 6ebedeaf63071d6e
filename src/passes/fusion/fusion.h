// Fusion within one computation: parts of the passes row-fusion and fusion.
#pragma once

#include "ir/ir.h"

namespace kiln::kernel {
class FusionAnalysis;  // kernel/fusion_analysis.h
class Scheduler;       // kernel/schedule/scheduler.h
}  // namespace kiln::kernel

namespace kiln::passes {

// Gives each fusion of the module a computation of its own: what FuseIn asks for.
void PartFusions(ir::Module& module);

// Reductions and what uses their results on the same rows; whether there were any.
bool FuseRowsIn(ir::Computation& c, const kernel::Scheduler& scheduler,
                kernel::FusionAnalysis& analysis);
// Producers into consumers, and siblings with each other; whether there were any.
bool FuseIn(ir::Computation& c, const kernel::Scheduler& scheduler,
            kernel::FusionAnalysis& analysis);

}  // namespace kiln::passes
