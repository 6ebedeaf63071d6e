// Windows that move over arrays. x is the operand, t the cotangent.
#include "grad/windows.h"

#include <algorithm>
#include <cmath>

#include "grad/apply.h"
#include "grad/rules.h"
#include "grad/sliding_fold.h"
#include "ops/other_dimensions.h"
#include "ops/window.h"

namespace kiln::grad {

using ir::Instruction;
using Window = std::vector<WindowDimension>;

// Place p has element j by part k of the window: p stride + k dilation = j base_dilation + low.
// With k = size - 1 - k':
//   j base_dilation + k' dilation = p stride + (size - 1) dilation - low
// Behind the last place there is room for the window at the last element.
WindowDimension Transposed(const WindowDimension& window, const Dimension& from,
                           const Dimension& to) {
  const int64_t extent = (window.size - 1) * window.window_dilation;
  WindowDimension w = window;
  w.stride = window.base_dilation;
  w.base_dilation = window.stride;
  w.low = extent - window.low;
  // Symbolic sizes fit each other exactly.
  const int64_t unused = from.is_constant()
                             ? (from.size() - 1) * window.base_dilation + window.low + window.high -
                                   extent - (to.size() - 1) * window.stride
                             : 0;
  w.high = extent - window.high + unused;
  w.reversed = !window.reversed;
  return w;
}

namespace {

bool IsEmpty(const Shape& shape) { return std::ranges::count(shape.dims(), 0) > 0; }

const Window& WindowOf(const Instruction* op) { return op->attributes().Window(Attr::kWindow); }

// Whether the window has a position other than each element itself, by dimension.
Ints Moving(const Window& window) {
  Ints moving;
  for (size_t d = 0; d < window.size(); ++d) {
    if (!IsTrivial(window[d])) moving.push_back(static_cast<int64_t>(d));
  }
  return moving;
}

Instruction* SumTransposed(Builder& b, const Instruction* op, Instruction* t) {
  const Shape& shape = op->operand(0)->shape();
  if (IsEmpty(t->shape()) || IsEmpty(shape)) return b.Zeros(op->operand(0));
  Window window = WindowOf(op);
  for (size_t d = 0; d < window.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    window[d] = Transposed(window[d], shape.dimension(at), op->shape().dimension(at));
    window[d].reversed = false;
  }
  return b.Add(Opcode::kReduceWindow, {t, b.Scalar(shape.type(), 0)},
               {{Attr::kWindow, std::move(window)}}, std::nullopt,
               {b.Reducer(Opcode::kAdd, shape.type(), "sum")});
}

// Adds t to the first of the greatest (or least) elements in the window at its place.
Instruction* ExtremumTransposed(Builder& b, const Instruction* op, Direction direction,
                                Instruction* t) {
  Instruction* x = op->operand(0);
  const ElementType type = x->shape().type();
  Combination keeps(b, "keeps", {{type}});
  keeps.computation->set_root(keeps.b.Compare(direction, keeps.accumulated[0], keeps.next[0]));
  return b.Add(Opcode::kSelectAndScatter, {x, t, b.Scalar(type, 0)},
               {{Attr::kWindow, WindowOf(op)}}, std::nullopt,
               {keeps.computation, b.Reducer(Opcode::kAdd, type, "sum")});
}

// Whether select-and-scatter takes windows like these, and an element is in few of them, which are
// all looked at.
bool SuitsSelectAndScatter(const Window& window) {
  constexpr double kMostWindows = 64;
  double windows = 1;
  for (const WindowDimension& w : window) {
    if (w.base_dilation != 1 || w.window_dilation != 1) return false;
    windows *= std::ceil(static_cast<double>(w.size) / static_cast<double>(w.stride));
  }
  return windows <= kMostWindows;
}

// The elements that are selected at the places of a window, one at each.
class Selected {
 public:
  // `keeps` has whether the element selected so far stays, of it and the next one.
  Selected(Builder& b, Instruction* x, const Window& window, const ir::Computation& keeps)
      : b_(b), x_(x), moving_(Moving(window)) {
    std::vector<ElementType> types = {x->shape().type()};
    std::vector<Instruction*> operands = {x}, inits = {b.Scalar(types[0], 0)};
    for (int64_t d : moving_) {
      types.push_back(x->shape().dim(d) <= INT32_MAX ? ElementType::kS32 : ElementType::kS64);
      operands.push_back(b.IotaLike(x, types.back(), d));
      inits.push_back(b.Scalar(types.back(), -1));
    }
    operands.insert(operands.end(), inits.begin(), inits.end());
    Instruction* all = b.Add(Opcode::kReduceWindow, std::move(operands), {{Attr::kWindow, window}},
                             std::nullopt, {Selection(b, types, keeps)});
    for (size_t k = 1; k < types.size(); ++k) {
      positions_.push_back(b.Element(all, static_cast<int64_t>(k)));
    }
  }

