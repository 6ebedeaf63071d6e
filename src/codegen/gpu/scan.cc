// Scans along one variable, by blocks: the threads take a tile of neighbouring points, scan it by
// shuffles and the warps' totals, and carry its total on to the next one.

#include "codegen/gpu/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::ReductionId;
using kernel::StageId;
using llvm::Value;

// The stages of a scan.
constexpr StageId kFolds(0), kStores(1);

class Scanner {
 public:
  explicit Scanner(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        variable_(e.kernel().stages.front().variables[0]),
        extent_(e.kernel().variables[variable_].extent),
        chunks_(e.schedule().chunks),
        size_((extent_ + chunks_ - 1) / chunks_),
        reductions_(e.kernel().stages[kFolds].reductions.ids()) {}

  void Emit() {
    e_.Loop(
        e_.block(), e_.Int(e_.outer_points() * chunks_), e_.Int(e_.launch().blocks), [&](Value* i) {
          chunk_ = chunks_ == 1 ? e_.Int(0) : b_.CreateURem(i, e_.Int(chunks_));
          point_ = chunks_ == 1 ? i : b_.CreateUDiv(i, e_.Int(chunks_));
          e_.Delinearise(point_, e_.OuterVariables());
          Value* begin = b_.CreateMul(chunk_, e_.Int(size_));
          Value* end = b_.CreateAdd(begin, e_.Int(size_));
          end = EmitMin(b_, end, e_.Int(extent_));
          bool totals_only = chunks_ > 1 && e_.launch_number() == 0;
          GpuEmitter::Accumulators carry = e_.MakeAccumulators(kFolds, /*from_inits=*/!totals_only);
          if (chunks_ > 1 && !totals_only) AddChunksBefore(carry);
          e_.Loop(begin, end, e_.Int(e_.launch().threads),
                  [&](Value* tile) { EmitTile(tile, end, carry, !totals_only); });
          if (totals_only) SaveTotals(carry);
        });
  }

 private:
  // Each thread's own value, which is neutral beyond the end.
  std::vector<Value*> Inputs(ReductionId i, Value* active) {
    const kernel::Reduction& r = e_.reduction(kFolds, i);
    std::vector<Value*> identity = e_.Identity(kFolds, i), values;
    Value* condition = active;
    if (r.guard.valid()) condition = b_.CreateAnd(condition, e_.At(kFolds, r.guard));
    for (size_t k = 0; k < r.inputs.size(); ++k) {
      values.push_back(b_.CreateSelect(condition, e_.At(kFolds, r.inputs[k]), identity[k]));
    }
    return values;
  }

  Value* SharedOf(ReductionId i) {
    int64_t warps = e_.launch().threads / kWarp;
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), e_.gpu().Shared(),
                                 i.index() * static_cast<uint64_t>(8 * warps));
  }

  void EmitTile(Value* tile, Value* end, GpuEmitter::Accumulators& carry, bool store) {
    const int64_t warps = e_.launch().threads / kWarp;
    Value* lane = b_.CreateURem(e_.thread(), e_.Int(kWarp));
    Value* warp = b_.CreateUDiv(e_.thread(), e_.Int(kWarp));
    Value* at = b_.CreateAdd(tile, e_.thread());
    Value* active = b_.CreateICmpSLT(at, end);
    // Threads beyond the end read valid elements.
    Value* last = b_.CreateSub(end, e_.Int(1));
    e_.SetVariable(variable_, b_.CreateSelect(active, at, last));
    IdVector<ReductionId, std::vector<Value*>> scanned;
    for (ReductionId i : reductions_) {
      const kernel::Reduction& r = e_.reduction(kFolds, i);
      std::vector<Value*> x = Inputs(i, active);
      for (int delta = 1; delta < kWarp; delta *= 2) {
        Value* before = e_.gpu().ShuffleUp(x[0], delta);
        Value* has = b_.CreateICmpSGE(lane, e_.Int(delta));
        x = {b_.CreateSelect(has, e_.Combine(r, {before}, x)[0], x[0])};
      }
      scanned.push_back(x);
    }
    e_.If(b_.CreateICmpEQ(lane, e_.Int(kWarp - 1)), [&] {
      for (ReductionId i : reductions_) {
        e_.StorePartial(scanned[i][0], SharedOf(i), warp, e_.reduction(kFolds, i).types[0]);
      }
    });
    e_.gpu().Barrier();
    for (ReductionId i : reductions_) {
      const kernel::Reduction& r = e_.reduction(kFolds, i);
      std::vector<Value*> before = e_.Current(carry[i]), total = before;
      for (int64_t w = 0; w < warps; ++w) {
        std::vector<Value*> of_warp = {e_.LoadPartial(SharedOf(i), e_.Int(w), r.types[0])};
        total = e_.Combine(r, total, of_warp);
        if (w + 1 == warps) break;
        Value* is_before = b_.CreateICmpSLT(e_.Int(w), warp);
        before = {b_.CreateSelect(is_before, total[0], before[0])};
      }
      e_.SetSlots(carry[i], total);
      e_.SetReduced(kFolds, i, e_.Combine(r, before, scanned[i]));
    }
    if (store) e_.If(active, [&] { e_.EmitStores(kStores); });
    // Before the warps' totals are written again.
    e_.gpu().Barrier();
  }

  // --- Where several blocks scan one row: the first launch makes the totals of their chunks.
  Value* TotalAt(Value* chunk) {
    return b_.CreateAdd(b_.CreateMul(point_, e_.Int(chunks_)), chunk);
  }

  void SaveTotals(const GpuEmitter::Accumulators& totals) {
    e_.If(b_.CreateICmpEQ(e_.thread(), e_.Int(0)), [&] {
      for (ReductionId i : reductions_) {
        e_.StorePartial(e_.Current(totals[i])[0], e_.Partials(i), TotalAt(chunk_),
                        e_.reduction(kFolds, i).types[0]);
      }
    });
  }

  void AddChunksBefore(GpuEmitter::Accumulators& carry) {
    e_.Loop(e_.Int(0), chunk_, e_.Int(1), [&](Value* chunk) {
      for (ReductionId i : reductions_) {
        const kernel::Reduction& r = e_.reduction(kFolds, i);
        Value* total = e_.LoadPartial(e_.Partials(i), TotalAt(chunk), r.types[0]);
        e_.SetSlots(carry[i], e_.Combine(r, e_.Current(carry[i]), {total}));
      }
    });
  }

  GpuEmitter& e_;
  Builder& b_;
  const kernel::VariableId variable_;
  const int64_t extent_, chunks_, size_;
  const IdRange<ReductionId> reductions_;
  Value* chunk_ = nullptr;
  Value* point_ = nullptr;
};

}  // namespace

void EmitScan(GpuEmitter& e) { Scanner(e).Emit(); }

}  // namespace kiln::codegen
