#include "codegen/cpu/scan.h"

#include <algorithm>

#include "base/strings.h"
#include "codegen/cpu/nest_emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Combiner;
using kernel::CpuNestSchedule;
using kernel::Kernel;
using kernel::Reduction;
using kernel::ReductionId;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;
using ItemLoop = NestEmitter::ItemLoop;

// The stages of a scan.
constexpr StageId kFolds(0), kStores(1);

class ScanCode {
 public:
  ScanCode(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
           const target::Cpu& cpu)
      : function_(function),
        kernel_(kernel),
        schedule_(schedule),
        cpu_(cpu),
        e_(function, kernel, cpu),
        b_(e_.builder()),
        scanned_(kernel.stages.front().variables[0]),
        vector_(schedule.stages.front().vector_variable) {}

  Status Emit() {
    bool empty =
        std::ranges::any_of(kernel_.variables, [](const auto& v) { return v.extent == 0; });
    if (!empty) {
      e_.EmitReadyInAll();
      EmitLoop(b_, function_->getArg(2), function_->getArg(3), 1,
               [&](Value* item) { EmitItem(item); });
    }
    b_.CreateRetVoid();
    return e_.status();
  }

 private:
  // The outer variables, vectors innermost.
  void EmitItem(Value* item) {
    NestEmitter::Mark mark = e_.GetMark();
    NestEmitter::Item ranges = e_.OpenItem(item, schedule_);
    std::vector<ItemLoop> loops = std::move(ranges.loops);
    std::ranges::stable_partition(loops, [&](const ItemLoop& l) { return l.variable != vector_; });
    EmitFrom(loops, 0);
    for (VariableId v : ranges.bound) e_.Unbind(v);
    e_.Rewind(mark);
  }

  void EmitFrom(const std::vector<ItemLoop>& loops, size_t at) {
    e_.EmitReadyInAll();
    if (at == loops.size()) return EmitPoint();
    const ItemLoop& loop = loops[at];
    Values none;
    auto next = [&](Values&) { EmitFrom(loops, at + 1); };
    if (loop.variable == vector_) {
      e_.VectorLoop(vector_, loop.range, schedule_.vector_width, schedule_.stages.front(), none,
                    next);
    } else {
      e_.ScalarLoop(loop.variable, loop.range, none, next);
    }
  }

  // From end to end. The loop carries the accumulators: for each result one per copy of the outer
  // point, or, with vectors along the scan, one scalar.
  void EmitPoint() {
    bool along = vector_ == scanned_;
    bool vectors = e_.width() > 1;
    Values carried;
    for (const Reduction& r : kernel_.stages.front().reductions) {
      for (kernel::NodeId init : r.inits) {
        for (int u = 0; u < e_.copies(); ++u) carried.push_back(e_.Use(kFolds, init, u, vectors));
      }
    }
    auto body = [&](Values& values) {
      e_.EmitReady(kFolds);
      size_t at = 0;
      const auto& reductions = kernel_.stages[kFolds].reductions;
      for (ReductionId number : reductions.ids()) {
        const Reduction& r = reductions[number];
        std::vector<Lanes> results =
            along && e_.width() > 1 ? FoldLanes(r, values[at]) : Fold(r, at, values);
        for (size_t k = 0; k < results.size(); ++k) {
          e_.SetReduced(kFolds, number, static_cast<int>(k), std::move(results[k]));
        }
        at += r.inputs.size() * (along ? 1 : static_cast<size_t>(e_.copies()));
      }
      e_.EmitReady(kStores);
      for (size_t i = 0; i < kernel_.stages[kStores].stores.size(); ++i) {
        e_.EmitStore(kStores, static_cast<int>(i));
      }
      e_.ForgetReduced();
    };
    e_.InPieces(scanned_, carried, [&](const NestEmitter::Range& range, Values& values) {
      if (along) {
        e_.VectorLoop(scanned_, range, schedule_.vector_width, schedule_.stages.front(), values,
                      body);
      } else {
        e_.ScalarLoop(scanned_, range, values, body);
      }
    });
  }

