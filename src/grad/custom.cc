#include "grad/custom.h"

#include <utility>
#include <vector>

#include "grad/leaves.h"
#include "grad/rules.h"
#include "ir/analysis/effects.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;
using Arrays = std::vector<Instruction*>;

namespace {

void AppendLeaves(const Shape& shape, bool all, std::vector<Shape>& leaves) {
  for (Shape& leaf : LeafShapes(shape)) {
    if (all || IsDifferentiable(leaf)) leaves.push_back(std::move(leaf));
  }
}

Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : Shape::Tuple(std::move(shapes));
}

// The call of the rule; cotangents[j] belongs to leaf j of the result, and may be null.
Arrays CallRule(Builder& b, Instruction* op, Computation& rule, const Arrays& cotangents) {
  const std::vector<Leaf> leaves = LeavesOf(op->operands()), results = LeavesOf(op);
  Arrays arguments;
  for (const Leaf& leaf : leaves) arguments.push_back(ArrayOf(b, leaf));
  for (const Leaf& leaf : results) arguments.push_back(ArrayOf(b, leaf));
  for (size_t j = 0; j < results.size(); ++j) {
    const Shape& shape = results[j].shape();
    if (!IsDifferentiable(shape)) continue;
    arguments.push_back(cotangents[j] ? cotangents[j] : b.Zeros(shape));
  }
  Instruction* call = b.Add(Opcode::kCall, std::move(arguments), {}, std::nullopt, {&rule});
  const std::vector<Leaf> given = LeavesOf(call);
  Arrays gradients;
  size_t next = 0;
  for (const Leaf& leaf : leaves) {
    const bool has = IsDifferentiable(leaf.shape()) && next < given.size();
    gradients.push_back(has ? ArrayOf(b, given[next++]) : nullptr);
  }
  return gradients;
}

}  // namespace

Status CheckRule(std::span<const Shape> parameters, const Shape& result, const ProgramShape& rule) {
  std::vector<Shape> taken, given;
  for (const Shape& shape : parameters) AppendLeaves(shape, true, taken);
  AppendLeaves(result, true, taken);
  AppendLeaves(result, false, taken);
  for (const Shape& shape : parameters) AppendLeaves(shape, false, given);
  const Shape expected = Shape::Tuple(std::move(taken)), found = Shape::Tuple(rule.parameters);
  if (!found.SameTypeAndDimensions(expected)) {
    return InvalidArgument(
        "the backward graph has parameters of the shapes ", found, "; expected ", expected,
        ": the function's parameters, its results, and cotangents of the results "
        "of float and complex types");
  }
  const Shape gradients = OneOrTuple(std::move(given));
  if (rule.result.SameTypeAndDimensions(gradients)) return OkStatus();
  return InvalidArgument("the backward graph has results of the shape ", rule.result, "; expected ",
                         gradients,
                         ": the cotangents of the parameters of float and complex types");
}

void SetRule(Computation& function, Computation& rule) {
  Instruction* root = function.root();
  function.set_root(function.Create(
      {.opcode = Opcode::kCustomCall,
       .operands = {root},
       .attributes = {{Attr::kCustomCallTarget, QuotedText{std::string(kRuleTarget)}}},
       .called = {&rule},
       .shape = root->shape()}));
}

Computation* RuleOf(const Computation& function) {
  const Instruction& root = *function.root();
  if (!ir::IsMarker(root) || root.called().size() != 1) return nullptr;
  return root.attributes().Text(Attr::kCustomCallTarget) == kRuleTarget ? root.called(0) : nullptr;
}

// The backward computation is c -> J^T c for the Jacobian J, so the tangent J t is the transpose of
// it, applied to t.
Derivative RuleForward(Forward& forward, Instruction* op, Computation& rule) {
  Builder& b = forward.builder();
  const Instruction* last = b.computation()->instructions().back();
  Arrays cotangents, unknowns;
  for (const Shape& shape : LeafShapes(op->shape())) {
    const bool has = IsDifferentiable(shape);
    cotangents.push_back(has ? b.Add(Opcode::kOptBarrier, {b.Zeros(shape)}) : nullptr);
    if (has) unknowns.push_back(cotangents.back());
  }
  const Arrays gradients = CallRule(b, op, rule, cotangents);
  Reverse transposed(b, forward.options(), unknowns, InstructionsBehind(last));
  size_t next = 0;
  for (const Instruction* x : op->operands()) {
    for (Instruction* t : LeavesOf(forward.TangentOf(x), x->shape())) {
      if (t && gradients[next]) transposed.Add(gradients[next], t);
      ++next;
    }
  }
  transposed.Run();
  for (Instruction*& c : cotangents) {
    if (c) c = transposed.CotangentOf(c).array;
  }
  return DerivativeOf(op->shape(), cotangents);
}

void RuleReverse(Reverse& reverse, Instruction* op, Computation& rule,
                 const Derivative& cotangent) {
  Builder& b = reverse.builder();
  const Arrays gradients = CallRule(b, op, rule, LeavesOf(cotangent, op->shape()));
  const std::vector<Leaf> leaves = LeavesOf(op->operands());
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (gradients[k]) reverse.Add(leaves[k].value, DerivativeOf(leaves[k], gradients[k]));
  }
}

}  // namespace kiln::grad
