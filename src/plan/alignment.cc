#include "plan/alignment.h"

#include <algorithm>

namespace kiln::plan {

// Without AVX an operand of an instruction that lies anywhere takes an instruction of its own.
int64_t InputAlignment(ElementType type, const target::Cpu& cpu) {
  return cpu.Has("avx") ? ByteWidth(type) : kAlignment;
}

namespace {

class Walk {
 public:
  Walk(const Program& program, const target::Cpu& cpu) : program_(program), cpu_(cpu) {
    size_t parameters = 0;
    for (const Allocation& a : program.allocations) {
      parameters += a.kind == Allocation::Kind::kParameter;
    }
    alignments_.assign(parameters, 1);
  }

  std::vector<int64_t> Of(const Steps& steps) {
    Visit(steps);
    return std::move(alignments_);
  }

 private:
  void Need(const Slice& slice, int64_t alignment) {
    const Allocation& allocation = program_.allocations[static_cast<size_t>(slice.allocation)];
    if (allocation.kind != Allocation::Kind::kParameter) return;
    int64_t& most = alignments_[static_cast<size_t>(allocation.number)];
    most = std::max(most, alignment);
  }

  void Visit(const Steps& steps) {
    for (const Step& step : steps) {
      std::visit([this](const auto& s) { Visit(s); }, step.what);
    }
  }
  void Visit(const Launch& launch) {
    const std::vector<kernel::Param>& params =
        program_.kernels[static_cast<size_t>(launch.kernel)].kernel.params;
    for (size_t i = 0; i < launch.args.size(); ++i) {
      const bool is_input = i < params.size() && params[i].role == kernel::Param::Role::kInput;
      Need(launch.args[i], is_input ? InputAlignment(params[i].type, cpu_) : kAlignment);
    }
  }
  void Visit(const Copy& copy) { Need(copy.to, kAlignment); }
  // What functions are promised.
  void Visit(const Call& call) {
    for (const Slice& slice : call.args) Need(slice, kAlignment);
  }
  void Visit(const While& loop) {
    Visit(loop.condition);
    Visit(loop.body);
  }
  void Visit(const Conditional& conditional) {
    Need(conditional.index, conditional.index.bytes);
    for (const Steps& branch : conditional.branches) Visit(branch);
  }

  const Program& program_;
  const target::Cpu& cpu_;
  std::vector<int64_t> alignments_;
};

}  // namespace

std::vector<int64_t> ParameterAlignments(const Program& program, const target::Cpu& cpu) {
  return Walk(program, cpu).Of(program.steps);
}

}  // namespace kiln::plan
