#include "kernel/schedule/gpu/teams.h"

#include <algorithm>
#include <cstdlib>

#include "base/integers.h"
#include "kernel/schedule/gpu/kept.h"
#include "kernel/schedule/gpu/vectors.h"
#include "kernel/selection.h"

namespace kiln::kernel {
namespace {

// So many steps keep a thread busy; a team is made larger before its threads take more of them.
constexpr int64_t kStepsOfThread = 4;
constexpr int kColumnTeams = 32;  // neighbouring columns, which neighbouring threads read together
constexpr int64_t kMostBlocks = int64_t{1} << 20;
constexpr int64_t kMostChunks = 512;
// A sum of so few terms is taken in order where that costs nothing: others do so, and where terms
// cancel it tells.
constexpr int64_t kShortSum = 32;

int64_t ExtentOf(const Kernel& kernel, VariableId v) { return kernel.variables[v].extent; }

bool MayHaveTeams(const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::kNest) return false;
  bool walks = false;
  for (const Stage& stage : kernel.stages) {
    if (stage.sort || !stage.updates.empty()) return false;
    for (const Reduction& r : stage.reductions) {
      const bool is_general = r.combiner.kind == Combiner::Kind::kGeneral;
      if (is_general ? !SequencesOf(kernel, stage, r) : r.types.size() != 1) return false;
    }
    // Each result of a reduction is one of an outer point.
    const bool reduces = !stage.reductions.empty();
    for (VariableId v : stage.variables) {
      if (reduces && !kernel.variables[v].reduction) return false;
    }
    if (kernel.PointsOf(stage.variables) == 0) return false;
    walks |= !stage.variables.empty();
  }
  return walks;
}

// How many of the accesses at inner points go along a variable in memory.
int CountAlong(const Kernel& kernel, bool outer) {
  int count = 0;
  for (const Stage& stage : kernel.stages) {
    if (stage.variables.empty()) continue;
    const VariableId v = outer ? kernel.LastOuter() : stage.variables.back();
    for (const Node& n : stage.nodes) {
      count += n.kind == Node::Kind::kLoad && n.index.StrideOf(v) == 1;
    }
    for (const Store& s : stage.stores) count += s.index.StrideOf(v) == 1;
  }
  return count;
}

// Whether reads of neighbouring points overlap or interleave, so that neighbouring threads, one per
// point, have coalesced accesses.
bool NeighboursMeet(const Kernel& kernel, const Stage& stage) {
  if (kernel.outer == 0) return false;
  for (const Node& n : stage.nodes) {
    if (n.kind != Node::Kind::kLoad) continue;
    auto point = n.index.StrideOf(kernel.LastOuter());
    if (!point || *point == 0) continue;
    int64_t reach = 0;
    for (VariableId v : stage.variables) {
      const int64_t stride = n.index.StrideOf(v).value_or(0);
      reach = std::max(reach, std::abs(stride) * (ExtentOf(kernel, v) - 1));
    }
    if (std::abs(*point) > reach) return false;
  }
  return true;
}

// Whether the kernel is one short reduction, whose points had better have a thread each.
bool IsShortSum(const Kernel& kernel, bool few) {
  const Stage& stage = kernel.stages.front();
  for (StageId s : kernel.stages.ids(StageId(1))) {
    if (!kernel.stages[s].variables.empty()) return false;
  }
  return kernel.PointsOf(stage.variables) <= kShortSum && (few || NeighboursMeet(kernel, stage));
}

int PowerOfTwoFrom(int64_t at_least, int most) {
  int power = 1;
  while (power < at_least && power < most) power *= 2;
  return power;
}

int64_t MostResults(const Kernel& kernel) {
  int64_t most = 0;
  for (const Stage& stage : kernel.stages) {
    int64_t results = 0;
    for (const Reduction& r : stage.reductions) results += static_cast<int64_t>(r.types.size());
    most = std::max(most, results);
  }
  return most;
}

// The cost of combining a stage's results over a team.
int64_t SharedBytes(const Kernel& kernel, const GpuLaunch& launch, int warp) {
  int64_t parts = launch.columns ? launch.threads : launch.team > warp ? launch.team / warp : 0;
  return 8 * parts * MostResults(kernel);
}

void KeepInRegisters(const Kernel& kernel, GpuSchedule& s) {
  const int lanes = LanesOfAllStages(kernel, s.lanes);
  if (lanes == 0) return;
  s.kept = KeepRows(kernel, lanes, s.launches[0].team);
  if (s.kept.steps == 0) return;
  for (StageId i : s.lanes.ids()) {
    if (!kernel.stages[i].variables.empty()) s.lanes[i] = lanes;
  }
}

}  // namespace

