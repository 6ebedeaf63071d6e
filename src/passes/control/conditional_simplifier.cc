#include <algorithm>
#include <iterator>
#include <ranges>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// The branch that a constant index picks: of a pred the first if true, of an s32 the last one if it
// is out of range.
std::optional<int64_t> KnownBranch(const Instruction& i) {
  int64_t branches = static_cast<int64_t>(i.called().size());
  if (branches == 1) return 0;
  const Instruction* index = i.operand(0);
  if (!index->IsConstant()) return std::nullopt;
  int64_t value = index->literal().AsInt(0);
  if (IsPred(index->shape().type())) return value ? 0 : 1;
  return value < 0 || value >= branches ? branches - 1 : value;
}

bool BranchesAreTheSame(const Instruction& i) {
  for (size_t b = 1; b < i.called().size(); ++b) {
    if (i.operand(static_cast<int64_t>(b) + 1) != i.operand(1) ||
        !IsSameComputation(*i.called(0), *i.called(static_cast<int64_t>(b)))) {
      return false;
    }
  }
  return true;
}

// Whether the branch computes at most a few numbers, and otherwise returns its arguments and
// constants.
bool IsCheap(const Computation& branch) {
  constexpr int64_t kMostNumbers = 4;
  int64_t numbers = 0;
  for (Instruction* i : branch.instructions()) {
    if (OpCostOf(i->opcode()) == OpCost::kFree || i->opcode() == Opcode::kReshape) continue;
    bool number = IsElementwise(i->opcode()) && !IsTranscendental(i->opcode()) &&
                  i->shape().is_array() && i->shape().is_static() && i->shape().num_elements() == 1;
    if (!number || ++numbers > kMostNumbers) return false;
  }
  return true;
}

// select(p, x, y), element by element.
Instruction* SelectBetween(Instruction* at, Instruction* p, Instruction* x, Instruction* y) {
  if (x == y) return x;
  if (!x->shape().is_tuple()) {
    return at->parent()->Create({.opcode = Opcode::kSelect,
                                 .operands = {p, x, y},
                                 .shape = x->shape(),
                                 .op_name = at->op_name()},
                                at);
  }
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < x->shape().elements().size(); ++k) {
    int64_t element = static_cast<int64_t>(k);
    elements.push_back(SelectBetween(at, p, ElementOf(x, element, at), ElementOf(y, element, at)));
  }
  return at->parent()->Create(
      {.opcode = Opcode::kTuple, .operands = std::move(elements), .shape = x->shape()}, at);
}

bool HasArraysOnly(const Shape& shape) {
  bool arrays = true;
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
    arrays &= leaf.is_array() && leaf.is_row_major();
  });
  return arrays;
}

// The value of the conditional, if known.
Instruction* KnownValue(Instruction* i) {
  auto copy = [&](int64_t branch) {
    Instruction* argument = i->operand(branch + 1);
    return CopyBody(i, *i->called(branch), {&argument, 1});
  };
  // conditional(c, f(x), g(y)) => f(x)   where the branch is known
  if (std::optional<int64_t> branch = KnownBranch(*i)) return copy(*branch);
  // conditional(p, f(x), f(x)) => f(x)
  if (BranchesAreTheSame(*i)) return copy(0);
  // conditional(p, f(x), g(y)) => select(p, f(x), g(y))   where the branches compute a few numbers
  // at most
  if (IsPred(i->operand(0)->shape().type()) && IsCheap(*i->called(0)) && IsCheap(*i->called(1)) &&
      HasArraysOnly(i->shape())) {
    Instruction* x = copy(0);
    return SelectBetween(i, i->operand(0), x, copy(1));
  }
  return nullptr;
}

// The value of element k of the result in all branches: a value passed through by all of them, or a
// constant; otherwise null.
Instruction* SameInAllBranches(Instruction* i, int64_t k) {
  Instruction* same = nullptr;
  const Instruction* constant = nullptr;
  for (size_t b = 0; b < i->called().size(); ++b) {
    const Computation& branch = *i->called(static_cast<int64_t>(b));
    if (branch.root()->opcode() != Opcode::kTuple) return nullptr;
    const Instruction* element = branch.root()->operand(k);
    if (element->IsConstant()) {
      if (b > 0 && (!constant || !(constant->literal() == element->literal()))) return nullptr;
      constant = element;
      continue;
    }
    Instruction* argument = i->operand(static_cast<int64_t>(b) + 1);
    Instruction* outer = nullptr;
    if (element == branch.parameter(0)) {
      outer = argument;
    } else if (ir::IsElementOf(element, branch.parameter(0)) &&
               argument->opcode() == Opcode::kTuple) {
      outer = argument->operand(element->attributes().Int(Attr::kIndex));
    }
    if (!outer || constant || (same && same != outer)) return nullptr;
    same = outer;
  }
  if (!constant) return same;
  return i->parent()->Create(ir::CopySpec(*constant, {}), i);
}

