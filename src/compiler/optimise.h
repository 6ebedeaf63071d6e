// From a module to its kernels and steps: passes, and lowering.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "compiler/backend.h"
#include "compiler/compiler.h"
#include "compiler/lower.h"
#include "ir/ir.h"
#include "passes/pass.h"

namespace kiln::compiler {

// The name of the pipeline, unless it runs again to save memory.
inline constexpr std::string_view kPipelineName = "optimization";

// Runs the pipeline on the module and on its frozen parts, and lowers them. Where the options limit
// the temporaries and these do not fit, rematerialisation and the passes behind it run again with
// more effort to save memory, the least by which they fit; RESOURCE_EXHAUSTED names the largest
// values where none does. `module` and `context` are in the end those of the lowered program.
// `optimised` sees each optimised module before it is lowered: the module's part of the name "", or
// that of a frozen part.
Result<Lowered> OptimiseAndLower(
    std::unique_ptr<ir::Module>& module, const Backend& backend, const passes::Pipeline& pipeline,
    passes::PassContext& context, const Options& options,
    const std::function<void(std::string_view part, const ir::Module& module)>& optimised);

}  // namespace kiln::compiler
