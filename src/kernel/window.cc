#include "kernel/window.h"

#include <algorithm>

#include "kernel/combiner.h"
#include "ops/window.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

// Windows of fewer elements than this are not worth a scan.
constexpr int64_t kMinScan = 4;

const std::vector<WindowDimension>& WindowOf(const Instruction& i) {
  return i.attributes().Window(Attr::kWindow);
}

std::vector<int64_t> ResultDims(const Instruction& i) {
  return (i.shape().is_tuple() ? i.shape().elements()[0] : i.shape()).dims();
}

// Elements come before accumulators.
void SwapArguments(Combiner& combiner) {
  int count = static_cast<int>(combiner.results.size());
  for (Node& n : combiner.nodes) {
    if (n.kind == Node::Kind::kArgument) n.result = (n.result + count) % (2 * count);
  }
}

}  // namespace

std::optional<ScanForm> ScanFormOf(const Instruction& reduce_window) {
  const std::vector<WindowDimension>& window = WindowOf(reduce_window);
  std::optional<size_t> along;
  for (size_t d = 0; d < window.size(); ++d) {
    if (IsTrivial(window[d])) continue;
    if (along) return std::nullopt;
    along = d;
  }
  if (!along) return std::nullopt;
  const WindowDimension& w = window[*along];
  int64_t dimension = static_cast<int64_t>(*along);
  int64_t n = reduce_window.operand(0)->shape().dim(dimension),
          m = ResultDims(reduce_window)[*along];
  if (w.stride != 1 || w.base_dilation != 1 || (w.window_dilation != 1 && w.size > 1)) {
    return std::nullopt;
  }
  if (n < kMinScan || m < kMinScan || w.size < kMinScan) return std::nullopt;
  // Window i is [i - low, i - low + size).
  if (m - 1 <= w.low && w.size - 1 <= w.low) return ScanForm{dimension, w.size - 1 - w.low, false};
  if (w.size - w.low >= n && m - w.low >= n) return ScanForm{dimension, -w.low, true};
  return std::nullopt;
}

int64_t WindowReads(const Instruction& reduce_window) {
  int64_t reads = Product(ResultDims(reduce_window));
  if (ScanFormOf(reduce_window)) return reads;
  for (const WindowDimension& w : WindowOf(reduce_window)) {
    if (__builtin_mul_overflow(reads, w.size, &reads)) return INT64_MAX;
  }
  return reads;
}

Status AddWindowReduction(const Instruction& hero, const std::vector<Index>& at, Stage& stage,
                          StageValues& values, Kernel& kernel) {
  std::optional<ScanForm> scan = ScanFormOf(hero);
  const std::vector<WindowDimension>& window = WindowOf(hero);
  Reduction reduction;
  KILN_ASSIGN_OR_RETURN(reduction.combiner, CombinerOf(hero));
  bool general = reduction.combiner.kind == Combiner::Kind::kGeneral;
  if (scan && scan->backward && general) SwapArguments(reduction.combiner);
  std::vector<Index> from;
  for (size_t d = 0; d < window.size(); ++d) {
    const WindowDimension& w = window[d];
    int64_t dim = static_cast<int64_t>(d);
    Index place = at[d] * w.stride - w.low;
    if (scan && scan->dimension == dim) {
      place = at[d] + scan->shift;
    } else if (w.size > 1) {
      const VariableId id = kernel.variables.Add({w.size, true});
      place = place + Index::Variable(id, w.size) * w.window_dilation;
      stage.variables.push_back(id);
    }
    reduction.guard = values.Both(reduction.guard, values.InRange(place.Mod(w.base_dilation), 1));
    from.push_back(place.FloorDiv(w.base_dilation));
    reduction.guard = values.Both(reduction.guard,
                                  values.InRange(from.back(), hero.operand(0)->shape().dim(dim)));
  }
  int64_t count = hero.operand_count() / 2;
  for (int64_t i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(NodeId input, values.At(*hero.operand(i), from, reduction.guard));
    KILN_ASSIGN_OR_RETURN(NodeId init, values.At(*hero.operand(count + i), {}));
    ElementType type = AccumulatorOf(reduction.combiner, hero.operand(i)->shape().type());
    reduction.inputs.push_back(values.Converted(input, type));
    reduction.inits.push_back(values.Converted(init, type));
    reduction.types.push_back(type);
  }
  stage.reductions.push_back(std::move(reduction));
  return OkStatus();
}

}  // namespace kiln::kernel