// Whether elements j and k of the result are the same, whichever branch runs.
bool AreEqual(const Instruction& i, int64_t j, int64_t k) {
  return std::ranges::all_of(i.called(), [&](const Computation* branch) {
    return branch->root()->opcode() == Opcode::kTuple &&
           branch->root()->operand(j) == branch->root()->operand(k);
  });
}

// get-tuple-element(conditional(p, f(x), g(y)), k) => x   where every branch returns x, or the same
// constant
// get-tuple-element(conditional(p, f(x), g(y)), k) => get-tuple-element(conditional(...), j)
// where elements j and k are one value in every branch
bool ReplaceResults(Instruction* i) {
  if (!i->shape().is_tuple() || i->IsRoot()) return false;
  bool changed = false;
  std::vector<Instruction*> users(i->users().begin(), i->users().end());
  for (Instruction* user : users) {
    if (user->opcode() != Opcode::kGetTupleElement || (user->users().empty() && !user->IsRoot())) {
      continue;
    }
    int64_t k = user->attributes().Int(Attr::kIndex);
    Instruction* other = SameInAllBranches(i, k);
    for (int64_t j = 0; j < k && !other; ++j) {
      if (!AreEqual(*i, j, k)) continue;
      other = ir::ElementOf(i, j, user);
    }
    if (!other || !(other->shape() == user->shape())) continue;
    i->parent()->ReplaceAllUses(user, other);
    changed = true;
  }
  return changed;
}

// conditional(p, f(x), g(y)) => conditional(p, f'(x), g'(y))   without unused results
bool DropResults(Instruction* i) {
  if (!i->shape().is_tuple()) return false;
  std::vector<bool> keep = ElementsRead(i);
  if (std::ranges::all_of(keep, [](bool k) { return k; })) return false;
  if (std::ranges::none_of(keep, [](bool k) { return k; })) return false;  // It is dead.
  Shape whole = i->shape();
  for (int64_t b = 0; b < static_cast<int64_t>(i->called().size()); ++b) {
    Computation* branch = OwnCallee(i, b);
    branch->set_root(KeptElements(branch->root(), keep, nullptr));
  }
  Computation* c = i->parent();
  Instruction* small = c->Create({.opcode = Opcode::kConditional,
                                  .operands = {i->operands().begin(), i->operands().end()},
                                  .attributes = i->attributes(),
                                  .called = {i->called().begin(), i->called().end()},
                                  .shape = i->called(0)->root()->shape(),
                                  .op_name = i->op_name()},
                                 i);
  c->ReplaceAllUses(i, WholeTuple(small, whole, keep, i));
  c->Remove(i);
  return true;
}

// conditional(p, f(x), g(y)) => conditional(p, f(x'), g(y'))   without unused elements of a
// branch's operand
bool DropOperands(Instruction* i) {
  bool changed = false;
  for (int64_t b = 0; b < static_cast<int64_t>(i->called().size()); ++b) {
    const Instruction* parameter = i->called(b)->parameter(0);
    if (!parameter->shape().is_tuple()) continue;
    std::vector<bool> keep = ElementsRead(parameter);
    if (std::ranges::all_of(keep, [](bool k) { return k; })) continue;
    ShrinkParameter(OwnCallee(i, b), keep);
    Computation* c = i->parent();
    Instruction* whole = i->operand(b + 1);
    c->ReplaceOperand(i, b + 1, KeptElements(whole, keep, i));
    // Its producer then needs less at once.
    if (whole->opcode() == Opcode::kTuple && whole->users().empty() && !whole->IsRoot()) {
      c->Remove(whole);
    }
    changed = true;
  }
  return changed;
}

// Whether an operand of a conditional is a constant in branch b.
bool IsConstantIn(const Instruction& i, int64_t b, const Instruction* x) {
  // The last branch is also that of an index out of range.
  bool is_index = x == i.operand(0) &&
                  (IsPred(x->shape().type()) || b + 1 < static_cast<int64_t>(i.called().size()));
  return is_index || IsMadeOfConstant(x);
}

