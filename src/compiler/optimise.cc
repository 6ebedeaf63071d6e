#include "compiler/optimise.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/trace.h"
#include "passes/pipelines.h"

namespace kiln::compiler {
namespace {

constexpr std::string_view kRematerialisation = "rematerialisation";
// In errors.
constexpr size_t kShownValues = 8;

// A way to compile the module.
struct Attempt {
  std::unique_ptr<ir::Module> module;
  passes::PassContext context;
  Lowered lowered;

  int64_t bytes() const { return lowered.program.arena_bytes; }
};

class Optimiser {
 public:
  Optimiser(const Backend& backend, const passes::Pipeline& pipeline, const Options& options)
      : backend_(backend), options_(options), first_(pipeline) {
    if (options.memory_limit_bytes == 0) return;
    const auto again = std::ranges::find_if(first_, [](const passes::PipelineStep& step) {
      return step.passes.front() == kRematerialisation;
    });
    again_.assign(again, first_.end());
    first_.erase(again, first_.end());
  }

  Status RunFirst(ir::Module& module, const passes::PassContext& context) const {
    return passes::RunPipeline(kPipelineName, first_, module, context);
  }

  Result<Lowered> LowerIt(const ir::Module& module, const passes::PassContext& context) const {
    TraceSpan lowering(options_.trace, "lower", "stage");
    return Lower(module, backend_, *context.fusions, options_.interrupt, *context.frozen_parts);
  }

  // The program within the limit; `module` is as RunFirst has left it.
  Result<Attempt> Fit(const ir::Module& module, const passes::PassContext& context) const {
    KILN_ASSIGN_OR_RETURN(Attempt least, Try(module, context, 0));
    if (Fits(least)) return least;
    std::optional<Attempt> best;
    // More effort takes more time: the least that suffices, by bisection.
    int fails = 0, suffices = passes::kMostMemoryEffort + 1;
    if (again_.empty() || context.disabled.contains(std::string(kRematerialisation)))
      fails = suffices;
    while (suffices - fails > 1) {
      const int effort = (fails + suffices) / 2;
      KILN_ASSIGN_OR_RETURN(Attempt next, Try(module, context, effort));
      if (Fits(next)) {
        suffices = effort;
        best = std::move(next);
      } else {
        fails = effort;
        if (next.bytes() < least.bytes()) least = std::move(next);
      }
    }
    if (best) return *std::move(best);
    return ResourceExhausted("the temporaries of '", module.name(), "' take ", least.bytes(),
                             " bytes or more, and their limit is ", options_.memory_limit_bytes,
                             ": ", least.lowered.assignment.LargestAtPeak(kShownValues));
  }

 private:
  bool Fits(const Attempt& attempt) const { return attempt.bytes() <= options_.memory_limit_bytes; }

  Result<Attempt> Try(const ir::Module& module, const passes::PassContext& context,
                      int effort) const {
    Attempt attempt{module.Clone(), context, {}};
    attempt.context.memory_effort = effort;
    attempt.context.fusions = std::make_shared<kernel::FusionAnalysis>();
    KILN_RETURN_IF_ERROR(passes::RunPipeline(Cat("memory_effort_", effort), again_, *attempt.module,
                                             attempt.context));
    KILN_ASSIGN_OR_RETURN(attempt.lowered, LowerIt(*attempt.module, attempt.context));
    return attempt;
  }

  const Backend& backend_;
  const Options& options_;
  passes::Pipeline first_, again_;
};

}  // namespace

Result<Lowered> OptimiseAndLower(
    std::unique_ptr<ir::Module>& module, const Backend& backend, const passes::Pipeline& pipeline,
    passes::PassContext& context, const Options& options,
    const std::function<void(std::string_view part, const ir::Module& module)>& optimised) {
  const Optimiser optimiser(backend, pipeline, options);
  KILN_RETURN_IF_ERROR(optimiser.RunFirst(*module, context));
  const bool has_limit = options.memory_limit_bytes > 0;
  if (!has_limit) optimised("", *module);
  passes::PassContext quiet = context;
  quiet.at_stage = nullptr;
  const std::vector<passes::FrozenPart>& parts = *context.frozen_parts;
  for (size_t p = 0; p < parts.size(); ++p) {
    KILN_RETURN_IF_ERROR(passes::RunPipeline("frozen", pipeline, *parts[p].module, quiet));
    optimised(Cat(".frozen", p), *parts[p].module);
  }
  if (!has_limit) return optimiser.LowerIt(*module, context);
  KILN_ASSIGN_OR_RETURN(Attempt fitting, optimiser.Fit(*module, context));
  module = std::move(fitting.module);
  context = std::move(fitting.context);
  optimised("", *module);
  return std::move(fitting.lowered);
}

}  // namespace kiln::compiler
