#include "codegen/cpu/scatter.h"

#include <algorithm>
#include <functional>

#include "base/strings.h"
#include "codegen/cpu/nest_emitter.h"

namespace kiln::codegen {
namespace {

using kernel::CpuNestSchedule;
using kernel::Kernel;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;
using ItemLoop = NestEmitter::ItemLoop;

// The only stage.
constexpr StageId kUpdates(0);

class ScatterCode {
 public:
  ScatterCode(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
              const target::Cpu& cpu)
      : function_(function),
        kernel_(kernel),
        schedule_(schedule),
        e_(function, kernel, cpu),
        b_(e_.builder()) {}

  Status Emit() {
    bool empty =
        std::ranges::any_of(kernel_.variables, [](const auto& v) { return v.extent == 0; });
    if (!empty) {
      e_.EmitReady(kUpdates);
      Value *first = function_->getArg(2), *end = function_->getArg(3);
      // Pieces of rows that lie side by side are done as one.
      if (schedule_.parallel == 1 && schedule_.block > 1) {
        EmitIf(b_, b_.CreateICmpSLT(first, end), [&] { EmitItem(first, end); });
      } else {
        EmitLoop(b_, first, end, 1, [&](Value* item) { EmitItem(item); });
      }
    }
    b_.CreateRetVoid();
    return e_.status();
  }

 private:
  // Outer variables, then the index vectors in order, then the slices; vectors innermost.
  void EmitItem(Value* item, Value* end = nullptr) {
    NestEmitter::Mark mark = e_.GetMark();
    NestEmitter::Item ranges = e_.OpenItem(item, schedule_, end);
    std::vector<ItemLoop> loops = std::move(ranges.loops);
    for (VariableId v : kernel_.stages.front().variables)
      loops.push_back({v, e_.FullRange(v), true});
    std::ranges::stable_partition(loops, [&](const ItemLoop& l) {
      return l.variable != schedule_.stages.front().vector_variable;
    });
    EmitFrom(loops, 0, false);
    for (VariableId v : ranges.bound) e_.Unbind(v);
    e_.Rewind(mark);
  }

  // `tested` tells that the guard is known to hold.
  void EmitFrom(const std::vector<ItemLoop>& loops, size_t at, bool tested) {
    e_.EmitReady(kUpdates);
    const kernel::NodeId guard = kernel_.stages.front().updates[0].guard;
    if (guard.valid() && !tested && e_.IsKnownScalar(kUpdates, guard)) {
      // Of a slice that is not inside nothing is done.
      auto inside = [&] {
        NestEmitter::Mark mark = e_.GetMark();
        EmitFrom(loops, at, true);
        e_.Rewind(mark);
      };
      EmitIf(b_, e_.Use(kUpdates, guard, 0, false), inside, {.then = "inside", .after = "outside"});
      return;
    }
    if (at == loops.size() && IsByLanes()) return e_.EmitUpdateByLanes(kUpdates, 0);
    if (at == loops.size()) {
      if (guard.valid() && !tested) {
        e_.Fail(Internal("kernel ", kernel_.name, ": a guard that differs between lanes"));
        return;
      }
      e_.EmitUpdate(kUpdates, 0);
      return;
    }
    const ItemLoop& loop = loops[at];
    Values none;
    auto next = [&](Values&) { EmitFrom(loops, at + 1, tested); };
    if (loop.variable == schedule_.stages.front().vector_variable) {
      e_.VectorLoop(loop.variable, loop.range, schedule_.vector_width, schedule_.stages.front(),
                    none, next);
    } else if (at == 0 && loop.whole) {
      e_.InPieces(loop.variable, none, [&](const NestEmitter::Range& range, Values& values) {
        e_.ScalarLoop(loop.variable, range, values, next);
      });
    } else {
      e_.ScalarLoop(loop.variable, loop.range, none, next);
    }
  }

  // Whether vectors are of index vectors. A rest shorter than a vector is done by scalars.
  bool IsByLanes() const {
    const VariableId v = schedule_.stages.front().vector_variable;
    return e_.width() > 1 && v.valid() && kernel_.variables[v].reduction;
  }

  llvm::Function* function_;
  const Kernel& kernel_;
  const CpuNestSchedule& schedule_;
  NestEmitter e_;
  Builder& b_;
};

}  // namespace

Status EmitScatter(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
                   const target::Cpu& cpu) {
  bool fits = kernel.stages.size() == 1 && kernel.stages.front().updates.size() == 1 &&
              kernel.stages.front().stores.empty() && schedule.stages.size() == 1 &&
              schedule.split == 0 && !schedule.tile_variable.valid();
  if (!fits) return Internal("schedule of kernel ", kernel.name, ": it is not one of updates");
  return ScatterCode(function, kernel, schedule, cpu).Emit();
}

}  // namespace kiln::codegen
