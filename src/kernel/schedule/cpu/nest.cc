#include "kernel/schedule/cpu/nest.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/integers.h"
#include "base/strings.h"
#include "kernel/collapse.h"
#include "kernel/schedule/cpu/cases.h"
#include "kernel/schedule/cpu/rows.h"
#include "kernel/schedule/cpu/strips.h"
#include "kernel/selection.h"

namespace kiln::kernel {
namespace {

// Rough costs in cycles of a core, for comparing schedules with each other.
constexpr double kOpCost = 0.5;
constexpr double kTranscendentalCost = 12;
constexpr double kAccessCost = 0.6;
constexpr double kGatherCost = 0.8;        // per lane, with a gather instruction
constexpr double kScalarAccessCost = 1.2;  // per lane, one by one
constexpr double kTransposeCost = 0.3;     // per lane, in squares
constexpr double kCombineLanesCost = 14;   // of a vector of accumulators, once per reduction
// The same, and the heavy ops behind it, where the next stage has to wait for the result.
constexpr double kDependentCombineCost = 100;
constexpr double kCyclesPerMicrosecond = 2500;
// Code of less weight is short: the machine sees several vectors at a time. Of long code it sees
// one, and what is longer takes too long to compile several times.
constexpr int kShortCode = 24, kLongCode = 64, kLongestCode = 200;
// Ops that should be side by side: two units take one each cycle, which is done after four. Where
// the next vector is out of sight a unit waits more often.
constexpr int kOpsInFlight = 8, kOpsInFlightOfLongCode = 12;
// The minimal traffic of an item, so that its overhead is negligible, and the maximal one, so that
// there are enough items.
constexpr double kItemBytes = 48 << 10;
constexpr double kItemCycles = 100000;
// The size of an output likely to stay in the caches until it is read: bounded even for large
// last-level caches, which are shared.
constexpr int64_t kMostKept = 12 << 20;
// Lines that go past the caches are put together in a few buffers, one for each place written at a
// time.
constexpr size_t kMostStreams = 8;
constexpr double kChunkBytes = 192 << 10;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kMaxChunks = 512;

class NestScheduler {
 public:
  NestScheduler(const Kernel& kernel, const target::Cpu& cpu, bool short_rows)
      : kernel_(kernel), cpu_(cpu), short_rows_(short_rows) {
    points_ = kernel.OuterPoints();
    s_.stages.resize(kernel.stages.size());
  }

  CpuNestSchedule Run() {
    s_.nontemporal =
        kernel_.bytes_written > std::min(cpu_.l2_bytes + cpu_.l3_bytes / 2, kMostKept) &&
        std::ranges::all_of(kernel_.stages,
                            [](const Stage& stage) { return stage.stores.size() <= kMostStreams; });
    s_.vector_width = Width();
    ChooseVectors();
    PreferSquares();
    ChooseInterleaved();
    ChooseTile();
    ChooseUnroll();
    ChooseHalving();
    const bool strips = points_ > 0 && ScheduleStrips(kernel_, cpu_, short_rows_, s_);
    if (!strips) ChooseItems();
    ChooseSplit();
    s_.items = std::max<int64_t>(s_.items, 0);
    s_.microseconds = std::max(cycles_ / kCyclesPerMicrosecond, bytes_ / BytesPerMicrosecond());
    s_.max_tasks =
        std::clamp<int64_t>(cpu_.TasksWorth(s_.microseconds), 1, std::max<int64_t>(s_.items, 1));
    if (!strips) ScheduleRows(kernel_, cpu_, s_);
    s_.cases = CasesOf(kernel_, s_);
    return s_;
  }

 private:
  int64_t Extent(VariableId v) const { return kernel_.variables[v].extent; }
  double BytesPerMicrosecond() const { return bytes_ > cpu_.l2_bytes ? 12e3 : 50e3; }

