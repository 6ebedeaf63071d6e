#include "session/units.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/session_only.h"
#include "ir/instruction_map.h"
#include "session/outline.h"

namespace kiln::session {
namespace {

using ir::Computation;
using ir::Instruction;

// A cluster, or an op with those that exchange tuples or tokens with it.
struct Node {
  int device = 0;
  int cluster = -1;
  bool is_on_host = false;
  int level = 0;
  int pending = 0;  // dependencies without a level
  std::vector<int> dependencies, users;
  std::vector<Instruction*> members;
};

// The assignment of instructions to units. A unit's level is the length of the longest path of
// units to it, so any order by levels has producers before consumers.
class Levels {
 public:
  Levels(const Computation& entry, const Placement& placement, const Clustering& clustering)
      : entry_(entry), placement_(placement), clustering_(clustering), node_of_(entry) {}

  // The nodes of each unit, in the order of the units.
  Result<std::vector<std::vector<const Node*>>> Compute() {
    MakeNodes();
    Connect();
    KILN_RETURN_IF_ERROR(SetLevels());
    std::map<std::tuple<int, int, int, const Node*>, std::vector<const Node*>> units;
    for (const Node& node : nodes_) {
      units[{node.level, node.cluster, node.device, node.is_on_host ? &node : nullptr}].push_back(
          &node);
    }
    std::vector<std::vector<const Node*>> result;
    for (auto& [key, nodes] : units) result.push_back(std::move(nodes));
    return result;
  }

 private:
  void MakeNodes() {
    std::unordered_map<int, int> by_cluster, by_tie;
    for (Instruction* i : entry_.instructions()) {
      if (i == entry_.root() || i->opcode() == Opcode::kParameter || IsSmallConstant(*i)) continue;
      const int cluster = clustering_.ClusterOf(i);
      const int next = static_cast<int>(nodes_.size());
      const int number = cluster >= 0 ? by_cluster.emplace(cluster, next).first->second
                                      : by_tie.emplace(clustering_.TieOf(i), next).first->second;
      if (number == next) nodes_.push_back({.device = DeviceOf(*i, cluster), .cluster = cluster});
      Node& node = nodes_[static_cast<size_t>(number)];
      node.members.push_back(i);
      if (cluster < 0 && ir::SessionOnlyIn(*i)) node.is_on_host = true;
      node_of_[i] = number;
    }
  }

  int DeviceOf(const Instruction& i, int cluster) const {
    return cluster < 0 ? placement_.device_of.at(&i)
                       : clustering_.clusters()[static_cast<size_t>(cluster)].device;
  }

  void Connect() {
    const auto effects = ir::PreviousEffects(entry_);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      auto depend = [&](const Instruction* on) {
        const int* other = node_of_.Find(on);
        if (other && *other != static_cast<int>(n)) node.dependencies.push_back(*other);
      };
      for (const Instruction* i : node.members) {
        for (const Instruction* operand : i->operands()) depend(operand);
        for (const Instruction* before : i->control_predecessors()) depend(before);
        if (auto it = effects.find(i); it != effects.end()) depend(it->second);
      }
      std::ranges::sort(node.dependencies);
      const auto rest = std::ranges::unique(node.dependencies);
      node.dependencies.erase(rest.begin(), rest.end());
      node.pending = static_cast<int>(node.dependencies.size());
      for (int other : node.dependencies) {
        nodes_[static_cast<size_t>(other)].users.push_back(static_cast<int>(n));
      }
    }
  }

  Status SetLevels() {
    std::vector<int> ready;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].pending == 0) ready.push_back(static_cast<int>(n));
    }
    size_t done = 0;
    while (!ready.empty()) {
      Node& node = nodes_[static_cast<size_t>(ready.back())];
      ready.pop_back();
      ++done;
      for (int other : node.dependencies) {
        const Node& before = nodes_[static_cast<size_t>(other)];
        const bool is_same_unit = IsOp(node) && IsOp(before) && node.device == before.device;
        node.level = std::max(node.level, before.level + (is_same_unit ? 0 : 1));
      }
      for (int user : node.users) {
        if (--nodes_[static_cast<size_t>(user)].pending == 0) ready.push_back(user);
      }
    }
    if (done == nodes_.size()) return OkStatus();
    return Internal("the clusters of '", entry_.name(), "' have a cycle");
  }

  // Whether it can be in a unit with others.
  static bool IsOp(const Node& node) { return node.cluster < 0 && !node.is_on_host; }

  const Computation& entry_;
  const Placement& placement_;
  const Clustering& clustering_;
  std::vector<Node> nodes_;
  ir::InstructionMap<int> node_of_;
};

