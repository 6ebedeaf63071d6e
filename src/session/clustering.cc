#include "session/clustering.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/short_list.h"
#include "ir/analysis/effects.h"
#include "session/cluster_candidates.h"
#include "session/cycles.h"

namespace kiln::session {
namespace {

using ir::Computation;
using ir::Instruction;

// The devices of a cluster's ops: one, or one CPU and one GPU, which then runs the cluster.
struct DeviceSet {
  int32_t cpu = -1, gpu = -1, own = -1;  // `own` always compiles

  static DeviceSet Of(const std::vector<PlacedDevice>& devices, int32_t device) {
    DeviceSet set;
    const PlacedDevice& d = devices[static_cast<size_t>(device)];
    (d.compiles_always ? set.own : d.is_gpu ? set.gpu : set.cpu) = device;
    return set;
  }
  int32_t Chosen() const { return own >= 0 ? own : gpu >= 0 ? gpu : cpu; }
};

// Nullopt: the devices do not agree.
std::optional<DeviceSet> Union(const DeviceSet& a, const DeviceSet& b, bool mixed) {
  auto conflict = [](int32_t x, int32_t y) { return x >= 0 && y >= 0 && x != y; };
  if (conflict(a.cpu, b.cpu) || conflict(a.gpu, b.gpu) || conflict(a.own, b.own)) {
    return std::nullopt;
  }
  DeviceSet set = {std::max(a.cpu, b.cpu), std::max(a.gpu, b.gpu), std::max(a.own, b.own)};
  if (set.own >= 0 && (set.cpu >= 0 || set.gpu >= 0)) return std::nullopt;
  if (set.cpu >= 0 && set.gpu >= 0 && !mixed) return std::nullopt;
  return set;
}

// A node of the graph of clusters.
struct Group {
  int32_t first = 0;  // the first instruction's position
  int64_t size = 1, effective_size = 0;
  DeviceSet devices;
  int32_t scope = -1;  // a number
  bool is_candidate = false;
  bool must_compile = false;
  bool is_marked = false;
  bool has_control_flow = false;
  bool is_shape_consumer = false;  // a single op
  // The devices of candidates that an instruction of the group reads from, apart from its own one.
  ShortList<int32_t, 2> feeders;
  // The last failed contraction with a group that is not a part of this one.
  Obstacle obstacle = Obstacle::kNone;
  int32_t obstacle_at = -1;  // a position in the other group
};

}  // namespace

class ClusterBuilder {
 public:
  explicit ClusterBuilder(const ClusterInput& input)
      : input_(input),
        options_(input.options),
        devices_(input.placement.devices),
        result_(input.entry),
        cycles_(static_cast<int32_t>(input.entry.instruction_count())) {}

  Result<Clustering> Build() {
    KILN_RETURN_IF_ERROR(JudgeInstructions());
    KILN_RETURN_IF_ERROR(AddEdges());
    Tie();
    JudgeGroups();
    FindFeeders();
    if (input_.entry.MayHold(Opcode::kGetDimensionSize)) {
      ContractEdges([](const Group& to) { return to.is_shape_consumer; });
    }
    ContractEdges([](const Group&) { return true; });
    PlaceConstants();
    MakeClusters();
    return std::move(result_);
  }

 private:
  using Place = Clustering::Place;

  Status JudgeInstructions();
  Status FindLoose();
  Status AddEdges();
  template <typename Visit>
  void ForEachEdge(Visit visit) const;
  void Tie();
  void JudgeGroups();
  void FindFeeders();
  template <typename Accepts>
  void ContractEdges(Accepts accepts);
  std::vector<int32_t> PostOrder() const;
  Obstacle TryToContract(int32_t from, int32_t to);
  bool AreCompiledOnDemand(const Group& from, const Group& to) const;
  Obstacle Check(const Group& from, const Group& to) const;
  void Merge(int32_t kept, int32_t gone);
  bool IsKept(const Group& group) const;
  void PlaceConstants();
  void MakeClusters();
  std::string RefusalOf(const Instruction& i, Compilability& compilability) const;

