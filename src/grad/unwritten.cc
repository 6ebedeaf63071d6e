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
bool Transpose<Opcode::kGather>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kFft>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kSetDimensionSize>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kAllGather>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kAllReduce>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kAllToAll>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kCollectiveBroadcast>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kCollectivePermute>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kReduceScatter>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
bool Transpose<Opcode::kConvolution>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
Derivative Tangent<Opcode::kSort>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
Derivative Tangent<Opcode::kTopK>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
Derivative Tangent<Opcode::kCholesky>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
bool Transpose<Opcode::kScatter>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
Derivative Tangent<Opcode::kScatter>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
bool Transpose<Opcode::kReduce>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
Derivative Tangent<Opcode::kReduce>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
bool Transpose<Opcode::kReduceWindow>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
Derivative Tangent<Opcode::kReduceWindow>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
bool Transpose<Opcode::kTriangularSolve>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
Derivative Tangent<Opcode::kTriangularSolve>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
bool Transpose<Opcode::kSelectAndScatter>(Reverse& reverse, Instruction* op, const Derivative&) {
  FailUnwritten(reverse.builder(), *op);
  return true;
}
template <>
Derivative Tangent<Opcode::kSelectAndScatter>(Forward& forward, Instruction* op) {
  FailUnwritten(forward.builder(), *op);
  return {};
}
template <>
Instruction* Expansion<Opcode::kBatchNormGrad>(Builder& b, Instruction* op) {
  FailUnwritten(b, *op);
  return nullptr;
}
template <>
Instruction* Expansion<Opcode::kBatchNormInference>(Builder& b, Instruction* op) {
  FailUnwritten(b, *op);
  return nullptr;
}
template <>
Instruction* Expansion<Opcode::kBatchNormTraining>(Builder& b, Instruction* op) {
  FailUnwritten(b, *op);
  return nullptr;
}
template <>
Instruction* Expansion<Opcode::kMap>(Builder& b, Instruction* op) {
  FailUnwritten(b, *op);
  return nullptr;
}
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