  // Lanes: as many as the type that most values have fits into a vector register. Wider types take
  // several registers, narrower ones a part of one.
  int Width() const {
    bool has[9] = {};
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind == Node::Kind::kIndex || n.kind == Node::Kind::kInRange) has[4] = true;
        if (n.type == ElementType::kInvalid) continue;
        // Half types are computed in f32.
        has[IsHalf(n.type) ? 4 : ByteWidth(n.type)] = true;
      }
    }
    return cpu_.vector_bytes / (has[4] ? 4 : has[8] ? 8 : has[2] ? 2 : 1);
  }

  // The outer variable along which an access is contiguous, where it may be a tile's.
  VariableId TileOf(const Index& index, VariableId vector) const {
    if (!kernel_.IsOuter(vector) || Extent(vector) < s_.vector_width) return {};
    if (s_.vector_width < 4 || s_.vector_width > kLargestSquare) return {};
    for (const Stage& stage : kernel_.stages) {
      if (!stage.variables.empty() || !stage.reductions.empty()) return {};
    }
    for (VariableId v : kernel_.OuterVariables()) {
      if (v != vector && Extent(v) >= s_.vector_width && index.StrideOf(v) == 1) return v;
    }
    return {};
  }

  // Squares of narrow elements are smaller than vectors of them. Where something is transposed they
  // may be worth it.
  void PreferSquares() {
    if (Width() <= kLargestSquare) return;
    NestScheduler squares(*this);
    squares.s_.vector_width = kLargestSquare;
    squares.ChooseVectors();
    if (squares.cycles_ >= cycles_) return;
    s_ = squares.s_;
    cycles_ = squares.cycles_;
  }

  void ChooseInterleaved() {
    const Stage& stage = kernel_.stages.front();
    if (kernel_.kind != Kernel::Kind::kNest || kernel_.stages.size() > 1 || kernel_.outer < 2 ||
        !stage.variables.empty() || !stage.reductions.empty() || !stage.updates.empty() ||
        stage.stores.empty()) {
      return;
    }
    const VariableId side = kernel_.LastOuter(), vector(kernel_.outer - 2);
    const int64_t count = Extent(side);
    const int width = std::min<int>(Width(), kLargestSquare);
    if (count < 2 || count > kMostInterleaved || width < 4 || Extent(vector) < width) return;
    for (const Store& store : stage.stores) {
      if (store.index.StrideOf(side) != 1 || store.index.StrideOf(vector) != count) return;
    }
    s_.vector_width = width;
    s_.interleaved = side;
    s_.stages.front().vector_variable = vector;
    cycles_ = static_cast<double>(StagePoints(stage)) * PointCost(stage, vector);
  }

  void ChooseTile() {
    if (s_.interleaved.valid()) return;
    const VariableId vector = s_.stages.front().vector_variable;
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.guard.valid() || s_.tile_variable.valid()) continue;
        std::optional<int64_t> stride;
        if (vector.valid()) stride = n.index.StrideOf(vector);
        if (stride && std::abs(*stride) > 1) s_.tile_variable = TileOf(n.index, vector);
      }
    }
  }

  int64_t StagePoints(const Stage& stage) const {
    return points_ * kernel_.PointsOf(stage.variables);
  }

  // Cycles of one point of a stage with vectors along `vector` (none: scalar code).
  double PointCost(const Stage& stage, VariableId vector) const {
    double lanes = 1;
    if (vector.valid()) {
      int64_t extent = std::max<int64_t>(Extent(vector), 1);
      int64_t steps = CeilDiv(extent, s_.vector_width);
      // Without masks the remainder is processed one by one.
      if (!cpu_.has_masks) steps = extent / s_.vector_width + extent % s_.vector_width;
      lanes = static_cast<double>(extent) / static_cast<double>(steps);
    }
    const bool transposes = StripsTranspose(kernel_, cpu_, vector, s_.vector_width, short_rows_);
    double cost = 0;
    auto access = [&](const Index& index, bool load) {
      if (!vector.valid()) {
        cost += kAccessCost;
        return;
      }
      std::optional<int64_t> stride = index.StrideOf(vector);
      if (stride && *stride >= -1 && *stride <= 1) {
        cost += kAccessCost / lanes;
      } else if (stride && ((load && TileOf(index, vector).valid()) ||
                            (transposes && IsSquareInStrips(stage, index, vector)))) {
        cost += kTransposeCost;
      } else if (stride && *stride > 1 && *stride <= kMostInterleaved &&
                 (load || s_.interleaved.valid())) {
        cost += kTransposeCost;
      } else {
        cost += cpu_.has_masks ? kGatherCost : kScalarAccessCost;
        if (!stride) cost += 4 * kOpCost / lanes;
      }
    };
    for (const Node& n : stage.nodes) {
      // A scalar, such as a reduction's initial value, is read once: a sum's association is the
      // same whether that is a constant or an argument.
      const bool is_scalar = n.index.is_constant() && !n.guard.valid();
      if (n.kind == Node::Kind::kLoad && !is_scalar) access(n.index, !n.guard.valid());
      if (n.kind == Node::Kind::kInRange) cost += 2 * kOpCost / lanes;
      if (n.kind != Node::Kind::kOp) continue;
      bool heavy = IsTranscendental(n.opcode);
      cost += (heavy ? kTranscendentalCost : kOpCost) / lanes;
    }
    for (const Store& s : stage.stores) access(s.index, false);
    cost += static_cast<double>(stage.reductions.size()) * kOpCost / lanes;
    return cost;
  }

  // Whether some reduction's elements have to be one sequence.
  bool AnyInOrder(const Stage& stage) const {
    return std::ranges::any_of(stage.reductions, [&](const Reduction& r) {
      return r.combiner.kind == Combiner::Kind::kGeneral && !SequencesOf(kernel_, stage, r);
    });
  }

  // Whether rows are walked more than once.
  bool WalksRowsAgain() const {
    return std::count_if(kernel_.stages.begin(), kernel_.stages.end(),
                         [](const Stage& stage) { return !stage.variables.empty(); }) > 1;
  }

  // The stage's best inner vector variable, if one pays, and its cost.
  std::pair<VariableId, double> BestInner(const Stage& stage) const {
    double points = static_cast<double>(StagePoints(stage));
    std::pair<VariableId, double> best{{}, points * PointCost(stage, {})};
    // A scalar sum waits for each addition.
    if (!stage.reductions.empty()) best.second += points * 4;
    const bool in_order = AnyInOrder(stage);
    for (VariableId v : stage.variables) {
      if (Extent(v) <= 1 || (kernel_.variables[v].reduction && in_order)) continue;
      double combine = kCombineLanesCost * static_cast<double>(stage.reductions.size());
      if (WalksRowsAgain()) combine = kDependentCombineCost;
      double cost = points * PointCost(stage, v) + static_cast<double>(points_) * combine;
      if (cost < best.second) best = {v, cost};
    }
    return best;
  }

  void ChooseVectors() {
    double inner_cost = 0;
    IdVector<StageId, VariableId> inner;
    for (const Stage& stage : kernel_.stages) {
      auto [variable, cost] = BestInner(stage);
      inner.push_back(variable);
      inner_cost += cost;
    }
    VariableId outer;
    double outer_cost = inner_cost;
    // From the innermost: between equals that one walks through memory in order.
    for (VariableId v : std::views::reverse(kernel_.OuterVariables())) {
      if (Extent(v) <= 1) continue;
      double cost = 0;
      for (const Stage& stage : kernel_.stages) {
        cost += static_cast<double>(StagePoints(stage)) * PointCost(stage, v);
      }
      if (cost < outer_cost) {
        outer = v;
        outer_cost = cost;
      }
    }
    for (StageId s : s_.stages.ids()) {
      s_.stages[s].vector_variable = outer.valid() ? outer : inner[s];
    }
    cycles_ = outer_cost;
    bytes_ = static_cast<double>(kernel_.bytes_read + kernel_.bytes_written);
    bool any = outer.valid();
    for (VariableId v : inner) any |= v.valid();
    if (!any) s_.vector_width = 1;
  }

  // Ops that follow one another on a way to a value, each waiting for the one before it.
  struct Chain {
    int functions = 0, ops = 0;
  };
  struct Chains {
    Chain longest;      // of either, on any way
    int functions = 0;  // in all
  };
  // How long the next op of a chain waits for the node. A quotient or a root is done after 10 to 13
  // cycles, a product after 4.
  static int LatencyOf(const Node& node) {
    const bool is_slow = node.kind == Node::Kind::kOp &&
                         (node.opcode == Opcode::kDivide || node.opcode == Opcode::kSqrt ||
                          node.opcode == Opcode::kRsqrt);
    return is_slow ? 3 : WeightOf(node);
  }
  static Chains ChainsOf(const Stage& stage) {
    Chains all;
    IdVector<NodeId, Chain> to(stage.nodes.size());
    auto extend = [](Chain& chain, const Chain& by) {
      chain.functions = std::max(chain.functions, by.functions);
      chain.ops = std::max(chain.ops, by.ops);
    };
    for (NodeId n : stage.nodes.ids()) {
      const Node& node = stage.nodes[n];
      const bool is_function = node.kind == Node::Kind::kOp && IsTranscendental(node.opcode);
      for (NodeId operand : node.operands) extend(to[n], to[operand]);
      to[n].functions += is_function;
      to[n].ops += LatencyOf(node);
      all.functions += is_function;
      extend(all.longest, to[n]);
    }
    return all;
  }

  int UnrollOf(const Stage& stage) const {
    int weight = WeightOf(stage);
    if (!stage.reductions.empty()) {
      return weight <= 12 && stage.reductions.size() <= 3 ? 4 : weight <= 40 ? 2 : 1;
    }
    // A function takes some 60 cycles from operand to result and 8 of the units' time: of a chain
    // of them the machine does not see as far as the next vector. Longer code takes long to
    // compile.
    const Chains chains = ChainsOf(stage);
    if (chains.longest.functions >= 2 && chains.functions <= 12) {
      return chains.longest.functions >= 4 && cpu_.vector_registers >= 32 ? 4 : 2;
    }
    // So much of one function's time is waiting that two vectors go a tenth faster; where arrays
    // are small, what LLVM takes for twice the code counts for more.
    const bool large = kernel_.bytes_read + kernel_.bytes_written > cpu_.l2_bytes;
    const int unroll = weight <= 4 ? 4 : weight <= (large ? 40 : 16) ? 2 : 1;
    if (!large || weight <= kShortCode || weight > kLongestCode) return unroll;
    // In the code of one vector, weight / chain ops are side by side.
    const int wanted = weight > kLongCode ? kOpsInFlightOfLongCode : kOpsInFlight;
    const int copies = wanted * chains.longest.ops / weight;
    return std::max(unroll, copies >= 4 ? 4 : copies >= 2 ? 2 : 1);
  }

  // Of a reduction with vectors along an outer variable. More vectors side by side read longer
  // pieces of memory at a time; those that are left over are read one by one.
  int ColumnUnroll(const Stage& stage, int64_t vectors) const {
    int weight = WeightOf(stage);
    int most =
        cpu_.vector_registers / 2 / std::max<int>(static_cast<int>(stage.reductions.size()), 1);
    most = weight <= 2 ? most : weight <= 6 ? most / 2 : weight <= 12 ? 4 : weight <= 40 ? 2 : 1;
    int best = 1;
    double best_cost = static_cast<double>(vectors);
    for (int unroll = 2; unroll <= most && unroll <= vectors; unroll *= 2) {
      double whole = static_cast<double>(vectors / unroll * unroll) * (0.4 + 0.6 / unroll);
      double cost = whole + static_cast<double>(vectors % unroll);
      if (cost < best_cost) {
        best = unroll;
        best_cost = cost;
      }
    }
    return best;
  }

  void ChooseUnroll() {
    int outer_unroll = 64;
    bool outer_masked = false;
    for (StageId s : s_.stages.ids()) {
      CpuStageSchedule& stage = s_.stages[s];
      if (!stage.vector_variable.valid()) continue;
      int64_t vectors = Extent(stage.vector_variable) / s_.vector_width;
      bool outer = kernel_.IsOuter(stage.vector_variable);
      stage.unroll = outer && !kernel_.stages[s].reductions.empty()
                         ? ColumnUnroll(kernel_.stages[s], vectors)
                         : UnrollOf(kernel_.stages[s]);
      if (s_.tile_variable.valid() || s_.interleaved.valid()) stage.unroll = 1;
      while (stage.unroll > 1 && stage.unroll > vectors) stage.unroll /= 2;
      stage.masked = cpu_.has_masks && stage.unroll == 1 && WeightOf(kernel_.stages[s]) > 16 &&
                     !s_.tile_variable.valid() && !s_.interleaved.valid();
      outer_unroll = std::min(outer_unroll, stage.unroll);
      outer_masked |= stage.masked;
    }
    // Along an outer variable all stages take the same steps.
    for (CpuStageSchedule& stage : s_.stages) {
      if (kernel_.IsOuter(stage.vector_variable)) {
        stage.unroll = outer_unroll;
        stage.masked = outer_masked && outer_unroll == 1;
      }
    }
  }

  // Kernels of a few numbers are bound by latency.
  void ChooseHalving() {
    const VariableId v = s_.stages.front().vector_variable;
    if (!kernel_.IsOuter(v) || s_.tile_variable.valid() || points_ != Extent(v)) return;
    if (s_.interleaved.valid()) return;
    if (kernel_.stages.size() > 1 || !kernel_.stages.front().variables.empty()) return;
    if (points_ >= 2 * s_.vector_width || points_ % s_.vector_width == 0) return;
    if (std::popcount(static_cast<uint64_t>(points_)) * WeightOf(kernel_.stages.front()) > 24)
      return;
    while (s_.vector_width > points_) s_.vector_width /= 2;
    s_.stages.front().unroll = 1;
    s_.stages.front().masked = false;
    s_.stages.front().halving = true;
  }

  // Whether all loads are contiguous along a variable, or invariant.
  bool ReadsAlong(VariableId variable) const {
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad) continue;
        std::optional<int64_t> stride = n.index.StrideOf(variable);
        if (!stride || std::abs(*stride) > 1) return false;
      }
    }
    return true;
  }

  // The most points of a tile's variable that a line has: all of it is read at once, as lines may
  // be gone before the next squares. They share sets of the caches where rows are a power of two.
  int64_t PointsOfLine(VariableId tile) const {
    int64_t points = 1;
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.index.StrideOf(tile) != 1) continue;
        points = std::max(points, kLineBytes / ByteWidth(n.type));
      }
    }
    return points;
  }

  void ChooseItems() {
    if (points_ == 0) {
      s_.items = 0;
      return;
    }
    double n = static_cast<double>(points_);
    double target = std::max(1.0, std::min(kItemBytes / std::max(bytes_ / n, 1e-3),
                                           kItemCycles / std::max(cycles_ / n, 1e-3)));
    const VariableId vector = s_.stages.front().vector_variable;
    int most = kernel_.IsOuter(vector) ? vector.value() + 1 : kernel_.outer;
    const VariableId tile = s_.tile_variable;
    // Stores past the caches do not mind where they go, as long as they fill lines; reads do.
    if (tile.valid() && s_.nontemporal && Extent(tile) >= 16 * s_.vector_width &&
        ReadsAlong(tile)) {
      s_.panels = true;
      s_.block = std::min<int64_t>(s_.vector_width, Extent(vector));
      s_.items = points_ / Extent(tile) / Extent(vector) * CeilDiv(Extent(vector), s_.block);
      return;
    }
    if (tile.valid()) most = std::min(most, tile.value() + 1);
    // The points below the first p variables, for the first p where they are no more than an item
    // should have.
    double below = n;
    while (s_.parallel < most && below > target) {
      const int64_t extent = Extent(VariableId(s_.parallel++));
      below /= static_cast<double>(extent);
      s_.items *= extent;
    }
    if (s_.parallel == 0) return;
    const VariableId last(s_.parallel - 1);
    int64_t step = last == vector ? s_.vector_width * s_.stages.front().unroll : 1;
    if (last == tile) step = std::max<int64_t>(s_.vector_width, PointsOfLine(tile));
    int64_t block = static_cast<int64_t>(target / below);
    block =
        std::clamp<int64_t>(CeilDiv(block, step) * step, step, CeilDiv(Extent(last), step) * step);
    s_.block = std::min(block, Extent(last));
    s_.items = s_.items / Extent(last) * CeilDiv(Extent(last), s_.block);
  }

  void ChooseSplit() {
    const Stage& first = kernel_.stages.front();
    if (points_ == 0 || first.reductions.empty() || first.variables.empty() || AnyGeneral(first)) {
      return;
    }
    // The stages that follow run on one thread: nothing large may be among them.
    for (StageId s : kernel_.stages.ids(StageId(1))) {
      if (!kernel_.stages[s].variables.empty()) return;
    }
    int64_t extent = Extent(first.variables[0]);
    double items = static_cast<double>(s_.items);
    if (items >= 16 || bytes_ < 2 * kChunkBytes || extent < 2) return;
    int64_t wanted = static_cast<int64_t>(bytes_ / items / kChunkBytes);
    wanted = std::min({wanted, kMaxChunks, extent});
    if (wanted < 2) return;
    int64_t step = first.variables[0] == s_.stages.front().vector_variable
                       ? s_.vector_width * s_.stages.front().unroll
                       : 1;
    int64_t split = CeilDiv(CeilDiv(extent, wanted), step) * step;
    if (split >= extent) return;
    s_.split = split;
    s_.chunks = CeilDiv(extent, split);
    s_.items *= s_.chunks;
    for (const Reduction& r : first.reductions) {
      for (ElementType type : r.types) {
        s_.scratch_bytes += CpuPartialBytes(type, points_) * s_.chunks;
      }
    }
  }

  const Kernel& kernel_;
  const target::Cpu& cpu_;
  const bool short_rows_;
  CpuNestSchedule s_;
  int64_t points_ = 1;
  double cycles_ = 0, bytes_ = 0;
};

}  // namespace

