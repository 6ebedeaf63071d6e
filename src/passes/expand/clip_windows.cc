// Windows that reach beyond the array.
#include <algorithm>

#include "base/integers.h"
#include "base/strings.h"
#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

// No array has so many elements that a window could see.
constexpr int64_t kMostSeen = int64_t{1} << 40;

// The window without elements at its beginning and end that are padding at every place.
WindowDimension Clipped(WindowDimension w, int64_t size, int64_t places) {
  if (size == 0 || places == 0) return w;
  // The first element of the window where it is last.
  const int64_t first = (places - 1) * w.stride - w.low;
  if (first < 0) {
    const int64_t before = std::min(CeilDiv(-first, w.window_dilation), w.size - 1);
    w.size -= before;
    w.low -= before * w.window_dilation;
  }
  // How many of them are before the end where it is first.
  const int64_t end = (size - 1) * w.base_dilation + w.low;
  const int64_t seen = end < 0 ? 1 : std::min(end / w.window_dilation + 1, w.size);
  w.high -= (w.size - seen) * w.window_dilation;
  w.size = seen;
  return w;
}

}  // namespace

Result<bool> ClipWindows(Instruction* i) {
  const Shape& places = i->opcode() == Opcode::kReduceWindow
                            ? (i->shape().is_tuple() ? i->shape().elements()[0] : i->shape())
                            : i->operand(1)->shape();
  std::vector<WindowDimension> window = i->attributes().Window(Attr::kWindow);
  double seen = 1;
  bool changed = false;
  for (size_t d = 0; d < window.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    const WindowDimension clipped =
        Clipped(window[d], i->operand(0)->shape().dim(dim), places.dim(dim));
    changed |= !(clipped == window[d]);
    window[d] = clipped;
    seen *= static_cast<double>(clipped.size);
  }
  if (seen > static_cast<double>(kMostSeen)) {
    return ResourceExhausted(OpcodeName(i->opcode()), " '", i->name(), "' has windows of ", seen,
                             " places, almost all of which are padding or holes");
  }
  if (changed) i->mutable_attributes().Set(Attr::kWindow, std::move(window));
  return changed;
}

}  // namespace kiln::passes::expand
