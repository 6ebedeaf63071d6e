// The builder that expansions are written with: it makes instructions before one whose value they
// are, and knows the target where that matters.
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

  // The value in the layouts of a shape that is like its own but for those: copies, where they are
  // others.
  ir::Instruction* InLayout(ir::Instruction* value, const Shape& shape);

  // Null where it does not matter.
  const kernel::Scheduler* scheduler() const { return scheduler_; }

 private:
  const kernel::Scheduler* scheduler_ = nullptr;
};

}  // namespace kiln::passes::expand