  // One element more, at each copy of the outer point.
  std::vector<Lanes> Fold(const Reduction& r, size_t at, Values& carried) {
    bool vectors = e_.width() > 1;
    size_t copies = static_cast<size_t>(e_.copies());
    std::vector<Lanes> results(r.inputs.size());
    for (size_t u = 0; u < copies; ++u) {
      int copy = static_cast<int>(u);
      Values arguments;
      for (size_t k = 0; k < r.inputs.size(); ++k)
        arguments.push_back(carried[at + k * copies + u]);
      Values next;
      if (r.combiner.kind == Combiner::Kind::kGeneral) {
        for (kernel::NodeId input : r.inputs)
          arguments.push_back(e_.Use(kFolds, input, copy, vectors));
        next = e_.EmitCombiner(r.combiner, arguments);
      } else {
        for (size_t k = 0; k < r.inputs.size(); ++k) {
          Value* input = e_.Use(kFolds, r.inputs[k], copy, vectors);
          next.push_back(
              EmitCombine(b_, r.combiner.kind, r.types[k], arguments[k], input, MathOf(cpu_)));
        }
      }
      for (size_t k = 0; k < next.size(); ++k) {
        Value*& accumulator = carried[at + k * copies + u];
        if (r.guard.valid()) {
          next[k] = b_.CreateSelect(e_.Use(kFolds, r.guard, copy, vectors), next[k], accumulator);
        }
        accumulator = next[k];
        results[k].vector = vectors;
        results[k].copies.push_back(next[k]);
      }
    }
    return results;
  }

  // Vectors of elements that follow each other, of one accumulator: in each vector the sums of the
  // lanes so far by doubling distances, then what came before the vector.
  std::vector<Lanes> FoldLanes(const Reduction& r, Value*& carried) {
    ElementType type = r.types[0];
    Combiner::Kind kind = r.combiner.kind;
    int64_t width = e_.width();
    Value* identity = Splat(b_, IdentityOf(b_.getContext(), kind, type), width);
    Lanes result;
    result.vector = true;
    for (int u = 0; u < e_.copies(); ++u) {
      Value* x = e_.Use(kFolds, r.inputs[0], u, true);
      if (r.guard.valid()) x = b_.CreateSelect(e_.Use(kFolds, r.guard, u, true), x, identity);
      for (int64_t distance = 1; distance < width; distance *= 2) {
        std::vector<int> lanes;
        for (int64_t l = 0; l < width; ++l) {
          lanes.push_back(static_cast<int>(l < distance ? width : l - distance));
        }
        x = EmitCombine(b_, kind, type, b_.CreateShuffleVector(x, identity, lanes), x,
                        MathOf(cpu_));
      }
      Value* last = b_.CreateExtractElement(x, static_cast<uint64_t>(width - 1));
      result.copies.push_back(
          EmitCombine(b_, kind, type, Splat(b_, carried, width), x, MathOf(cpu_)));
      carried = EmitCombine(b_, kind, type, carried, last, MathOf(cpu_));
    }
    return {result};
  }

  llvm::Function* function_;
  const Kernel& kernel_;
  const CpuNestSchedule& schedule_;
  const target::Cpu& cpu_;
  NestEmitter e_;
  Builder& b_;
  VariableId scanned_, vector_;
};

}  // namespace

Status EmitScan(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
                const target::Cpu& cpu) {
  bool fits = kernel.stages.size() == 2 && schedule.stages.size() == 2 &&
              kernel.stages.front().variables.size() == 1 &&
              kernel.stages.front().variables == kernel.stages[kStores].variables &&
              kernel.stages.front().stores.empty() && kernel.stages[kStores].reductions.empty() &&
              schedule.split == 0 && !schedule.tile_variable.valid();
  if (!fits) return Internal("schedule of kernel ", kernel.name, ": it is no scan");
  return ScanCode(function, kernel, schedule, cpu).Emit();
}

}  // namespace kiln::codegen
