// Clusters of random graphs, against the same rules written down without any care for speed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "ir/analysis/effects.h"
#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {
namespace {

using ir::Computation;
using ir::Instruction;

struct RandomGraph {
  // With `gaps`, ids are others, for the same graph.
  RandomGraph(uint64_t seed, bool gaps);

  std::vector<Instruction*> Some(int count, bool (*accepts)(const Shape&));
  void Add(ir::InstructionSpec spec);
  void AddOp();
  void Decorate();
  uint64_t Pick(uint64_t n) { return random() % n; }
  bool Chance(uint64_t percent) { return Pick(100) < percent; }

  std::mt19937_64 random;
  bool gaps;
  ir::Module module{"m"};
  Computation* entry;
  Computation* other;
  Computation* random_callee;
  std::vector<Instruction*> ops;
  std::unique_ptr<Placement> placement;
  ClusterOptions options;
  std::map<const Instruction*, JitMark> marks;
  std::set<const Instruction*> not_compilable;
  std::vector<ControlEdge> control_edges;

  ClusterInput Input() {
    return {.entry = *entry,
            .placement = *placement,
            .options = options,
            .mark =
                [this](const Instruction& i) {
                  auto it = marks.find(&i);
                  return it == marks.end() ? JitMark() : it->second;
                },
            .why_not_compilable = [this](const Instruction& i) -> std::optional<std::string> {
              if (not_compilable.contains(&i)) return "no";
              return std::nullopt;
            },
            .control_edges = control_edges};
  }
};

const Shape kScalar(ElementType::kF32, {});
const Shape kPair = Shape::Tuple({kScalar, kScalar});

bool IsScalar(const Shape& shape) { return shape.is_array(); }
bool IsTuple(const Shape& shape) { return shape.is_tuple(); }
bool IsToken(const Shape& shape) { return shape.is_token(); }

RandomGraph::RandomGraph(uint64_t seed, bool with_gaps) : random(seed), gaps(with_gaps) {
  random_callee = module.AddComputation("draws");
  Instruction* p = random_callee->Create({.opcode = Opcode::kParameter,
                                          .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                                          .shape = kScalar});
  random_callee->set_root(
      random_callee->Create({.opcode = Opcode::kRng, .operands = {p, p}, .shape = kScalar}));
  other = module.AddComputation("other");
  entry = module.AddComputation("entry");
  module.set_entry(entry);
  for (int64_t k = 0; k < 2; ++k) {
    Add({.opcode = Opcode::kParameter,
         .attributes = {{Attr::kParameterNumber, k}},
         .shape = k == 1 && Chance(10) ? kPair : kScalar});
  }
  const uint64_t count = 4 + Pick(32);
  while (ops.size() < count) AddOp();
  if (Chance(50)) {
    Add({.opcode = Opcode::kTuple,
         .operands = Some(3, Chance(90) ? IsScalar : IsTuple),
         .shape = Shape::Tuple({kScalar, kScalar, kScalar})});
  }
  entry->set_root(ops.back());
  placement = std::make_unique<Placement>(*entry);
  Decorate();
}

void RandomGraph::Add(ir::InstructionSpec spec) {
  ops.push_back(entry->Create(std::move(spec)));
  for (uint64_t k = 0; gaps && k < ops.size() % 5; ++k) {
    other->Create({.opcode = Opcode::kConstant,
                   .shape = kScalar,
                   .literal = std::make_shared<Literal>(Literal::ScalarOf(ElementType::kF32, 1)),
                   .name = "gap"});
  }
}

// Of the last ones, mostly.
std::vector<Instruction*> RandomGraph::Some(int count, bool (*accepts)(const Shape&)) {
  std::vector<Instruction*> fitting, some;
  for (Instruction* op : ops) {
    if (accepts(op->shape())) fitting.push_back(op);
  }
  if (fitting.empty()) return Some(count, IsScalar);
  for (int k = 0; k < count; ++k) {
    uint64_t back = Pick(Chance(70) ? std::min<uint64_t>(fitting.size(), 4) : fitting.size());
    some.push_back(fitting[fitting.size() - 1 - back]);
  }
  return some;
}

void RandomGraph::AddOp() {
  switch (Pick(20)) {
    case 0: {
      const int64_t elements = Chance(30) ? 2000 : 1;
      Shape shape(ElementType::kF32, {elements});
      return Add({.opcode = Opcode::kConstant,
                  .shape = shape,
                  .literal = std::make_shared<Literal>(Literal(shape))});
    }
    case 1:
      return Add({.opcode = Opcode::kCopy, .operands = Some(1, IsScalar), .shape = kScalar});
    case 2:
      return Add({.opcode = Opcode::kTuple, .operands = Some(2, IsScalar), .shape = kPair});
    case 3:
    case 4:
      if (std::vector<Instruction*> tuple = Some(1, IsTuple); tuple[0]->shape().is_tuple()) {
        return Add({.opcode = Opcode::kGetTupleElement,
                    .operands = tuple,
                    .attributes = {{Attr::kIndex, static_cast<int64_t>(Pick(2))}},
                    .shape = kScalar});
      }
      return;
    case 5:
      if (std::vector<Instruction*> tuple = Some(1, IsTuple); tuple[0]->shape().is_tuple()) {
        return Add({.opcode = Chance(50) ? Opcode::kWhile : Opcode::kOptBarrier,
                    .operands = tuple,
                    .shape = kPair});
      }
      return;
    case 6:
      return Add({.opcode = Opcode::kSort, .operands = Some(2, IsScalar), .shape = kPair});
    case 7:
      return Add({.opcode = Opcode::kRng, .operands = Some(2, IsScalar), .shape = kScalar});
    case 8:
      return Add(
          {.opcode = Opcode::kGetDimensionSize, .operands = Some(1, IsScalar), .shape = kScalar});
    case 9: {
      std::vector<Instruction*> operands = Some(1, IsToken), value = Some(1, IsScalar);
      if (!operands[0]->shape().is_token()) operands.clear();
      if (Chance(50) || operands.empty()) {
        return Add({.opcode = Opcode::kAfterAll, .operands = operands, .shape = Shape::Token()});
      }
      return Add({.opcode = Opcode::kOutfeed,
                  .operands = {value[0], operands[0]},
                  .shape = Shape::Token()});
    }
    case 10:
      return Add({.opcode = Opcode::kCall,
                  .operands = Some(1, IsScalar),
                  .called = {random_callee},
                  .shape = kScalar});
    default:
      return Add({.opcode = Chance(50) ? Opcode::kAdd : Opcode::kMultiply,
                  .operands = Some(2, IsScalar),
                  .shape = kScalar});
  }
}

void RandomGraph::Decorate() {
  const std::vector<PlacedDevice> all = {
      {"CPU:0"}, {"GPU:0", false, true}, {"XLA_CPU:0", true},
      {"CPU:1"}, {"GPU:1", false, true}, {"XLA_GPU:0", true, true}};
  const uint64_t devices = 1 + Pick(all.size());
  placement->devices.assign(all.begin(), all.begin() + static_cast<int64_t>(devices));
  const uint64_t stray = Pick(40), marked = Pick(3) * 30, unmarked = Pick(2) * 8;
  const uint64_t main_device = Pick(devices);
  static constexpr std::string_view kScopes[] = {"", "", "jit_scope_0", "jit_scope_1"};
  for (Instruction* op : ops) {
    placement->device_of[op] = static_cast<int32_t>(Chance(stray) ? Pick(devices) : main_device);
    JitMark& mark = marks[op];
    if (Chance(marked)) mark.compile = true;
    if (Chance(unmarked)) mark.compile = false;
    mark.scope = kScopes[Pick(4)];
    mark.must_compile = op->opcode() == Opcode::kCall && Chance(50);
    if (Chance(4)) not_compilable.insert(op);
  }
  options.level = static_cast<JitLevel>(std::min<uint64_t>(2, Pick(6)));
  options.cpu_global_jit = Chance(70);
  options.min_cluster_size = static_cast<int64_t>(1 + Pick(5));
  if (Chance(25)) options.max_cluster_size = static_cast<int64_t>(1 + Pick(8));
  if (Chance(15)) options.fuel = static_cast<int64_t>(Pick(20));
  if (Chance(15)) options.ops_to_cluster = {"add", "RED", "SORT"};
  if (Chance(15)) options.cluster_exclude_ops = {"multiply"};
  options.gpu_clusters_take_cpu_ops = Chance(30);
  for (uint64_t k = Chance(40) ? Pick(6) : 0; k > 0; --k) {
    size_t a = Pick(ops.size()), b = Pick(ops.size());
    if (a > b && Chance(80)) std::swap(a, b);
    if (a != b) control_edges.push_back({ops[a], ops[b]});
  }
}

// The rules once more. Groups are sets of positions; all about them is computed from their members.
class Oracle {
 public:
  explicit Oracle(RandomGraph& graph) : g_(graph), n_(static_cast<int>(graph.ops.size())) {
    for (int k = 0; k < n_; ++k) {
      position_[g_.ops[k]] = k;
      group_.push_back(k);
      loose_.push_back(g_.ops[k]->IsConstant() && g_.ops[k]->shape().num_elements() == 1);
    }
    for (const ControlEdge& edge : g_.control_edges) {
      loose_[position_[edge.before]] = loose_[position_[edge.after]] = false;
    }
    for (int k = 0; k < n_; ++k) {
      for (const Instruction* operand : g_.ops[k]->operands()) {
        if (!loose_[position_[operand]]) edges_.insert({position_[operand], k});
      }
    }
    for (const ControlEdge& edge : g_.control_edges) {
      edges_.insert({position_[edge.before], position_[edge.after]});
    }
    const Instruction* last = nullptr;
    for (const Instruction* op : g_.ops) {
      if (!ir::HasSideEffect(*op)) continue;
      if (last) edges_.insert({position_[last], position_[op]});
      last = op;
    }
  }