  int32_t PositionOf(const Instruction* i) const {
    return static_cast<int32_t>(result_.positions_.at(i));
  }
  Place& PlaceAt(int32_t position) { return result_.places_[static_cast<size_t>(position)]; }
  // The node that an instruction is a part of.
  int32_t NodeOf(int32_t position) {
    while (parents_[position] != position) {
      position = parents_[position] = parents_[parents_[position]];
    }
    return position;
  }

  const ClusterInput& input_;
  const ClusterOptions& options_;
  const std::vector<PlacedDevice>& devices_;
  Clustering result_;
  GraphCycles cycles_;
  // By position.
  std::vector<Instruction*> instructions_;
  std::vector<Group> groups_;     // of nodes that are alive
  std::vector<int32_t> parents_;  // the node that a node was contracted into
  struct Mark {
    int32_t scope = -1;
    bool is_marked = false;
    bool must_compile = false;
  };
  std::vector<Mark> marks_;
  std::vector<bool> is_loose_;  // small constants without control edges: in no edge
  std::vector<std::pair<int32_t, int32_t>> control_edges_;
};

Status ClusterBuilder::FindLoose() {
  is_loose_.resize(instructions_.size());
  for (size_t k = 0; k < instructions_.size(); ++k) {
    is_loose_[k] = IsSmallConstant(*instructions_[k]);
  }
  for (const ControlEdge& edge : input_.control_edges) {
    for (const Instruction* end : {edge.before, edge.after}) {
      if (!end || end->parent() != &input_.entry) {
        return InvalidArgument("a control edge leads out of the computation '", input_.entry.name(),
                               "'", end ? " to '" : "", end ? end->name() : "", end ? "'" : "");
      }
      is_loose_[result_.positions_.at(end)] = false;
    }
    control_edges_.emplace_back(PositionOf(edge.before), PositionOf(edge.after));
  }
  return OkStatus();
}

Status ClusterBuilder::JudgeInstructions() {
  const size_t n = static_cast<size_t>(input_.entry.instruction_count());
  for (Instruction* i : input_.entry.instructions()) {
    result_.positions_[i] = instructions_.size();
    instructions_.push_back(i);
  }
  result_.places_.resize(n);
  groups_.resize(n);
  parents_.resize(n);
  marks_.resize(n);
  KILN_RETURN_IF_ERROR(FindLoose());
  KILN_ASSIGN_OR_RETURN(CandidateRules rules, CandidateRules::Create(input_));
  std::unordered_map<std::string_view, int32_t> scopes;
  for (int32_t k = 0; k < static_cast<int32_t>(n); ++k) {
    const Instruction& i = *instructions_[k];
    const int32_t* device = input_.placement.device_of.Find(&i);
    if (!device || *device < 0 || static_cast<size_t>(*device) >= devices_.size()) {
      return InvalidArgument("'", i.name(), "' is not on any device");
    }
    JitMark mark = input_.mark ? input_.mark(i) : JitMark();
    Group& group = groups_[k];
    parents_[k] = group.first = k;
    group.effective_size = !IsIdentityLike(i);
    group.devices = DeviceSet::Of(devices_, *device);
    group.has_control_flow = i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional;
    group.is_shape_consumer = IsShapeConsumer(i.opcode());
    marks_[k].is_marked = mark.compile == true;
    marks_[k].must_compile = mark.must_compile;
    if (!mark.scope.empty() && options_.level != JitLevel::kOn) {
      marks_[k].scope =
          scopes.emplace(mark.scope, static_cast<int32_t>(scopes.size())).first->second;
    }
    bool is_result = i.opcode() == Opcode::kTuple && i.IsRoot() && i.users().empty() &&
                     std::ranges::all_of(i.operands(), [](const Instruction* operand) {
                       return operand->shape().is_array();
                     });
    PlaceAt(k).reason.outside = is_result           ? Outside::kResult
                                : is_loose_[k]      ? Outside::kSmallConstant
                                : mark.must_compile ? Outside::kNot
                                                    : rules.Judge(i, mark, devices_[*device]);
  }
  return OkStatus();
}

template <typename Visit>
void ClusterBuilder::ForEachEdge(Visit visit) const {
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()); ++k) {
    for (const Instruction* operand : instructions_[k]->operands()) {
      int32_t from = PositionOf(operand);
      if (!is_loose_[from]) visit(from, k);
    }
  }
  for (auto [before, after] : control_edges_) visit(before, after);
}