  // The dimensions along which the window moves; along the others elements are their own.
  const Ints& moving() const { return moving_; }
  // Whether there is one, in the dimensions of the places.
  Instruction* Exists() const {
    return b_.Compare(Direction::kGe, positions_[0], b_.Number(positions_[0], 0));
  }
  // Index vectors along the moving dimensions, of parts of -1 where there is none. The dimension of
  // the vectors is the last one.
  Instruction* Indices() const {
    std::vector<Instruction*> parts;
    for (Instruction* x : positions_) {
      std::vector<Dimension> dimensions = x->shape().dimensions();
      dimensions.emplace_back(1);
      parts.push_back(b_.Reshape(b_.Convert(x, positions_[0]->shape().type()), dimensions));
    }
    return b_.Concatenate(std::move(parts), x_->shape().rank());
  }

 private:
  // Of elements and their positions, of which -1 is that of none.
  static ir::Computation* Selection(Builder& at, const std::vector<ElementType>& types,
                                    const ir::Computation& keeps) {
    Combination f(at, "selection", types);
    const auto is_none = [&](Instruction* position) {
      return f.b.Compare(Direction::kLt, position, f.b.Number(position, 0));
    };
    Instruction* kept = Apply(f.b, keeps, std::vector{f.accumulated[0], f.next[0]})[0];
    kept = f.b.And(f.b.Unary(Opcode::kNot, is_none(f.accumulated[1])),
                   f.b.Or(is_none(f.next[1]), kept));
    std::vector<Instruction*> results;
    for (size_t k = 0; k < types.size(); ++k) {
      results.push_back(f.b.Select(kept, f.accumulated[k], f.next[k]));
    }
    f.computation->set_root(f.b.Tuple(std::move(results)));
    if (!f.b.ok()) at.Fail(f.b.status());
    return f.computation;
  }

