#include <algorithm>

#include "interp/interpreter.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Instruction;

// The evaluator is no fast machine: a product of more terms than this is left to run time.
constexpr int64_t kMaxTerms = 1 << 22;

int64_t TermsOf(const Instruction& dot) {
  int64_t terms = dot.shape().num_elements();
  for (int64_t d : dot.attributes().IntsOf(Attr::kLhsContractingDims)) {
    terms *= std::max<int64_t>(dot.operand(0)->shape().dim(d), 1);
  }
  return terms;
}

// What would only make large constants out of small descriptions stays, and so does what takes
// long. A literal is in row-major order, and no array of another layout can be one.
bool IsWorthFolding(const Instruction& i, const PassContext& context) {
  if (i.operand_count() == 0 || !i.shape().is_array() || !i.shape().is_static()) return false;
  if (!i.shape().is_row_major()) return false;
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kOptBarrier:
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
         operand_bytes <= 16 * context.fold_limit_bytes &&
         (i.opcode() != Opcode::kDot || TermsOf(i) <= kMaxTerms);
}

}  // namespace

// op(c, d) => constant   where what it is made of is not much smaller
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