  // Whether the groups, with their edges, form a cycle.
  bool HasCycle() const {
    std::set<int> left(group_.begin(), group_.end());
    for (bool found = true; found;) {
      found = false;
      for (int group : std::set<int>(left)) {
        bool ready = std::ranges::none_of(GroupEdges(), [&](auto edge) {
          return edge.second == group && left.contains(edge.first);
        });
        if (ready) left.erase(group), found = true;
      }
    }
    return !left.empty();
  }

  void Run() {
    Tie();
    ties_ = group_;
    JudgeOps();
    JudgeGroups();
    Sweep([&](int to) {
      return Members(to).size() == 1 &&
             g_.ops[Members(to)[0]]->opcode() == Opcode::kGetDimensionSize;
    });
    Sweep([](int) { return true; });
    is_maximal_ = !Sweep([](int) { return true; });
  }
  bool is_maximal() const { return is_maximal_; }
  bool IsTied(int a, int b) const { return ties_[a] == ties_[b]; }

  // The clusters with their devices, as lists of positions.
  std::vector<std::pair<std::vector<int>, int>> Clusters() {
    std::map<int, int> kept;
    for (int group : std::set<int>(group_.begin(), group_.end())) {
      if (IsKept(group)) kept[group] = ChosenDevice(group);
    }
    for (int k = 0; k < n_; ++k) {
      if (!loose_[k]) continue;
      std::set<int> users;
      for (const Instruction* user : g_.ops[k]->users()) users.insert(group_[position_[user]]);
      if (users.size() == 1 && kept.contains(*users.begin())) group_[k] = *users.begin();
    }
    std::vector<std::pair<std::vector<int>, int>> clusters;
    std::set<int> seen;
    for (int k = 0; k < n_; ++k) {
      int group = group_[k];
      if (!kept.contains(group) || !seen.insert(group).second) continue;
      clusters.push_back({Members(group), kept[group]});
    }
    return clusters;
  }

