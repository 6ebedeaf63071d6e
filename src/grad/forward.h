// Forward mode: tangents of values, by walking from the sources to what depends on them.
#pragma once

#include <span>
#include <vector>

#include "grad/builder.h"
#include "grad/options.h"
#include "ir/instruction_map.h"

namespace kiln::grad {

class Forward {
 public:
  Forward(Builder& builder, const Options& options)
      : builder_(builder), options_(options), tangents_(*builder.computation()) {}
  // Of few instructions of a large computation.
  struct Few {};
  Forward(Builder& builder, const Options& options, Few) : builder_(builder), options_(options) {}

  Builder& builder() const { return builder_; }
  const Options& options() const { return options_; }

  // The tangent of an op that is linear in its operands, or in each of them.
  Derivative OfLinear(ir::Instruction* op);

  // Of a source, or of an instruction that has been walked over.
  void SetTangent(const ir::Instruction* x, Derivative tangent);
  Derivative TangentOf(const ir::Instruction* x) const;
  bool IsActive(const ir::Instruction* x) const { return tangents_.contains(x); }
  // The tangent of an operand; zeros where it has none.
  ir::Instruction* WholeTangent(ir::Instruction* x) { return builder_.Whole(TangentOf(x), x); }

  // The tangent of an op by way of other ops that compute the same.
  using Expand = ir::Instruction* (*)(Builder& b, ir::Instruction* op);
  Derivative TangentOfExpanded(ir::Instruction* op, Expand expand);

  // Builds the tangents of these instructions, operands before users, and adds them to those that
  // they have.
  void Run(std::span<ir::Instruction* const> instructions);

 private:
  Derivative Of(ir::Instruction* op);
  Derivative OfTuples(ir::Instruction* op);
  Derivative OfPartials(ir::Instruction* op);

  Builder& builder_;
  const Options& options_;
  ir::InstructionMap<Derivative> tangents_;
};

}  // namespace kiln::grad
