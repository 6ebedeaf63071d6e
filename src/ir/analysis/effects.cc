#include "ir/analysis/effects.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/instruction_map.h"

namespace kiln::ir {
namespace {

// The markers of JAX and XLA's partitioners, and of functions with derivatives by a user's rule.
constexpr std::string_view kMarkers[] = {
    "CustomGradient",
    "InspectSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Pin",
    "PinToDevice",
    "PinToDeviceSram",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "ShardBarrierFrom",
    "ShardBarrierTo",
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

// What may have an effect of its own, or see one.
bool IsSuspect(Opcode opcode) {
  return opcode == Opcode::kCustomCall || opcode == Opcode::kHostCallback ||
         opcode == Opcode::kVariable || HasTrait(opcode, kSideEffect);
}

// Whether a computation may hold any itself, without a look at its instructions.
bool MayHold(const Computation& c) {
  static const std::vector<Opcode>& suspects = *[] {
    auto* opcodes = new std::vector<Opcode>;
    for (int k = 0; k < kOpcodeCount; ++k) {
      if (IsSuspect(static_cast<Opcode>(k))) opcodes->push_back(static_cast<Opcode>(k));
    }
    return opcodes;
  }();
  return std::ranges::any_of(suspects, [&](Opcode o) { return c.MayHold(o); });
}

// Most computations have nothing of the kind, nor do they call others.
bool MayHave(const Computation& c) { return c.MayCall() || MayHold(c); }

// So do most instructions. Callees' instructions are looked at where these may call, as reductions
// in fusions do.
bool MayHave(const Instruction& i) {
  const auto calls_one = [](const Instruction* inside) {
    return std::ranges::any_of(inside->called(), [](const Computation* c) { return MayHave(*c); });
  };
  return IsSuspect(i.opcode()) || std::ranges::any_of(i.called(), [&](const Computation* c) {
           return MayHold(*c) ||
                  (c->MayCall() && std::ranges::any_of(c->instructions(), calls_one));
         });
}

// Whether `has` holds for an instruction of the computation.
template <typename Has>
bool Any(const Computation& c, Has has) {
  return MayHave(c) &&
         std::ranges::any_of(c.instructions(), [&](const Instruction* i) { return has(*i); });
}

// Computations called in many ways are looked at once.
class EffectSearch {
 public:
  bool In(const Instruction& i) {
    if (HasTrait(i.opcode(), kSideEffect)) return true;
    if (i.opcode() == Opcode::kHostCallback) {
      return i.attributes().Bool(Attr::kCustomCallHasSideEffect);
    }
    // The use of a custom call's computations is unknown.
    if (i.opcode() == Opcode::kCustomCall) {
      return i.attributes().Bool(Attr::kCustomCallHasSideEffect) && !IsMarker(i);
    }
    return std::ranges::any_of(i.called(), [this](const Computation* c) { return In(*c); });
  }
  bool In(const Computation& c) {
    return MayHave(c) && without_.insert(&c).second &&
           std::ranges::any_of(c.instructions(), [this](const Instruction* i) { return In(*i); });
  }

 private:
  std::unordered_set<const Computation*> without_;
};

// What instructions do to variables, by name; callees are looked at once.
class VariableUses {
 public:
  struct Uses {
    std::set<std::string> read, assigned;
  };

  const Uses& Of(const Instruction& i) {
    Uses& uses = of_instruction_ = {};
    Add(i, uses);
    return uses;
  }

 private:
  void Add(const Instruction& i, Uses& uses) {
    if (i.opcode() == Opcode::kVariable) uses.read.insert(i.attributes().Text(Attr::kVariable));
    if (i.opcode() == Opcode::kAssign || i.opcode() == Opcode::kAssignAdd) {
      uses.assigned.insert(i.attributes().Text(Attr::kVariable));
    }
    for (const Computation* c : i.called()) {
      const Uses& inside = Of(*c);
      uses.read.insert(inside.read.begin(), inside.read.end());
      uses.assigned.insert(inside.assigned.begin(), inside.assigned.end());
    }
  }
  const Uses& Of(const Computation& c) {
    if (auto known = of_computation_.find(&c); known != of_computation_.end()) return known->second;
    Uses uses;
    if (MayHave(c)) {
      for (const Instruction* i : c.instructions()) Add(*i, uses);
    }
    return of_computation_[&c] = std::move(uses);
  }

  Uses of_instruction_;
  std::unordered_map<const Computation*, Uses> of_computation_;
};

}  // namespace

bool HasSideEffect(const Instruction& instruction) {
  return MayHave(instruction) && EffectSearch().In(instruction);
}
bool HasSideEffect(const Computation& computation) { return EffectSearch().In(computation); }

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

EffectOrder EffectsBefore(const Computation& computation) {
  EffectOrder before;
  if (!MayHave(computation)) return before;
  struct Variable {
    Instruction* assigned = nullptr;  // by whom, last
    std::vector<Instruction*> read;   // since then
  };
  std::unordered_map<std::string, Variable> variables;
  VariableUses all_uses;
  Instruction* last = nullptr;
  for (Instruction* i : computation.instructions()) {
    if (!MayHave(*i)) continue;
    const bool is_effect = HasSideEffect(*i);
    const VariableUses::Uses& uses = all_uses.Of(*i);
    if (!is_effect && uses.read.empty()) continue;
    std::vector<Instruction*> waits_for;
    for (const std::string& name : uses.read) {
      Variable& variable = variables[name];
      if (!is_effect && variable.assigned) waits_for.push_back(variable.assigned);
      if (!uses.assigned.contains(name)) variable.read.push_back(i);
    }
    for (const std::string& name : uses.assigned) {
      Variable& variable = variables[name];
      waits_for.insert(waits_for.end(), variable.read.begin(), variable.read.end());
      variable = {i, {}};
    }
    if (is_effect && last) waits_for.push_back(last);
    if (is_effect) last = i;
    std::ranges::sort(waits_for, {}, &Instruction::id);
    waits_for.erase(std::ranges::unique(waits_for).begin(), waits_for.end());
    if (!waits_for.empty()) before.emplace(i, std::move(waits_for));
  }
  return before;
}

std::vector<Instruction*> WithEffectsInOrder(const Computation& computation,
                                             std::vector<Instruction*> order) {
  if (!MayHave(computation)) return order;
  const EffectOrder effects = EffectsBefore(computation);
  if (effects.empty()) return order;
  InstructionMap<size_t> place(computation), waits_for(computation);
  for (size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
  if (std::ranges::all_of(effects, [&](const auto& entry) {
        return std::ranges::all_of(entry.second, [&](const Instruction* before) {
          return place[before] < place[entry.first];
        });
      })) {
    return order;
  }
  // Effects wait for the preceding ones, too; among ready instructions the first in `order` comes
  // next.
  std::unordered_map<const Instruction*, std::vector<Instruction*>> after;
  for (Instruction* i : order) {
    std::unordered_set<const Instruction*> operands(i->operands().begin(), i->operands().end());
    waits_for[i] += operands.size() + i->control_predecessors().size();
    auto it = effects.find(i);
    if (it == effects.end()) continue;
    for (const Instruction* before : it->second) after[before].push_back(i);
    waits_for[i] += it->second.size();
  }
  std::set<size_t> ready;
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
    if (auto it = after.find(i); it != after.end()) std::ranges::for_each(it->second, done);
  }
  return result;
}

bool IsPure(const Instruction& instruction) {
  if (HasTrait(instruction.opcode(), kSideEffect)) return false;
  if (instruction.opcode() == Opcode::kHostCallback) return false;
  if (instruction.opcode() == Opcode::kVariable) return false;
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