 private:
  std::vector<int> Members(int group) const {
    std::vector<int> members;
    for (int k = 0; k < n_; ++k) {
      if (group_[k] == group) members.push_back(k);
    }
    return members;
  }
  std::set<std::pair<int, int>> GroupEdges() const {
    std::set<std::pair<int, int>> edges;
    for (auto [a, b] : edges_) {
      if (group_[a] != group_[b]) edges.insert({group_[a], group_[b]});
    }
    return edges;
  }
  // The groups that can be reached by at least one edge.
  std::set<int> Reached(int from) const {
    auto edges = GroupEdges();
    std::set<int> reached;
    std::vector<int> left = {from};
    while (!left.empty()) {
      int at = left.back();
      left.pop_back();
      for (auto it = edges.lower_bound({at, 0}); it != edges.end() && it->first == at; ++it) {
        if (reached.insert(it->second).second) left.push_back(it->second);
      }
    }
    return reached;
  }
  bool HasDetour(int from, int to) const {
    for (auto [a, b] : GroupEdges()) {
      if (a == from && b != to && Reached(b).contains(to)) return true;
    }
    return false;
  }
  void Join(int kept, int gone) {
    for (int& group : group_) group = group == gone ? kept : group;
  }

  void Tie() {
    for (int k = 0; k < n_; ++k) {
      for (const Instruction* operand : g_.ops[k]->operands()) {
        if (operand->shape().is_array() || operand->opcode() == Opcode::kParameter) continue;
        int from = group_[position_[operand]], to = group_[k];
        std::set<int> inside, reached = Reached(from);
        for (int other : std::set<int>(group_.begin(), group_.end())) {
          if (reached.contains(other) && Reached(other).contains(to)) inside.insert(other);
        }
        Join(from, to);
        for (int other : inside) Join(from, other);
      }
    }
  }

