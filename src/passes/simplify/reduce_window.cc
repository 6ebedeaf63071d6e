// Reductions over windows. Elements, without padding and holes, are folded in order. Rules marked
// "order" change the order, as in reductions.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/reducer.h"
#include "ops/window.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Window = std::vector<WindowDimension>;

// Windows of fewer elements are as fast one by one.
constexpr int64_t kMinSliding = 64;

// Cumulative sums of a constant are constants below this number of elements, and computed by a
// count from it on.
constexpr int64_t kMinCounted = 1 << 16;

// Whether windows of windows are windows: the op is idempotent, or exact with a neutral init.
bool MayRegroup(const Instruction* i, Opcode reducer) {
  if (IsIdempotent(reducer, i->shape().type())) return true;
  bool exact = reducer == Opcode::kAdd || reducer == Opcode::kMultiply || reducer == Opcode::kXor;
  return IsInt(i) && exact && IsNeutral(i->operand(1), i->operand(1), reducer);
}

Instruction* MakeWindow(Instruction* i, const Shape& shape, Instruction* x, Window window) {
  return MakeShaped(i, shape, Opcode::kReduceWindow, {x, i->operand(1)},
                    {{Attr::kWindow, std::move(window)}}, {i->called(0)});
}

// Whether a window has one place, with every element of the dimension in it.
bool IsWhole(const WindowDimension& w, int64_t size) {
  return w.base_dilation == 1 && w.window_dilation == 1 && w.low >= 0 && w.size - w.low >= size &&
         WindowPlaces(w, size) == 1;
}

// reduce-window(x, init) => op(init, x)   where windows are single elements
// reduce-window(x, init) => reshape(reduce(x, init))   where windows are single elements along some
// dimensions, and one window has all elements along the others
Instruction* OfSinglesAndWholes(Instruction* i, const Window& window, Opcode reducer) {
  Instruction* x = i->operand(0);
  Ints dimensions;
  std::vector<int64_t> kept;
  for (size_t d = 0; d < window.size(); ++d) {
    int64_t size = x->shape().dim(static_cast<int64_t>(d));
    if (IsTrivial(window[d])) {
      kept.push_back(size);
    } else if (IsWhole(window[d], size)) {
      dimensions.push_back(static_cast<int64_t>(d));
    } else {
      return nullptr;
    }
  }
  if (dimensions.empty()) {
    return Make(i, reducer, {Spread(i, i->shape(), i->operand(1)), x});
  }
  Shape shape = ShapeOf(i->shape().type(), kept);
  Instruction* reduced = MakeReduce(i, shape, x, i->operand(1), std::move(dimensions));
  return Make(i, Opcode::kReshape, {reduced});
}

// reduce-window(pad(x, v), init) => reduce-window(x, init)   where nothing is cut off, and v is
// neutral, or is init of an idempotent op   (the window is padded instead)
Instruction* OfPad(Instruction* i, const Window& window, Opcode reducer) {
  const Instruction* x = i->operand(0);
  bool same = IsSame(x->operand(1), i->operand(1)) && IsIdempotent(reducer, i->shape().type());
  if (!same && !IsNeutral(x->operand(1), i->operand(1), reducer)) return nullptr;
  Window padded = window;
  const auto& padding = x->attributes().Padding(Attr::kPadding);
  for (size_t d = 0; d < window.size(); ++d) {
    const PaddingDimension& p = padding[d];
    if (p == PaddingDimension{}) continue;
    WindowDimension& w = padded[d];
    // Elements cut off by the pad would be back in the window.
    if (w.base_dilation != 1 || p.low < 0 || p.high < 0) return nullptr;
    w.low += p.low;
    w.high += p.high;
    w.base_dilation = p.interior + 1;
  }
  return MakeWindow(i, i->shape(), x->operand(0), std::move(padded));
}

