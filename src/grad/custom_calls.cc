// Derivatives of custom calls: by rules of the user's, and of the library's own functions.
#include <string_view>

#include "grad/custom.h"
#include "grad/linear.h"
#include "grad/rules.h"
#include "ir/analysis/effects.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// The user's rule; null, perhaps with the builder's failure, where there is none.
ir::Computation* BackwardOf(Builder& b, const Options& options, const Instruction& call) {
  if (!options.backward_of) return nullptr;
  Result<ir::Computation*> found = options.backward_of(call);
  if (found.ok()) return *found;
  b.Fail(found.status());
  return nullptr;
}

Status NoRule(const Instruction& call) {
  return Unimplemented("'", call.name(), "': custom-call of the target '",
                       call.attributes().Text(Attr::kCustomCallTarget), "' has no derivative");
}

}  // namespace

template <>
Derivative FlowForward<Opcode::kCustomCall>(Forward& forward, Instruction* op) {
  if (ir::IsMarker(*op)) return forward.TangentOf(op->operand(0));
  Builder& b = forward.builder();
  if (ir::Computation* rule = BackwardOf(b, forward.options(), *op)) {
    return RuleForward(forward, op, *rule);
  }
  if (const LinearFunction* function = FindLinearFunction(*op)) {
    return function->tangent(forward, op);
  }
  b.Fail(NoRule(*op));
  return {};
}

template <>
void FlowReverse<Opcode::kCustomCall>(Reverse& reverse, Instruction* op,
                                      const Derivative& cotangent) {
  if (ir::IsMarker(*op)) return reverse.Add(op->operand(0), cotangent);
  Builder& b = reverse.builder();
  if (ir::Computation* rule = BackwardOf(b, reverse.options(), *op)) {
    return RuleReverse(reverse, op, *rule, cotangent);
  }
  const LinearFunction* function = FindLinearFunction(*op);
  Instruction* source = function ? function->source(*op) : nullptr;
  if (!source) {
    b.Fail(NoRule(*op));
    return;
  }
  reverse.HandOnTangents(op, {{source}}, function->tangent, cotangent);
}

}  // namespace kiln::grad
