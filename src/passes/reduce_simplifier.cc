// Reductions of several operands at once. For a single operand see the algebraic simplifier.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// The inputs of these instructions, including themselves.
std::unordered_set<const Instruction*> NeededFor(std::vector<const Instruction*> work) {
  std::unordered_set<const Instruction*> needed(work.begin(), work.end());
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* operand : i->operands()) {
      if (needed.insert(operand).second) work.push_back(operand);
    }
  }
  return needed;
}

// The operands that must stay: those with used results, and their inputs.
std::vector<bool> Kept(const Instruction& reduce) {
  std::vector<bool> keep = ElementsRead(&reduce);
  const Computation& combine = *reduce.called(0);
  const int64_t count = static_cast<int64_t>(keep.size());
  std::vector<int64_t> work;
  for (int64_t k = 0; k < count; ++k) {
    if (keep[static_cast<size_t>(k)]) work.push_back(k);
  }
  while (!work.empty()) {
    auto needed = NeededFor({combine.root()->operand(work.back())});
    work.pop_back();
    for (int64_t j = 0; j < count; ++j) {
      if (keep[static_cast<size_t>(j)]) continue;
      if (!needed.contains(combine.parameter(j)) &&
          !needed.contains(combine.parameter(count + j))) {
        continue;
      }
      keep[static_cast<size_t>(j)] = true;
      work.push_back(j);
    }
  }
  return keep;
}

// The computation of these parameters alone, with these elements of the tuple that it makes: one
// by itself, or a tuple of several.
Computation* Shrunk(const Computation& from, const std::vector<int64_t>& parameters,
                    const std::vector<const Instruction*>& results) {
  ir::Module& module = *from.parent();
  Computation* to = module.AddComputation(from.name());
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (int64_t p : parameters) {
    const int64_t number = static_cast<int64_t>(to->parameters().size());
    copies[from.parameter(p)] = to->Create({.opcode = Opcode::kParameter,
                                            .attributes = {{Attr::kParameterNumber, number}},
                                            .shape = from.parameter(p)->shape()});
  }
  auto needed = NeededFor(results);
  for (Instruction* i : from.instructions()) {
    if (!needed.contains(i) || i->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    copies[i] = to->Create(ir::CopySpec(*i, std::move(operands)));
  }
  std::vector<Instruction*> elements;
  std::vector<Shape> shapes;
  for (const Instruction* result : results) {
    elements.push_back(copies.at(result));
    shapes.push_back(result->shape());
  }
  bool one = elements.size() == 1;
  to->set_root(one ? elements[0]
                   : to->Create({.opcode = Opcode::kTuple,
                                 .operands = std::move(elements),
                                 .shape = Shape::Tuple(std::move(shapes))}));
  return to;
}

// reduce(x, y, f) => reduce(x, f)   where the result of y is unused, and no used result depends on
// it (also of windows)
bool DropResults(Instruction* i) {
  if (i->IsRoot() || i->called(0)->root()->opcode() != Opcode::kTuple) return false;
  std::vector<bool> keep = Kept(*i);
  const int64_t count = static_cast<int64_t>(keep.size());
  std::vector<int64_t> kept, place(keep.size());
  for (int64_t k = 0; k < count; ++k) {
    place[static_cast<size_t>(k)] = static_cast<int64_t>(kept.size());
    if (keep[static_cast<size_t>(k)]) kept.push_back(k);
  }
  // One of one operand, in a tuple, becomes one without.
  const bool one = kept.size() == 1;
  if (kept.empty() || (static_cast<int64_t>(kept.size()) == count && !one)) return false;
  for (const Instruction* user : i->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) return false;
  }
  const Computation& combine = *i->called(0);
  std::vector<Instruction*> operands;
  std::vector<int64_t> parameters;
  std::vector<const Instruction*> results;
  std::vector<Shape> shapes;
  for (int64_t half : {int64_t{0}, count}) {
    for (int64_t k : kept) {
      operands.push_back(i->operand(half + k));
      parameters.push_back(half + k);
    }
  }
  for (int64_t k : kept) {
    results.push_back(combine.root()->operand(k));
    shapes.push_back(i->shape().elements()[static_cast<size_t>(k)]);
  }
  Computation* c = i->parent();
  Instruction* small = c->Create({.opcode = i->opcode(),
                                  .operands = std::move(operands),
                                  .attributes = i->attributes(),
                                  .called = {Shrunk(combine, parameters, results)},
                                  .shape = one ? shapes[0] : Shape::Tuple(std::move(shapes)),
                                  .op_name = i->op_name()},
                                 i);
  std::vector<Instruction*> users(i->users().begin(), i->users().end());
  for (Instruction* user : users) {
    const size_t k = static_cast<size_t>(user->attributes().Int(Attr::kIndex));
    if (keep[k]) c->ReplaceAllUses(user, one ? small : ElementOf(small, place[k], user));
    c->Remove(user);
  }
  c->Remove(i);
  return true;
}

// reduce({}, {}, x, y, f) => (broadcast(x), broadcast(y))
bool OfNothing(Instruction* i) {
  const Shape& shape = i->operand(0)->shape();
  if (i->opcode() != Opcode::kReduce || !shape.is_static() || shape.num_elements() > 0)
    return false;
  const int64_t count = i->operand_count() / 2;
  std::vector<Instruction*> elements;
  for (int64_t k = 0; k < count; ++k) {
    const Shape& element = i->shape().elements()[static_cast<size_t>(k)];
    if (!element.is_row_major()) return false;
    Instruction* init = i->operand(count + k);
    if (element.rank() > 0) {
      init = i->parent()->Create({.opcode = Opcode::kBroadcast,
                                  .operands = {init},
                                  .attributes = {{Attr::kDimensions, Ints{}}},
                                  .shape = element},
                                 i);
    }
    elements.push_back(init);
  }
  i->parent()->ReplaceAllUses(i, i->parent()->Create({.opcode = Opcode::kTuple,
                                                      .operands = std::move(elements),
                                                      .shape = i->shape(),
                                                      .op_name = i->op_name()},
                                                     i));
  i->parent()->Remove(i);
  return true;
}

}  // namespace

Result<bool> SimplifyReductions(ir::Module& module, const PassContext& context) {
  std::vector<Instruction*> reductions;
  for (const auto& c : module.computations()) {
    for (Instruction* i : c->instructions()) {
      bool dead = i->users().empty() && !i->IsRoot();
      bool folds = i->opcode() == Opcode::kReduce || i->opcode() == Opcode::kReduceWindow;
      if (folds && i->shape().is_tuple() && !dead) {
        reductions.push_back(i);
      }
    }
  }
  bool changed = false;
  for (Instruction* i : reductions) changed |= OfNothing(i) || DropResults(i);
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
