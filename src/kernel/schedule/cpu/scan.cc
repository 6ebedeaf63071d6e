#include "kernel/schedule/cpu/scan.h"

#include <algorithm>
#include <cmath>

#include "base/integers.h"

namespace kiln::kernel {
namespace {

// Rough costs in cycles of a core.
constexpr double kOuterStepCycles = 2;   // of a vector of independent scans
constexpr double kInnerStepCycles = 14;  // of a vector along the scan
constexpr double kScalarStepCycles = 5;
constexpr double kHeavyCycles = 20;  // more, of a transcendental op
constexpr double kCyclesPerMicrosecond = 2500;
constexpr int64_t kMinVector = 4;
constexpr int kMostInFlight = 8;

class ScanScheduler {
 public:
  ScanScheduler(const Kernel& kernel, const target::Cpu& cpu)
      : kernel_(kernel), cpu_(cpu), scanned_(kernel.stages.front().variables[0]) {
    s_.stages.resize(kernel.stages.size());
  }

  CpuNestSchedule Run() {
    ChooseVector();
    ChooseItems();
    return s_;
  }

 private:
  int64_t Extent(VariableId v) const { return kernel_.variables[v].extent; }

  // Whether all of memory is walked one by one along a variable, or not at all.
  bool IsContiguous(VariableId v) const {
    auto fits = [&](const Index& index) {
      std::optional<int64_t> stride = index.StrideOf(v);
      return stride && std::abs(*stride) <= 1;
    };
    return std::ranges::all_of(kernel_.stages, [&](const Stage& stage) {
      return std::ranges::all_of(
                 stage.nodes,
                 [&](const Node& n) { return n.kind != Node::Kind::kLoad || fits(n.index); }) &&
             std::ranges::all_of(stage.stores, [&](const Store& s) { return fits(s.index); });
    });
  }

  // Lanes of the widest type.
  int Width() const {
    int64_t bytes = 1;
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        bool index = n.kind == Node::Kind::kIndex || n.kind == Node::Kind::kInRange;
        if (index || IsHalf(n.type)) bytes = std::max<int64_t>(bytes, 4);
        if (n.type != ElementType::kInvalid) bytes = std::max(bytes, ByteWidth(n.type));
      }
    }
    return static_cast<int>(std::max<int64_t>(cpu_.vector_bytes / bytes, 1));
  }

  void ChooseVector() {
    VariableId best;
    int width = Width();
    for (VariableId v : std::views::reverse(kernel_.OuterVariables())) {
      if (Extent(v) < kMinVector || !IsContiguous(v)) continue;
      if (!best.valid() || Extent(v) > Extent(best)) best = v;
    }
    if (best.valid()) {
      // Without masks the remainder is processed one by one.
      while (!cpu_.has_masks && width > Extent(best)) width /= 2;
    } else {
      bool associative = std::ranges::all_of(
          kernel_.stages.front().reductions,
          [](const Reduction& r) { return r.combiner.kind != Combiner::Kind::kGeneral; });
      if (associative && Extent(scanned_) >= 2 * width && IsContiguous(scanned_)) best = scanned_;
    }
    if (!best.valid() || width == 1) return;
    s_.vector_width = width;
    int accumulators = 0;
    for (const Reduction& r : kernel_.stages.front().reductions) {
      accumulators += static_cast<int>(r.inputs.size());
    }
    int unroll = best == scanned_ ? 2 : kMostInFlight;
    while (unroll > 1 && (unroll * accumulators > kMostInFlight || unroll * width > Extent(best))) {
      unroll /= 2;
    }
    for (CpuStageSchedule& stage : s_.stages) {
      stage.vector_variable = best;
      stage.unroll = unroll;
    }
  }

  void ChooseItems() {
    double points = static_cast<double>(Extent(scanned_));
    for (VariableId v : kernel_.OuterVariables()) points *= static_cast<double>(Extent(v));
    if (points == 0) {
      s_.items = 0;
      return;
    }
    const VariableId vector = s_.stages.front().vector_variable;
    double step = !vector.valid()      ? kScalarStepCycles
                  : vector == scanned_ ? kInnerStepCycles
                                       : kOuterStepCycles;
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        bool heavy = n.kind == Node::Kind::kOp && IsTranscendental(n.opcode);
        if (heavy) step += kHeavyCycles;
      }
    }
    s_.microseconds = points * step / s_.vector_width / kCyclesPerMicrosecond;
    int64_t wanted = cpu_.TasksWorth(s_.microseconds);
    if (wanted == 1) return;
    int most = kernel_.IsOuter(vector) ? vector.value() + 1 : kernel_.outer;
    while (s_.parallel < most && s_.items < wanted) s_.items *= Extent(VariableId(s_.parallel++));
    if (s_.parallel == 0) return;
    const VariableId last(s_.parallel - 1);
    int64_t before = s_.items / Extent(last);
    int64_t steps = last == vector ? s_.vector_width * s_.stages.front().unroll : 1;
    int64_t block = CeilDiv(Extent(last), std::max<int64_t>(CeilDiv(wanted, before), 1));
    s_.block = std::min(CeilDiv(block, steps) * steps, Extent(last));
    s_.items = before * CeilDiv(Extent(last), s_.block);
    s_.max_tasks = std::clamp<int64_t>(wanted, 1, s_.items);
  }

  const Kernel& kernel_;
  const target::Cpu& cpu_;
  VariableId scanned_;
  CpuNestSchedule s_;
};

}  // namespace

CpuNestSchedule ScheduleScan(const Kernel& kernel, const target::Cpu& cpu) {
  return ScanScheduler(kernel, cpu).Run();
}

}  // namespace kiln::kernel
