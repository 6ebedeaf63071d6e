// Batch normalisation by its formulas.
#include "ir/batch_norm.h"

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

template <>
Instruction* Expansion<Opcode::kBatchNormTraining>(Builder& b, Instruction* op) {
  return ir::BatchNorm(b, op);
}
template <>
Instruction* Expansion<Opcode::kBatchNormInference>(Builder& b, Instruction* op) {
  return ir::BatchNorm(b, op);
}
template <>
Instruction* Expansion<Opcode::kBatchNormGrad>(Builder& b, Instruction* op) {
  return ir::BatchNorm(b, op);
}

}  // namespace kiln::grad
