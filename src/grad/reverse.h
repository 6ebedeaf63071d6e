// Reverse mode: cotangents of values, by walking back from the results to the sources.
#pragma once

#include <span>
#include <vector>

#include "grad/builder.h"
#include "grad/forward.h"
#include "grad/options.h"
#include "ir/instruction_map.h"

namespace kiln::grad {

class Reverse {
 public:
  // Of `instructions`, operands before users, those that depend on a source are active. The sources
  // are active, too, and must be differentiable.
  Reverse(Builder& builder, const Options& options, std::span<ir::Instruction* const> sources,
          std::span<ir::Instruction* const> instructions);

  Builder& builder() const { return builder_; }
  const Options& options() const { return options_; }

  // Whether the value depends on a source, and has a type with derivatives.
  bool IsActive(const ir::Instruction* x) const { return active_.contains(x); }
  // Adds to the cotangent of a value; without effect on one that is not active.
  void Add(const ir::Instruction* x, const Derivative& cotangent);
  void Add(const ir::Instruction* x, ir::Instruction* cotangent) { Add(x, Derivative{cotangent}); }
  // As far as it has been added up.
  Derivative CotangentOf(const ir::Instruction* x) const;

  // Hands an op's cotangent on by way of other ops that compute the same.
  using Expand = ir::Instruction* (*)(Builder& b, ir::Instruction* op);
  void HandOnExpanded(ir::Instruction* op, const Derivative& cotangent, Expand expand);

  // Hands the cotangents of the active instructions on to their operands, last instruction first.
  void Run();
  // The same for one op, by the tangent of its result, an expression that is linear in the tangents
  // of the operands, or of other values before it.
  using TangentOfOp = Derivative(Forward& forward, ir::Instruction* op);
  void HandOnTangents(ir::Instruction* op, std::span<ir::Instruction* const> operands,
                      TangentOfOp* tangent, const Derivative& cotangent);

 private:
  void HandOn(ir::Instruction* op, const Derivative& cotangent);
  // Marks the operands of an op that keeps elements apart and is masked, or masks them.
  void HandOnMask(const ir::Instruction* op);
  void HandOnTuples(ir::Instruction* op, const Derivative& cotangent);
  void HandOnPartials(ir::Instruction* op, ir::Instruction* cotangent);
  // The cotangents of a value's arrays.
  void AddLeaves(const Derivative& value, const Derivative& cotangent);

  Builder& builder_;
  const Options& options_;
  ir::InstructionSet active_;
  std::vector<ir::Instruction*> order_;  // the active ones but for sources
  ir::InstructionSet masked_;            // of these, operands of selects, or below them
  ir::InstructionMap<Derivative> cotangents_;
};

// The instructions behind `x`, in order.
std::vector<ir::Instruction*> InstructionsBehind(const ir::Instruction* x);

}  // namespace kiln::grad
