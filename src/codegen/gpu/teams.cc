// Nests whose stages walk inner points: a team of threads for each point of the outer variables.

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/gpu/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Reduction;
using kernel::ReductionId;
using kernel::Stage;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

// The stage whose reductions several blocks may share.
constexpr StageId kFirst(0);

class Teams {
 public:
  explicit Teams(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        width_(e.launch().team),
        columns_(e.launch().columns),
        teams_(e.launch().threads / e.launch().team) {
    // Of a column the threads stand as many apart as there are teams.
    Value* quotient = b_.CreateUDiv(e.thread(), e.Int(columns_ ? teams_ : width_));
    Value* rest = b_.CreateURem(e.thread(), e.Int(columns_ ? teams_ : width_));
    member_ = columns_ ? quotient : rest;
    team_ = columns_ ? rest : quotient;
  }

  void Emit() {
    const int64_t points = e_.outer_points();
    const int64_t chunks = e_.schedule().chunks;
    const bool first_of_two = chunks > 1 && e_.launch_number() == 0;
    Value* group = e_.block();
    int64_t groups = (points + teams_ - 1) / teams_, blocks = e_.launch().blocks;
    if (first_of_two) {
      chunk_ = b_.CreateURem(group, e_.Int(chunks));
      group = b_.CreateUDiv(group, e_.Int(chunks));
      blocks /= chunks;
    }
    e_.Loop(group, e_.Int(groups), e_.Int(blocks), [&](Value* g) {
      point_ = b_.CreateAdd(b_.CreateMul(g, e_.Int(teams_)), team_);
      active_ = nullptr;
      if (points % teams_ == 0) return EmitPoint();
      Value* has_point = b_.CreateICmpSLT(point_, e_.Int(points));
      // Idle threads without barriers have nothing to do.
      if (width_ == 1) return e_.If(has_point, [&] { EmitPoint(); });
      // The last group's idle teams go along with the last point.
      active_ = has_point;
      point_ = b_.CreateSelect(active_, point_, e_.Int(points - 1));
      EmitPoint();
    });
  }

 private:
  const Stage& StageOf(StageId s) const { return e_.kernel().stages[s]; }

  void IfActive(const std::function<void()>& body) {
    if (active_) {
      e_.If(active_, body);
    } else {
      body();
    }
  }

  void EmitPoint() {
    const bool in_chunks = e_.schedule().chunks > 1;
    e_.Delinearise(point_, e_.OuterVariables());
    if (in_chunks && e_.launch_number() == 0) return EmitChunk();
    if (in_chunks) CombineChunks();
    for (StageId s : e_.kernel().stages.ids(StageId(in_chunks ? 1 : 0))) EmitStage(s);
  }

  // Whether the team must wait for all of its threads behind a stage: a later one may read what
  // this one stores, or store what may be in the memory of what this one reads. The sums of a team
  // wait for each other anyway.
  bool MustWait(StageId stage) const {
    const Stage& s = StageOf(stage);
    const bool is_last = stage == e_.kernel().stages.last();
    const bool waits_for_sums = !s.reductions.empty() && !s.variables.empty();
    return width_ > 1 && !is_last && !waits_for_sums && !(s.variables.empty() && s.stores.empty());
  }

  // The team's share of [begin, end) of a stage's inner points. An idle team has none: the last
  // point's team may have overwritten its inputs.
  void Walk(StageId stage, Value* begin, Value* end, const GpuEmitter::Accumulators& slots) {
    const Stage& s = StageOf(stage);
    const VariableId last = s.variables.back();
    const int lanes = e_.schedule().lanes[stage];
    e_.Loop(b_.CreateAdd(begin, member_), end, e_.Int(width_), [&](Value* position) {
      e_.DelineariseSteps(position, s.variables, lanes);
      if (!s.reductions.empty()) {
        e_.ForLanes(stage, last, lanes, [&](int) { e_.Accumulate(stage, slots); });
      }
      if (!s.stores.empty()) e_.StoreLanes(stage, last, lanes);
    });
  }

  // --- Rows that are kept in registers: the same walk without loops.
  void WalkKept(StageId stage, const GpuEmitter::Accumulators& slots) {
    const int lanes = e_.schedule().lanes[stage];
    const int64_t steps = StepsOf(stage);
    for (int step = 0; step < e_.schedule().kept.steps; ++step) {
      GpuEmitter::Scope scope(e_);
      Value* position = b_.CreateAdd(member_, e_.Int(step * width_));
      auto take = [&] {
        e_.DelineariseSteps(position, StageOf(stage).variables, lanes);
        TakeKeptStep(stage, step, lanes, slots);
      };
      if ((step + 1) * width_ > steps) {
        e_.If(b_.CreateICmpSLT(position, e_.Int(steps)), take);
      } else {
        take();
      }
    }
  }

  void TakeKeptStep(StageId stage, int step, int lanes, const GpuEmitter::Accumulators& slots) {
    const Stage& s = StageOf(stage);
    const VariableId last = s.variables.back();
    std::vector<kernel::NodeId> read_later;
    for (const kernel::GpuKept::Load& load : e_.schedule().kept.loads) {
      const kernel::NodeId node = load.from.node;
      if (load.from.stage == stage && std::ranges::find(read_later, node) == read_later.end()) {
        read_later.push_back(node);
      }
    }
    auto at = [&](int lane) { return static_cast<size_t>(step * lanes + lane); };
    auto set_loads = [&](int lane) {
      for (const kernel::GpuKept::Load& load : e_.schedule().kept.loads) {
        if (load.load.stage != stage) continue;
        e_.SetNode(stage, load.load.node, e_.Current({KeptOf(load.from)[at(lane)]})[0]);
      }
    };
    set_loads(0);  // before vectors are loaded
    if (!s.reductions.empty() || !read_later.empty()) {
      e_.ForLanes(stage, last, lanes, [&](int lane) {
        set_loads(lane);
        if (!s.reductions.empty()) e_.Accumulate(stage, slots);
        for (kernel::NodeId node : read_later) {
          Value* value = e_.At(stage, node);
          auto& kept = KeptOf({stage, node});
          kept.push_back(e_.NewSlot(value->getType()));
          e_.SetSlots({kept.back()}, {value});
        }
      });
    }
    if (e_.StoresOf(stage).empty()) return;
    auto set_all = [&](int lane) {
      set_loads(lane);
      for (kernel::NodeId node : read_later) {
        e_.SetNode(stage, node, e_.Current({KeptOf({stage, node})[at(lane)]})[0]);
      }
    };
    set_all(0);
    e_.StoreLanes(stage, last, lanes, set_all);
  }

  // The node's values at the thread's points.
  GpuEmitter::Slots& KeptOf(const kernel::GpuKept::Place& place) {
    return kept_[{place.stage, place.node}];
  }

  int64_t StepsOf(StageId stage) const {
    return e_.kernel().PointsOf(StageOf(stage).variables) / e_.schedule().lanes[stage];
  }

  void EmitStage(StageId stage) {
    const Stage& s = StageOf(stage);
    const GpuEmitter::Accumulators slots = e_.MakeAccumulators(stage);
    if (s.variables.empty()) {
      Value* first = b_.CreateICmpEQ(member_, e_.Int(0));
      if (active_) first = b_.CreateAnd(first, active_);
      if (!s.reductions.empty()) IfActive([&] { e_.Accumulate(stage, slots); });
      // Outputs may share memory with inputs read by the whole team.
      if (!s.stores.empty()) {
        if (!s.reductions.empty() && width_ > 1) e_.gpu().Barrier();
        e_.If(first, [&] { e_.EmitStores(stage); });
      }
      for (ReductionId i : slots.ids()) {
        e_.FinishReduction(stage, i, e_.Current(slots[i]));
      }
    } else {
      IfActive([&] {
        if (e_.schedule().kept.steps > 0) {
          WalkKept(stage, slots);
        } else {
          Walk(stage, e_.Int(0), e_.Int(StepsOf(stage)), slots);
        }
      });
      Finish(stage, slots);
    }
    if (MustWait(stage)) e_.gpu().Barrier();
  }

  // --- Reductions over a team: every thread of it has the result.
  void Finish(StageId stage, const GpuEmitter::Accumulators& slots) {
    const Totals totals = ReduceOverTeam(stage, slots);
    for (ReductionId i : totals.ids()) e_.FinishReduction(stage, i, totals[i]);
  }

  using Totals = IdVector<ReductionId, std::vector<Value*>>;
  Totals ReduceOverTeam(StageId stage, const GpuEmitter::Accumulators& slots) {
    Totals totals;
    for (const GpuEmitter::Slots& s : slots) totals.push_back(e_.Current(s));
    if (totals.empty() || width_ == 1) return totals;
    if (!columns_) {
      for (ReductionId i : totals.ids()) {
        for (int delta = std::min(width_, kWarp) / 2; delta > 0; delta /= 2) {
          std::vector<Value*> others;
          for (Value* total : totals[i]) others.push_back(e_.gpu().ShuffleXor(total, delta));
          totals[i] = e_.CombineParts(stage, i, totals[i], others);
        }
      }
      if (width_ <= kWarp) {
        // Outputs of a later stage may share memory with inputs of other threads: of the team and,
        // at the last point, of idle teams.
        if (active_) {
          e_.gpu().Barrier();
        } else {
          e_.gpu().WarpBarrier();
        }
        return totals;
      }
    }
    // Through shared memory: of a column each thread's result, else each warp's.
    const int64_t parts = columns_ ? width_ : width_ / kWarp;
    const int64_t stride = columns_ ? teams_ : 1;
    Value* shared = e_.gpu().Shared();
    // One result after the other.
    uint64_t number = 0;
    auto next_base = [&] {
      return b_.CreateConstGEP1_64(b_.getInt8Ty(), shared,
                                   number++ * static_cast<uint64_t>(8 * parts * stride));
    };
    auto write = [&](Value* at) {
      number = 0;
      for (ReductionId i : totals.ids()) {
        for (size_t k = 0; k < totals[i].size(); ++k) {
          e_.StorePartial(totals[i][k], next_base(), at, e_.reduction(stage, i).types[k]);
        }
      }
    };
    if (columns_) {
      write(e_.thread());
    } else {
      Value* lane = b_.CreateURem(e_.thread(), e_.Int(kWarp));
      e_.If(b_.CreateICmpEQ(lane, e_.Int(0)),
            [&] { write(b_.CreateUDiv(e_.thread(), e_.Int(kWarp))); });
    }
    e_.gpu().Barrier();
    number = 0;
    for (ReductionId i : totals.ids()) {
      const Reduction& r = e_.reduction(stage, i);
      std::vector<Value*> bases;
      for (size_t k = 0; k < r.types.size(); ++k) bases.push_back(next_base());
      for (int64_t p = 0; p < parts; ++p) {
        Value* at = e_.Int(p * stride);
        if (columns_) at = b_.CreateAdd(at, team_);
        std::vector<Value*> part;
        for (size_t k = 0; k < r.types.size(); ++k) {
          part.push_back(e_.LoadPartial(bases[k], at, r.types[k]));
        }
        totals[i] = p == 0 ? part : e_.CombineParts(stage, i, totals[i], part);
      }
    }
    // Before the memory is written again.
    e_.gpu().Barrier();
    return totals;
  }

  // --- Reductions that several blocks share: each has a chunk, and a second launch combines them.
  Value* PartialAt(Value* chunk) {
    return b_.CreateAdd(b_.CreateMul(chunk, e_.Int(e_.outer_points())), point_);
  }

  void EmitChunk() {
    const int64_t chunks = e_.schedule().chunks, steps = StepsOf(kFirst);
    const int64_t size = (steps + chunks - 1) / chunks;
    Value* begin = b_.CreateMul(chunk_, e_.Int(size));
    Value* end = b_.CreateAdd(begin, e_.Int(size));
    end = EmitMin(b_, end, e_.Int(steps));
    const GpuEmitter::Accumulators slots = e_.MakeAccumulators(kFirst);
    IfActive([&] { Walk(kFirst, begin, end, slots); });
    const Totals totals = ReduceOverTeam(kFirst, slots);
    Value* first = b_.CreateICmpEQ(member_, e_.Int(0));
    if (active_) first = b_.CreateAnd(first, active_);
    e_.If(first, [&] {
      for (ReductionId i : totals.ids()) {
        for (size_t k = 0; k < totals[i].size(); ++k) {
          e_.StorePartial(totals[i][k], e_.Partials(i, k), PartialAt(chunk_),
                          e_.reduction(kFirst, i).types[k]);
        }
      }
    });
  }

  void CombineChunks() {
    const GpuEmitter::Accumulators slots = e_.MakeAccumulators(kFirst);
    e_.Loop(member_, e_.Int(e_.schedule().chunks), e_.Int(width_), [&](Value* chunk) {
      for (ReductionId i : slots.ids()) {
        const Reduction& r = e_.reduction(kFirst, i);
        std::vector<Value*> part;
        for (size_t k = 0; k < r.types.size(); ++k) {
          part.push_back(e_.LoadPartial(e_.Partials(i, k), PartialAt(chunk), r.types[k]));
        }
        e_.SetSlots(slots[i], e_.CombineParts(kFirst, i, e_.Current(slots[i]), part));
      }
    });
    Finish(kFirst, slots);
  }

  GpuEmitter& e_;
  Builder& b_;
  const int width_;     // threads of a team
  const bool columns_;  // teams' threads are interleaved
  const int teams_;     // of a block
  Value* member_;       // the thread's number in its team
  Value* team_;         // and the team's in the block
  Value* chunk_ = nullptr;
  Value* point_ = nullptr;
  std::map<std::pair<StageId, kernel::NodeId>, GpuEmitter::Slots> kept_;  // by stage and node
  Value* active_ = nullptr;  // whether the team has a point of its own; null for always
};

}  // namespace

void EmitTeams(GpuEmitter& e) { Teams(e).Emit(); }

}  // namespace kiln::codegen
