#include "passes/control/known_values.h"

#include "interp/interpreter.h"

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

namespace {

// Larger values are ignored: trip counts depend on small numbers.
constexpr int64_t kMaxKnownBytes = 64;
// The limit of instructions that compute them.
constexpr int64_t kMostWork = 1 << 14;

bool IsSmallArray(const Shape& shape) {
  return shape.is_array() && shape.is_static() && shape.byte_size() <= kMaxKnownBytes;
}

std::optional<Literal> ConstantOf(const Instruction* x) {
  if (!IsSmallArray(x->shape())) return std::nullopt;
  if (x->IsConstant()) return x->literal();
  if (x->opcode() != Opcode::kBroadcast || !x->operand(0)->IsConstant()) return std::nullopt;
  const Literal* repeated = &x->operand(0)->literal();
  auto value = interp::EvaluateInstruction(*x, {&repeated, 1});
  return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
}

}  // namespace

KnownValues::KnownValues(const Computation& computation, const Known& state) {
  for (Instruction* i : computation.instructions()) {
    if (std::optional<Literal> value = Evaluate(*i, state)) values_[i] = *std::move(value);
  }
}

std::optional<Literal> KnownValues::Of(const Instruction* i) const {
  auto it = values_.find(i);
  return it == values_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Literal> KnownValues::Evaluate(const Instruction& i, const Known& state) const {
  if (!IsSmallArray(i.shape())) return std::nullopt;
  switch (i.opcode()) {
    case Opcode::kParameter:
      return state[0];
    case Opcode::kConstant:
      return i.literal();
    case Opcode::kGetTupleElement:
      if (i.operand(0)->opcode() != Opcode::kParameter) return std::nullopt;
      return state[static_cast<size_t>(i.attributes().Int(Attr::kIndex))];
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
      return std::nullopt;
    default:
      break;
  }
  std::vector<const Literal*> operands;
  for (const Instruction* operand : i.operands()) {
    auto it = values_.find(operand);
    if (it == values_.end()) return std::nullopt;
    operands.push_back(&it->second);
  }
  auto value = interp::EvaluateInstruction(i, operands, {.max_work = kMostWork});
  return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
}

Known StateOf(const Instruction* x) {
  Known state;
  if (x->shape().is_array()) return {ConstantOf(x)};
  for (size_t k = 0; k < x->shape().elements().size(); ++k) {
    state.push_back(x->opcode() == Opcode::kTuple ? ConstantOf(x->operand(static_cast<int64_t>(k)))
                                                  : std::nullopt);
  }
  return state;
}

Known NextState(const Computation& body, const KnownValues& values) {
  const Instruction* root = body.root();
  if (root->shape().is_array()) return {values.Of(root)};
  Known next;
  for (size_t k = 0; k < root->shape().elements().size(); ++k) {
    next.push_back(root->opcode() == Opcode::kTuple
                       ? values.Of(root->operand(static_cast<int64_t>(k)))
                       : std::nullopt);
  }
  return next;
}

}  // namespace kiln::passes