// Instructions of several nodes, in the order of the computation.
std::vector<Instruction*> MembersOf(std::span<const Node* const> nodes,
                                    const ir::InstructionMap<int>& positions) {
  std::vector<Instruction*> members;
  for (const Node* node : nodes) {
    members.insert(members.end(), node->members.begin(), node->members.end());
  }
  std::ranges::sort(members, {}, [&](const Instruction* i) { return positions.at(i); });
  return members;
}

class Splitter {
 public:
  Splitter(const ir::Module& module, const Clustering& clustering)
      : module_(module),
        entry_(*module.entry()),
        clustering_(clustering),
        positions_(entry_),
        unit_of_(entry_),
        value_of_(entry_),
        outliner_(entry_) {
    int position = 0;
    for (const Instruction* i : entry_.instructions()) positions_[i] = position++;
    for (Instruction* i : entry_.parameters()) {
      units_.feeds.push_back(units_.values.Add({i->name(), i->shape(), UnitId()}));
      value_of_[i] = units_.feeds.back();
    }
  }

  Units Split(const std::vector<std::vector<const Node*>>& parts) && {
    std::vector<std::vector<Instruction*>> members;
    for (const std::vector<const Node*>& nodes : parts) {
      const UnitId id = units_.units.Add({});
      units_.units[id].device = nodes.front()->device;
      units_.units[id].cluster = nodes.front()->cluster;
      units_.units[id].is_on_host = nodes.front()->is_on_host;
      members.push_back(MembersOf(nodes, positions_));
      for (const Instruction* i : members.back()) unit_of_[i] = id;
    }
    for (UnitId id : units_.units.ids()) Outline(id, members[id.index()]);
    for (const Instruction* fetched : entry_.root()->operands()) {
      units_.fetches.push_back(value_of_.at(fetched));
    }
    FindLastUses();
    return std::move(units_);
  }

 private:
  // By another unit, or as a fetch.
  bool IsUsedOutside(const Instruction& i, UnitId unit) const {
    return std::ranges::any_of(i.users(), [&](const Instruction* user) {
      return user == entry_.root() || unit_of_.at(user) != unit;
    });
  }

  void Outline(UnitId id, const std::vector<Instruction*>& members) {
    Unit& unit = units_.units[id];
    unit.name = unit.cluster < 0 ? module_.name()
                                 : clustering_.clusters()[static_cast<size_t>(unit.cluster)].name;
    // The only unit has all feeds and fetches, in their order.
    const bool is_only = units_.units.size() == 1;
    std::vector<Instruction*> arguments, results;
    if (is_only) {
      arguments.assign(entry_.parameters().begin(), entry_.parameters().end());
      results.assign(entry_.root()->operands().begin(), entry_.root()->operands().end());
    } else {
      for (Instruction* i : members) {
        if (!i->shape().is_array()) continue;
        if (IsUsedOutside(*i, id)) results.push_back(i);
      }
    }
    OutlinedPart part =
        outliner_.Outline(unit.name, members, std::move(arguments), std::move(results));
    for (const Instruction* i : part.arguments) unit.inputs.push_back(value_of_.at(i));
    for (const Instruction* i : part.results) {
      unit.outputs.push_back(units_.values.Add({i->name(), i->shape(), id}));
      value_of_[i] = unit.outputs.back();
    }
    unit.module = std::move(part.module);
  }

  void FindLastUses() {
    IdVector<ValueId, UnitId> last(units_.values.size());
    for (UnitId id : units_.units.ids()) {
      for (ValueId value : units_.units[id].inputs) last[value] = id;
    }
    for (ValueId value : units_.fetches) last[value] = UnitId();
    for (ValueId value : units_.values.ids()) {
      if (last[value].valid()) units_.units[last[value]].last_uses.push_back(value);
    }
  }

  const ir::Module& module_;
  const Computation& entry_;
  const Clustering& clustering_;
  ir::InstructionMap<int> positions_;
  ir::InstructionMap<UnitId> unit_of_;
  ir::InstructionMap<ValueId> value_of_;
  Outliner outliner_;
  Units units_;
};

}  // namespace

Result<Units> SplitIntoUnits(const ir::Module& module, const Placement& placement,
                             const Clustering& clustering) {
  Levels levels(*module.entry(), placement, clustering);
  KILN_ASSIGN_OR_RETURN(auto parts, levels.Compute());
  return Splitter(module, clustering).Split(parts);
}

}  // namespace kiln::session
