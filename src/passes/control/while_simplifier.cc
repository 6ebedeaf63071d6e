#include <algorithm>
#include <iterator>
#include <ranges>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"
#include "passes/control/computations.h"
#include "passes/control/equal_state.h"
#include "passes/control/known_values.h"
#include "passes/control/unroll.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

std::optional<bool> Continues(const Instruction& loop, const Known& state) {
  const Computation& condition = *loop.called(0);
  std::optional<Literal> value = KnownValues(condition, state).Of(condition.root());
  if (!value) return std::nullopt;
  return value->AsInt(0) != 0;
}

// The value of a loop with a trip count of 0 or 1.
Instruction* Unrolled(Instruction* loop) {
  // Effects of the condition occur once per evaluation.
  if (ir::HasSideEffect(*loop->called(0))) return nullptr;
  Known state = StateOf(loop->operand(0));
  std::optional<bool> runs = Continues(*loop, state);
  if (!runs) return nullptr;
  // while(x) => x   where the condition does not hold for x
  if (!*runs) return loop->operand(0);
  // while(x) => body(x)   where the condition does not hold for body(x)
  const Computation& body = *loop->called(1);
  std::optional<bool> again = Continues(*loop, NextState(body, KnownValues(body, state)));
  if (!again || *again) return nullptr;
  Instruction* argument = loop->operand(0);
  return CopyBody(loop, body, {&argument, 1});
}

// while(x) => conditional(condition(x), body(x), x)   where the condition holds for no result of
// the body
Instruction* RunsAtMostOnce(Instruction* loop) {
  Computation *condition = loop->called(0), *body = loop->called(1);
  if (ir::HasSideEffect(*condition)) return nullptr;
  Instruction* x = loop->operand(0);
  Known nothing(x->shape().is_array() ? 1 : x->shape().elements().size());
  std::optional<bool> again = Continues(*loop, NextState(*body, KnownValues(*body, nothing)));
  if (!again || *again) return nullptr;
  Computation* as_it_is = loop->parent()->parent()->AddComputation("unchanged");
  as_it_is->set_root(as_it_is->Create({.opcode = Opcode::kParameter,
                                       .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                                       .shape = x->shape()}));
  return loop->parent()->Create({.opcode = Opcode::kConditional,
                                 .operands = {CopyBody(loop, *condition, {&x, 1}), x, x},
                                 .called = {body, as_it_is},
                                 .shape = loop->shape(),
                                 .op_name = loop->op_name()},
                                loop);
}

// The arrays in a nested tuple, in order.
void AppendLeaves(Instruction* value, Instruction* at, std::vector<Instruction*>& leaves) {
  if (!value->shape().is_tuple()) {
    leaves.push_back(value);
    return;
  }
  for (size_t k = 0; k < value->shape().elements().size(); ++k) {
    AppendLeaves(ElementOf(value, static_cast<int64_t>(k), at), at, leaves);
  }
}

Instruction* FlatTuple(Instruction* value, Instruction* at) {
  std::vector<Instruction*> leaves;
  AppendLeaves(value, at, leaves);
  return MakeTuple(value->parent(), std::move(leaves), at);
}

// The nested tuple of `shape` again, from a flat one's elements from `next` on.
Instruction* NestedTuple(Instruction* flat, const Shape& shape, int64_t& next, Instruction* at) {
  if (!shape.is_tuple()) return ElementOf(flat, next++, at);
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) {
    elements.push_back(NestedTuple(flat, element, next, at));
  }
  return MakeTuple(flat->parent(), std::move(elements), at);
}

