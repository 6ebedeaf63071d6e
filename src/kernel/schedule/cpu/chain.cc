#include "kernel/schedule/cpu/chain.h"

#include <algorithm>

#include "base/integers.h"

namespace kiln::kernel {
namespace {

// A block should not be thinner: the gemm would read its right operand too often for what it does
// with it.
constexpr int64_t kMinRows = 16;
constexpr int64_t kMaxRows = 256;
// Blocks that divide well among the threads that the gemm is worth.
constexpr int64_t kMostBlocksWanted = 8;
// Items, of which each may have scratch for itself.
constexpr int64_t kItemsWithScratch = 32;
// Smaller gemms, in operations, end before another thread is woken.
constexpr int64_t kMinFlopsPerTask = 1 << 19;

int64_t LargestDivisor(int64_t of, int64_t at_most) {
  int64_t d = std::max<int64_t>(1, std::min(of, at_most));
  while (of % d != 0) --d;
  return d;
}

class ChainScheduler {
 public:
  ChainScheduler(const Chain& chain, const target::Cpu& cpu,
                 const std::function<bool(ParamId)>& is_constant)
      : chain_(chain),
        gemm_(chain.gemm.kernel),
        rows_(chain.rows.kernel),
        cpu_(cpu),
        is_constant_(is_constant) {}

  std::optional<CpuChainSchedule> Run() {
    if (gemm_.kind != Kernel::Kind::kNest || rows_.kind != Kernel::Kind::kNest) {
      return std::nullopt;
    }
    auto gemm = AsGemm(gemm_, cpu_, is_constant_);
    if (!gemm || !GoRowByRow(gemm->contraction)) return std::nullopt;
    s_.rows = ScheduleNest(rows_, cpu_, /*short_rows=*/false);
    const VariableId vector = s_.rows.stages.front().vector_variable;
    bool blocked = !vector.valid() || vector >= rows_.LastOuter();
    if (!blocked || s_.rows.tile_variable.valid() || s_.rows.panels || s_.rows.strips.width > 0) {
      return std::nullopt;
    }
    if (!ChooseBlocks(*gemm)) return std::nullopt;
    s_.contraction = std::move(gemm->contraction);
    BlockRows();
    return std::move(s_);
  }

 private:
  int64_t Extent(VariableId v) const { return rows_.variables[v].extent; }

  // Whether all linked results have rows that lie in order of the batch and of m, and are read by
  // the rows' kernel in the order of its outer points.
  bool GoRowByRow(const Contraction& c) {
    if (rows_.outer == 0 || c.problem.n < 2) return false;
    const int64_t points = rows_.OuterPoints();
    if (points == 0) return false;
    const int64_t elements = c.problem.BatchSize() * c.problem.m * c.problem.n;
    if (elements % points != 0) return false;
    row_ = elements / points;
    for (size_t r = 0; r < chain_.gemm.results.size(); ++r) {
      auto result = static_cast<int64_t>(r);
      if (!chain_.IsLinked(result)) continue;
      const ParamId param = chain_.GemmParam(result);
      const Param& made = gemm_.params[param];
      if (made.elements != elements || !StoresRows(c, param)) return false;
      for (ParamId read : chain_.RowsParams(result)) {
        if (!ReadsRows(read)) return false;
      }
      block_bytes_ += ByteWidth(made.type);
    }
    for (const Param& p : rows_.params) {
      if (p.in_place_of.valid()) return false;
      bool whole = p.role == Param::Role::kOutput && p.elements == elements;
      if (whole) block_bytes_ += ByteWidth(p.type);
    }
    return block_bytes_ > 0;
  }

  bool StoresRows(const Contraction& c, ParamId param) const {
    int stores = 0;
    for (const Stage& stage : gemm_.stages) {
      for (const Store& store : stage.stores) {
        if (store.param != param) continue;
        ++stores;
        Index rest = store.index;
        int64_t stride = 1;
        auto take = [&](VariableId v, int64_t extent) {
          if (v.valid()) rest = rest + Index::Variable(v, extent) * -stride;
          stride *= extent;
        };
        take(c.n_variable, c.problem.n);
        take(c.m_variable, c.problem.m);
        for (size_t i = c.batch_variables.size(); i-- > 0;) {
          take(c.batch_variables[i], c.problem.batch[i].size);
        }
        if (!(rest == Index(0))) return false;
      }
    }
    return stores == 1;
  }

  bool ReadsRows(ParamId param) const {
    for (const Stage& stage : rows_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.param != param) continue;
        Index rest = n.index;
        int64_t stride = row_;
        for (VariableId v : std::views::reverse(rows_.OuterVariables())) {
          rest = rest + Index::Variable(v, Extent(v)) * -stride;
          stride *= Extent(v);
        }
        for (VariableId v : rows_.OuterVariables()) {
          if (rest.DependsOn(v)) return false;
        }
        if (rest.low() < 0 || rest.high() >= row_) return false;
      }
    }
    return true;
  }

