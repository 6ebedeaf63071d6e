#include "kernel/schedule/gpu/scatter.h"

#include <algorithm>
#include <numeric>

#include "base/integers.h"
#include "kernel/schedule/gpu/gemm.h"

namespace kiln::kernel {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = int64_t{1} << 20;
// A thread takes so many updates in order before blocks had better find those of their own.
constexpr int64_t kFewUpdates = 32;

// Whether the updates at one point of the variables that go in no order never meet those at
// another. An element's place tells the point where the rest of the index goes in steps that are
// larger than all that these variables make of it.
bool AreApart(const Kernel& kernel) {
  const Stage& stage = kernel.stages.front();
  auto is_free = [&](const Index::Term& t) {
    return t.atom.kind == Atom::Kind::kVariable && kernel.IsInner(t.atom.variable) &&
           !kernel.variables[t.atom.variable].reduction;
  };
  for (const Update& u : stage.updates) {
    for (const Index& index : u.indices) {
      int64_t step = 0, span = 0;
      for (const Index::Term& t : index.terms()) {
        if (!is_free(t)) {
          step = std::gcd(step, t.coefficient);
        } else if (t.coefficient > 0) {
          span += t.coefficient * t.atom.high;
        } else {
          return false;
        }
      }
      if (step != 0 && span >= step) return false;
    }
  }
  return true;
}

// Whether a variable moves every update by so many elements, and does nothing else to it.
bool OnlyMoves(const Stage& stage, VariableId variable) {
  for (const Update& u : stage.updates) {
    for (const Index& index : u.indices) {
      if (!index.StrideOf(variable)) return false;
    }
    if (!u.guard.valid()) continue;
    for (NodeId n : GpuNodesOf(stage, u.guard)) {
      if (stage.nodes[n].index.DependsOn(variable)) return false;
    }
  }
  return true;
}

// A thread for each point, which takes all of its updates.
GpuSchedule Threads(int64_t points, const target::Gpu& gpu) {
  GpuSchedule s;
  s.form = GpuSchedule::Form::kSerial;
  s.launches[0].threads = kThreads;
  s.launches[0].blocks = std::clamp<int64_t>(CeilDiv(points, kThreads), 1,
                                             32 * static_cast<int64_t>(gpu.multiprocessors));
  return s;
}

}  // namespace

GpuUpdateOrder OrderOfUpdates(const Kernel& kernel) {
  const Stage& stage = kernel.stages.front();
  GpuUpdateOrder order;
  for (VariableId v : stage.variables) {
    (kernel.variables[v].reduction ? order.in_order : order.others).push_back(v);
  }
  order.others_are_apart = AreApart(kernel);
  const IdRange<VariableId> outer = kernel.OuterVariables();
  std::vector<VariableId> all(outer.begin(), outer.end());
  if (order.others_are_apart) all.insert(all.end(), order.others.begin(), order.others.end());
  for (VariableId v : all) (OnlyMoves(stage, v) ? order.slices : order.batch).push_back(v);
  return order;
}

GpuSchedule ScheduleGpuScatter(const Kernel& kernel, const target::Gpu& gpu) {
  const GpuUpdateOrder order = OrderOfUpdates(kernel);
  const int64_t in_order = kernel.PointsOf(order.in_order);
  const int64_t others = kernel.PointsOf(order.others);
  if (in_order <= 1) return Threads(kernel.OuterPoints() * others, gpu);
  GpuSchedule s;
  if (!order.others_are_apart) {
    s.form = GpuSchedule::Form::kScatter;
    s.launches[0].threads = others <= gpu.warp_size ? gpu.warp_size : kThreads;
    s.launches[0].blocks = std::clamp<int64_t>(kernel.OuterPoints(), 1, kMostBlocks);
    return s;
  }
  if (in_order <= kFewUpdates) return Threads(kernel.OuterPoints() * others, gpu);
  s.form = GpuSchedule::Form::kOwners;
  s.owners = std::min<int64_t>(2 * static_cast<int64_t>(gpu.multiprocessors), in_order);
  const int64_t batches = kernel.PointsOf(order.batch);
  GpuLaunch& launch = s.launches[0];
  launch.threads = kThreads;
  launch.blocks = std::clamp<int64_t>(batches * s.owners, 1, kMostBlocks);
  launch.shared_bytes = GpuOwnersBytes(launch.threads);
  return s;
}

}  // namespace kiln::kernel