  bool IsPlumbing(int k) const {
    Opcode opcode = g_.ops[k]->opcode();
    return opcode == Opcode::kTuple || opcode == Opcode::kGetTupleElement ||
           opcode == Opcode::kAfterAll;
  }
  const PlacedDevice& Device(int k) const {
    return g_.placement->devices[g_.placement->device_of.at(g_.ops[k])];
  }
  bool IsCompiledByPolicy(int k) const {
    const JitMark& mark = g_.marks[g_.ops[k]];
    const ClusterOptions& o = g_.options;
    if (mark.compile == false) return false;
    if (Device(k).compiles_always) return true;
    if (o.level == JitLevel::kOff) return false;
    if (mark.compile == true) return true;
    return o.level == JitLevel::kOn && (Device(k).is_gpu || o.cpu_global_jit);
  }
  bool IsOnLists(int k) const {
    Opcode opcode = g_.ops[k]->opcode();
    if (IsPlumbing(k) || opcode == Opcode::kConstant) return true;
    if (!g_.options.ops_to_cluster.empty() && opcode != Opcode::kAdd && opcode != Opcode::kSort) {
      return false;
    }
    return g_.options.cluster_exclude_ops.empty() || opcode != Opcode::kMultiply;
  }
  bool IsResult(int k) const {
    const Instruction* op = g_.ops[k];
    return op->opcode() == Opcode::kTuple && k == n_ - 1 && op->users().empty() &&
           std::ranges::all_of(op->operands(),
                               [](const Instruction* o) { return o->shape().is_array(); });
  }
  bool UsesTupleInput(int k) const {
    return std::ranges::any_of(g_.ops[k]->operands(), [](const Instruction* o) {
      return o->opcode() == Opcode::kParameter && o->shape().is_tuple();
    });
  }
  void JudgeOps() {
    int64_t fuel = g_.options.fuel < 0 ? INT64_MAX : g_.options.fuel;
    for (int k = 0; k < n_; ++k) {
      const Instruction* op = g_.ops[k];
      bool random = (op->opcode() == Opcode::kRng || op->opcode() == Opcode::kCall) &&
                    !Device(k).compiles_always;
      bool good = op->opcode() != Opcode::kParameter && !IsResult(k) && !loose_[k] &&
                  IsCompiledByPolicy(k) && !g_.not_compilable.contains(op) && !random &&
                  IsOnLists(k);
      if (g_.marks[op].must_compile) {
        good = true;
      } else if (good && !IsPlumbing(k)) {
        good = fuel > 0;
        fuel -= good;
      }
      good_.push_back(good);
    }
  }
  // Members whose devices and marks count.
  std::vector<int> Counting(int group) const {
    std::vector<int> members = Members(group), counting;
    bool work = std::ranges::any_of(members, [&](int k) { return !IsPlumbing(k); });
    for (int k : members) {
      if (!work || !IsPlumbing(k) || counts_.contains(k)) counting.push_back(k);
    }
    return counting;
  }
  std::set<int> Devices(int group) const {
    std::set<int> devices;
    for (int k : Counting(group)) devices.insert(g_.placement->device_of.at(g_.ops[k]));
    return devices;
  }
  int ChosenDevice(int group) const {
    std::set<int> devices = Devices(group);
    for (int k : Members(group)) {
      if (g_.marks[g_.ops[k]].must_compile) return g_.placement->device_of.at(g_.ops[k]);
    }
    int chosen = *devices.begin();
    for (int device : devices) {
      if (g_.placement->devices[device].is_gpu) chosen = device;
    }
    return chosen;
  }
  bool DevicesAgree(const std::set<int>& devices) const {
    int cpus = 0, gpus = 0, own = 0;
    for (int device : devices) {
      const PlacedDevice& d = g_.placement->devices[device];
      ++(d.compiles_always ? own : d.is_gpu ? gpus : cpus);
    }
    if (own > 0) return own == 1 && cpus + gpus == 0;
    if (cpus > 1 || gpus > 1) return false;
    return cpus + gpus < 2 || g_.options.gpu_clusters_take_cpu_ops;
  }
  void JudgeGroups() {
    for (int group : std::set<int>(group_.begin(), group_.end())) {
      std::vector<int> members = Members(group);
      bool must = false, good = true;
      for (int k : members) {
        must |= g_.marks[g_.ops[k]].must_compile;
        good &= !UsesTupleInput(k) && !IsResult(k);
      }
      for (int k : Counting(group)) {
        good &= good_[k];
        // In a larger group, these still count.
        counts_.insert(k);
      }
      good &= DevicesAgree(Devices(group));
      for (int k : members) {
        candidate_.resize(static_cast<size_t>(n_));
        must_.resize(static_cast<size_t>(n_));
        candidate_[k] = good && !must;
        must_[k] = must;
      }
    }
    placed_devices_.resize(static_cast<size_t>(n_));
    for (int k = 0; k < n_; ++k) placed_devices_[k] = ChosenDevice(group_[k]);
  }