int64_t CpuPartialBytes(ElementType type, int64_t points) {
  return (ByteWidth(type) * points + 63) / 64 * 64;
}

CpuNestSchedule ScheduleNest(const Kernel& kernel, const target::Cpu& cpu, bool short_rows) {
  return NestScheduler(kernel, cpu, short_rows).Run();
}

std::string CpuNestSchedule::ToString() const {
  std::string out = Cat("width ", vector_width, " (");
  for (StageId s : stages.ids()) {
    out += Cat(s.value() > 0 ? ", d" : "d", stages[s].vector_variable, " x", stages[s].unroll,
               stages[s].masked    ? " masked"
               : stages[s].halving ? " halving"
                                   : "");
  }
  if (tile_variable.valid()) out += Cat(", tiles of d", tile_variable);
  if (interleaved.valid()) out += Cat(", interleaved along d", interleaved);
  out += Cat(") parallel ", parallel, " block ", block);
  if (split > 0) out += Cat(" split ", split, " in ", chunks, " scratch ", scratch_bytes);
  out += Cat(" items ", items, " tasks ", max_tasks);
  if (panels) out += " panels";
  if (strips.width > 0) {
    out += Cat(" strips of ", strips.width);
    for (const CpuStageSchedule& stage : stages)
      out += Cat(&stage == &stages.front() ? " rows " : ", ", stage.rows,
                 stage.by_columns ? " by columns" : "");
    for (const CpuStrips::Kept& k : strips.kept) out += Cat(" kept p", k.param, " at ", k.offset);
  }
  for (const CpuCases& c : cases) out += Cat(" cases of d", c.variable, " ", Join(c.begins, ","));
  if (nontemporal) out += " nontemporal";
  if (pipelined) out += " pipelined";
  for (ParamId p : staged) out += Cat(" staged p", p);
  for (const CpuKeptValue& k : kept) {
    out += Cat(" kept %", k.node, " of ", k.stage, " as %", k.again, " of ", k.again_stage);
  }
  for (const CpuPrefetch& p : prefetches) {
    out += Cat(" prefetch in ", p.stage, p.write ? " for writing p" : " p", p.param, "[",
               p.index.ToString(), "]");
  }
  return out;
}

}  // namespace kiln::kernel