Status ClusterBuilder::AddEdges() {
  auto previous = ir::PreviousEffects(input_.entry);
  // Control edges of the user stand first, so that an error is theirs.
  std::pair<int32_t, int32_t> closing = {-1, -1};
  auto add = [&](int32_t from, int32_t to) {
    if (!cycles_.AddEdge(from, to) && closing.first < 0) closing = {from, to};
  };
  ForEachEdge(add);
  if (closing.first >= 0) {
    return InvalidArgument("the control edge from '", instructions_[closing.first]->name(),
                           "' to '", instructions_[closing.second]->name(), "' closes a cycle");
  }
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()) && !previous.empty(); ++k) {
    auto it = previous.find(instructions_[k]);
    if (it == previous.end()) continue;
    control_edges_.emplace_back(PositionOf(it->second), k);
    add(control_edges_.back().first, k);
  }
  if (closing.first >= 0) {
    return InvalidArgument("control edges reverse the order of the side effects of '",
                           instructions_[closing.first]->name(), "' and '",
                           instructions_[closing.second]->name(), "'");
  }
  return OkStatus();
}

// Merges the group of a node into the one of another node.
void ClusterBuilder::Merge(int32_t kept, int32_t gone) {
  parents_[gone] = kept;
  Group& to = groups_[kept];
  const Group& from = groups_[gone];
  to.first = std::min(to.first, from.first);
  to.size += from.size;
  to.effective_size += from.effective_size;
  to.is_marked |= from.is_marked;
  to.has_control_flow |= from.has_control_flow;
  to.is_shape_consumer = false;
  if (to.scope < 0) to.scope = from.scope;
  if (auto devices = Union(to.devices, from.devices, options_.gpu_clusters_take_cpu_ops)) {
    to.devices = *devices;
  }
  for (int32_t device : from.feeders) {
    if (std::ranges::find(to.feeders, device) == to.feeders.end()) to.feeders.push_back(device);
  }
  auto is_inside = [&](const Group& group) {
    return group.obstacle == Obstacle::kNone || NodeOf(group.obstacle_at) == kept;
  };
  if (is_inside(to)) {
    to.obstacle = is_inside(from) ? Obstacle::kNone : from.obstacle;
    to.obstacle_at = from.obstacle_at;
  }
}

// Ties producers and users of tuples and tokens, and what is on paths between them.
void ClusterBuilder::Tie() {
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()); ++k) {
    for (const Instruction* operand : instructions_[k]->operands()) {
      int32_t producer = PositionOf(operand);
      if (operand->shape().is_array()) continue;
      if (operand->opcode() == Opcode::kParameter) {
        // It is there wherever it is read.
        PlaceAt(k).reason = {.outside = Outside::kInput, .other = operand};
        continue;
      }
      int32_t from = NodeOf(producer), to = NodeOf(k);
      if (from == to) continue;
      std::vector<int32_t> between = {from, to};
      if (cycles_.predecessor_count(to) > 1) between = cycles_.Between(from, to);
      for (size_t at = 1; at < between.size(); ++at) {
        int32_t kept = *cycles_.Contract(from, between[at]);
        Merge(kept, kept == from ? between[at] : from);
        from = kept;
      }
    }
  }
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()); ++k) {
    PlaceAt(k).tie = NodeOf(k);
  }
}