Instruction* ConstantIn(const Instruction& i, int64_t b, const Instruction* x, Instruction* at) {
  if (IsMadeOfConstant(x)) return CopyOfConstant(x, at);
  const bool is_pred = IsPred(x->shape().type());
  Literal index = Literal::ScalarOf(x->shape().type(), static_cast<double>(is_pred ? b == 0 : b));
  return at->parent()->Create({.opcode = Opcode::kConstant,
                               .shape = x->shape(),
                               .literal = std::make_shared<const Literal>(std::move(index))},
                              at);
}

// conditional(p, f(c), g(p)) => conditional(p, f'(c), g'(p))   where branches make constant
// operands themselves, and know p: true in the first one, false in the second
bool KnowOperands(Instruction* i) {
  bool changed = false;
  for (int64_t b = 0; b < static_cast<int64_t>(i->called().size()); ++b) {
    const Instruction* argument = i->operand(b + 1);
    const bool is_tuple = argument->shape().is_tuple();
    if (is_tuple && argument->opcode() != Opcode::kTuple) continue;
    // The constant that a reader of the parameter reads.
    auto source = [&](const Instruction* user) -> const Instruction* {
      if (user->opcode() != Opcode::kGetTupleElement || (user->users().empty() && !user->IsRoot()))
        return nullptr;
      const Instruction* x = argument->operand(user->attributes().Int(Attr::kIndex));
      return IsConstantIn(*i, b, x) ? x : nullptr;
    };
    const Instruction* parameter = i->called(b)->parameter(0);
    bool any = is_tuple ? std::ranges::any_of(parameter->users(), source)
                        : (!parameter->users().empty() || parameter->IsRoot()) &&
                              IsConstantIn(*i, b, argument);
    if (!any) continue;
    Computation* branch = OwnCallee(i, b);
    Instruction* own = branch->parameter(0);
    std::vector<Instruction*> values = {own};
    if (is_tuple) values.assign(own->users().begin(), own->users().end());
    for (Instruction* value : values) {
      const Instruction* x = is_tuple ? source(value) : argument;
      if (!x) continue;
      branch->ReplaceAllUses(value, ConstantIn(*i, b, x, value));
      changed = true;
    }
  }
  return changed;
}

// Whether a branch may make the value itself, for which alone it was made: without keeping much
// more until then than the value.
bool MaySink(const Instruction& x, const Instruction* user) {
  if (HasTrait(x.opcode(), kStructural)) return false;
  if (!ir::IsPure(x) || x.IsRoot() || !x.shape().is_array() || x.users().size() != 1 ||
      std::ranges::count(user->operands(), &x) != 1) {
    return false;
  }
  int64_t kept = 0;
  for (const Instruction* operand : x.operands()) {
    if (!operand->shape().is_array() || !operand->shape().is_static()) return false;
    if (operand->opcode() == Opcode::kParameter || IsMadeOfConstant(operand)) continue;
    kept += operand->shape().byte_size();
  }
  constexpr int64_t kFew = 4096;
  return x.shape().is_static() && kept <= std::max(x.shape().byte_size(), kFew);
}

