// TensorFlow's auto-clustering: the ops of a graph that are compiled together.
//
// 1. Candidates are ops that may be compiled: marked so, on a device that always compiles, or under
//    a global JIT; that can be, with all computations that they call; and that are on the lists.
// 2. Each candidate begins as a cluster. Edges between clusters are contracted in post-order: first
//    those to ops that read only a shape, then all others. An edge is contracted if the devices of
//    both clusters agree, their scopes do not conflict, the size stays within the maximum, and
//    neither a cycle nor a new dependency on another device appears: the later cluster must not
//    read from a candidate on another device, for which the earlier one's users would have to wait.
// 3. A cluster is kept if its device always compiles, if an op of it is marked, if it has a loop or
//    a conditional, or if its effective size is large enough.
//
// Differences from TensorFlow, which follow from HLO:
// - A value that leaves a cluster is an array. Producers and users of a tuple or a token are tied
//   to each other, and with all ops on paths between them: they are in one cluster, or all outside.
//   Tuples and their elements follow the op that they are tied to: their own marks and devices
//   count only where there is no such op. Ties are never cut, so they may exceed the maximal size.
// - A call that must be compiled is a cluster of its own with what is tied to it.
// - A small constant without control edges is no dependency, and does not count towards the maximal
//   size. It belongs to the cluster that has all its users, and is otherwise copied into each
//   cluster that reads it.
// - Side effects keep their order, as if each were a control dependency of the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/instruction_map.h"
#include "ir/ir.h"

namespace kiln::session {

struct PlacedDevice {
  std::string name;              // "CPU:0"
  bool compiles_always = false;  // XLA_CPU and XLA_GPU
  bool is_gpu = false;           // compiled by a global JIT; other devices need cpu_global_jit, too
};

struct Placement {
  explicit Placement(const ir::Computation& entry) : device_of(entry) {}
  std::vector<PlacedDevice> devices;
  ir::InstructionMap<int32_t> device_of;  // an index into `devices`, for each instruction
};

struct JitMark {
  std::optional<bool> compile;
  std::string_view scope;     // empty: none; must live as long as the clustering is being made
  bool must_compile = false;  // of a call
};

enum class JitLevel : uint8_t {
  kOff,       // what must be compiled, and the ops of devices that always compile
  kExplicit,  // marked ops, too: TensorFlow's session without a global JIT
  kOn,        // all ops, without regard to scopes
};

struct ClusterOptions {
  JitLevel level = JitLevel::kExplicit;
  bool cpu_global_jit = false;
  int64_t min_cluster_size = 4;
  int64_t max_cluster_size = INT64_MAX;
  // The number of candidates, in the order of the computation; -1: no limit.
  int64_t fuel = -1;
  // Opcodes by HLO name, and TensorFlow's groups: PW, RED, PWRED, REDUCEWINDOW, REDUCEWINDOWPW, BN,
  // Conv, SORT, MISC, and FUSIBLE for all of these. Without a list all ops are clustered. Tuples
  // and constants are on every list.
  std::vector<std::string> ops_to_cluster;
  std::vector<std::string> cluster_exclude_ops;
  // Ops of devices that always compile are clusters of their own, unless they are marked.
  bool compile_on_demand = false;
  // TensorFlow's rule for ops on a CPU: they may join clusters of one GPU, and then run there.
  bool gpu_clusters_take_cpu_ops = false;
  std::string name_prefix = "cluster";  // of names: cluster_0
};

// `after` runs after `before`; both are in the entry.
struct ControlEdge {
  const ir::Instruction* before;
  const ir::Instruction* after;
};

// All is borrowed. Functions are called from the calling thread; empty ones make no mark and have
// no objection.
struct ClusterInput {
  const ir::Computation& entry;
  const Placement& placement;
  const ClusterOptions& options;
  std::function<JitMark(const ir::Instruction&)> mark;
  // The reason why an instruction, of the entry or of a computation called from it, cannot be
  // compiled, as in "its shape is known at run time only"; nullopt if it can be.
  std::function<std::optional<std::string>(const ir::Instruction&)> why_not_compilable;
  // Control dependencies, and others without a value: from the op that determines a symbolic size
  // to the ops that use it without being its users.
  std::vector<ControlEdge> control_edges;
};

struct Cluster {
  std::string name;
  int32_t device = 0;
  // The session must not run its ops one by one instead.
  bool is_strict = false;
  int64_t effective_size = 0;  // without copies, constants, tuples and their elements
  std::vector<ir::Instruction*> instructions;  // in the order of the computation
  // Of a cluster that must be compiled and cannot be: the op and the reason.
  std::string refusal;
};

// Why an op is outside clusters, in the order of the checks.
enum class Outside : uint8_t {
  kNot,            // it is in one
  kInput,          // a parameter, or a user of a parameter that is a tuple
  kResult,         // the tuple of the graph's results
  kSmallConstant,  // copied into clusters
  kMarked,         // not to be compiled
  kJitOff,         // the level
  kNotMarked,      // the level
  kDevice,         // not compiled by default
  kNotCompilable,  // why_not_compilable
  kRandom,         // draws random numbers from a state
  kNotOnList,      // ops_to_cluster
  kExcluded,       // cluster_exclude_ops
  kNoFuel,         // the option
  kTied,           // to an op that is outside
  kTiedDevices,    // to an op on another device
  kTooSmall,       // its cluster was not kept
};

// Why two clusters were not made one.
enum class Obstacle : uint8_t { kNone, kDevices, kScopes, kMaxSize, kOtherDevice, kCycle };

struct OutsideReason {
  Outside outside = Outside::kNot;
  Obstacle obstacle = Obstacle::kNone;     // kTooSmall: to a larger cluster
  int32_t size = 0;                        // kTooSmall: the effective size
  const ir::Instruction* other = nullptr;  // an op of the other cluster; kTied: the op outside
};

class Clustering {
 public:
  explicit Clustering(const ir::Computation& entry) : positions_(entry) {}

  const std::vector<Cluster>& clusters() const { return clusters_; }
  // The index of an entry instruction's cluster; -1: none.
  int32_t ClusterOf(const ir::Instruction* i) const { return PlaceOf(i).cluster; }
  const OutsideReason& ReasonOf(const ir::Instruction* i) const { return PlaceOf(i).reason; }
  // Equal for instructions that are tied to each other by tuples and tokens, wherever they are:
  // they must run as one unit. No cycle leads through clusters and units.
  int32_t TieOf(const ir::Instruction* i) const { return PlaceOf(i).tie; }

 private:
  friend class ClusterBuilder;
  struct Place {
    int32_t cluster = -1;
    int32_t tie = 0;
    OutsideReason reason;
  };
  const Place& PlaceOf(const ir::Instruction* i) const { return places_[positions_.at(i)]; }

  std::vector<Cluster> clusters_;
  ir::InstructionMap<int32_t> positions_;
  std::vector<Place> places_;
};

// Depends on the order of the entry's instructions, but not on their ids. INVALID_ARGUMENT if
// control edges form a cycle or lead out of the entry, if an instruction has no device, and for
// unknown names on the lists.
Result<Clustering> FindClusters(const ClusterInput& input);

// Where an entry instruction is, for a user: "in cluster_0 on GPU:0", or "outside clusters: its
// device CPU:0 is not compiled by default". `input` is the clustering's.
std::string ExplainClustering(const ClusterInput& input, const Clustering& clustering,
                              const ir::Instruction& instruction);

// A constant of so few bytes that it is copied into the clusters that read it.
bool IsSmallConstant(const ir::Instruction& instruction);

}  // namespace kiln::session
