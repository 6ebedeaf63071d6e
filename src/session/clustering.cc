#include "session/clustering.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/short_list.h"
#include "ir/analysis/effects.h"
#include "session/cluster_candidates.h"
#include "session/cycles.h"
#include "session/path_forests.h"

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

// A node of the graph of clusters. It is small, for graphs of hundreds of thousands of them.
struct Group {
  int32_t first = 0;  // the first instruction's position
  int32_t size = 1, effective_size = 0;
  DeviceSet devices;
  int32_t scope = -1;  // a number
  // The devices of candidates that an instruction of the group reads from, apart from its own one.
  ShortList<int32_t, 2> feeders;
  // The first position of an instruction that is no candidate, and of a call to be compiled.
  int32_t outside = -1, call = -1;
  // The last failed contraction with a group that is not a part of this one: a position in it.
  int32_t obstacle_at = -1;
  Obstacle obstacle = Obstacle::kNone;
  bool has_work = false;   // an op that is no plumbing
  bool one_device = true;  // or devices that agree
  bool is_candidate = false;
  bool must_compile = false;
  bool is_marked = false;
  bool has_control_flow = false;
  bool is_shape_consumer = false;  // a single op
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

  void ReadInstructions();
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
  Obstacle TryToContract(int32_t first, int32_t from, int32_t to);
  void FindPaths();
  bool AreCompiledOnDemand(const Group& from, const Group& to) const;
  Obstacle Check(const Group& from, const Group& to) const;
  void Merge(int32_t kept, int32_t gone);
  bool IsKept(const Group& group) const;
  void PlaceConstants();
  void MakeClusters();
  std::string RefusalOf(const Instruction& i, Compilability& compilability) const;

  int32_t PositionOf(const Instruction* i) const { return result_.positions_.at(i); }
  Place& PlaceAt(int32_t position) { return result_.places_[static_cast<size_t>(position)]; }
  // The node that an instruction is a part of.
  int32_t NodeOf(int32_t position) { return cycles_.NodeOf(position); }

  const ClusterInput& input_;
  const ClusterOptions& options_;
  const std::vector<PlacedDevice>& devices_;
  Clustering result_;
  GraphCycles cycles_;
  std::optional<PathForests> paths_;  // once a cycle was in the way
  // By position.
  std::vector<Instruction*> instructions_;
  std::vector<int32_t> operands_;     // the positions of all operands
  std::vector<size_t> operand_ends_;  // the end of the instruction's part of it
  std::vector<int32_t> tuple_users_;  // those with an operand that is a tuple or a token, in order
  std::vector<Group> groups_;         // of nodes that are alive
  std::vector<int32_t> homes_;        // of small constants: the node that has their users, or none
  struct Mark {
    int32_t scope = -1;
    int32_t device = 0;
    bool is_marked = false;
    bool must_compile = false;
    bool is_plumbing = false;
  };
  std::vector<Mark> marks_;
  std::vector<bool> is_loose_;  // small constants without control edges: in no edge
  std::vector<std::pair<int32_t, int32_t>> control_edges_;
};

Status ClusterBuilder::FindLoose() {
  for (const ControlEdge& edge : input_.control_edges) {
    for (const Instruction* end : {edge.before, edge.after}) {
      if (!end || end->parent() != &input_.entry) {
        return InvalidArgument("a control edge leads out of the computation '", input_.entry.name(),
                               "'", end ? " to '" : "", end ? end->name() : "", end ? "'" : "");
      }
      is_loose_[PositionOf(end)] = false;
    }
    control_edges_.emplace_back(PositionOf(edge.before), PositionOf(edge.after));
  }
  return OkStatus();
}

void ClusterBuilder::ReadInstructions() {
  const size_t n = static_cast<size_t>(input_.entry.instruction_count());
  instructions_.reserve(n);
  operand_ends_.reserve(n);
  is_loose_.reserve(n);
  std::vector<bool> is_array;
  is_array.reserve(n);
  for (Instruction* i : input_.entry.instructions()) {
    const int32_t k = static_cast<int32_t>(instructions_.size());
    result_.positions_[i] = k;
    instructions_.push_back(i);
    is_array.push_back(i->shape().is_array());
    is_loose_.push_back(IsSmallConstant(*i));
    bool reads_tuple = false;
    for (const Instruction* operand : i->operands()) {
      operands_.push_back(PositionOf(operand));
      reads_tuple |= !is_array[operands_.back()];
    }
    operand_ends_.push_back(operands_.size());
    if (reads_tuple) tuple_users_.push_back(k);
  }
}