// while((x, (y, z))) => while((x, y, z))   (any nested tuples)
Instruction* Flattened(Instruction* loop) {
  const Shape nested = loop->shape();
  if (!nested.is_tuple() ||
      std::ranges::none_of(nested.elements(), [](const Shape& s) { return s.is_tuple(); })) {
    return nullptr;
  }
  Computation *condition = OwnCallee(loop, 0), *body = OwnCallee(loop, 1);
  Instruction* start = FlatTuple(loop->operand(0), loop);
  for (Computation* callee : {condition, body}) {
    Instruction* parameter = callee->parameter(0);
    std::vector<Instruction*> users(parameter->users().begin(), parameter->users().end());
    callee->Move(parameter, callee->instructions().front());
    parameter->set_shape(start->shape());
    auto second = std::next(callee->instructions().begin());
    Instruction* at = second == callee->instructions().end() ? nullptr : *second;
    int64_t next = 0;
    Instruction* whole = NestedTuple(parameter, nested, next, at);
    for (Instruction* user : users) {
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == parameter) callee->ReplaceOperand(user, o, whole);
      }
    }
    if (parameter->IsRoot()) callee->set_root(whole);
  }
  body->set_root(FlatTuple(body->root(), nullptr));
  Instruction* flat = loop->parent()->Create({.opcode = Opcode::kWhile,
                                              .operands = {start},
                                              .attributes = loop->attributes(),
                                              .called = {condition, body},
                                              .shape = start->shape(),
                                              .op_name = loop->op_name()},
                                             loop);
  int64_t next = 0;
  loop->parent()->ReplaceAllUses(loop, NestedTuple(flat, nested, next, loop));
  loop->parent()->Remove(loop);
  return flat;
}

// Whether both are the same constant, or repeat it to one shape, or the same count.
bool AreSameConstants(const Instruction* a, const Instruction* b) {
  if (!IsMadeOfConstant(a) || a->opcode() != b->opcode() || !(a->shape() == b->shape())) {
    return false;
  }
  if (a->IsConstant()) return a->literal() == b->literal();
  return a->attributes() == b->attributes() &&
         (a->opcode() == Opcode::kIota || AreSameConstants(a->operand(0), b->operand(0)));
}

// body(x) => (..., get-tuple-element(x, k), ...)   where element k begins as a constant, and the
// body makes this constant again if all such elements have their first values
bool HandOnConstants(Instruction* loop) {
  const Instruction* initial = loop->operand(0);
  const Computation* body = loop->called(1);
  if (initial->opcode() != Opcode::kTuple || body->root()->opcode() != Opcode::kTuple) return false;
  std::vector<bool> stays(loop->shape().elements().size());
  Known state = StateOf(initial);
  bool any = false;
  for (size_t k = 0; k < stays.size(); ++k) {
    int64_t e = static_cast<int64_t>(k);
    if (ir::IsInvariant(*loop, e)) continue;
    stays[k] = AreSameConstants(initial->operand(e), body->root()->operand(e));
    any |= stays[k] || state[k];
  }
  if (!any) return false;
  // Changing elements become unknown, and their dependents may change, too.
  for (bool changes = true; changes;) {
    changes = false;
    Known next = NextState(*body, KnownValues(*body, state));
    for (size_t k = 0; k < stays.size(); ++k) {
      if (!state[k] || stays[k] || (next[k] && *next[k] == *state[k])) continue;
      state[k].reset();
      changes = true;
    }
  }
  Computation* own = nullptr;
  for (size_t k = 0; k < stays.size(); ++k) {
    int64_t e = static_cast<int64_t>(k);
    if ((!stays[k] && !state[k]) || ir::IsInvariant(*loop, e)) continue;
    if (!own) own = OwnCallee(loop, 1);
    Instruction* root = own->root();
    own->ReplaceOperand(root, e, ElementOf(own->parameter(0), e, root));
  }
  return own != nullptr;
}

// Users of the whole state get a rebuilt tuple, so that elements can be replaced.
void TakeApart(Instruction* loop) {
  std::vector<Instruction*> users;
  for (Instruction* user : loop->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) users.push_back(user);
  }
  if (users.empty() && !loop->IsRoot()) return;
  Computation* c = loop->parent();
  auto after = std::ranges::find(c->instructions(), loop);
  ++after;
  Instruction* at = after == c->instructions().end() ? nullptr : *after;
  std::vector<bool> all(loop->shape().elements().size(), true);
  Instruction* whole = KeptElements(loop, all, at);
  for (Instruction* user : users) {
    for (int64_t o = 0; o < user->operand_count(); ++o) {
      if (user->operand(o) == loop) c->ReplaceOperand(user, o, whole);
    }
  }
  if (loop->IsRoot()) c->set_root(whole);
}

