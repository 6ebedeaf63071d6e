#include "session/cluster_candidates.h"
#include "session/clustering.h"

namespace kiln::session {
namespace {

using ir::Instruction;

class Explainer {
 public:
  Explainer(const ClusterInput& input, const Clustering& clustering)
      : input_(input), clustering_(clustering) {}

  std::string Why(const Instruction& i) const {
    const OutsideReason& reason = clustering_.ReasonOf(&i);
    switch (reason.outside) {
      case Outside::kNot:
        return "it is in a cluster";
      case Outside::kInput:
        return reason.other ? Cat("it uses the tuple '", reason.other->name(), "', an input")
                            : "it is an input";
      case Outside::kResult:
        return "it is the tuple of the graph's results";
      case Outside::kSmallConstant:
        return "it is a small constant, copied into each cluster that reads it";
      case Outside::kMarked:
        return "marked not to compile";
      case Outside::kJitOff:
        return "the JIT is off";
      case Outside::kNotMarked:
        return "not marked to compile, and the JIT compiles marked ops only";
      case Outside::kDevice:
        return Cat("its device ", DeviceOf(i), " is not compiled by default");
      case Outside::kNotCompilable:
      case Outside::kRandom:
        return WhyNotCompilable(i, reason.outside);
      case Outside::kNotOnList:
        return Cat("op not in the list of ops to cluster: ", OpcodeName(i.opcode()));
      case Outside::kExcluded:
        return Cat("op excluded from clusters: ", OpcodeName(i.opcode()));
      case Outside::kNoFuel:
        return "no fuel left";
      case Outside::kTied:
        return Cat("tied by a tuple to '", reason.other->name(),
                   "', which is outside: ", Why(*reason.other));
      case Outside::kTiedDevices:
        return "tied by a tuple to an op on another device";
      case Outside::kTooSmall:
        return Cat("smaller than ", input_.options.min_cluster_size, ": ", reason.size,
                   reason.size == 1 ? " op" : " ops", WhyNotLarger(reason));
    }
    return "";
  }

 private:
  const std::string& DeviceOf(const Instruction& i) const {
    const Placement& placement = input_.placement;
    return placement.devices[static_cast<size_t>(placement.device_of.at(&i))].name;
  }

  std::string WhyNotCompilable(const Instruction& i, Outside kind) const {
    Compilability compilability(input_);
    Compilability::Blocker blocker = compilability.Find(i, kind != Outside::kRandom);
    return compilability.Describe(blocker, i);
  }

  std::string WhyNotLarger(const OutsideReason& reason) const {
    if (reason.obstacle == Obstacle::kNone) return "";
    int32_t cluster = clustering_.ClusterOf(reason.other);
    std::string other = cluster >= 0 ? clustering_.clusters()[static_cast<size_t>(cluster)].name
                                     : Cat("the ops at '", reason.other->name(), "'");
    switch (reason.obstacle) {
      case Obstacle::kNone:
        return "";
      case Obstacle::kDevices:
        return Cat("; on another device than ", other);
      case Obstacle::kScopes:
        return Cat("; in another scope than ", other);
      case Obstacle::kMaxSize:
        return Cat("; larger than ", input_.options.max_cluster_size, " with ", other);
      case Obstacle::kOtherDevice:
        return Cat("; with ", other, " it would wait for another device");
      case Obstacle::kCycle:
        return Cat("; would make a cycle with ", other);
    }
    return "";
  }

  const ClusterInput& input_;
  const Clustering& clustering_;
};

}  // namespace

std::string ExplainClustering(const ClusterInput& input, const Clustering& clustering,
                              const Instruction& instruction) {
  int32_t number = clustering.ClusterOf(&instruction);
  if (number < 0) {
    return Cat("outside clusters: ", Explainer(input, clustering).Why(instruction));
  }
  const Cluster& cluster = clustering.clusters()[static_cast<size_t>(number)];
  std::string text = Cat("in ", cluster.name, " on ",
                         input.placement.devices[static_cast<size_t>(cluster.device)].name);
  if (cluster.is_strict) text += ", which must be compiled";
  if (!cluster.refusal.empty()) text += Cat(" and cannot be: ", cluster.refusal);
  return text;
}

}  // namespace kiln::session
