#include "passes/pass.h"

#include <chrono>

#include "base/strings.h"
#include "ir/verifier.h"

namespace kiln::passes {
namespace {

// Rewrites strictly reduce an order, so that this is met only by a pass that breaks its word.
constexpr int kMaxRounds = 64;

Result<bool> RunOne(std::string_view pipeline, std::string_view name, int64_t index,
                    ir::Module& module, const PassContext& context) {
  const Pass* pass = FindPass(name);
  if (!pass) return InvalidArgument("there is no pass '", name, "'");
  if (context.disabled.contains(std::string(name))) return false;
  auto start = std::chrono::steady_clock::now();
  auto changed = pass->run(module, context);
  if (!changed.ok()) return changed.status().WithContext(name);
  int64_t microseconds = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::steady_clock::now() - start)
                             .count();
  if (context.after_pass) {
    context.after_pass({pipeline, name, index, microseconds, *changed, module});
  }
  if (context.verify) {
    Status status = ir::Verify(module);
    if (!status.ok()) return Internal("after pass ", name, ": ", status.message());
  }
  return *changed;
}

}  // namespace

Status RunPipeline(std::string_view name, const Pipeline& pipeline, ir::Module& module,
                   const PassContext& context) {
  int64_t index = 0;
  for (const PipelineStep& step : pipeline) {
    for (int round = 0;; ++round) {
      bool changed = false;
      for (std::string_view pass : step.passes) {
        KILN_ASSIGN_OR_RETURN(bool one, RunOne(name, pass, index++, module, context));
        changed |= one;
      }
      if (!changed || !step.to_fixed_point) break;
      if (round >= kMaxRounds) {
        return Internal("pipeline ", name, " does not settle: ", Join(step.passes, ", "));
      }
    }
  }
  return OkStatus();
}

}  // namespace kiln::passes