// The get-tuple-element users of a tuple, by element.
using ElementReaders = std::unordered_map<int64_t, std::vector<Instruction*>>;
ElementReaders ReadersByElement(const Instruction* tuple) {
  ElementReaders readers;
  for (Instruction* user : tuple->users()) {
    if (user->opcode() == Opcode::kGetTupleElement) {
      readers[user->attributes().Int(Attr::kIndex)].push_back(user);
    }
  }
  return readers;
}

// Invariant elements are read from the loop's operand, and constants are duplicated at their uses.
bool UseInvariants(Instruction* loop) {
  bool changed = false;
  Computation* c = loop->parent();
  Instruction* initial = loop->operand(0);
  std::vector<int64_t> invariants;
  for (int64_t k = 0; k < static_cast<int64_t>(loop->shape().elements().size()); ++k) {
    if (ir::IsInvariant(*loop, k)) invariants.push_back(k);
  }
  if (invariants.empty()) return false;
  TakeApart(loop);
  // get-tuple-element(while(x), k) => get-tuple-element(x, k)   where no iteration changes it
  ElementReaders elements = ReadersByElement(loop);
  for (int64_t k : invariants) {
    for (Instruction* element : elements[k]) {
      if (element->users().empty() && !element->IsRoot()) continue;
      c->ReplaceAllUses(element, ElementOf(initial, k, element));
      changed = true;
    }
  }
  if (initial->opcode() != Opcode::kTuple) return changed;
  // get-tuple-element(state, k) => c   in condition and body, where no iteration changes the
  // element, and it begins as c, a constant or an iota
  for (int64_t callee : {0, 1}) {
    const Computation* of = loop->called(callee);
    Computation* own = nullptr;
    elements = ReadersByElement(of->parameter(0));
    auto reads = [&](const Instruction* user) {
      bool only_result = user->users().size() == 1 && user->users()[0] == of->root() &&
                         of->root()->opcode() == Opcode::kTuple;
      return !user->users().empty() && !(callee == 1 && only_result);
    };
    for (int64_t k : invariants) {
      const Instruction* value = initial->operand(k);
      if (!IsMadeOfConstant(value) || std::ranges::none_of(elements[k], reads)) continue;
      if (!own) {
        of = own = OwnCallee(loop, callee);
        elements = ReadersByElement(own->parameter(0));
      }
      for (Instruction* user : elements[k]) {
        if (!reads(user)) continue;
        Instruction* constant = CopyOfConstant(value, user);
        // The next state is unchanged, so that the element is recognised as invariant.
        std::vector<Instruction*> readers(user->users().begin(), user->users().end());
        for (Instruction* reader : readers) {
          if (callee == 1 && reader == own->root()) continue;
          for (int64_t o = 0; o < reader->operand_count(); ++o) {
            if (reader->operand(o) == user) own->ReplaceOperand(reader, o, constant);
          }
        }
        if (user->IsRoot() && callee == 0) own->set_root(constant);
      }
      changed = true;
    }
  }
  return changed;
}

// The read elements of a tuple that have an equal element to be read instead.
std::vector<Instruction*> ReadInVain(const Instruction* tuple, const std::vector<int64_t>& first) {
  std::vector<Instruction*> elements;
  for (Instruction* user : tuple->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) continue;
    const int64_t k = user->attributes().Int(Attr::kIndex);
    const bool is_read = !user->users().empty() || user->IsRoot();
    if (is_read && first[static_cast<size_t>(k)] != k) elements.push_back(user);
  }
  return elements;
}

// The readers of each element read the one that is always the same. Returns whether there were any.
bool ReadOthers(Instruction* tuple, const std::vector<int64_t>& first) {
  const std::vector<Instruction*> elements = ReadInVain(tuple, first);
  for (Instruction* element : elements) {
    const auto k = static_cast<size_t>(element->attributes().Int(Attr::kIndex));
    tuple->parent()->ReplaceAllUses(element, ir::ElementOf(tuple, first[k], element));
  }
  return !elements.empty();
}

// while(x) => while(x')   where equal elements of the state are read as one: they begin equal, and
// the body keeps them equal
bool MergeElements(Instruction* loop) {
  const std::vector<int64_t> first = EqualState(*loop);
  bool any = false;
  for (size_t k = 0; k < first.size(); ++k) any |= first[k] != static_cast<int64_t>(k);
  if (!any) return false;
  TakeApart(loop);
  bool changed = ReadOthers(loop, first);
  for (int64_t callee : {0, 1}) {
    const std::vector<Instruction*> read = ReadInVain(loop->called(callee)->parameter(0), first);
    if (std::ranges::all_of(read, [](const Instruction* i) { return i->users().empty(); }))
      continue;
    changed |= ReadOthers(OwnCallee(loop, callee)->parameter(0), first);
  }
  return changed;
}

