#include "kernel/schedule/cpu/scatter.h"

#include <algorithm>

#include "base/integers.h"

namespace kiln::kernel {
namespace {

// Rough costs in cycles of a core.
constexpr double kUpdateCycles = 4;  // of a scalar or of a vector
constexpr double kCyclesPerMicrosecond = 2500;
// Items that each go through all index vectors: enough for a few threads, and no more.
constexpr int64_t kOrderedItems = 8;
// Neighbours that one item should update at least, so that cache lines are used whole.
constexpr int64_t kItemRowBytes = 256;
constexpr int64_t kMinVector = 4;
// Of index vectors that are computed together: the least bytes of a lane, and how few ops and index
// vectors are not worth taking lanes out of vectors.
constexpr int64_t kLeastLaneBytes = 4;
constexpr int64_t kFewestLaneOps = 4, kFewestLanes = 64;

bool NodeDependsOn(const Stage& stage, NodeId node, VariableId variable) {
  IdVector<NodeId, bool> seen(stage.nodes.size());
  std::vector<NodeId> work = {node};
  while (!work.empty()) {
    const NodeId at = work.back();
    work.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const Node& n = stage.nodes[at];
    if (n.index.DependsOn(variable)) return true;
    work.insert(work.end(), n.operands.begin(), n.operands.end());
    if (n.guard.valid()) work.push_back(n.guard);
  }
  return false;
}

class ScatterScheduler {
 public:
  ScatterScheduler(const Kernel& kernel, const target::Cpu& cpu)
      : kernel_(kernel), cpu_(cpu), stage_(kernel.stages.front()), update_(stage_.updates[0]) {
    s_.stages.resize(1);
  }

  CpuNestSchedule Run() {
    ChooseVector();
    ChooseItems();
    return s_;
  }

 private:
  int64_t Extent(VariableId v) const { return kernel_.variables[v].extent; }

  // Along what lies side by side in the results, wherever the slice begins.
  void ChooseVector() {
    int64_t bytes = 1;
    for (ParamId param : update_.params) {
      bytes = std::max(bytes, ByteWidth(kernel_.params[param].type));
    }
    VariableId best;
    for (VariableId v : kernel_.variables.ids()) {
      if (kernel_.variables[v].reduction || Extent(v) < kMinVector) continue;
      bool fits =
          std::ranges::all_of(update_.indices, [&](const Index& i) { return i.StrideOf(v) == 1; });
      if (update_.guard.valid()) fits = fits && !NodeDependsOn(stage_, update_.guard, v);
      if (fits && (!best.valid() || Extent(v) > Extent(best))) best = v;
    }
    if (!best.valid()) return ChooseLanes();
    s_.vector_width = static_cast<int>(std::max<int64_t>(cpu_.vector_bytes / bytes, 1));
    // Short slices are done whole by narrower vectors.
    while (!cpu_.has_masks && s_.vector_width > Extent(best)) s_.vector_width /= 2;
    if (s_.vector_width == 1) return;
    CpuStageSchedule& stage = s_.stages.front();
    stage.vector_variable = best;
    int64_t vectors = Extent(best) / s_.vector_width;
    stage.unroll = vectors >= 16 && update_.combiner.nodes.size() <= 4 ? 4 : vectors >= 4 ? 2 : 1;
  }

  // Along index vectors, where there is something to compute of them: the updates themselves are
  // made lane by lane.
  void ChooseLanes() {
    if (stage_.variables.empty()) return;
    const VariableId last = stage_.variables.back();
    if (!kernel_.variables[last].reduction) return;
    int64_t ops = 0, bytes = kLeastLaneBytes;
    for (const Node& n : stage_.nodes) {
      ops += n.kind == Node::Kind::kOp;
      bytes = std::max(bytes, ByteWidth(n.type));
      if (n.kind == Node::Kind::kLoad && kernel_.params[n.param].role == Param::Role::kOutput) {
        return;
      }
    }
    const int64_t width = cpu_.vector_bytes / bytes;
    if (ops < kFewestLaneOps || width < kMinVector || Extent(last) < kFewestLanes) return;
    s_.vector_width = static_cast<int>(width);
    s_.stages.front().vector_variable = last;
  }

  void ChooseItems() {
    double points = 1;
    int64_t ordered = 1;
    for (VariableId v : kernel_.variables.ids()) {
      points *= static_cast<double>(kernel_.variables[v].extent);
      if (kernel_.variables[v].reduction) ordered *= kernel_.variables[v].extent;
    }
    if (points == 0) {
      s_.items = 0;
      return;
    }
    s_.microseconds = points * kUpdateCycles / s_.vector_width / kCyclesPerMicrosecond;
    int64_t wanted = cpu_.TasksWorth(s_.microseconds);
    if (wanted == 1) return;
    if (ordered > 1) wanted = std::min(wanted, kOrderedItems);
    const VariableId vector = s_.stages.front().vector_variable;
    int most = kernel_.IsOuter(vector) ? vector.value() + 1 : kernel_.outer;
    while (s_.parallel < most && s_.items < wanted) s_.items *= Extent(VariableId(s_.parallel++));
    if (s_.parallel == 0) return;
    const VariableId last(s_.parallel - 1);
    int64_t step = 1;
    if (last == vector) {
      int64_t bytes = ByteWidth(kernel_.params[update_.params[0]].type);
      step = std::max<int64_t>(s_.vector_width * s_.stages.front().unroll, kItemRowBytes / bytes);
    }
    int64_t before = s_.items / Extent(last);
    int64_t block = CeilDiv(Extent(last), std::max<int64_t>(CeilDiv(wanted, before), 1));
    s_.block = std::min(CeilDiv(block, step) * step, Extent(last));
    s_.items = before * CeilDiv(Extent(last), s_.block);
    s_.max_tasks = std::clamp<int64_t>(wanted, 1, s_.items);
  }

  const Kernel& kernel_;
  const target::Cpu& cpu_;
  const Stage& stage_;
  const Update& update_;
  CpuNestSchedule s_;
};

}  // namespace

CpuNestSchedule ScheduleScatter(const Kernel& kernel, const target::Cpu& cpu) {
  return ScatterScheduler(kernel, cpu).Run();
}

}  // namespace kiln::kernel
