// Gemms of the CPU's code generator, checked by the definition of a product.
#pragma once

#include <functional>
#include <vector>

#include "kernel/schedule/cpu/gemm.h"
#include "target/target.h"

namespace kiln::testing {

enum class GemmEpilogueCase { kNone, kBiasRelu, kInPlaceResidual, kShortResidual };

struct GemmCase {
  target::Cpu cpu;
  kernel::GemmProblem problem;
  GemmEpilogueCase epilogue = GemmEpilogueCase::kNone;
  // All elements of integers are the largest of their type, or those farthest below 0.
  bool extreme = false;
  // Changes the schedule that was chosen.
  std::function<void(kernel::GemmSchedule&)> change;
  // Unless null, the module has another gemm already, this one with a change, and with an epilogue:
  // the two are expected to share their code.
  std::function<void(kernel::GemmProblem&, kernel::GemmSchedule&)> other;
  // Both are of any size, and the other one has an epilogue only if this one has.
  bool of_any_size = false;
};

// Expects that the gemm's results are right, the same bits for any pieces of its items, and that
// nothing beside its operands is touched.
void CheckGemm(const GemmCase& c);

// This machine with its vectors and with shorter ones.
std::vector<target::Cpu> GemmCpus();

}  // namespace kiln::testing
