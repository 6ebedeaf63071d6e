// Rules that are not written yet.
#include "base/strings.h"
#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

void FailUnwritten(Builder& b, const Instruction& op) {
  b.Fail(Unimplemented("'", op.name(), "': the derivative of ", OpcodeName(op.opcode()),
                       " is not implemented"));
}

}  // namespace

template <>
Derivative FlowForward<Opcode::kCall>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
void FlowReverse<Opcode::kCall>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
}
template <>
Derivative FlowForward<Opcode::kConditional>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
void FlowReverse<Opcode::kConditional>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
}
template <>
Derivative FlowForward<Opcode::kFusion>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
void FlowReverse<Opcode::kFusion>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
}
template <>
Derivative FlowForward<Opcode::kWhile>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
void FlowReverse<Opcode::kWhile>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
}
template <>
Derivative FlowForward<Opcode::kCustomCall>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
void FlowReverse<Opcode::kCustomCall>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
}
template <>
Instruction* Partial<Opcode::kBesselI1e>(Builder& b, Instruction* op, int64_t, Instruction*) {
  FailUnwritten(b, *op);
  return nullptr;
}

}  // namespace kiln::grad
