// The kernels of a module as GPU code on the emulated GPU, each on the values that the evaluator
// has at its operands, against what the evaluator has at its result.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/ir.h"
#include "kernel/schedule/gpu/nest.h"
#include "passes/pipelines.h"
#include "tensor/literal.h"

namespace kiln::testing {

class RandomGpuKernels {
 public:
  // Runs the entry one instruction at a time, after the pipeline; "" or what went wrong.
  std::string Check(ir::Module& module, const passes::Pipeline& pipeline, uint64_t seed);

  int kernels = 0, bundles = 0;
  int forms[5] = {};  // by kernel::GpuNestSchedule::Form

 private:
  std::string CheckKernel(const ir::Instruction& i,
                          const std::map<const ir::Instruction*, Literal>& values,
                          const Literal& expected);
  std::string CheckBundle(const ir::Instruction& i,
                          const std::map<const ir::Instruction*, Literal>& values,
                          const Literal& expected);
};

}  // namespace kiln::testing
