// The pipelines, as lists.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// Compiling a whole graph for a CPU.
const Pipeline& CpuPipeline();
// Compiling a whole graph for a GPU.
const Pipeline& GpuPipeline();
// Every op a kernel of its own: nothing is rewritten or fused.
const Pipeline& OpByOpPipeline();

struct NamedPipeline {
  std::string_view name;
  std::string_view summary;
  const Pipeline& (*get)();
};
std::span<const NamedPipeline> AllPipelines();

}  // namespace kiln::passes
