// The matrix product in a kernel, in the form that schedules of matrix products want.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/gemm.h"
#include "target/target.h"

namespace kiln::kernel {

// C[m, n] = sum over k of A[m, k] * B[k, n]. Vectors run along n, so the operands' roles are chosen
// such that the kernel's outputs are contiguous along n where they can be.
struct Contraction {
  int a_param = -1, b_param = -1;
  GemmProblem problem;
  // The iteration variables that m, n and the batch dimensions are; -1 for an extent of 1.
  int m_variable = -1, n_variable = -1;
  std::vector<int> batch_variables;
  // Where the product is stored as it is, and nothing else is computed; -1 with an epilogue (the
  // kernel's second stage).
  int c_param = -1;
};

// Stage 0 must be one sum of a product of two plain loads, either of which may be converted to the
// product's type, over one variable, with constant strides; outer variables that neither m nor n
// can be are batch dimensions. Nothing where the kernel is something else, or no schedule knows its
// type.
std::optional<Contraction> AsContraction(const Kernel& kernel, const target::Cpu& cpu);

}  // namespace kiln::kernel
