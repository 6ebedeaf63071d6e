#include "passes/pipelines.h"

#include "passes/memory/schedule.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

constexpr Pass kPasses[] = {
    {"inline-calls", InlineCalls},
    {"dce", EliminateDeadCode},
    {"cse", EliminateCommonSubexpressions},
    {"constant-folding", FoldConstants},
    {"tuple-simplifier", SimplifyTuples},
    {"algebraic-simplifier", SimplifyAlgebra},
    {"transpose-folding", FoldTransposes},
    {"fusion", Fuse},
    {"flatten-call-graph", FlattenCallGraphPass},
    {"schedule", SchedulePass},
};

}  // namespace

std::span<const Pass> AllPasses() { return kPasses; }

const Pass* FindPass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

const Pipeline& CpuPipeline() {
  static const auto& pipeline = *new Pipeline{
      {{"inline-calls"}},
      {{"tuple-simplifier", "algebraic-simplifier", "constant-folding", "cse", "dce"}, true},
      {{"transpose-folding", "dce"}},
      {{"fusion", "cse", "dce"}},
      {{"flatten-call-graph", "schedule"}},
  };
  return pipeline;
}

const Pipeline& OpByOpPipeline() {
  static const auto& pipeline = *new Pipeline{
      {{"inline-calls", "dce"}},
      {{"flatten-call-graph", "schedule"}},
  };
  return pipeline;
}

Result<bool> FlattenCallGraphPass(ir::Module& module, const PassContext& context) {
  return FlattenCallGraph(module);
}

Result<bool> SchedulePass(ir::Module& module, const PassContext& context) {
  return Schedule(module);
}

}  // namespace kiln::passes
