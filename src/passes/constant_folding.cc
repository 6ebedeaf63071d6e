#include <algorithm>

#include "interp/interpreter.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Instruction;

// What would only make large constants out of small descriptions stays.
bool IsWorthFolding(const Instruction& i, const PassContext& context) {
  if (i.operand_count() == 0 || !i.shape().is_array() || !i.shape().is_static()) return false;
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
      return false;
    default:
      break;
  }
  int64_t operand_bytes = 0;
  for (const Instruction* operand : i.operands()) {
    if (!operand->IsConstant() || !operand->shape().is_array()) return false;
    operand_bytes += operand->shape().byte_size();
  }
  return i.shape().byte_size() <= std::max(context.fold_limit_bytes, operand_bytes) &&
         operand_bytes <= 16 * context.fold_limit_bytes;
}

}  // namespace

Result<bool> FoldConstants(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = (it++)->get();
      if (!IsWorthFolding(*i, context)) continue;
      std::vector<const Literal*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(&operand->literal());
      auto value = interp::EvaluateInstruction(*i, operands);
      if (!value.ok()) continue;  // Whoever compiles it says why.
      c->Replace(i, {.opcode = Opcode::kConstant,
                     .shape = i->shape(),
                     .literal = std::make_shared<const Literal>(*std::move(value)),
                     .op_name = i->op_name()});
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln::passes