// The elements of the state that affect the loop's used results.
std::vector<bool> Needed(const Instruction& loop) {
  const Computation &condition = *loop.called(0), &body = *loop.called(1);
  std::vector<bool> all(loop.shape().elements().size(), true);
  if (body.root()->opcode() != Opcode::kTuple) return all;
  std::vector<bool> needed = ElementsRead(&loop);
  std::vector<bool> tested = ElementsRead(condition.parameter(0));
  for (const Instruction* user : body.parameter(0)->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) return all;
  }
  for (size_t k = 0; k < needed.size(); ++k) needed[k] = needed[k] || tested[k];
  // Inputs of a needed element's next value are needed.
  std::vector<const Instruction*> work;
  std::unordered_set<const Instruction*> seen;
  auto visit = [&](const Instruction* i) {
    if (seen.insert(i).second) work.push_back(i);
  };
  for (size_t k = 0; k < needed.size(); ++k) {
    if (needed[k]) visit(body.root()->operand(static_cast<int64_t>(k)));
  }
  // Inputs of side effects are needed.
  for (const Instruction* i : body.instructions()) {
    if (ir::HasSideEffect(*i)) visit(i);
  }
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (ir::IsElementOf(i, body.parameter(0))) {
      size_t k = static_cast<size_t>(i->attributes().Int(Attr::kIndex));
      if (!needed[k]) {
        needed[k] = true;
        visit(body.root()->operand(static_cast<int64_t>(k)));
      }
      continue;
    }
    for (const Instruction* operand : i->operands()) visit(operand);
  }
  return needed;
}

// while(x) => while(x')   without elements of the state that affect no used result, condition or
// side effect
bool DropElements(Instruction* loop) {
  std::vector<bool> keep = Needed(*loop);
  if (std::ranges::all_of(keep, [](bool k) { return k; })) return false;
  if (std::ranges::none_of(keep, [](bool k) { return k; })) return false;  // The loop is dead.
  Computation *condition = OwnCallee(loop, 0), *body = OwnCallee(loop, 1);
  ShrinkParameter(condition, keep);
  ShrinkParameter(body, keep);
  body->set_root(KeptElements(body->root(), keep, nullptr));
  Computation* c = loop->parent();
  Instruction* small = c->Create({.opcode = Opcode::kWhile,
                                  .operands = {KeptElements(loop->operand(0), keep, loop)},
                                  .attributes = loop->attributes(),
                                  .called = {condition, body},
                                  .shape = body->root()->shape(),
                                  .op_name = loop->op_name()},
                                 loop);
  c->ReplaceAllUses(loop, WholeTuple(small, loop->shape(), keep, loop));
  c->Remove(loop);
  return true;
}

}  // namespace

Result<bool> SimplifyWhiles(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Callers first: removal of a loop also removes the loops in its body.
  std::vector<Computation*> order = module.CalleesFirst();
  for (Computation* c : std::views::reverse(order)) {
    if (DropUncalled(c)) {
      changed = true;
      continue;
    }
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (i->opcode() != Opcode::kWhile) continue;
      const int64_t before = module.NextId();
      Instruction* unrolled = Unrolled(i);
      if (!unrolled) unrolled = RunsAtMostOnce(i);
      if (!unrolled) unrolled = UnrolledOverArrays(i);
      if (unrolled) {
        c->ReplaceAllUses(i, unrolled);
        RemoveWithCallees(i);
        changed = true;
        // Goes back to the new instructions: a loop among them may be known as well.
        while (it != c->instructions().begin() && (*std::prev(it))->id() > before) --it;
        continue;
      }
      if (Instruction* flat = Flattened(i)) {
        i = flat;
        changed = true;
      }
      if (!i->shape().is_tuple()) continue;
      changed |= HandOnConstants(i);
      changed |= UseInvariants(i);
      changed |= MergeElements(i);
      changed |= DropElements(i);
    }
  }
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