  std::set<std::string_view> Scopes(int group) const {
    std::set<std::string_view> scopes;
    if (g_.options.level == JitLevel::kOn) return scopes;
    // Ties may have several scopes, of which the first counts.
    std::set<int> seen;
    for (int k : Counting(group)) {
      std::string_view scope = g_.marks[g_.ops[k]].scope;
      if (!scope.empty() && seen.insert(ties_[k]).second) scopes.insert(scope);
    }
    return scopes;
  }
  bool MayJoin(int from, int to) const {
    std::set<int> devices = Devices(from);
    devices.merge(Devices(to));
    if (!DevicesAgree(devices)) return false;
    std::set<std::string_view> a = Scopes(from), b = Scopes(to);
    if (!a.empty() && !b.empty() && *a.begin() != *b.begin()) return false;
    if (static_cast<int64_t>(Members(from).size() + Members(to).size()) >
        g_.options.max_cluster_size) {
      return false;
    }
    for (auto [a_op, b_op] : edges_) {
      if (group_[b_op] != to || group_[a_op] == to || !candidate_[a_op]) continue;
      std::set<int> with_to = Devices(to), with_from = Devices(from);
      with_to.insert(placed_devices_[a_op]);
      with_from.insert(placed_devices_[a_op]);
      if (!DevicesAgree(with_to) || !DevicesAgree(with_from)) return false;
    }
    return !HasDetour(from, to);
  }
  std::vector<int> PostOrder() const {
    std::vector<int> order;
    std::set<int> left(group_.begin(), group_.end());
    while (!left.empty()) {
      int next = -1;
      for (int group : left) {
        bool ready = std::ranges::none_of(GroupEdges(), [&](auto edge) {
          return edge.second == group && left.contains(edge.first);
        });
        if (ready && (next < 0 || Members(group)[0] < Members(next)[0])) next = group;
      }
      left.erase(next);
      order.insert(order.begin(), next);
    }
    return order;
  }
  bool Sweep(const std::function<bool(int)>& accepts) {
    bool changed = false;
    for (int from : PostOrder()) {
      if (!candidate_[Members(from)[0]]) continue;
      std::vector<int> successors;
      for (auto [a, b] : GroupEdges()) {
        if (a == from && candidate_[Members(b)[0]]) successors.push_back(b);
      }
      std::ranges::sort(successors, {}, [&](int group) { return Members(group)[0]; });
      for (int to : successors) {
        if (!accepts(to) || !MayJoin(from, to)) continue;
        Join(from, to);
        changed = true;
      }
    }
    return changed;
  }
  bool IsKept(int group) const {
    std::vector<int> members = Members(group);
    int64_t effective = 0;
    bool keep = false;
    for (int k : members) {
      Opcode opcode = g_.ops[k]->opcode();
      effective += !IsPlumbing(k) && opcode != Opcode::kCopy && opcode != Opcode::kConstant &&
                   opcode != Opcode::kOptBarrier;
      keep |= opcode == Opcode::kWhile;
    }
    for (int k : Counting(group)) {
      keep |= g_.marks[g_.ops[k]].compile == true || Device(k).compiles_always;
    }
    if (must_[members[0]]) return true;
    return candidate_[members[0]] && (keep || effective >= g_.options.min_cluster_size);
  }