Status ClusterBuilder::JudgeInstructions() {
  ReadInstructions();
  const size_t n = instructions_.size();
  result_.places_.resize(n);
  groups_.resize(n);
  homes_.assign(n, -1);
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
    group.first = k;
    group.effective_size = !IsIdentityLike(i);
    group.devices = DeviceSet::Of(devices_, *device);
    group.has_control_flow = i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional;
    group.is_shape_consumer = IsShapeConsumer(i.opcode());
    marks_[k].device = *device;
    marks_[k].is_plumbing = IsTuplePlumbing(i.opcode());
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
  size_t at = 0;
  for (int32_t k = 0; k < static_cast<int32_t>(instructions_.size()); ++k) {
    for (; at < operand_ends_[k]; ++at) {
      if (!is_loose_[operands_[at]]) visit(operands_[at], k);
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
  cycles_.ReserveEdges(operands_.size() + control_edges_.size());
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
  for (int32_t k : tuple_users_) {
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
  const int32_t n = static_cast<int32_t>(instructions_.size());
  for (int32_t k = 0; k < n; ++k) {
    groups_[k].devices = {};
    groups_[NodeOf(k)].has_work |= !marks_[k].is_plumbing;
  }
  for (int32_t k = 0; k < n; ++k) {
    Group& group = groups_[NodeOf(k)];
    const Mark& mark = marks_[k];
    OutsideReason& reason = PlaceAt(k).reason;
    // Users of tuple parameters stay outside whatever they are.
    if (group.has_work && mark.is_plumbing && reason.outside != Outside::kInput) {
      if (reason.outside != Outside::kResult) reason = {};
    } else {
      auto devices = Union(group.devices, DeviceSet::Of(devices_, mark.device),
                           options_.gpu_clusters_take_cpu_ops);
      group.one_device &= devices.has_value();
      if (devices) group.devices = *devices;
      group.is_marked |= mark.is_marked;
      if (group.scope < 0) group.scope = mark.scope;
    }
    if (mark.must_compile && group.call < 0) group.call = k;
    if (reason.outside != Outside::kNot && group.outside < 0) group.outside = k;
  }
  for (int32_t k = 0; k < n; ++k) {
    Group& group = groups_[NodeOf(k)];
    OutsideReason& reason = PlaceAt(k).reason;
    group.must_compile = group.call >= 0;
    if (group.must_compile) {
      // It runs where the call is, whatever is tied to it.
      group.devices = DeviceSet::Of(devices_, marks_[group.call].device);
      continue;
    }
    group.is_candidate = group.outside < 0 && group.one_device;
    if (group.is_candidate || reason.outside != Outside::kNot) continue;
    if (group.outside >= 0) {
      reason = {.outside = Outside::kTied, .other = instructions_[group.outside]};
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
  using Ready = std::pair<int32_t, int32_t>;  // its first instruction, and the node
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const std::vector<int32_t> nodes = cycles_.Order();
  std::vector<int32_t> waits_for(instructions_.size());
  for (int32_t node : nodes) {
    waits_for[node] = static_cast<int32_t>(cycles_.predecessor_count(node));
    if (waits_for[node] == 0) ready.emplace(groups_[node].first, node);
  }
  std::vector<int32_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const int32_t node = ready.top().second;
    ready.pop();
    order.push_back(node);
    cycles_.ForEachSuccessor(node, [&](int32_t successor) {
      if (--waits_for[successor] == 0) ready.emplace(groups_[successor].first, successor);
    });
  }
  std::ranges::reverse(order);
  return order;
}

// Contracts edges to the groups that `accepts` holds for. One walk in post-order makes clusters
// maximal: a node's successors are before it, so they are as large as they can be, and a larger
// cluster has no contractible edge that its parts did not have.
template <typename Accepts>
void ClusterBuilder::ContractEdges(Accepts accepts) {
  std::vector<int32_t> successors;
  for (const int32_t first : PostOrder()) {
    int32_t from = first;
    if (!groups_[from].is_candidate) continue;
    successors.clear();
    cycles_.ForEachSuccessor(from, [&](int32_t to) {
      if (groups_[to].is_candidate && !AreCompiledOnDemand(groups_[from], groups_[to])) {
        successors.push_back(to);
      }
    });
    std::ranges::sort(successors, {}, [&](int32_t node) { return groups_[node].first; });
    for (int32_t to : successors) {
      if (!accepts(groups_[to])) continue;
      // The contracted node may be either.
      from = NodeOf(from);
      Obstacle obstacle = TryToContract(first, from, to);
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
  if (int64_t{from.size} + to.size > options_.max_cluster_size) return Obstacle::kMaxSize;
  for (int32_t device : to.feeders) {
    DeviceSet feeder = DeviceSet::Of(devices_, device);
    if (!Union(to.devices, feeder, mixed) || !Union(from.devices, feeder, mixed)) {
      return Obstacle::kOtherDevice;
    }
  }
  return Obstacle::kNone;
}

// `first` is the part of `from` that has come last: edges lead from it to `to`.
Obstacle ClusterBuilder::TryToContract(int32_t first, int32_t from, int32_t to) {
  if (Obstacle obstacle = Check(groups_[from], groups_[to]); obstacle != Obstacle::kNone) {
    return obstacle;
  }
  if (paths_) {
    auto is_outside = [&](int32_t node) {
      node = NodeOf(node);
      return node != from && node != to;
    };
    for (int32_t part : {first, from}) {
      if (paths_->HavePathBy(part, to, is_outside)) return Obstacle::kCycle;
    }
  }
  std::optional<int32_t> kept = cycles_.Contract(from, to);
  if (!kept) {
    if (!paths_) FindPaths();
    return Obstacle::kCycle;
  }
  Merge(*kept, *kept == from ? to : from);
  return Obstacle::kNone;
}

// Candidates of different devices or scopes, and all others, are rarely in one cluster.
void ClusterBuilder::FindPaths() {
  std::vector<int32_t> kinds(groups_.size(), -1);
  const auto devices = static_cast<int32_t>(devices_.size());
  for (size_t k = 0; k < groups_.size(); ++k) {
    const Group& group = groups_[k];
    if (group.is_candidate) kinds[k] = (group.scope + 1) * devices + group.devices.Chosen();
  }
  paths_.emplace(cycles_, kinds);
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
    homes_[k] = node;
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
    const int32_t node = homes_[k] >= 0 ? homes_[k] : NodeOf(k);
    const Group& group = groups_[node];
    Place& place = PlaceAt(k);
    if (!IsKept(group)) {
      if (!group.is_candidate) continue;
      place.reason = {
          .outside = Outside::kTooSmall, .obstacle = group.obstacle, .size = group.effective_size};
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
