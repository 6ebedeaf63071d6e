// Passes: functions from a module to whether they changed it, by name. Every pass can be dumped,
// timed and switched off; the verifier runs after each where the context asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "ir/ir.h"
#include "kernel/fusion_analysis.h"
#include "target/target.h"

namespace kiln::passes {

struct PassEvent {
  std::string_view pipeline, pass;
  int64_t microseconds = 0;
  bool changed = false;
};

// A module between two passes, for dumps. Before the first pass `after` is "pipeline-start", after
// the last one `before` is "pipeline-end".
struct Stage {
  std::string_view pipeline, after, before;
  int64_t index = 0;  // of this stage in its pipeline
  const ir::Module& module;
};

// The remaining budget of constant folding: the evaluator is slow, and its results are stored.
struct FoldBudget {
  int64_t work = int64_t{1} << 27;   // as interp::Options counts it
  int64_t bytes = int64_t{1} << 28;  // of constants, beyond those that they are made of
};

// A computation of frozen arguments and constants alone, which a pass has moved out of a module:
// its results are further parameters of the module, behind the program's own.
struct FrozenPart {
  std::unique_ptr<ir::Module> module;  // its results are arrays, in a tuple where there are several
  // By parameter of its entry, an array each, the leaf of the program's parameters.
  std::vector<int64_t> arguments;
  // The number of the parameter that is its first result; the others follow.
  int64_t first_parameter = 0;
};

// A new one of what contexts share: compiled once, not in each user.
template <typename T>
std::shared_ptr<T> NewShared();

// The most of PassContext::memory_effort.
inline constexpr int kMostMemoryEffort = 6;

struct PassContext {
  // The target; null for passes without a target (kiln-opt): then TargetOf is the reference's.
  const target::Target* target = nullptr;
  std::set<std::string> disabled;
  bool verify = false;
  // Polled before each pass, and inside long passes.
  Interrupt interrupt;
  // Constant folding makes no literal of more bytes than this, unless its operands have more.
  int64_t fold_limit_bytes = 1 << 20;
  // Shared by the context's copies: of all runs of the pass.
  std::shared_ptr<FoldBudget> fold_budget = NewShared<FoldBudget>();
  // Shared by the context's copies, and by lowering: the kernels that passes decided by.
  std::shared_ptr<kernel::FusionAnalysis> fusions = NewShared<kernel::FusionAnalysis>();
  // Shared by the context's copies: what `split-frozen` has moved out of the module.
  std::shared_ptr<std::vector<FrozenPart>> frozen_parts = NewShared<std::vector<FrozenPart>>();
  // How much time rematerialisation spends to save memory, up to kMostMemoryEffort: each step
  // doubles the work that a byte is worth. With 0 it repeats only what costs no time.
  int memory_effort = 0;
  // Programs that become larger are refused; copies for each caller of a computation count.
  // Pipelines allow at least four times their input's instructions.
  int64_t max_instructions = int64_t{1} << 20;
  std::function<void(const PassEvent&)> after_pass;
  // Called before each pass, so the input of a failing pass is known, and once more at the end.
  std::function<void(const Stage&)> at_stage;
};

const target::Target& TargetOf(const PassContext& context);

struct Pass {
  std::string_view name;
  std::string_view summary;  // one line: what kiln-opt lists
  Result<bool> (*run)(ir::Module&, const PassContext&);
};

// A step of a pipeline: a pass, or passes that run again and again until none changes anything.
struct PipelineStep {
  std::vector<std::string_view> passes;
  bool to_fixed_point = false;
};
using Pipeline = std::vector<PipelineStep>;

// All passes, by name.
std::span<const Pass> AllPasses();
const Pass* FindPass(std::string_view name);

// The name of a stage's dump in XLA's way, behind the module's: "0002.cpu.after_dce.before_cse".
std::string DumpName(const Stage& stage);

// Fails where a pass fails or the context's interrupt asks for the end, and with INTERNAL where one
// leaves the module broken or a fixed point is not reached.
Status RunPipeline(std::string_view name, const Pipeline& pipeline, ir::Module& module,
                   const PassContext& context);

}  // namespace kiln::passes