// reduce-window(x) => reduce-window(reduce-window(x))   where windows along one dimension, then
// along the others, take less work, and nothing is rounded   (order)
Instruction* OfDimensions(Instruction* i, const Window& window) {
  const Shape& from = i->operand(0)->shape();
  // The longest window goes first.
  size_t first = 0;
  for (size_t d = 1; d < window.size(); ++d) {
    if (window[d].size > window[first].size) first = d;
  }
  double rest = 1;
  for (size_t d = 0; d < window.size(); ++d) {
    if (d != first) rest *= static_cast<double>(window[d].size);
  }
  Window along(window.size()), others = window;
  along[first] = window[first];
  others[first] = {};
  std::vector<int64_t> dims = from.dims();
  dims[first] = i->shape().dim(static_cast<int64_t>(first));
  double own = static_cast<double>(window[first].size);
  double between = static_cast<double>(Product(dims));
  double results = static_cast<double>(i->shape().num_elements());
  if (rest == 1 || 2 * (between * own + results * rest) + 8 * between >= results * own * rest) {
    return nullptr;
  }
  Shape shape = ShapeOf(i->shape().type(), dims);
  Instruction* inner = MakeWindow(i, shape, i->operand(0), std::move(along));
  return MakeWindow(i, i->shape(), inner, std::move(others));
}

// reduce-window(x) => op(op(init, slice(s)), slice(p))   where windows along one dimension are
// long, and the op is idempotent. s and p scan blocks of the window's size from the end and from
// the beginning; each window is the end of a block and the beginning of the next   (order)
Instruction* OfLongWindow(Instruction* i, const Window& window, Opcode reducer) {
  if (!IsIdempotent(reducer, i->shape().type())) return nullptr;
  std::optional<size_t> along;
  for (size_t d = 0; d < window.size(); ++d) {
    if (IsTrivial(window[d])) continue;
    if (along) return nullptr;
    along = d;
  }
  if (!along) return nullptr;
  const WindowDimension& w = window[*along];
  int64_t dimension = static_cast<int64_t>(*along);
  Instruction* x = i->operand(0);
  int64_t n = x->shape().dim(dimension), places = i->shape().dim(dimension);
  // A window that has most of the array is left to scans and reductions.
  if (w.size < kMinSliding || w.stride != 1 || w.base_dilation != 1 || w.window_dilation != 1 ||
      n < 2 * w.size || w.low < 0 || w.high < 0 || w.low >= w.size || w.high >= w.size) {
    return nullptr;
  }
  std::optional<Literal> neutral = ir::IdentityOf(reducer, i->shape().type());
  if (!neutral) return nullptr;
  ElementType type = i->shape().type();
  int64_t blocks = (n + w.low + w.high + w.size - 1) / w.size, length = blocks * w.size;
  std::vector<int64_t> dims = x->shape().dims();
  dims[*along] = length;
  std::vector<PaddingDimension> padding(dims.size());
  padding[*along] = {w.low, length - n - w.low, 0};
  Instruction* scalar = Splat(i, Shape::Scalar(type), *std::move(neutral));
  Instruction* whole = MakeShaped(i, ShapeOf(type, dims), Opcode::kPad, {x, scalar},
                                  {{Attr::kPadding, std::move(padding)}});
  std::vector<int64_t> cut = dims;
  cut[*along] = blocks;
  cut.insert(cut.begin() + dimension + 1, w.size);
  Instruction* in_blocks = MakeShaped(i, ShapeOf(type, cut), Opcode::kReshape, {whole});
  auto part = [&](bool backward, int64_t start) {
    Window cumulative(cut.size());
    WindowDimension& c = cumulative[*along + 1];
    c.size = w.size;
    (backward ? c.high : c.low) = w.size - 1;
    Instruction* scan =
        MakeShaped(i, in_blocks->shape(), Opcode::kReduceWindow, {in_blocks, scalar},
                   {{Attr::kWindow, cumulative}}, {i->called(0)});
    Instruction* flat = MakeShaped(i, whole->shape(), Opcode::kReshape, {scan});
    std::vector<SliceDimension> slices;
    for (int64_t size : dims) slices.push_back({0, size, 1});
    slices[*along] = {start, start + places, 1};
    return Make(i, Opcode::kSlice, {flat}, {{Attr::kSlice, std::move(slices)}});
  };
  Instruction* begin = Make(i, reducer, {Spread(i, i->shape(), i->operand(1)), part(true, 0)});
  return Make(i, reducer, {begin, part(false, w.size - 1)});
}

