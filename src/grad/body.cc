#include "grad/body.h"

#include <ranges>
#include <utility>

#include "grad/custom.h"
#include "grad/forward.h"
#include "grad/leaves.h"
#include "grad/reverse.h"
#include "ir/instruction_map.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;

namespace {

// Whether a copy of the caller has the callee's instructions.
bool IsInlined(const Instruction& i) {
  return (i.opcode() == Opcode::kCall || i.opcode() == Opcode::kFusion) &&
         !i.frontend_attributes() && !RuleOf(*i.called(0));
}

// Copies all but the parameters, which are values; the root's copy.
Instruction* CopyInto(Computation& to, const Computation& from,
                      std::span<Instruction* const> parameters) {
  ir::InstructionMap<Instruction*> made(from);
  for (size_t k = 0; k < parameters.size(); ++k) made[from.parameters()[k]] = parameters[k];
  for (const Instruction* i : from.instructions()) {
    if (i->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* x : i->operands()) operands.push_back(made.at(x));
    if (IsInlined(*i)) {
      made[i] = CopyInto(to, *i->called(0), operands);
      continue;
    }
    Instruction* copy = made[i] = CopyOf(*i, std::move(operands), to);
    // The order is the original's, so there is no cycle.
    for (const Instruction* before : i->control_predecessors()) {
      if (made.at(before) != copy) (void)to.AddControlDependency(made.at(before), copy);
    }
  }
  return made.at(from.root());
}

}  // namespace

Instruction* CopyOf(const Instruction& i, std::vector<Instruction*> operands, Computation& to) {
  if (i.opcode() == Opcode::kGetTupleElement && operands[0]->opcode() == Opcode::kTuple) {
    return operands[0]->operand(i.attributes().Int(Attr::kIndex));
  }
  return to.Create(ir::CopySpec(i, std::move(operands)));
}

std::vector<Instruction*> AllOf(const Computation& computation) {
  return {computation.instructions().begin(), computation.instructions().end()};
}

Body::Body(ir::Module& module, std::string_view name, Takes takes)
    : takes_(takes), builder_(module.AddComputation(name)) {
  if (takes == Takes::kTuple) builder_.Parameter(Shape::Tuple({}));
}

Body::Body(const Computation& original, Takes takes)
    : Body(*original.parent(), original.name(), takes) {
  std::vector<Instruction*> parameters;
  for (const Instruction* parameter : original.parameters()) {
    const size_t first = arguments_.size();
    for (const Shape& shape : LeafShapes(parameter->shape())) AddArgument(shape);
    const std::span<Instruction* const> leaves = std::span(arguments_).subspan(first);
    parameters.push_back(parameter->shape().is_tuple()
                             ? ValueOfLeaves(builder_, parameter->shape(), leaves)
                             : leaves[0]);
  }
  Instruction* root = CopyInto(*computation(), original, parameters);
  for (const Leaf& leaf : LeavesOf(root)) results_.push_back(ArrayOf(builder_, leaf));
}

Instruction* Body::AddArgument(const Shape& shape) {
  if (takes_ == Takes::kEach) return arguments_.emplace_back(builder_.Parameter(shape));
  Instruction* tuple = computation()->parameter(0);
  Shape shapes = tuple->shape();
  shapes.mutable_elements().push_back(shape);
  tuple->set_shape(std::move(shapes));
  return arguments_.emplace_back(builder_.Element(tuple, std::ssize(arguments_)));
}

void Body::Bind(size_t argument, const Instruction& constant) {
  Instruction* x = arguments_[argument];
  Instruction* bound = builder_.Constant(constant.shared_literal());
  computation()->Move(bound, x);
  const std::vector<Instruction*> users(x->users().begin(), x->users().end());
  for (Instruction* user : users) {
    if (user->IsRoot() && user->opcode() == Opcode::kTuple) continue;
    for (int64_t k = 0; k < user->operand_count(); ++k) {
      if (user->operand(k) == x) computation()->ReplaceOperand(user, k, bound);
    }
  }
}

void Body::DropArguments(size_t kept) {
  while (arguments_.size() > kept) {
    computation()->Remove(arguments_.back());
    arguments_.pop_back();
  }
  if (takes_ == Takes::kEach) {
    computation()->SetParameters(arguments_);
  } else {
    Instruction* tuple = computation()->parameter(0);
    Shape shapes = tuple->shape();
    shapes.mutable_elements().resize(kept);
    tuple->set_shape(std::move(shapes));
  }
}

std::vector<Instruction*> Body::Flagged(const Flags& arguments) const {
  std::vector<Instruction*> flagged;
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k]) flagged.push_back(arguments_[k]);
  }
  return flagged;
}

Flags Body::ActiveResults(const Options& options, const Flags& arguments) {
  const Reverse activity(builder_, options, Flagged(arguments), AllOf(*computation()));
  Flags active;
  for (const Instruction* result : results_) active.push_back(activity.IsActive(result));
  return active;
}

Flags Body::ReachedArguments(const Options& options, const Flags& arguments, const Flags& results) {
  const std::vector<Instruction*> all = AllOf(*computation());
  const Reverse activity(builder_, options, Flagged(arguments), all);
  ir::InstructionSet reached(*computation());
  for (size_t j = 0; j < results.size(); ++j) {
    if (results[j] && activity.IsActive(results_[j])) reached.Insert(results_[j]);
  }
  for (const Instruction* i : std::ranges::reverse_view(all)) {
    if (!reached.contains(i)) continue;
    for (const Instruction* x : i->operands()) {
      if (activity.IsActive(x)) reached.Insert(x);
    }
  }
  Flags found;
  for (size_t k = 0; k < arguments.size(); ++k) found.push_back(reached.contains(arguments_[k]));
  return found;
}

std::vector<Instruction*> Body::Tangents(const Options& options,
                                         std::span<Instruction* const> of_arguments) {
  Forward forward(builder_, options);
  for (size_t k = 0; k < of_arguments.size(); ++k) {
    if (of_arguments[k]) forward.SetTangent(arguments_[k], {of_arguments[k]});
  }
  forward.Run(AllOf(*computation()));
  std::vector<Instruction*> tangents;
  for (const Instruction* result : results_) tangents.push_back(forward.TangentOf(result).array);
  Commit(tangents);
  return tangents;
}

std::vector<Instruction*> Body::Cotangents(const Options& options, const Flags& arguments,
                                           std::span<Instruction* const> of_results) {
  Reverse reverse(builder_, options, Flagged(arguments), AllOf(*computation()));
  for (size_t j = 0; j < of_results.size(); ++j) {
    if (of_results[j]) reverse.Add(results_[j], of_results[j]);
  }
  reverse.Run();
  std::vector<Instruction*> cotangents;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const bool has = arguments[k] != 0;
    cotangents.push_back(has ? reverse.CotangentOf(arguments_[k]).array : nullptr);
  }
  Commit(cotangents);
  return cotangents;
}

void Body::Commit(std::vector<Instruction*>& derivatives) {
  Replacements& replacements = builder_.replacements();
  replacements.Commit();
  for (Instruction*& x : results_) x = replacements.Now(x);
  for (Instruction*& x : derivatives) {
    if (x) x = replacements.Now(x);
  }
}

Computation* Body::Return(std::span<Instruction* const> others) {
  std::vector<Instruction*> all = results_;
  all.insert(all.end(), others.begin(), others.end());
  computation()->set_root(builder_.Tuple(std::move(all)));
  return computation();
}

Computation* Body::ReturnOne() {
  computation()->set_root(results_[0]);
  return computation();
}

}  // namespace kiln::grad
