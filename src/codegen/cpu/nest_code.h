// The code of a nest: shared by nest.cc, nest_rows.cc and nest_stages.cc.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "codegen/cpu/nest_emitter.h"

namespace kiln::codegen {

class NestCode {
 public:
  using Value = llvm::Value;
  using Range = NestEmitter::Range;
  using Index = kernel::Index;
  using Kernel = kernel::Kernel;
  using Reduction = kernel::Reduction;
  using Combiner = kernel::Combiner;
  using CpuNestSchedule = kernel::CpuNestSchedule;
  using StageId = kernel::StageId;
  using VariableId = kernel::VariableId;
  using ReductionId = kernel::ReductionId;

  NestCode(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
           const target::Cpu& cpu);
  NestCode(Builder::InsertPoint at, Values args, const Kernel& kernel,
           const CpuNestSchedule& schedule, const target::Cpu& cpu);

  Status Emit();

  // All items, and nothing that ends the function.
  Result<Builder::InsertPoint> EmitInline();

 private:
  void Prepare();
  Builder& b() { return e_->builder(); }

  bool IsEmpty() const {
    return std::ranges::any_of(kernel_.OuterVariables(),
                               [&](VariableId v) { return kernel_.variables[v].extent == 0; });
  }

  using OuterLoop = NestEmitter::ItemLoop;

  VariableId vector_variable() const { return schedule_.stages.front().vector_variable; }

  // --- Outer loops

  void EmitItem(Value* item);
  void EmitOuter(std::vector<OuterLoop> loops, const std::function<void()>& point);
  void EmitOuterFrom(const std::vector<OuterLoop>& loops, size_t at,
                     const std::function<void()>& point);
  // Calls `emit` in the code of each of the pieces from `first` on, before `end`.
  void EmitCases(const kernel::CpuCases& cases, size_t first, size_t end,
                 const std::function<void()>& emit);
  // Calls `emit` with the loop's part of each of the pieces that begin there, whose code that is.
  void EmitPieces(const OuterLoop& loop, const std::vector<int64_t>& begins,
                  const std::function<void(const NestEmitter::Range&)>& emit);

  // --- Rows that go through the stages as through a pipeline: in a round the last stage has a row,
  // the stage before it the next row, and so on. Each stage has an emitter of its own.

  // Scalars, also by result.
  using Results = IdVector<StageId, IdVector<ReductionId, Values>>;

  // What row each stage has, and whether it is one of the item's (null: all have one).
  struct Rows {
    IdVector<StageId, Value*> row, valid;
  };

  // Lets a stage's emitter emit where another one does.
  void On(StageId s, const std::function<void()>& emit);

  // Calls f with a place for each result of each stage but the last.
  void ForEachResult(const std::function<void(StageId s, ReductionId r, size_t k)>& f) const;

  // Binds a stage's row, and the results of earlier stages for it.
  void OpenRow(StageId s, VariableId variable, Value* row, const std::vector<Results>& ago);
  void CloseRow(StageId s, VariableId variable, NestEmitter::Mark mark, Results& results);
  void EmitRows(const OuterLoop& rows);
  // One round: the stages' results, or `none` of those without a row.
  Results EmitRound(const OuterLoop& rows, Value* round, const std::vector<Results>& ago,
                    const Results& none);
  // Whether rounds in which some stages have no row are like the others, with nothing stored.
  bool HasRoundsOfOneKind() const;

  // A stage alone, on a row that may not be there.
  void EmitWhere(Value* valid, StageId s, VariableId variable, Value* row,
                 const std::vector<Results>& ago, Results& results);

  // All stages on a row each, vector by vector, the last stage first: so it has read what the one
  // before puts in the place of it. A row that is not the item's is read, and not written.
  Results EmitTogether(VariableId variable, const Rows& row, const std::vector<Results>& ago,
                       Results results);

  // --- Strips (nest_strips.cc)

  // A value of each of a strip's columns.
  struct StripArray {
    ElementType type;
    Value* memory;
    int access;
  };
  // A node whose value is the same for all rows, and costs much.
  struct StripValue {
    kernel::NodeId node;
    StripArray array;
  };
  // Some points of a stage's last inner variable.
  using StripRows =
      std::function<void(VariableId variable, Value* first, int count, Values& carried)>;

  void PrepareStrips();
  void EmitStrips(const Range& columns);
  void EmitStrip(const Range& strip);
  void EmitStripStage(StageId s, const Range& strip);
  StripArray MakeStripArray(ElementType type);
  void OpenStripArray(StripArray& array);
  void EmitStripRows(StageId s, size_t at, Values& carried, const StripRows& rows);
  // The results of earlier stages for the current columns.
  void LoadReduced(StageId s);
  Values LoadSums(StageId s);
  void StoreSums(StageId s, const Values& all);

  // --- Split reductions: partial results are in scratch: of each result, by chunk, then by outer
  // point.

  void PrepareSplit();

