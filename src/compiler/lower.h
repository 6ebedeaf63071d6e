// From a scheduled module to the program: kernels, their schedules, and steps over buffers.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/interrupt.h"
#include "base/status.h"
#include "codegen/lowered_program.h"
#include "compiler/backend.h"
#include "ir/ir.h"
#include "kernel/fusion_analysis.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/pass.h"

namespace kiln::compiler {

struct Lowered : codegen::LoweredProgram {
  passes::BufferAssignment assignment;  // of the module's values
};

// The arguments and results: the entry's leaves.
program::Signature SignatureOf(const ir::Module& module);

// The module is scheduled, static, and has neither calls nor shared loop bodies. `analysis` has the
// kernels found by the passes; kernels of unknown fusions are built. `parts` has what the passes
// have moved out of the module, scheduled, too.
Result<Lowered> Lower(const ir::Module& module, const Backend& backend,
                      kernel::FusionAnalysis& analysis, const Interrupt& interrupt = Interrupt(),
                      std::span<const passes::FrozenPart> parts = {});

}  // namespace kiln::compiler
