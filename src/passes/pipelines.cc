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
    {"outline-grids",
     "puts the programs of process grids into their calls as text, for the evaluator",
     OutlineGrids},
    {"inline-calls", "inlines calls", InlineCalls},
    {"inline-fusions", "inlines the input's fusions, except those that are kernels", InlineFusions},
    {"expand-bounded", "represents values of bounded dimensions by arrays of the bounds and sizes",
     ExpandBounded},
    {"prepare-calls",
     "removes markers, gives host calls but typed ones row-major arrays, and scatters operands of "
     "their results' layouts",
     PrepareCalls},
    {"inline-maps", "replaces maps by their computations on whole arrays", InlineMaps},
    {"transform-convolutions",
     "multiplies transformed tiles in place of windows of 3 x 3, where filters are fixed",
     TransformConvolutions},
    {"expand-ops", "expands ops without code of their own", ExpandOps},
    {"outline-ops", "outlines ops that expand to several ops", OutlineOps},
    {"fuse-outlined", "fuses the outlined ops, and inlines them again", FuseOutlined},
    {"expand-complex", "legalises complex numbers to pairs of real ones", ExpandComplex},
    {"expand-narrow", "legalises small integers to bytes, and small floats to their bits",
     ExpandNarrow},
    {"expand-tokens", "legalises tokens to values read for their order only", ExpandTokens},
    {"normalise-preds", "normalises preds from outside to 0 and 1 where their bytes are passed on",
     NormalisePreds},
    {"split-constants", "splits constant tuples into tuples of constants", SplitConstants},
    {"dce", "removes unused instructions and computations", EliminateDeadCode},
    {"cse", "merges equal instructions", EliminateCommonSubexpressions},
    {"constant-folding", "evaluates expressions of constants", FoldConstants},
    {"tuple-simplifier", "removes tuples that are only decomposed", SimplifyTuples},
    {"sort-simplifier", "removes sorts of single elements, and unused operands of sorts",
     SimplifySorts},
    {"reduce-simplifier", "removes unused results of reductions", SimplifyReductions},
    {"unroll-reductions", "unrolls reductions over few concatenated columns", UnrollReductions},
    {"algebraic-simplifier", "applies the identities of the algebra of ops", SimplifyAlgebra},
    {"conditional-simplifier",
     "removes conditionals with a known branch, and unused operands and results",
     SimplifyConditionals},
    {"while-simplifier",
     "removes loops with a trip count of at most 1, and unused or invariant state", SimplifyWhiles},
    {"while-induction-variables",
     "computes final values of induction variables, and merges dependent ones",
     SimplifyInductionVariables},
    {"while-invariant-code-motion", "moves invariant instructions out of loops", MoveInvariants},
    {"split-frozen", "moves computations of frozen arguments out of the program", SplitFrozen},
    {"transpose-folding", "folds transposes into dots, and reshapes of scaled groups",
     FoldTransposes},
    {"compare-extrema", "compares extrema in place of operands without other uses", CompareExtrema},
    {"split-concatenates", "splits concatenations of very many operands", SplitConcatenates},
    {"rematerialisation", "repeats cheap ops before late uses, so that their results are not kept",
     Rematerialise},
    {"row-fusion", "fuses reductions with the users of their results on the same rows", FuseRows},
    {"fusion", "fuses producers, consumers and siblings", Fuse},
    {"chain-fusion", "fuses gemms with the kernels over their rows", FuseChains},
    {"horizontal-fusion", "fuses small independent kernels", BundleKernels},
    {"double-buffering", "does two iterations in one where they need no copy then", DoubleBuffers},
    {"flatten-call-graph", "gives every loop and branch its own computations",
     FlattenCallGraphPass},
    {"schedule", "orders instructions for a low peak of live memory", SchedulePass},
};

// For a whole graph: what there is besides row-fusion and fusion is the machine's.
Pipeline WholeGraph(std::vector<std::string_view> last_fusions) {
  return {
      // Known values are evaluated before expansion.
      {{"outline-grids", "inline-calls", "inline-fusions", "expand-bounded", "split-constants",
        "prepare-calls", "inline-maps", "expand-tokens", "tuple-simplifier", "constant-folding",
        "transform-convolutions", "expand-ops", "expand-narrow", "expand-complex"}},
      {{"tuple-simplifier", "sort-simplifier", "reduce-simplifier", "unroll-reductions",
        "algebraic-simplifier", "constant-folding", "conditional-simplifier", "while-simplifier",
        "while-induction-variables", "while-invariant-code-motion", "cse", "dce"},
       true},
      {{"split-frozen", "transpose-folding", "compare-extrema", "normalise-preds",
        "split-concatenates", "dce"}},
      // A program with too many temporaries is compiled again from here on (compiler/optimise.h).
      {{"rematerialisation", "row-fusion", "fusion", "cse", "dce"}},
      {std::move(last_fusions)},
      {{"double-buffering", "flatten-call-graph", "schedule"}},
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
