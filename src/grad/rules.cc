#include "grad/rules.h"

#include <array>

#include "base/strings.h"

namespace kiln::grad {
namespace {

template <Opcode op, uint32_t rules>
constexpr Rules Make() {
  Rules made;
  if constexpr (rules & GradientRules::kPartial) made.partial = &Partial<op>;
  if constexpr (rules & GradientRules::kTranspose) made.transpose = &Transpose<op>;
  if constexpr (rules & GradientRules::kTangent) made.tangent = &Tangent<op>;
  if constexpr (rules & GradientRules::kExpansion) made.expansion = &Expansion<op>;
  if constexpr (rules & GradientRules::kOfFlow) {
    made.flow_forward = &FlowForward<op>;
    made.flow_reverse = &FlowReverse<op>;
  }
  return made;
}

constexpr std::array<Rules, kOpcodeCount> kRules = {
#define KILN_OP(Name, text, operands, attributes, inference, evaluator, types, traits, cost, role, \
                gradient, doc)                                                                     \
  Make<Opcode::k##Name, (gradient).rules>(),
#include "ops/ops.def"
};

}  // namespace

const Rules& RulesOf(Opcode opcode) { return kRules[static_cast<size_t>(opcode)]; }

Status NoDerivative(const ir::Instruction& op) {
  const std::string_view reason = InfoOf(op.opcode()).gradient.reason;
  return Unimplemented("'", op.name(), "': ", OpcodeName(op.opcode()), " has no derivative",
                       reason.empty() ? "" : ": ", reason);
}

}  // namespace kiln::grad
