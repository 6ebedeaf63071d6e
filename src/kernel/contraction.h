// The gemm in a kernel, in the form that schedules of gemms want.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/gemm.h"
#include "target/target.h"

namespace kiln::kernel {

// Of a prologue, in cheap ops: an expensive one, and to find and load a number that is another one
// for each row or column.
inline constexpr int64_t kHeavyOps = 16, kSpreadOps = 3;

// How an element of an operand comes from one that is loaded: stage 0's node `node`, made of the
// load `load`, of constants, and of numbers that several elements have in common, `others` being
// the loads of these. They are found by the place of the element in its array: `axes` are the
// variables that it moves along, from the longest stride to the shortest.
//
// Of a load that has two numbers of four bits in each byte, the element is made of one of them, the
// node `half`.
struct Prologue {
  NodeId node, load;
  NodeId half;
  ElementType half_type = ElementType::kInvalid;
  // Of the load in its array, in elements: in halves of bytes where these are.
  Index place;
  std::vector<NodeId> others;
  struct Axis {
    VariableId variable;
    int64_t stride;
  };
  std::vector<Axis> axes;
  int64_t ops = 0;  // on each element, in cheap ones
};

// C[m, n] = sum over k of A[m, k] * B[k, n]. Vectors run along n, so the operands' roles are chosen
// such that the kernel's outputs are contiguous along n where they can be.
struct Contraction {
  ParamId a_param, b_param;
  NodeId a_load;  // of stage 0
  GemmProblem problem;
  // The iteration variables that m, n and the batch dimensions are; not valid for an extent of 1.
  VariableId m_variable, n_variable;
  std::vector<VariableId> batch_variables;
  // Where the gemm is stored as it is, and nothing else is computed; none with an epilogue (the
  // kernel's second stage).
  ParamId c_param;
  // Where operands are more than loaded and converted.
  std::optional<Prologue> a_prologue, b_prologue;
};

// Stage 0 must be one sum of a product of two factors. A factor is a plain load
// with constant strides from anywhere on, converted to the product's type or the operand of a
// prologue; outer variables that neither m nor n can be are batch dimensions. Nothing where the
// kernel is something else, or no schedule knows its type.
std::optional<Contraction> AsContraction(const Kernel& kernel, const target::Cpu& cpu);

// The same, with the treatment of operands allowed to a schedule. `is_constant` tells whether a
// parameter of the kernel is the same in every run.
struct Gemm {
  Contraction contraction;  // with problem.may_pack_a and b_constant
  // Panels take an operand's place among the arguments, so nothing else may want to read it.
  bool may_pack_b = false;
};
std::optional<Gemm> AsGemm(const Kernel& kernel, const target::Cpu& cpu,
                           const std::function<bool(ParamId)>& is_constant);

}  // namespace kiln::kernel
