#include "passes/pipelines.h"

#include "passes/expand/bounded.h"
#include "passes/expand/complex.h"
#include "passes/expand/expand.h"
#include "passes/expand/narrow.h"
#include "passes/expand/tokens.h"
#include "passes/growth.h"
#include "passes/memory/schedule.h"
#include "passes/normalise_preds.h"
#include "passes/passes.h"
#include "passes/split_concatenates.h"

namespace kiln::passes {
namespace {

// The one place where a pass gets its name.
constexpr Pass kPasses[] = {
    {"outline-grids", "gives grids of processes, which the evaluator runs, their programs as text",
     OutlineGrids},
    {"inline-calls", "puts the bodies of called computations in the place of their calls",
     InlineCalls},
    {"inline-fusions", "takes apart fusions that are given, but for those that are kernels",
     InlineFusions},
    {"expand-bounded", "makes values of bounded dimensions arrays of the bounds, with their sizes",
     ExpandBounded},
    {"prepare-calls",
     "does away with markers, gives functions outside generated code arrays in row-major order, "
     "and scatters operands of their results' layouts",
     PrepareCalls},
    {"inline-maps", "applies the computations of maps to all elements at once", InlineMaps},
    {"expand-ops", "makes of other ops what has no code of its own", ExpandOps},
    {"outline-ops", "gives ops that become several computations of their own", OutlineOps},
    {"fuse-outlined", "makes few kernels of each of these, and puts them into its place",
     FuseOutlined},
    {"expand-complex", "makes complex numbers pairs of real ones", ExpandComplex},
    {"expand-narrow", "makes small integers bytes, and small floats their bits", ExpandNarrow},
    {"expand-tokens", "makes tokens values, which are read for their order alone", ExpandTokens},
    {"normalise-preds", "makes 0 and 1 of truth values from outside, where bytes are passed on",
     NormalisePreds},
    {"split-constants", "makes constant tuples tuples of constants", SplitConstants},
    {"dce", "removes what no result needs, and computations that nobody calls", EliminateDeadCode},
    {"cse", "makes equal instructions one", EliminateCommonSubexpressions},
    {"constant-folding", "evaluates what depends on constants alone", FoldConstants},
    {"tuple-simplifier", "takes apart tuples that are only taken apart again", SimplifyTuples},
    {"sort-simplifier",
     "does away with sorts of single elements, and with operands that are moved in vain",
     SimplifySorts},
    {"reduce-simplifier", "does away with results of reductions that nobody reads",
     SimplifyReductions},
    {"algebraic-simplifier", "applies the identities of the algebra of ops", SimplifyAlgebra},
    {"conditional-simplifier", "does away with conditionals whose branch is known, and their waste",
     SimplifyConditionals},
    {"while-simplifier", "does away with loops that run once at most, and with idle state",
     SimplifyWhiles},
    {"while-counters", "knows what a loop's counters come to, and makes those that go together one",
     SimplifyCounters},
    {"while-invariant-code-motion", "makes before a loop what is the same in every iteration",
     MoveInvariants},
    {"transpose-folding", "makes dots read their operands transposed", FoldTransposes},
    {"split-concatenates", "makes concatenations of very many operands out of others",
     SplitConcatenates},
    {"row-fusion", "makes reductions and what uses their results on the same rows one kernel",
     FuseRows},
    {"fusion", "makes producers, consumers and siblings one kernel each", Fuse},
    {"chain-fusion", "makes products and what follows over the rows that they make one kernel",
     FuseChains},
    {"horizontal-fusion", "makes small kernels that do not depend on each other one kernel",
     BundleKernels},
    {"flatten-call-graph", "gives every loop and branch computations of its own",
     FlattenCallGraphPass},
    {"schedule", "orders instructions so that little memory is live at once", SchedulePass},
};

// For a whole graph: what there is besides row-fusion and fusion is the machine's.
Pipeline WholeGraph(std::vector<std::string_view> last_fusions) {
  return {
      // Known values are evaluated before expansion.
      {{"outline-grids", "inline-calls", "inline-fusions", "expand-bounded", "split-constants",
        "prepare-calls", "inline-maps", "expand-tokens", "tuple-simplifier", "constant-folding",
        "expand-ops", "expand-narrow", "expand-complex"}},
      {{"tuple-simplifier", "sort-simplifier", "reduce-simplifier", "algebraic-simplifier",
        "constant-folding", "conditional-simplifier", "while-simplifier", "while-counters",
        "while-invariant-code-motion", "cse", "dce"},
       true},
      {{"transpose-folding", "normalise-preds", "split-concatenates", "dce"}},
      {{"row-fusion", "fusion", "cse", "dce"}},
      {std::move(last_fusions)},
      {{"flatten-call-graph", "schedule"}},
  };
}

}  // namespace

std::span<const Pass> AllPasses() { return kPasses; }

const Pass* FindPass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

const Pipeline& CpuPipeline() {
  static const auto& pipeline = *new Pipeline(WholeGraph({"chain-fusion", "horizontal-fusion"}));
  return pipeline;
}

const Pipeline& GpuPipeline() {
  static const auto& pipeline = *new Pipeline(WholeGraph({"horizontal-fusion"}));
  return pipeline;
}

const Pipeline& OpByOpPipeline() {
  static const auto& pipeline = *new Pipeline{
      {{"outline-grids", "inline-calls", "inline-fusions", "expand-bounded", "split-constants",
        "prepare-calls", "expand-tokens", "outline-ops", "expand-ops", "expand-narrow",
        "expand-complex", "tuple-simplifier", "dce", "fuse-outlined", "tuple-simplifier",
        "normalise-preds", "split-concatenates", "dce"}},
      {{"flatten-call-graph", "schedule"}},
  };
  return pipeline;
}

std::span<const NamedPipeline> AllPipelines() {
  static constexpr NamedPipeline kPipelines[] = {
      {"cpu", "compiling a whole graph for a CPU", CpuPipeline},
      {"gpu", "compiling a whole graph for a GPU", GpuPipeline},
      {"op-by-op", "every op a kernel of its own", OpByOpPipeline},
  };
  return kPipelines;
}

Result<bool> FlattenCallGraphPass(ir::Module& module, const PassContext& context) {
  KILN_RETURN_IF_ERROR(CheckCopies(module, context));
  return FlattenCallGraph(module);
}

Result<bool> SchedulePass(ir::Module& module, const PassContext& context) {
  return Schedule(module);
}

}  // namespace kiln::passes