// Decides which groups are candidates: those of which all ops are.
void ClusterBuilder::JudgeGroups() {
  struct Judgement {
    bool has_work = false;  // an op that is no plumbing
    DeviceSet devices;
    bool one_device = true;
    const Instruction* outside = nullptr;
    int32_t scope = -1;
    bool is_marked = false;
    int32_t call = -1;  // the first one that must be compiled
  };
  const int32_t n = static_cast<int32_t>(instructions_.size());
  std::vector<Judgement> judgements(static_cast<size_t>(n));
  for (int32_t k = 0; k < n; ++k) {
    judgements[NodeOf(k)].has_work |= !IsTuplePlumbing(instructions_[k]->opcode());
  }
  for (int32_t k = 0; k < n; ++k) {
    Judgement& group = judgements[NodeOf(k)];
    OutsideReason& reason = PlaceAt(k).reason;
    // Users of tuple parameters stay outside whatever they are.
    if (group.has_work && IsTuplePlumbing(instructions_[k]->opcode()) &&
        reason.outside != Outside::kInput) {
      if (reason.outside != Outside::kResult) reason = {};
    } else {
      auto devices = Union(group.devices,
                           DeviceSet::Of(devices_, input_.placement.device_of.at(instructions_[k])),
                           options_.gpu_clusters_take_cpu_ops);
      group.one_device &= devices.has_value();
      if (devices) group.devices = *devices;
      group.is_marked |= marks_[k].is_marked;
      if (group.scope < 0) group.scope = marks_[k].scope;
    }
    if (marks_[k].must_compile && group.call < 0) group.call = k;
    if (reason.outside != Outside::kNot && !group.outside) group.outside = instructions_[k];
  }
  for (int32_t k = 0; k < n; ++k) {
    int32_t node = NodeOf(k);
    const Judgement& judgement = judgements[node];
    Group& group = groups_[node];
    OutsideReason& reason = PlaceAt(k).reason;
    group.devices = judgement.devices;
    group.is_marked = judgement.is_marked;
    group.scope = judgement.scope;
    group.must_compile = judgement.call >= 0;
    if (group.must_compile) {
      // It runs where the call is, whatever is tied to it.
      group.devices =
          DeviceSet::Of(devices_, input_.placement.device_of.at(instructions_[judgement.call]));
      continue;
    }
    group.is_candidate = !judgement.outside && judgement.one_device;
    if (group.is_candidate || reason.outside != Outside::kNot) continue;
    if (judgement.outside) {
      reason = {.outside = Outside::kTied, .other = judgement.outside};
    } else {
      reason.outside = Outside::kTiedDevices;
    }
  }
}

void ClusterBuilder::FindFeeders() {
  if (devices_.size() < 2) return;
  ForEachEdge([&](int32_t from, int32_t to) {
    from = NodeOf(from);
    to = NodeOf(to);
    int32_t device = groups_[from].devices.Chosen();
    auto& feeders = groups_[to].feeders;
    if (!groups_[from].is_candidate || device == groups_[to].devices.Chosen()) return;
    if (std::ranges::find(feeders, device) == feeders.end()) feeders.push_back(device);
  });
}

// The nodes, successors first: the reverse of the order in which the ready node with the first
// instruction comes next.
std::vector<int32_t> ClusterBuilder::PostOrder() const {
  auto later = [&](int32_t a, int32_t b) { return groups_[a].first > groups_[b].first; };
  std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> ready(later);
  const std::vector<int32_t> nodes = cycles_.Order();
  std::vector<int64_t> waits_for(instructions_.size());
  for (int32_t node : nodes) {
    waits_for[node] = cycles_.predecessor_count(node);
    if (waits_for[node] == 0) ready.push(node);
  }
  std::vector<int32_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    int32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int32_t successor : cycles_.Successors(node)) {
      if (--waits_for[successor] == 0) ready.push(successor);
    }
  }
  std::ranges::reverse(order);
  return order;
}

// Contracts edges to the groups that `accepts` holds for. One walk in post-order makes clusters
// maximal: a node's successors are before it, so they are as large as they can be, and a larger
// cluster has no contractible edge that its parts did not have.
template <typename Accepts>
void ClusterBuilder::ContractEdges(Accepts accepts) {
  for (int32_t from : PostOrder()) {
    if (!groups_[from].is_candidate) continue;
    std::vector<int32_t> successors = cycles_.Successors(from);
    std::erase_if(successors, [&](int32_t to) {
      return !groups_[to].is_candidate || AreCompiledOnDemand(groups_[from], groups_[to]);
    });
    std::ranges::sort(successors, {}, [&](int32_t node) { return groups_[node].first; });
    for (int32_t to : successors) {
      if (!accepts(groups_[to])) continue;
      // The contracted node may be either.
      from = NodeOf(from);
      Obstacle obstacle = TryToContract(from, to);
      if (obstacle == Obstacle::kNone) continue;
      for (auto [node, other] : {std::pair(from, to), std::pair(to, from)}) {
        groups_[node].obstacle = obstacle;
        groups_[node].obstacle_at = groups_[other].first;
      }
    }
  }
}

