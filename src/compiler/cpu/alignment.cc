#include "compiler/cpu/alignment.h"

#include <algorithm>

#include "kernel/schedule/cpu/alignment.h"
#include "program/steps.h"

namespace kiln::compiler {
namespace {

using program::Allocation;
using program::kAlignment;

static_assert(kAlignment == kernel::kArrayAlignment);

class Alignments {
 public:
  Alignments(const codegen::LoweredProgram& lowered, const target::Cpu& cpu)
      : lowered_(lowered), cpu_(cpu) {
    const auto parameters = std::ranges::count(lowered.program.allocations,
                                               Allocation::Kind::kParameter, &Allocation::kind);
    alignments_.assign(static_cast<size_t>(parameters), 1);
  }

  std::vector<int64_t> Run() {
    for (const program::Steps* steps : {&lowered_.program.binding, &lowered_.program.steps}) {
      program::ForEachStep(*steps, [this](const program::Step& step, bool) {
        std::visit([this](const auto& s) { Visit(s); }, step.what);
      });
    }
    return std::move(alignments_);
  }

 private:
  void Need(const program::Slice& slice, int64_t alignment) {
    const auto& allocation = lowered_.program.allocations[slice.allocation];
    if (allocation.kind != Allocation::Kind::kParameter) return;
    int64_t& most = alignments_[allocation.number];
    most = std::max(most, alignment);
  }

  void Visit(const program::Launch& launch) {
    const std::vector<kernel::Param>& params = lowered_.KernelOf(launch).kernel.params;
    for (size_t i = 0; i < launch.args.size(); ++i) {
      const bool is_input = i < params.size() && params[i].role == kernel::Param::Role::kInput;
      Need(launch.args[i], is_input ? kernel::InputAlignment(params[i].type, cpu_) : kAlignment);
    }
  }
  void Visit(const program::Copy& copy) { Need(copy.to, kAlignment); }
  // The alignment guaranteed to functions.
  void Visit(const program::HostCall& call) {
    for (const program::Slice& slice : call.args) Need(slice, kAlignment);
  }
  void Visit(const program::While&) {}
  void Visit(const program::Conditional& conditional) {
    Need(conditional.index, conditional.index.bytes);
  }

  const codegen::LoweredProgram& lowered_;
  const target::Cpu& cpu_;
  std::vector<int64_t> alignments_;
};

}  // namespace

std::vector<int64_t> ArgumentAlignments(const codegen::LoweredProgram& lowered,
                                        const target::Cpu& cpu) {
  return Alignments(lowered, cpu).Run();
}

}  // namespace kiln::compiler
