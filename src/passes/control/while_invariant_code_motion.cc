#include <algorithm>
#include <iterator>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Ops without cost, or made by kernels where needed.
bool IsCheap(const Instruction& i) {
  return OpCostOf(i.opcode()) == OpCost::kFree || i.opcode() == Opcode::kBroadcast ||
         i.opcode() == Opcode::kReshape || i.opcode() == Opcode::kIota;
}

bool MayMove(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
      return false;
    default:
      return i.shape().is_array() && ir::IsPure(i);
  }
}

// Roughly, its machine instructions; for reductions, per reduced element.
int64_t WorkOf(const Instruction& i) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t elements = i.shape().num_elements();
  switch (i.opcode()) {
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kScatter:
      return std::min(kMost, elements + i.operand(0)->shape().num_elements());
    case Opcode::kDot: {
      for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
        elements *= std::max<int64_t>(i.operand(0)->shape().dim(d), 1);
      }
      return std::min(kMost, elements);
    }
    case Opcode::kSort:
      return std::min(kMost, 16 * elements);
    default:
      return std::min(kMost, IsTranscendental(i.opcode()) ? 16 * elements : elements);
  }
}

// while(x) => while(x, y)   where y is invariant and computed before the loop; it is no larger than
// its inputs, or is not large and takes much more work than reading it
class Mover {
 public:
  explicit Mover(Instruction* loop) : loop_(loop) {}

  bool Run() {
    if (loop_->called(1)->root()->opcode() != Opcode::kTuple) return false;
    if (Moved(*loop_->called(1)).empty()) return false;
    Computation* condition = OwnCallee(loop_, 0);
    body_ = OwnCallee(loop_, 1);
    TakeApart(condition);
    TakeApart(body_);
    std::vector<Instruction*> moved = Moved(*body_);
    Instruction* initial = loop_->operand(0);
    std::vector<Instruction*> state,
        next(body_->root()->operands().begin(), body_->root()->operands().end());
    for (size_t k = 0; k < next.size(); ++k) {
      state.push_back(ElementOf(initial, static_cast<int64_t>(k), loop_));
    }
    for (Instruction* copy : CopyOut(moved)) state.push_back(copy);
    Instruction* start = MakeTuple(loop_->parent(), state, loop_);
    condition->parameter(0)->set_shape(start->shape());
    body_->parameter(0)->set_shape(start->shape());
    // In the body an element of the state represents each; it is invariant.
    for (size_t m = 0; m < moved.size(); ++m) {
      int64_t k = static_cast<int64_t>(next.size());
      Instruction* element = ElementOf(body_->parameter(0), k, moved[m]);
      body_->ReplaceAllUses(moved[m], element);
      std::ranges::replace(next, moved[m], element);
      next.push_back(element);
    }
    size_t count = loop_->shape().elements().size();
    body_->set_root(MakeTuple(body_, next, nullptr));
    Computation* c = loop_->parent();
    Instruction* wide = c->Create({.opcode = Opcode::kWhile,
                                   .operands = {start},
                                   .attributes = loop_->attributes(),
                                   .called = {condition, body_},
                                   .shape = start->shape(),
                                   .op_name = loop_->op_name()},
                                  loop_);
    std::vector<bool> keep(next.size(), false);
    std::fill(keep.begin(), keep.begin() + static_cast<int64_t>(count), true);
    c->ReplaceAllUses(loop_, KeptElements(wide, keep, loop_));
    c->Remove(loop_);
    return true;
  }