  bool ChooseBlocks(const Gemm& gemm) {
    const GemmProblem& p = gemm.contraction.problem;
    const int64_t batch = p.BatchSize(), n = p.n;
    const double flops = 2.0 * static_cast<double>(batch * p.m) * static_cast<double>(n) *
                         static_cast<double>(std::max<int64_t>(p.TotalK(), 1));
    s_.max_tasks = std::max<int64_t>(static_cast<int64_t>(flops / kMinFlopsPerTask), 1);
    const int64_t wanted = std::min(s_.max_tasks, kMostBlocksWanted);
    // Each block reads the right operand again, which has to stay in the second cache beside it.
    if (p.TotalK() * n * ByteWidth(p.TypeOfB()) > cpu_.l2_bytes / 2) return false;
    const int64_t fewest = std::min(p.m, kMinRows);
    int64_t most = std::min({p.m, kMaxRows, cpu_.l2_bytes / 2 / (n * block_bytes_)});
    most = std::min(most, std::max(batch * p.m / wanted, fewest));
    if (most < fewest || batch * CeilDiv(p.m, most) < wanted) return false;

    // Of one variable the blocks need not end where a batch does.
    const bool divides = batch > 1 || rows_.outer > 1;
    GemmProblem block = p;
    block.m = most;
    auto schedule = ChooseGemmSchedule(cpu_, block);
    if (!schedule.ok()) return false;
    s_.gemm = *std::move(schedule);
    s_.gemm.items_along_m = false;
    s_.gemm.row_batches = 1;  // blocks are of one of the batch
    if (most == p.m) {
      s_.gemm.block_m = CeilDiv(p.m, s_.gemm.mr);
    } else if (!ChooseTiles(p, most, divides)) {
      return false;
    }
    // Operands packed by more than one block are packed once for all.
    const bool several = CeilDiv(p.m, s_.gemm.block_m * s_.gemm.mr) > 1;
    if (several && s_.gemm.b == GemmB::kPackPanel) {
      if (!gemm.may_pack_b) return false;
      s_.gemm.b = GemmB::kPrepacked;
      s_.gemm.prefetch_b = s_.gemm.kind == GemmKind::kOuter;
    }
    CompleteGemmSchedule(cpu_, p, s_.gemm);
    s_.block_rows = std::min(s_.gemm.block_m * s_.gemm.mr, p.m);
    s_.blocks = batch * s_.gemm.m_blocks;
    s_.gemm_items = s_.gemm.n_panels;
    if (s_.block_rows * n % row_ != 0 || s_.gemm.items_along_m) return false;
    points_ = s_.block_rows * n / row_;
    const int64_t last = Extent(rows_.LastOuter());
    if (divides && (p.m % s_.block_rows != 0 || last % points_ != 0)) return false;
    return true;
  }

  // Rows of a tile, and tiles of a block. The last tile is moved back to end with the last row, and
  // must not reach into the block before, with which all is done by then.
  bool ChooseTiles(const GemmProblem& p, int64_t rows, bool divides) {
    GemmSchedule& g = s_.gemm;
    if (!divides) {
      const int64_t tiles = CeilDiv(p.m, g.mr);
      g.block_m = std::max<int64_t>(rows / g.mr, 1);
      if (p.m % g.mr == 0) return true;
      while (g.block_m > 1 && tiles % g.block_m == 1) --g.block_m;
      if (g.block_m > 1) return true;
    }
    int64_t mr = LargestDivisor(p.m, g.mr);
    if (2 * mr < g.mr) return false;
    g.mr = static_cast<int>(mr);
    g.block_m = LargestDivisor(p.m / mr, std::max<int64_t>(rows / mr, 1));
    return 2 * g.block_m * mr >= std::min(rows, 2 * kMinRows);
  }

  void BlockRows() {
    CpuNestSchedule& r = s_.rows;
    r.parallel = rows_.outer;
    r.block = points_;
    r.items = s_.blocks;
    r.max_tasks = 1;
    r.split = 0;
    r.chunks = 1;
    r.scratch_bytes = 0;
    r.nontemporal = false;
    // Outputs in place of the gemm's result are in the cache. Reads there are prefetched into the
    // first-level cache.
    const auto inputs = static_cast<int64_t>(chain_.rows.operands.size());
    std::erase_if(r.prefetches, [&](const CpuPrefetch& prefetch) {
      return std::ranges::any_of(chain_.home, [&](int64_t output) {
        return output >= 0 && prefetch.param.value() == inputs + output;
      });
    });
    bool scratch = s_.gemm.slot_bytes > 0;
    for (size_t result = 0; result < chain_.home.size(); ++result) {
      scratch |= chain_.gemm.results[result] < 0 && chain_.home[result] < 0;
    }
    s_.blocks_per_item = scratch ? CeilDiv(s_.blocks, kItemsWithScratch) : 1;
    s_.items = CeilDiv(s_.blocks, s_.blocks_per_item);
    s_.max_tasks = std::clamp<int64_t>(s_.max_tasks, 1, s_.items);
  }

  const Chain& chain_;
  const Kernel& gemm_;
  const Kernel& rows_;
  const target::Cpu& cpu_;
  const std::function<bool(ParamId)>& is_constant_;
  int64_t row_ = 0;          // elements of the gemm's at one outer point of the rows' kernel
  int64_t block_bytes_ = 0;  // of what has the gemm's elements, for one of them
  int64_t points_ = 0;       // outer points of a block
  CpuChainSchedule s_;
};

}  // namespace

std::optional<CpuChainSchedule> ScheduleChain(const Chain& chain, const target::Cpu& cpu,
                                              const std::function<bool(ParamId)>& is_constant) {
  return ChainScheduler(chain, cpu, is_constant).Run();
}

}  // namespace kiln::kernel
