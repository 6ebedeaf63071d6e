#include "session/outline.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "session/computation_copies.h"

namespace kiln::session {
namespace {

using ir::Computation;
using ir::Instruction;

class Outliner {
 public:
  Outliner(std::string_view name, std::span<Instruction* const> instructions)
      : module_(std::make_unique<ir::Module>(std::string(name))),
        instructions_(instructions),
        callees_(*module_) {
    // Callees stand before their caller.
    for (const Instruction* i : instructions_) callees_.Add(*i);
    entry_ = module_->AddComputation(name);
    module_->set_entry(entry_);
    members_.insert(instructions.begin(), instructions.end());
  }

  OutlinedPart Run(std::vector<Instruction*> arguments, std::vector<Instruction*> results) && {
    for (Instruction* argument : arguments) AddParameter(argument);
    for (Instruction* i : instructions_) {
      if (copies_.contains(i)) continue;
      for (Instruction* operand : i->operands()) Bring(operand);
      Copy(i);
    }
    KeepControlDependencies();
    std::vector<Instruction*> elements;
    std::vector<Shape> shapes;
    for (Instruction* result : results) {
      Bring(result);
      elements.push_back(copies_.at(result));
      shapes.push_back(result->shape());
    }
    entry_->set_root(entry_->Create({.opcode = Opcode::kTuple,
                                     .operands = std::move(elements),
                                     .shape = Shape::Tuple(std::move(shapes)),
                                     .name = "results"}));
    return {std::move(module_), std::move(arguments_), std::move(results)};
  }

 private:
  void AddParameter(Instruction* value) {
    copies_[value] = entry_->Create(
        {.opcode = Opcode::kParameter,
         .attributes = {{Attr::kParameterNumber, static_cast<int64_t>(arguments_.size())}},
         .shape = value->shape(),
         .name = value->name(),
         .op_name = value->op_name()});
    arguments_.push_back(value);
  }

  // Those between members.
  void KeepControlDependencies() {
    for (Instruction* i : instructions_) {
      for (Instruction* before : i->control_predecessors()) {
        if (!members_.contains(before)) continue;
        // Copies are in the order of the originals, so there is no cycle.
        (void)entry_->AddControlDependency(copies_.at(before), copies_.at(i));
      }
    }
  }

  // Makes a value available, unless it is a member, whose turn comes.
  void Bring(Instruction* value) {
    if (copies_.contains(value) || members_.contains(value)) return;
    if (IsSmallConstant(*value)) {
      Copy(value);
    } else {
      AddParameter(value);
    }
  }

  void Copy(Instruction* i) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies_.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    for (Computation*& callee : spec.called) callee = callees_.Of(callee);
    copies_[i] = entry_->Create(std::move(spec));
  }

  std::unique_ptr<ir::Module> module_;
  Computation* entry_ = nullptr;
  std::span<Instruction* const> instructions_;
  std::unordered_set<const Instruction*> members_;
  ComputationCopies callees_;
  std::unordered_map<const Instruction*, Instruction*> copies_;
  std::vector<Instruction*> arguments_;
};

}  // namespace

OutlinedPart OutlinePart(std::string_view name, std::span<Instruction* const> instructions,
                         std::vector<Instruction*> arguments, std::vector<Instruction*> results) {
  return Outliner(name, instructions).Run(std::move(arguments), std::move(results));
}

std::vector<OutlinedPart> OutlineClusters(const Clustering& clustering,
                                          std::span<const Instruction* const> fetched) {
  const std::unordered_set<const Instruction*> is_fetched(fetched.begin(), fetched.end());
  std::vector<OutlinedPart> parts;
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
    parts.push_back(OutlinePart(cluster.name, cluster.instructions, {}, std::move(results)));
  }
  return parts;
}

}  // namespace kiln::session