// reduce-window(x, init) => pad(op(init, x), init)   where windows are single elements, with
// padding
Instruction* OfPaddedSingles(Instruction* i, const Window& window, Opcode reducer) {
  Instruction* x = i->operand(0);
  std::vector<PaddingDimension> padding;
  for (const WindowDimension& w : window) {
    if (w.size != 1 || w.stride != 1 || w.base_dilation != 1 || w.low < 0 || w.high < 0) {
      return nullptr;
    }
    padding.push_back({w.low, w.high, 0});
  }
  Shape shape = WithType(x->shape(), x->shape().type());
  Instruction* op = MakeShaped(i, shape, reducer, {Spread(i, shape, i->operand(1)), x});
  return Make(i, Opcode::kPad, {op, i->operand(1)}, {{Attr::kPadding, std::move(padding)}});
}

// reduce-window(spread(s), 0) => (iota() + 1) * spread(s)   where the sums are cumulative along one
// dimension, from either end   (floats: where the type has every count; rounded once)
Instruction* OfCounts(Instruction* i, const Window& window, Opcode reducer) {
  const Instruction* x = i->operand(0);
  if (reducer != Opcode::kAdd || IsPred(i) || !IsSpread(x)) return nullptr;
  // Small constants are folded.
  if (WillBeConstant(x) && i->shape().num_elements() < kMinCounted) return nullptr;
  if (!i->operand(1)->IsConstantOf(0.0)) return nullptr;
  int64_t along = -1;
  for (size_t d = 0; d < window.size(); ++d) {
    if (IsTrivial(window[d])) continue;
    if (along >= 0) return nullptr;
    along = static_cast<int64_t>(d);
  }
  if (along < 0) return nullptr;
  const WindowDimension& w = window[static_cast<size_t>(along)];
  const int64_t size = x->shape().dim(along);
  bool forward = w.low == w.size - 1 && w.high == 0, backward = w.high == w.size - 1 && w.low == 0;
  if (w.stride != 1 || w.base_dilation != 1 || w.window_dilation != 1 || w.size < size ||
      i->shape().dim(along) != size || (!forward && !backward)) {
    return nullptr;
  }
  ElementType type = i->shape().type();
  double largest = static_cast<double>(size);
  // Integers wrap, as their sums do.
  bool counts = VisitKernelType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) return largest < std::ldexp(1.0, std::numeric_limits<T>::digits);
    return largest <= static_cast<double>(std::numeric_limits<T>::max());
  });
  if (!counts) return nullptr;
  Shape shape = WithType(i->shape(), type);
  Instruction* count = MakeShaped(i, shape, Opcode::kIota, {}, {{Attr::kIotaDimension, along}});
  if (forward) {
    count = MakeShaped(i, shape, Opcode::kAdd, {count, SplatNumber(i, shape, 1)});
  } else {
    count = MakeShaped(i, shape, Opcode::kSubtract, {SplatNumber(i, shape, largest), count});
  }
  return Make(i, Opcode::kMultiply, {count, Spread(i, shape, x->operand(0))});
}

}  // namespace

Instruction* ReduceWindowRules(Instruction* i) {
  if (i->opcode() != Opcode::kReduceWindow || i->operand_count() != 2) return nullptr;
  std::optional<Opcode> reducer = ReducerOf(*i);
  if (!reducer) return nullptr;
  const Window& window = i->attributes().Window(Attr::kWindow);
  if (Instruction* r = OfSinglesAndWholes(i, window, *reducer)) return r;
  if (Instruction* r = OfPaddedSingles(i, window, *reducer)) return r;
  if (Instruction* r = OfCounts(i, window, *reducer)) return r;
  if (i->operand(0)->opcode() == Opcode::kPad) {
    if (Instruction* r = OfPad(i, window, *reducer)) return r;
  }
  if (!MayRegroup(i, *reducer)) return nullptr;
  if (Instruction* r = OfDimensions(i, window)) return r;
  return OfLongWindow(i, window, *reducer);
}

}  // namespace kiln::passes::simplify