  Builder& b_;
  Instruction* x_;
  const Ints moving_;
  std::vector<Instruction*> positions_;  // by moving dimension
};

// The greatest or least elements by their positions, then with the initial value.
Instruction* Extremum(Builder& b, Instruction* op, Opcode fold) {
  Instruction *x = op->operand(0), *init = b.BroadcastLike(op, op->operand(1), {});
  const ElementType type = x->shape().type();
  const Window& window = WindowOf(op);
  if (Moving(window).empty()) return b.Binary(fold, init, x);
  if (IsEmpty(x->shape())) return init;
  Combination keeps(b, "keeps", {{type}});
  keeps.computation->set_root(
      keeps.b.Compare(fold == Opcode::kMaximum ? Direction::kGe : Direction::kLe,
                      keeps.accumulated[0], keeps.next[0]));
  const Selected selected(b, x, window, *keeps.computation);
  const Ints still = OtherDimensions(x->shape().rank(), selected.moving());
  Instruction* element =
      b.Add(Opcode::kGather, {x, selected.Indices()},
            {{Attr::kOffsetDims, Ints()},
             {Attr::kCollapsedSliceDims, selected.moving()},
             {Attr::kStartIndexMap, selected.moving()},
             {Attr::kOperandBatchingDims, still},
             {Attr::kStartIndicesBatchingDims, still},
             {Attr::kIndexVectorDim, x->shape().rank()},
             {Attr::kSliceSizes, Ints(static_cast<size_t>(x->shape().rank()), 1)}});
  element = b.Select(selected.Exists(), element, init);
  return b.IsIdentity(fold, op->operand(1)) ? element : b.Binary(fold, element, init);
}

// Maxima and minima are gathered; other functions are those of parts of windows, of their halves,
// and so on.
Instruction* Expanded(Builder& b, Instruction* op) {
  const std::optional<Opcode> fold = FoldOf(op);
  if ((fold == Opcode::kMaximum || fold == Opcode::kMinimum) &&
      IsFloat(op->operand(0)->shape().type())) {
    return Extremum(b, op, *fold);
  }
  return SlidingFold(b, op);
}

// select-and-scatter(x, y, init) = scatter(init, y) to the selected elements
Instruction* AsScatter(Builder& b, Instruction* op) {
  Instruction *x = op->operand(0), *source = op->operand(1);
  Instruction* init = b.BroadcastLike(x, op->operand(2), {});
  const Window& window = WindowOf(op);
  if (IsEmpty(x->shape()) || IsEmpty(source->shape())) return init;
  if (Moving(window).empty()) return Apply(b, *op->called(1), std::vector{init, source})[0];
  const Selected selected(b, x, window, *op->called(0));
  const Ints still = OtherDimensions(x->shape().rank(), selected.moving());
  return b.Add(Opcode::kScatter, {init, selected.Indices(), source},
               {{Attr::kUpdateWindowDims, Ints()},
                {Attr::kInsertedWindowDims, selected.moving()},
                {Attr::kScatterDimsToOperandDims, selected.moving()},
                {Attr::kInputBatchingDims, still},
                {Attr::kScatterIndicesBatchingDims, still},
                {Attr::kIndexVectorDim, x->shape().rank()}},
               std::nullopt, {op->called(1)});
}

}  // namespace

// Sums: the sum of t over the places of the windows that have the element, and the sum of all t to
// the initial value. Maxima and minima without one: t to the first of those elements.
template <>
bool Transpose<Opcode::kReduceWindow>(Reverse& reverse, Instruction* op,
                                      const Derivative& cotangent) {
  Builder& b = reverse.builder();
  Instruction *x = op->operand(0), *init = op->operand(1), *t = cotangent.array;
  const std::optional<Opcode> fold = FoldOf(op);
  if (fold == Opcode::kAdd) {
    if (reverse.IsActive(x)) reverse.Add(x, SumTransposed(b, op, t));
    if (reverse.IsActive(init)) reverse.Add(init, b.SumOfAll(t));
    return true;
  }
  const bool is_extremum = fold == Opcode::kMaximum || fold == Opcode::kMinimum;
  if (!is_extremum || !b.IsIdentity(*fold, init) || !SuitsSelectAndScatter(WindowOf(op)) ||
      IsComplex(x->shape().type())) {
    reverse.HandOnExpanded(op, cotangent, Expanded);
    return true;
  }
  const Direction direction = fold == Opcode::kMaximum ? Direction::kGe : Direction::kLe;
  reverse.Add(x, ExtremumTransposed(b, op, direction, t));
  return true;
}

template <>
Derivative Tangent<Opcode::kReduceWindow>(Forward& forward, Instruction* op) {
  return FoldOf(op) == Opcode::kAdd ? forward.OfLinear(op)
                                    : forward.TangentOfExpanded(op, Expanded);
}

template <>
bool Transpose<Opcode::kSelectAndScatter>(Reverse& reverse, Instruction* op,
                                          const Derivative& cotangent) {
  reverse.HandOnExpanded(op, cotangent, AsScatter);
  return true;
}
template <>
Derivative Tangent<Opcode::kSelectAndScatter>(Forward& forward, Instruction* op) {
  return forward.TangentOfExpanded(op, AsScatter);
}

}  // namespace kiln::grad
