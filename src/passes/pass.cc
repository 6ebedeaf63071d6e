#include "passes/pass.h"

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "ir/verifier.h"

namespace kiln::passes {
namespace {

// Rewrites strictly reduce an order. Only a faulty pass needs more rounds than this and one for
// each instruction.
constexpr int64_t kMaxRounds = 64;

// One run of a pipeline.
class Run {
 public:
  Run(std::string_view pipeline, ir::Module& module, const PassContext& context)
      : pipeline_(pipeline), module_(module), context_(context) {}

  Result<bool> One(std::string_view name) {
    const Pass* pass = FindPass(name);
    if (!pass) return InvalidArgument("there is no pass '", name, "'");
    if (context_.disabled.contains(std::string(name))) return false;
    KILN_RETURN_IF_ERROR(context_.interrupt.Check());
    EnterStage(name);
    auto start = std::chrono::steady_clock::now();
    auto changed = pass->run(module_, context_);
    if (!changed.ok()) {
      KILN_RETURN_IF_ERROR(context_.interrupt.Check());
      return changed.status().WithContext(name);
    }
    int64_t microseconds = std::chrono::duration_cast<std::chrono::microseconds>(
                               std::chrono::steady_clock::now() - start)
                               .count();
    last_ = name;
    if (context_.after_pass) context_.after_pass({pipeline_, name, microseconds, *changed});
    if (context_.verify) {
      Status status = ir::Verify(module_);
      if (!status.ok()) return Internal("after pass ", name, ": ", status.message());
    }
    return *changed;
  }

  void End() { EnterStage("pipeline-end"); }

 private:
  void EnterStage(std::string_view before) {
    if (context_.at_stage) context_.at_stage({pipeline_, last_, before, index_++, module_});
  }

  const std::string_view pipeline_;
  ir::Module& module_;
  const PassContext& context_;
  std::string_view last_ = "pipeline-start";
  int64_t index_ = 0;
};

}  // namespace

template <typename T>
std::shared_ptr<T> NewShared() {
  return std::make_shared<T>();
}
template std::shared_ptr<FoldBudget> NewShared();
template std::shared_ptr<kernel::FusionAnalysis> NewShared();
template std::shared_ptr<std::vector<FrozenPart>> NewShared();

std::string DumpName(const Stage& stage) {
  std::string index = Cat(stage.index);
  return Cat(std::string(index.size() < 4 ? 4 - index.size() : 0, '0'), index, ".", stage.pipeline,
             ".after_", stage.after, ".before_", stage.before);
}

const target::Target& TargetOf(const PassContext& context) {
  static const target::Target reference = target::Reference();
  return context.target ? *context.target : reference;
}

Status RunPipeline(std::string_view name, const Pipeline& pipeline, ir::Module& module,
                   const PassContext& given) {
  // Whatever runs as a whole needs no control dependencies. Those between side effects are in the
  // order of the list, which passes keep, and others cannot be observed; kept, they would only bar
  // rewrites and fusions.
  module.DropControlDependencies();
  PassContext context = given;
  context.max_instructions = std::max(context.max_instructions, 4 * module.instruction_count());
  Run run(name, module, context);
  for (const PipelineStep& step : pipeline) {
    const int64_t max_rounds = kMaxRounds + module.instruction_count();
    for (int64_t round = 0;; ++round) {
      bool changed = false;
      for (std::string_view pass : step.passes) {
        KILN_ASSIGN_OR_RETURN(bool one, run.One(pass));
        changed |= one;
      }
      if (!changed || !step.to_fixed_point) break;
      if (round >= max_rounds) {
        return Internal("pipeline ", name, " does not settle: ", Join(step.passes, ", "));
      }
    }
  }
  run.End();
  return OkStatus();
}

}  // namespace kiln::passes