// conditional(p, f(op(x)), g(y)) => conditional(p, f'(x), g(y))   where only one branch uses op(x),
// and computes it itself
bool SinkOperands(Instruction* i) {
  bool changed = false;
  Computation* c = i->parent();
  for (int64_t b = 0; b < static_cast<int64_t>(i->called().size()); ++b) {
    Instruction* argument = i->operand(b + 1);
    const bool is_tuple = argument->opcode() == Opcode::kTuple;
    if (!is_tuple && argument->shape().is_tuple()) continue;
    if (argument->users().size() != 1 || argument->IsRoot() ||
        std::ranges::count(i->operands(), argument) != 1) {
      continue;
    }
    auto reads_element = [](const Instruction* user) {
      return user->opcode() == Opcode::kGetTupleElement;
    };
    const Instruction* read = i->called(b)->parameter(0);
    if (is_tuple && (read->IsRoot() || !std::ranges::all_of(read->users(), reads_element))) {
      continue;
    }
    std::vector<Instruction*> elements = {argument};
    if (is_tuple) elements.assign(argument->operands().begin(), argument->operands().end());
    std::vector<bool> sinks;
    for (const Instruction* x : elements) sinks.push_back(MaySink(*x, is_tuple ? argument : i));
    if (std::ranges::find(sinks, true) == sinks.end()) continue;
    // The replacement arguments of the branch, each once.
    std::vector<Instruction*> handed;
    auto number_of = [&](Instruction* x) {
      auto it = std::ranges::find(handed, x);
      if (it == handed.end()) it = handed.insert(it, x);
      return it - handed.begin();
    };
    for (size_t k = 0; k < elements.size(); ++k) {
      if (!sinks[k]) number_of(elements[k]);
      for (Instruction* operand : elements[k]->operands()) {
        if (sinks[k]) number_of(operand);
      }
    }
    Computation* branch = OwnCallee(i, b);
    Instruction* parameter = branch->parameter(0);
    std::vector<Instruction*> users(parameter->users().begin(), parameter->users().end());
    branch->Move(parameter, branch->instructions().front());
    auto second = std::next(branch->instructions().begin());
    Instruction* at = second == branch->instructions().end() ? nullptr : *second;
    Instruction* tuple = MakeTuple(c, handed, i);
    parameter->set_shape(tuple->shape());
    auto element = [&](Instruction* x) { return ElementOf(parameter, number_of(x), at); };
    std::vector<Instruction*> values;
    for (size_t k = 0; k < elements.size(); ++k) {
      if (!sinks[k]) {
        values.push_back(element(elements[k]));
        continue;
      }
      std::vector<Instruction*> operands;
      for (Instruction* operand : elements[k]->operands()) operands.push_back(element(operand));
      values.push_back(branch->Create(ir::CopySpec(*elements[k], std::move(operands)), at));
    }
    for (Instruction* user : users) {
      if (is_tuple) {
        branch->ReplaceAllUses(user,
                               values[static_cast<size_t>(user->attributes().Int(Attr::kIndex))]);
        branch->Remove(user);
        continue;
      }
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == parameter) branch->ReplaceOperand(user, o, values[0]);
      }
    }
    if (parameter->IsRoot()) branch->set_root(values[0]);
    c->ReplaceOperand(i, b + 1, tuple);
    if (is_tuple) c->Remove(argument);
    for (size_t k = 0; k < elements.size(); ++k) {
      if (sinks[k]) c->Remove(elements[k]);
    }
    changed = true;
  }
  return changed;
}

// conditional(convert(p), f(x), g(y)) => conditional(p, g(y), f(x))   where p is a pred
Instruction* OfConvertedPred(Instruction* i) {
  Instruction* index = i->operand(0);
  if (i->called().size() != 2 || index->opcode() != Opcode::kConvert ||
      !IsPred(index->operand(0)->shape().type())) {
    return nullptr;
  }
  return i->parent()->Create({.opcode = Opcode::kConditional,
                              .operands = {index->operand(0), i->operand(2), i->operand(1)},
                              .attributes = i->attributes(),
                              .called = {i->called(1), i->called(0)},
                              .shape = i->shape(),
                              .op_name = i->op_name()},
                             i);
}

}  // namespace

Result<bool> SimplifyConditionals(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Callers first: facts about a branch may simplify its contents.
  std::vector<Computation*> order = module.CalleesFirst();
  std::unordered_set<const Computation*> bodies;
  for (const Computation* c : order) {
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kWhile) bodies.insert(i->called().begin(), i->called().end());
    }
  }
  for (Computation* c : std::views::reverse(order)) {
    if (DropUncalled(c)) {
      changed = true;
      continue;
    }
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (i->opcode() != Opcode::kConditional) continue;
      const int64_t before = module.NextId();
      Instruction* known = KnownValue(i);
      if (!known) known = OfConvertedPred(i);
      if (known) {
        c->ReplaceAllUses(i, known);
        RemoveWithCallees(i);
        changed = true;
        // Its result may be known as well: continue there.
        while (it != c->instructions().begin() && (*std::prev(it))->id() > before) --it;
        continue;
      }
      changed |= KnowOperands(i);
      changed |= ReplaceResults(i);
      // Values of a loop's body may be computed before the loop.
      if (!bodies.contains(c)) changed |= SinkOperands(i);
      changed |= DropResults(i);
    }
  }
  // Callees first: the outer branch need not receive values unread by the inner one.
  for (Computation* c : module.CalleesFirst()) {
    if (!c->MayHold(Opcode::kConditional)) continue;
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (i->opcode() == Opcode::kConditional) changed |= DropOperands(i);
    }
  }
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
