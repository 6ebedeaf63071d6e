// The builder of expansions: it makes instructions before the one they replace, and knows the
// target if it matters.
#pragma once

#include "ir/builder.h"

namespace kiln::kernel {
class Scheduler;  // kernel/schedule/scheduler.h
}

namespace kiln::passes::expand {

class Builder : public ir::Builder {
 public:
  // Before `at` (null: at the end), with the op_name of `from`, if there is one.
  Builder(ir::Computation* computation, ir::Instruction* at, const ir::Instruction* from)
      : ir::Builder(computation, at, from ? std::string_view(from->op_name()) : std::string_view(),
                    Operands::kTrusted) {}
  explicit Builder(ir::Instruction* at) : ir::Builder(at) {}
  // In code for a target, where that matters.
  Builder(ir::Instruction* at, const kernel::Scheduler& scheduler)
      : ir::Builder(at), scheduler_(&scheduler) {}

  // The value in the layouts of `shape`, equal to its own shape otherwise: copies where layouts
  // differ.
  ir::Instruction* InLayout(ir::Instruction* value, const Shape& shape);

  // Null where it does not matter.
  const kernel::Scheduler* scheduler() const { return scheduler_; }

 private:
  const kernel::Scheduler* scheduler_ = nullptr;
};

}  // namespace kiln::passes::expand