  // Where the partial results of a chunk are.
  std::vector<int> PartialAccesses(Value* chunk);
  void EmitFinish();

  // --- Stages at one outer point (or the points of one vector step)

  bool vectors() const { return e_->width() > 1; }

  void SetReduced(StageId stage, ReductionId reduction, size_t result, Values values) {
    e_->SetReduced(stage, reduction, static_cast<int>(result), Lanes{std::move(values), vectors()});
  }

  void EmitPoint();
  void EmitStage(StageId s);
  // With all inner variables bound.
  void EmitPointOf(StageId s, bool own, Values& carried);
  // The range of an inner variable for an item.
  Range InnerRange(StageId s, VariableId variable);
  void EmitInner(StageId s, const std::vector<VariableId>& order, size_t at, bool own,
                 Values& carried);

  // --- Accumulators. Of each result: with a vector variable of the stage's own, `unroll` vectors
  // and a scalar for the scalar tail; else one for each copy of the outer point. Behind these,
  // where NaNs are sought beside maxima and minima, a vector that tells of them.

  bool ScalarTail() const { return !cpu_.has_masks; }
  size_t PerResult(StageId s, bool own) const {
    // Rows of a strip go into one accumulator.
    if (!own) return e_->tiled() ? 1 : static_cast<size_t>(e_->copies());
    return static_cast<size_t>(schedule_.stages[s].unroll) + (ScalarTail() ? 1 : 0);
  }

  // Of a copy's accumulator among a result's.
  size_t Place(int copy) const { return e_->tiled() ? 0 : static_cast<size_t>(copy); }
  // The same, or that of the scalar tail in its loop.
  size_t AccumulatorOf(StageId s, bool own, int copy) const {
    return own && !vectors() ? PerResult(s, own) - 1 : Place(copy);
  }

  // Maxima as one folds them wait twice as long for each other as without regard for NaNs.
  bool SeeksNans(const Reduction& r, size_t result, bool own) const {
    return own && schedule_.vector_width >= 4 && IsExtremum(r, result);
  }
  static bool IsExtremum(const Reduction& r, size_t result) {
    return (r.combiner.kind == Combiner::Kind::kMax || r.combiner.kind == Combiner::Kind::kMin) &&
           HasExtremumOfNumbers(r.types[result]);
  }
  // A vector that tells of NaNs: a mask register's, or else lanes of all bits or none.
  Value* AsNans(Value* condition) {
    if (cpu_.has_masks) return condition;
    auto* vector = llvm::cast<llvm::FixedVectorType>(condition->getType());
    return b().CreateSExt(condition, llvm::VectorType::get(b().getInt32Ty(), vector));
  }
  // Where the vectors that tell of NaNs begin.
  size_t FirstNan(StageId s, bool own, const Values& carried) const;
  // Combines an accumulator with a new element, or another accumulator.
  Value* Combine(const Reduction& r, size_t result, bool seeks_nans, Value* x, Value* y) {
    Combiner::Kind kind = r.combiner.kind;
    if (!seeks_nans) return EmitCombine(b(), kind, r.types[result], x, y, MathOf(cpu_));
    return EmitExtremumOfNumbers(b(), x, y, kind == Combiner::Kind::kMax, MathOf(cpu_));
  }

  Values Start(StageId s, bool own, bool partial);
  void Fold(StageId s, bool own, Values& carried);

  // Lanes in which a copy's input is NaN: one comparison tells of two copies.
  Value* AnyNan(StageId s, const Reduction& r, size_t result);
  // The rows of a strip at hand, combined.
  Value* ExtremumOfRows(StageId s, const Reduction& r, size_t result);
  void FoldGeneral(StageId s, const Reduction& r, bool own, int copy, size_t at, Values& carried);

  // In a fixed tree: i with i + n/2, and lanes alike.
  Value* CombineTree(const Reduction& r, size_t result, bool seeks_nans, Values values);
  // The results of a general reduction whose accumulators, from `at` on, have a sequence each.
  Values CombineSequences(StageId s, const Reduction& r, const Values& carried, size_t at);
  void Finish(StageId s, bool own, bool partial, const Values& carried);

  struct Partial {
    Index point;
    ElementType type;
    Value* base;
    int64_t bytes_per_chunk;
  };

  llvm::Function* function_;
  const Kernel& kernel_;
  const CpuNestSchedule& schedule_;
  const target::Cpu& cpu_;
  NestEmitter row_;
  IdVector<StageId, std::unique_ptr<NestEmitter>> of_stage_;  // where rows are pipelined
  NestEmitter* e_;                                            // what emits: one of these
  Value* chunk_ = nullptr;
  std::vector<Partial> partials_;
  IdVector<StageId, std::vector<StripArray>> sums_;  // of reductions' results
  int64_t values_bytes_ = 0;                         // of all StripValues
  Value* strip_back_ = nullptr;                      // minus the strip's first column
  Value* piece_ = nullptr;                           // of scratch, where strips are kept
};

}  // namespace kiln::codegen