 private:
  // Users of the whole state get a rebuilt tuple: it is going to have more elements. It comes
  // first, because these may replace values that do not depend on the state.
  static void TakeApart(Computation* c) {
    Instruction* parameter = c->parameter(0);
    c->Move(parameter, c->instructions().front());
    std::vector<Instruction*> users;
    for (Instruction* user : parameter->users()) {
      if (user->opcode() != Opcode::kGetTupleElement) users.push_back(user);
    }
    if (users.empty()) return;
    std::vector<bool> all(parameter->shape().elements().size(), true);
    Instruction* tuple = KeptElements(parameter, all, *std::next(c->instructions().begin()));
    for (Instruction* user : users) {
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == parameter) c->ReplaceOperand(user, o, tuple);
      }
    }
  }

  // Invariant values used by variant ones. They are no larger than their inputs in the state,
  // because they become state.
  static std::vector<Instruction*> Moved(const Computation& body) {
    const Instruction* parameter = body.parameter(0);
    // The bytes of the state from which an invariant instruction is computed.
    std::unordered_map<const Instruction*, int64_t> source, work;
    for (Instruction* i : body.instructions()) {
      if (ir::IsElementOf(i, parameter)) {
        int64_t k = i->attributes().Int(Attr::kIndex);
        const Instruction* next = body.root()->operand(k);
        if (ir::IsElementOf(next, parameter) && next->attributes().Int(Attr::kIndex) == k) {
          source[i] = i->shape().byte_size();
        }
        continue;
      }
      if (!MayMove(*i)) continue;
      int64_t bytes = 0;
      bool same = std::ranges::all_of(i->operands(), [&](const Instruction* operand) {
        auto it = source.find(operand);
        if (it != source.end()) bytes += it->second;
        return it != source.end();
      });
      if (!same) continue;
      source[i] = bytes;
      int64_t sum = WorkOf(*i);
      for (const Instruction* operand : i->operands()) {
        sum = std::min(sum + work[operand], int64_t{1} << 41);
      }
      work[i] = sum;
    }
    std::vector<Instruction*> moved;
    for (Instruction* i : body.instructions()) {
      auto it = source.find(i);
      if (it == source.end() || IsCheap(*i)) continue;
      bool needed = std::ranges::any_of(i->users(), [&](const Instruction* user) {
        return !source.contains(user) || IsCheap(*user);
      });
      constexpr int64_t kLarge = 1 << 20, kMuchWork = 8;
      const int64_t bytes = i->shape().byte_size();
      bool pays = bytes <= kLarge && work[i] >= kMuchWork * i->shape().num_elements();
      // Values of constants only do not depend on the state.
      const bool fits = it->second > 0 && bytes <= it->second;
      if (needed && (fits || pays)) moved.push_back(i);
    }
    return moved;
  }

  static Instruction* MakeTuple(Computation* c, const std::vector<Instruction*>& elements,
                                Instruction* at) {
    std::vector<Shape> shapes;
    for (const Instruction* element : elements) shapes.push_back(element->shape());
    return c->Create(
        {.opcode = Opcode::kTuple, .operands = elements, .shape = Shape::Tuple(std::move(shapes))},
        at);
  }

  // The instructions and their inputs, before the loop.
  std::vector<Instruction*> CopyOut(const std::vector<Instruction*>& moved) {
    std::unordered_set<const Instruction*> needed(moved.begin(), moved.end());
    std::vector<const Instruction*> work(moved.begin(), moved.end());
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      for (const Instruction* operand : i->operands()) {
        if (needed.insert(operand).second) work.push_back(operand);
      }
    }
    std::unordered_map<const Instruction*, Instruction*> copies;
    for (Instruction* i : body_->instructions()) {
      if (!needed.contains(i) || i->opcode() == Opcode::kParameter) continue;
      if (ir::IsElementOf(i, body_->parameter(0))) {
        copies[i] = ElementOf(loop_->operand(0), i->attributes().Int(Attr::kIndex), loop_);
        continue;
      }
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
      copies[i] = loop_->parent()->Create(ir::CopySpec(*i, std::move(operands)), loop_);
    }
    std::vector<Instruction*> result;
    for (const Instruction* i : moved) result.push_back(copies.at(i));
    return result;
  }

  Instruction* loop_;
  Computation* body_ = nullptr;
};

}  // namespace

Result<bool> MoveInvariants(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Callees first: values that leave an inner loop may leave the outer one, too.
  for (Computation* c : module.CalleesFirst()) {
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (i->opcode() == Opcode::kWhile && i->shape().is_tuple()) changed |= Mover(i).Run();
    }
  }
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
