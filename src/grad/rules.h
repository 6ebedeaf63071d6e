// The rules of differentiation, by op. The op table names the rules of an op (the column
// "gradient"); rules that it names and nobody wrote do not link.
//
// All rules build instructions at the end of the computation of the op, which they neither change
// nor look behind: operands and results are read as they are.
#pragma once

#include "grad/builder.h"
#include "grad/forward.h"
#include "grad/reverse.h"
#include "ops/op.h"

namespace kiln::grad {

// kPartials, of elementwise ops: t times the partial derivative of the result by operand k, at the
// operands of the op. Of complex numbers the derivative is the complex one, not its conjugate.
// Serves both modes. Null: the derivative is zero.
template <Opcode>
ir::Instruction* Partial(Builder& b, ir::Instruction* op, int64_t k, ir::Instruction* t);

// kLinear, of ops that are linear in their active operands: adds the cotangents of these, given
// the result's, which is not zero. False: the op is not linear in what is active, and has another
// rule.
template <Opcode>
bool Transpose(Reverse& reverse, ir::Instruction* op, const Derivative& cotangent);

// kTangents: the tangent of the result, which is linear in the tangents of the operands. In reverse
// mode these instructions are transposed.
template <Opcode>
Derivative Tangent(Forward& forward, ir::Instruction* op);

// kExpanded: the op's value by other ops, whose derivatives are taken.
template <Opcode>
ir::Instruction* Expansion(Builder& b, ir::Instruction* op);

// kFlow, of ops that call computations: both modes have a function of their own.
template <Opcode>
Derivative FlowForward(Forward& forward, ir::Instruction* op);
template <Opcode>
void FlowReverse(Reverse& reverse, ir::Instruction* op, const Derivative& cotangent);

#define KILN_OP(Name, ...)                                                        \
  template <>                                                                     \
  ir::Instruction* Partial<Opcode::k##Name>(Builder&, ir::Instruction*, int64_t,  \
                                            ir::Instruction*);                    \
  template <>                                                                     \
  bool Transpose<Opcode::k##Name>(Reverse&, ir::Instruction*, const Derivative&); \
  template <>                                                                     \
  Derivative Tangent<Opcode::k##Name>(Forward&, ir::Instruction*);                \
  template <>                                                                     \
  ir::Instruction* Expansion<Opcode::k##Name>(Builder&, ir::Instruction*);        \
  template <>                                                                     \
  Derivative FlowForward<Opcode::k##Name>(Forward&, ir::Instruction*);            \
  template <>                                                                     \
  void FlowReverse<Opcode::k##Name>(Reverse&, ir::Instruction*, const Derivative&);
#include "ops/ops.def"

// The rules of an op; null where the table does not name them.
struct Rules {
  decltype(&Partial<Opcode::kAdd>) partial = nullptr;
  decltype(&Transpose<Opcode::kAdd>) transpose = nullptr;
  decltype(&Tangent<Opcode::kAdd>) tangent = nullptr;
  decltype(&Expansion<Opcode::kAdd>) expansion = nullptr;
  decltype(&FlowForward<Opcode::kAdd>) flow_forward = nullptr;
  decltype(&FlowReverse<Opcode::kAdd>) flow_reverse = nullptr;
};
const Rules& RulesOf(Opcode opcode);

// UNIMPLEMENTED, naming the op and why it has no derivative.
Status NoDerivative(const ir::Instruction& op);

}  // namespace kiln::grad