  RandomGraph& g_;
  const int n_;
  std::map<const Instruction*, int> position_;
  std::vector<int> group_, ties_, placed_devices_;
  std::vector<bool> loose_, good_, candidate_, must_;
  std::set<int> counts_;
  std::set<std::pair<int, int>> edges_;
  bool is_maximal_ = false;
};

// "cluster_0 on 1, strict: 2 3 5" for each cluster, and each op's explanation.
std::string Describe(RandomGraph& graph) {
  ClusterInput input = graph.Input();
  Result<Clustering> clustering = FindClusters(input);
  if (!clustering.ok()) return clustering.status().ToString();
  std::map<const Instruction*, size_t> positions;
  for (size_t k = 0; k < graph.ops.size(); ++k) positions[graph.ops[k]] = k;
  std::string text;
  for (const Cluster& cluster : clustering->clusters()) {
    text += Cat(cluster.name, " on ", cluster.device, cluster.is_strict ? ", strict:" : ":");
    for (const Instruction* i : cluster.instructions) text += Cat(" ", positions.at(i));
    text += "\n";
  }
  for (const Instruction* op : graph.ops) text += ExplainClustering(input, *clustering, *op) + "\n";
  return text;
}

void CheckGraph(uint64_t seed, std::map<Outside, int>& reasons, int64_t& clustered) {
  RandomGraph graph(seed, false);
  Oracle oracle(graph);
  ClusterInput input = graph.Input();
  Result<Clustering> clustering = FindClusters(input);
  ASSERT_EQ(clustering.ok(), !oracle.HasCycle()) << clustering.status().ToString();
  if (!clustering.ok()) {
    EXPECT_EQ(clustering.status().code(), Code::kInvalidArgument);
    return;
  }
  oracle.Run();
  EXPECT_TRUE(oracle.is_maximal());
  auto expected = oracle.Clusters();
  EXPECT_FALSE(oracle.HasCycle());
  std::string text;
  for (const auto& [members, device] : expected) text += Cat(Join(members, " "), "\n");
  ASSERT_EQ(clustering->clusters().size(), expected.size()) << Describe(graph) << "\n" << text;
  std::set<const Instruction*> inside;
  for (size_t c = 0; c < expected.size(); ++c) {
    const Cluster& cluster = clustering->clusters()[c];
    EXPECT_EQ(cluster.name, Cat("cluster_", c));
    EXPECT_EQ(cluster.device, expected[c].second);
    std::vector<Instruction*> instructions;
    for (int k : expected[c].first) instructions.push_back(graph.ops[k]);
    ASSERT_EQ(cluster.instructions, instructions) << c;
    for (const Instruction* i : instructions) {
      EXPECT_EQ(clustering->ClusterOf(i), static_cast<int32_t>(c));
      EXPECT_TRUE(inside.insert(i).second);
      EXPECT_EQ(clustering->ReasonOf(i).outside, Outside::kNot);
    }
    clustered += std::ssize(instructions);
  }
  for (size_t a = 0; a < graph.ops.size(); ++a) {
    const Instruction* op = graph.ops[a];
    const OutsideReason& reason = clustering->ReasonOf(op);
    EXPECT_EQ(clustering->ClusterOf(op) < 0, !inside.contains(op));
    EXPECT_EQ(reason.outside == Outside::kNot, inside.contains(op));
    ++reasons[reason.outside];
    for (size_t b = 0; b < a; ++b) {
      EXPECT_EQ(clustering->TieOf(op) == clustering->TieOf(graph.ops[b]),
                oracle.IsTied(static_cast<int>(a), static_cast<int>(b)));
    }
  }
  RandomGraph again(seed, true);
  EXPECT_EQ(Describe(graph), Describe(again));
}

TEST(RandomClustering, FollowsTheRules) {
  std::map<Outside, int> reasons;
  int64_t clustered = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    CheckGraph(seed, reasons, clustered);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  // The graphs say something about each rule.
  EXPECT_GT(clustered, 2000);
  for (int reason = 0; reason <= static_cast<int>(Outside::kTooSmall); ++reason) {
    EXPECT_GT(reasons[static_cast<Outside>(reason)], 20) << reason;
  }
}

}  // namespace
}  // namespace kiln::session