int64_t GpuPartialBytes(ElementType type, int64_t points, int64_t chunks) {
  constexpr int64_t kAlignment = 64;
  return RoundUp(ByteWidth(type) * points * chunks, kAlignment);
}

int64_t GpuPartialBytes(std::span<const Reduction> reductions, int64_t points, int64_t chunks) {
  int64_t bytes = 0;
  for (const Reduction& r : reductions) {
    for (ElementType type : r.types) bytes += GpuPartialBytes(type, points, chunks);
  }
  return bytes;
}

std::optional<GpuSchedule> ScheduleTeams(const Kernel& kernel, const target::Gpu& gpu,
                                         int block_threads) {
  if (!MayHaveTeams(kernel)) return std::nullopt;
  GpuSchedule s;
  s.form = GpuSchedule::Form::kTeams;
  const int64_t points = kernel.OuterPoints();
  if (points == 0) return std::nullopt;
  const bool columns = kernel.outer > 0 && ExtentOf(kernel, kernel.LastOuter()) >= 8 &&
                       CountAlong(kernel, true) > CountAlong(kernel, false);
  int64_t steps = 0;
  size_t walks = 0;
  for (const Stage& stage : kernel.stages) {
    int lanes = 1;
    if (!stage.variables.empty() && !columns) {
      lanes = GpuLanes(kernel, stage, stage.variables.back());
    }
    s.lanes.push_back(lanes);
    if (stage.variables.empty()) continue;
    ++walks;
    steps = std::max(steps, kernel.PointsOf(stage.variables) / lanes);
  }
  GpuLaunch launch;
  launch.columns = columns;
  // A machine that is not full had better have more threads at each point.
  const int64_t blocks_wanted = 2 * gpu.multiprocessors;
  const bool in_order = IsShortSum(kernel, points < blocks_wanted);
  if (in_order) {
    launch.columns = false;
    launch.threads = block_threads > 0 ? block_threads : 128;
  } else if (columns) {
    bool few = CeilDiv(points, kColumnTeams) < blocks_wanted;
    int wanted = PowerOfTwoFrom(CeilDiv(steps, kStepsOfThread), few ? 32 : 8);
    launch.threads = block_threads > 0 ? block_threads : kColumnTeams * wanted;
    launch.team = launch.threads / kColumnTeams;
  } else {
    bool few = points < blocks_wanted;
    int most = block_threads > 0 ? block_threads : few ? gpu.max_threads_per_block : 512;
    launch.team = PowerOfTwoFrom(CeilDiv(steps, few ? 1 : kStepsOfThread), most);
    // Between a warp and a block there is nothing.
    launch.threads = block_threads > 0             ? block_threads
                     : launch.team > gpu.warp_size ? launch.team
                                                   : 128;
    if (launch.team > gpu.warp_size) launch.team = launch.threads;
  }
  const int64_t teams = launch.threads / launch.team;
  int64_t blocks = CeilDiv(points, teams);
  launch.blocks = std::min(blocks, kMostBlocks);
  launch.shared_bytes = SharedBytes(kernel, launch, gpu.warp_size);
  if (launch.shared_bytes > gpu.shared_bytes_per_block) return std::nullopt;
  // One long reduction, and only numbers made of it: several blocks for each point.
  const bool first_only = walks == 1 && !kernel.stages.front().reductions.empty();
  if (block_threads == 0 && first_only && !in_order && blocks < blocks_wanted) {
    int64_t worth = steps / (launch.team * 2 * kStepsOfThread);
    s.chunks = std::clamp<int64_t>(std::min(CeilDiv(blocks_wanted, blocks), worth), 1, kMostChunks);
  }
  s.launches = {launch};
  if (s.chunks == 1) {
    KeepInRegisters(kernel, s);
    return s;
  }
  s.launches[0].blocks = blocks * s.chunks;
  s.scratch_bytes = GpuPartialBytes(kernel.stages.front().reductions, points, s.chunks);
  // Partial results of neighbouring points are neighbours.
  GpuLaunch second;
  second.columns = points >= 8;
  second.threads = 256;
  second.team = second.columns ? second.threads / kColumnTeams : second.threads;
  second.blocks = CeilDiv(points, second.threads / second.team);
  second.shared_bytes = SharedBytes(kernel, second, gpu.warp_size);
  s.launches.push_back(second);
  return s;
}

}  // namespace kiln::kernel
