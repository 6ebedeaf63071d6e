#include "session/outline.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/computation_copies.h"

namespace kiln::session {

using ir::Computation;
using ir::Instruction;

class PartBuilder {
 public:
  PartBuilder(Outliner& outliner, std::string_view name, std::span<Instruction* const> instructions)
      : computation_(outliner.computation_),
        states_(outliner.states_),
        part_(outliner.parts_++),
        module_(std::make_unique<ir::Module>(std::string(name))),
        instructions_(instructions),
        callees_(*module_) {
    // Callees stand before their caller.
    if (computation_.MayCall()) {
      for (const Instruction* i : instructions_) callees_.AddCallees(*i);
    }
    entry_ = module_->AddComputation(name);
    module_->set_entry(entry_);
    for (const Instruction* i : instructions_) states_[i].member_of = part_;
  }

  OutlinedPart Build(std::vector<Instruction*> arguments, std::vector<Instruction*> results) && {
    for (Instruction* argument : arguments) AddParameter(argument);
    for (Instruction* i : instructions_) {
      if (HasCopy(i)) continue;
      for (Instruction* operand : i->operands()) Bring(operand);
      Copy(i);
    }
    KeepControlDependencies();
    std::vector<Instruction*> elements;
    std::vector<Shape> shapes;
    for (Instruction* result : results) {
      Bring(result);
      elements.push_back(CopyOf(result));
      shapes.push_back(result->shape());
    }
    entry_->set_root(entry_->Create({.opcode = Opcode::kTuple,
                                     .operands = std::move(elements),
                                     .shape = Shape::Tuple(std::move(shapes)),
                                     .name = "results"}));
    return {std::move(module_), std::move(arguments_), std::move(results)};
  }

 private:
  bool IsMember(const Instruction* i) const {
    const Outliner::State* state = states_.Find(i);
    return state && state->member_of == part_;
  }
  bool HasCopy(const Instruction* i) const {
    const Outliner::State* state = states_.Find(i);
    return state && state->copied_to == part_;
  }
  // Of one that has a copy.
  Instruction* CopyOf(const Instruction* i) const { return states_.at(i).copy; }
  void SetCopy(const Instruction* i, Instruction* copy) {
    Outliner::State& state = states_[i];
    state.copied_to = part_;
    state.copy = copy;
  }

  void AddParameter(Instruction* value) {
    SetCopy(value, entry_->Create({.opcode = Opcode::kParameter,
                                   .attributes = {{Attr::kParameterNumber,
                                                   static_cast<int64_t>(arguments_.size())}},
                                   .shape = value->shape(),
                                   .name = value->name(),
                                   .op_name = value->op_name()}));
    arguments_.push_back(value);
  }

  // Those between members.
  void KeepControlDependencies() {
    if (!computation_.HasControlDependencies()) return;
    for (Instruction* i : instructions_) {
      for (Instruction* before : i->control_predecessors()) {
        if (!IsMember(before)) continue;
        // Copies are in the order of the originals, so there is no cycle.
        (void)entry_->AddControlDependency(CopyOf(before), CopyOf(i));
      }
    }
  }

  // Makes a value available, unless it is a member, whose turn comes.
  void Bring(Instruction* value) {
    if (HasCopy(value) || IsMember(value)) return;
    if (IsSmallConstant(*value)) {
      Copy(value);
    } else {
      AddParameter(value);
    }
  }

  void Copy(Instruction* i) {
    std::vector<Instruction*> operands;
    operands.reserve(i->operands().size());
    for (const Instruction* operand : i->operands()) operands.push_back(CopyOf(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    for (Computation*& callee : spec.called) callee = callees_.Of(callee);
    SetCopy(i, entry_->Create(std::move(spec)));
  }

  const Computation& computation_;
  ir::InstructionMap<Outliner::State>& states_;
  const int32_t part_;
  std::unique_ptr<ir::Module> module_;
  Computation* entry_ = nullptr;
  std::span<Instruction* const> instructions_;
  ir::ComputationCopies callees_;
  std::vector<Instruction*> arguments_;
};

OutlinedPart Outliner::Outline(std::string_view name, std::span<Instruction* const> instructions,
                               std::vector<Instruction*> arguments,
                               std::vector<Instruction*> results) {
  return PartBuilder(*this, name, instructions).Build(std::move(arguments), std::move(results));
}

std::vector<OutlinedPart> OutlineClusters(const Clustering& clustering,
                                          std::span<const Instruction* const> fetched) {
  const std::unordered_set<const Instruction*> is_fetched(fetched.begin(), fetched.end());
  std::vector<OutlinedPart> parts;
  if (clustering.clusters().empty()) return parts;
  Outliner outliner(*clustering.clusters().front().instructions.front()->parent());
  for (const Cluster& cluster : clustering.clusters()) {
    std::vector<Instruction*> results;
    for (Instruction* i : cluster.instructions) {
      auto is_outside = [&](const Instruction* user) {
        return clustering.ClusterOf(user) != clustering.ClusterOf(i);
      };
      if (i->shape().is_array() &&
          (is_fetched.contains(i) || std::ranges::any_of(i->users(), is_outside))) {
        results.push_back(i);
      }
    }
    parts.push_back(outliner.Outline(cluster.name, cluster.instructions, {}, std::move(results)));
  }
  return parts;
}

}  // namespace kiln::session
