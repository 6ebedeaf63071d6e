#include <algorithm>
#include <iterator>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "interp/interpreter.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Values of more bytes are not looked at: what decides how often a loop runs is a number.
constexpr int64_t kMaxKnownBytes = 64;

// The elements of a loop's state that are known, one by one; a state that is no tuple is one.
using Known = std::vector<std::optional<Literal>>;

bool IsSmallArray(const Shape& shape) {
  return shape.is_array() && shape.is_static() && shape.byte_size() <= kMaxKnownBytes;
}

std::optional<Literal> ConstantOf(const Instruction* x) {
  if (x->IsConstant() && IsSmallArray(x->shape())) return x->literal();
  return std::nullopt;
}

// What the instructions of a computation are, as far as that follows from its parameter's elements.
class KnownValues {
 public:
  KnownValues(const Computation& computation, const Known& state) {
    for (const auto& i : computation.instructions()) {
      if (std::optional<Literal> value = Evaluate(*i, state)) values_[i.get()] = *std::move(value);
    }
  }

  std::optional<Literal> Of(const Instruction* i) const {
    auto it = values_.find(i);
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::optional<Literal> Evaluate(const Instruction& i, const Known& state) const {
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
    auto value = interp::EvaluateInstruction(i, operands);
    return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
  }

  std::unordered_map<const Instruction*, Literal> values_;
};

Known StateOf(const Instruction* x) {
  Known state;
  if (x->shape().is_array()) return {ConstantOf(x)};
  for (size_t k = 0; k < x->shape().elements().size(); ++k) {
    state.push_back(x->opcode() == Opcode::kTuple ? ConstantOf(x->operand(static_cast<int64_t>(k)))
                                                  : std::nullopt);
  }
  return state;
}

std::optional<bool> Continues(const Instruction& loop, const Known& state) {
  const Computation& condition = *loop.called(0);
  std::optional<Literal> value = KnownValues(condition, state).Of(condition.root());
  if (!value) return std::nullopt;
  return value->AsInt(0) != 0;
}

// Where the loop runs never or once: what it is.
Instruction* Unrolled(Instruction* loop) {
  Known state = StateOf(loop->operand(0));
  std::optional<bool> runs = Continues(*loop, state);
  if (!runs) return nullptr;
  // while(x) => x   where the condition does not hold for x
  if (!*runs) return loop->operand(0);
  // while(x) => body(x)   where it does not hold for that
  const Computation& body = *loop->called(1);
  KnownValues values(body, state);
  Known next;
  if (body.root()->shape().is_array()) {
    next.push_back(values.Of(body.root()));
  } else {
    for (size_t k = 0; k < state.size(); ++k) {
      next.push_back(body.root()->opcode() == Opcode::kTuple
                         ? values.Of(body.root()->operand(static_cast<int64_t>(k)))
                         : std::nullopt);
    }
  }
  std::optional<bool> again = Continues(*loop, next);
  if (!again || *again) return nullptr;
  Instruction* argument = loop->operand(0);
  return CopyBody(loop, body, {&argument, 1});
}

// Whether the value can be made in the loop as well: a constant, or one repeated.
bool IsMadeOfConstant(const Instruction* x) {
  if (!x->shape().is_array()) return false;
  return x->IsConstant() || (x->opcode() == Opcode::kBroadcast && x->operand(0)->IsConstant());
}

// Such a value again, in another computation.
Instruction* CopyOfConstant(const Instruction* value, Instruction* at) {
  std::vector<Instruction*> operands;
  for (const Instruction* operand : value->operands()) {
    operands.push_back(at->parent()->Create(ir::CopySpec(*operand, {}), at));
  }
  return at->parent()->Create(ir::CopySpec(*value, std::move(operands)), at);
}

bool IsElement(const Instruction* i, const Instruction* tuple, int64_t k) {
  return i->opcode() == Opcode::kGetTupleElement && i->operand(0) == tuple &&
         i->attributes().Int(Attr::kIndex) == k;
}

// Whether every iteration leaves the element as it is.
bool IsInvariant(const Instruction& loop, int64_t k) {
  const Instruction* root = loop.called(1)->root();
  if (root == loop.called(1)->parameter(0)) return true;
  return root->opcode() == Opcode::kTuple &&
         IsElement(root->operand(k), loop.called(1)->parameter(0), k);
}

// What a loop does not change can be had from its operand, and a constant from where it is needed.
bool UseInvariants(Instruction* loop) {
  bool changed = false;
  Computation* c = loop->parent();
  Instruction* initial = loop->operand(0);
  for (int64_t k = 0; k < static_cast<int64_t>(loop->shape().elements().size()); ++k) {
    if (!IsInvariant(*loop, k)) continue;
    std::vector<Instruction*> elements;
    for (Instruction* user : loop->users()) {
      if (IsElement(user, loop, k) && (!user->users().empty() || user->IsRoot())) {
        elements.push_back(user);
      }
    }
    // get-tuple-element(while(x), k) => get-tuple-element(x, k)   where no iteration changes it
    for (Instruction* element : elements) {
      c->ReplaceAllUses(element, ElementOf(initial, k, element));
      changed = true;
    }
    if (initial->opcode() != Opcode::kTuple) continue;
    const Instruction* value = initial->operand(k);
    if (!IsMadeOfConstant(value)) continue;
    // get-tuple-element(state, k) => c   in condition and body, where no iteration changes it and
    // it begins as the constant c
    for (int64_t callee : {0, 1}) {
      auto reads = [&](const Instruction* user, const Computation* of) {
        bool only_result = user->users().size() == 1 && user->users()[0] == of->root() &&
                           of->root()->opcode() == Opcode::kTuple;
        return IsElement(user, of->parameter(0), k) && !user->users().empty() &&
               !(callee == 1 && only_result);
      };
      const Computation* before = loop->called(callee);
      if (std::ranges::none_of(before->parameter(0)->users(),
                               [&](const Instruction* user) { return reads(user, before); })) {
        continue;
      }
      Computation* own = OwnCallee(loop, callee);
      Instruction* parameter = own->parameter(0);
      std::vector<Instruction*> users(parameter->users().begin(), parameter->users().end());
      for (Instruction* user : users) {
        if (!reads(user, own)) continue;
        Instruction* constant = CopyOfConstant(value, user);
        // The next state stays what it is, so that the element is seen not to change.
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

// Whether two elements of the state are the same before the loop and after every iteration.
bool AreEqual(const Instruction& loop, int64_t j, int64_t k) {
  const Instruction* initial = loop.operand(0);
  if (initial->opcode() != Opcode::kTuple || initial->operand(j) != initial->operand(k)) {
    return false;
  }
  if (IsInvariant(loop, j) && IsInvariant(loop, k)) return true;
  const Instruction* root = loop.called(1)->root();
  return root->opcode() == Opcode::kTuple && root->operand(j) == root->operand(k);
}

// The readers of element k of a tuple read element j. Returns whether there were any.
bool ReadOther(Instruction* tuple, int64_t k, int64_t j) {
  std::vector<Instruction*> elements;
  for (Instruction* user : tuple->users()) {
    if (IsElement(user, tuple, k) && (!user->users().empty() || user->IsRoot())) {
      elements.push_back(user);
    }
  }
  for (Instruction* element : elements) {
    Instruction* other = tuple->parent()->Create({.opcode = Opcode::kGetTupleElement,
                                                  .operands = {tuple},
                                                  .attributes = {{Attr::kIndex, j}},
                                                  .shape = element->shape()},
                                                 element);
    tuple->parent()->ReplaceAllUses(element, other);
  }
  return !elements.empty();
}

// while(x) => while(x')   where of two elements of the state that are always the same one is read
bool MergeElements(Instruction* loop) {
  bool changed = false;
  const int64_t count = static_cast<int64_t>(loop->shape().elements().size());
  for (int64_t k = 1; k < count; ++k) {
    for (int64_t j = 0; j < k; ++j) {
      if (loop->shape().elements()[static_cast<size_t>(j)] !=
              loop->shape().elements()[static_cast<size_t>(k)] ||
          !AreEqual(*loop, j, k)) {
        continue;
      }
      changed |= ReadOther(loop, k, j);
      for (int64_t callee : {0, 1}) {
        const Instruction* state = loop->called(callee)->parameter(0);
        bool read = std::ranges::any_of(state->users(), [&](const Instruction* user) {
          return IsElement(user, state, k) && !user->users().empty();
        });
        if (read) changed |= ReadOther(OwnCallee(loop, callee)->parameter(0), k, j);
      }
      break;
    }
  }
  return changed;
}

// Which elements of the state decide what the loop gives to those who read it.
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
  // What a needed element's next value is made of is needed.
  std::vector<const Instruction*> work;
  std::unordered_set<const Instruction*> seen;
  auto visit = [&](const Instruction* i) {
    if (seen.insert(i).second) work.push_back(i);
  };
  for (size_t k = 0; k < needed.size(); ++k) {
    if (needed[k]) visit(body.root()->operand(static_cast<int64_t>(k)));
  }
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (i->opcode() == Opcode::kGetTupleElement && i->operand(0) == body.parameter(0)) {
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

// while(x) => while(x')   without the elements of the state that only carry themselves along
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
  // Callers first: a loop that does not run takes those in its body with it.
  std::vector<Computation*> order = module.CalleesFirst();
  for (Computation* c : std::views::reverse(order)) {
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = (it++)->get();
      if (i->opcode() != Opcode::kWhile) continue;
      const int64_t before = module.NextId();
      if (Instruction* unrolled = Unrolled(i)) {
        c->ReplaceAllUses(i, unrolled);
        c->Remove(i);
        changed = true;
        // What came out of it may be known as well: there it goes on.
        while (it != c->instructions().begin() && (*std::prev(it))->id() > before) --it;
        continue;
      }
      if (!i->shape().is_tuple()) continue;
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
