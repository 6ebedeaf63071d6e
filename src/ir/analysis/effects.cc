#include "ir/analysis/effects.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/instruction_map.h"

namespace kiln::ir {
namespace {

// The markers of JAX and XLA's partitioners.
constexpr std::string_view kMarkers[] = {
    "InspectSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Pin",
    "PinToDevice",
    "PinToDeviceSram",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "Sharding",
    "Unpin",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.Sharding",
    "xla.sdy.ShardingGroup",
};

// Most computations have nothing of the kind, and say so without a look at their instructions.
bool MayHave(const Computation& c) {
  static const std::vector<Opcode>& suspects = *[] {
    auto* opcodes = new std::vector<Opcode>{Opcode::kCustomCall};
    for (int k = 0; k < kOpcodeCount; ++k) {
      if (HasTrait(static_cast<Opcode>(k), kSideEffect)) {
        opcodes->push_back(static_cast<Opcode>(k));
      }
    }
    return opcodes;
  }();
  return c.MayCall() || std::ranges::any_of(suspects, [&](Opcode o) { return c.MayHold(o); });
}

// Whether `has` holds for an instruction of the computation.
template <typename Has>
bool Any(const Computation& c, Has has) {
  return MayHave(c) &&
         std::ranges::any_of(c.instructions(), [&](const Instruction* i) { return has(*i); });
}

}  // namespace

bool HasSideEffect(const Instruction& instruction) {
  if (HasTrait(instruction.opcode(), kSideEffect)) return true;
  // The use of a custom call's computations is unknown.
  if (instruction.opcode() == Opcode::kCustomCall) {
    return instruction.attributes().Bool(Attr::kCustomCallHasSideEffect) && !IsMarker(instruction);
  }
  return std::ranges::any_of(instruction.called(),
                             [](const Computation* c) { return HasSideEffect(*c); });
}

bool HasSideEffect(const Computation& computation) {
  return Any(computation, [](const Instruction& i) { return HasSideEffect(i); });
}

std::unordered_map<const Instruction*, Instruction*> PreviousEffects(
    const Computation& computation) {
  std::unordered_map<const Instruction*, Instruction*> previous;
  if (!MayHave(computation)) return previous;
  Instruction* last = nullptr;
  for (Instruction* i : computation.instructions()) {
    if (!HasSideEffect(*i)) continue;
    if (last) previous[i] = last;
    last = i;
  }
  return previous;
}

std::vector<Instruction*> WithEffectsInOrder(const Computation& computation,
                                             std::vector<Instruction*> order) {
  if (!MayHave(computation)) return order;
  std::vector<Instruction*> effects;
  for (Instruction* i : computation.instructions()) {
    if (HasSideEffect(*i)) effects.push_back(i);
  }
  InstructionMap<size_t> place(computation), waits_for(computation);
  for (size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
  if (std::ranges::is_sorted(effects, {}, [&](const Instruction* i) { return place[i]; })) {
    return order;
  }
  // Each effect waits for the preceding one, too; among ready instructions the first in `order`
  // comes next.
  std::unordered_map<const Instruction*, Instruction*> next;
  for (size_t k = 1; k < effects.size(); ++k) {
    next[effects[k - 1]] = effects[k];
    ++waits_for[effects[k]];
  }
  std::set<size_t> ready;
  for (Instruction* i : order) {
    std::unordered_set<const Instruction*> operands(i->operands().begin(), i->operands().end());
    waits_for[i] += operands.size() + i->control_predecessors().size();
  }
  for (Instruction* i : order) {
    if (waits_for[i] == 0) ready.insert(place[i]);
  }
  std::vector<Instruction*> result;
  while (!ready.empty()) {
    Instruction* i = order[*ready.begin()];
    ready.erase(ready.begin());
    result.push_back(i);
    auto done = [&](Instruction* waiting) {
      if (--waits_for[waiting] == 0) ready.insert(place[waiting]);
    };
    for (Instruction* user : i->users()) done(user);
    for (Instruction* successor : i->control_successors()) done(successor);
    if (auto it = next.find(i); it != next.end()) done(it->second);
  }
  return result;
}

bool IsPure(const Instruction& instruction) {
  if (HasTrait(instruction.opcode(), kSideEffect)) return false;
  if (instruction.opcode() == Opcode::kCustomCall) return IsMarker(instruction);
  return std::ranges::none_of(instruction.called(), [](const Computation* c) {
    return Any(*c, [](const Instruction& i) { return !IsPure(i); });
  });
}

bool IsMarkerTarget(std::string_view target) {
  return std::ranges::find(kMarkers, target) != std::end(kMarkers);
}

bool IsMarker(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kCustomCall ||
      !IsMarkerTarget(instruction.attributes().Text(Attr::kCustomCallTarget))) {
    return false;
  }
  if (instruction.shape() == Shape::Tuple({})) return true;
  return instruction.operand_count() == 1 &&
         instruction.operand(0)->shape().SameTypeAndDimensions(instruction.shape());
}

}  // namespace kiln::ir