// Whether two groups of a device that always compiles stay apart.
bool ClusterBuilder::AreCompiledOnDemand(const Group& from, const Group& to) const {
  return options_.compile_on_demand && from.devices.own >= 0 && !(from.is_marked && to.is_marked);
}

Obstacle ClusterBuilder::Check(const Group& from, const Group& to) const {
  const bool mixed = options_.gpu_clusters_take_cpu_ops;
  if (!Union(from.devices, to.devices, mixed)) return Obstacle::kDevices;
  if (from.scope >= 0 && to.scope >= 0 && from.scope != to.scope) return Obstacle::kScopes;
  if (from.size + to.size > options_.max_cluster_size) return Obstacle::kMaxSize;
  for (int32_t device : to.feeders) {
    DeviceSet feeder = DeviceSet::Of(devices_, device);
    if (!Union(to.devices, feeder, mixed) || !Union(from.devices, feeder, mixed)) {
      return Obstacle::kOtherDevice;
    }
  }
  return Obstacle::kNone;
}

Obstacle ClusterBuilder::TryToContract(int32_t from, int32_t to) {
  if (Obstacle obstacle = Check(groups_[from], groups_[to]); obstacle != Obstacle::kNone) {
    return obstacle;
  }
  std::optional<int32_t> kept = cycles_.Contract(from, to);
  if (!kept) return Obstacle::kCycle;
  Merge(*kept, *kept == from ? to : from);
  return Obstacle::kNone;
}

bool ClusterBuilder::IsKept(const Group& group) const {
  if (group.must_compile) return true;
  return group.is_candidate &&
         (group.devices.own >= 0 || group.is_marked || group.has_control_flow ||
          group.effective_size >= options_.min_cluster_size);
}

// Small constants join the cluster that has all their users.
void ClusterBuilder::PlaceConstants() {
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()); ++k) {
    if (!is_loose_[k]) continue;
    int32_t node = -1;
    for (const Instruction* user : instructions_[k]->users()) {
      int32_t next = NodeOf(PositionOf(user));
      if (node >= 0 && next != node) next = k;
      node = next;
      if (node == k) break;
    }
    if (node < 0 || node == k || !IsKept(groups_[node])) continue;
    parents_[k] = node;
    PlaceAt(k).reason = {};
  }
}

std::string ClusterBuilder::RefusalOf(const Instruction& i, Compilability& compilability) const {
  Compilability::Blocker blocker = compilability.Find(i, true);
  if (blocker.kind == Outside::kNot) return "";
  return Cat("'", i.name(), "' (", OpcodeName(i.opcode()),
             "): ", compilability.Describe(blocker, i));
}

void ClusterBuilder::MakeClusters() {
  std::vector<int32_t> cluster_of(instructions_.size(), -1);
  Compilability compilability(input_);
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()); ++k) {
    int32_t node = NodeOf(k);
    const Group& group = groups_[node];
    Place& place = PlaceAt(k);
    if (!IsKept(group)) {
      if (!group.is_candidate) continue;
      place.reason = {.outside = Outside::kTooSmall,
                      .obstacle = group.obstacle,
                      .size = static_cast<int32_t>(group.effective_size)};
      if (group.obstacle != Obstacle::kNone) place.reason.other = instructions_[group.obstacle_at];
      continue;
    }
    if (cluster_of[node] < 0) {
      cluster_of[node] = static_cast<int32_t>(result_.clusters_.size());
      result_.clusters_.push_back({.name = Cat(options_.name_prefix, "_", result_.clusters_.size()),
                                   .device = group.devices.Chosen(),
                                   .is_strict = group.must_compile || group.devices.own >= 0,
                                   .effective_size = group.effective_size,
                                   .instructions = {},
                                   .refusal = {}});
    }
    place.cluster = cluster_of[node];
    place.reason = {};
    Cluster& cluster = result_.clusters_[static_cast<size_t>(place.cluster)];
    cluster.instructions.push_back(instructions_[k]);
    if (group.must_compile && cluster.refusal.empty()) {
      cluster.refusal = RefusalOf(*instructions_[k], compilability);
    }
  }
}

Result<Clustering> FindClusters(const ClusterInput& input) { return ClusterBuilder(input).Build(); }

}  // namespace kiln::session
