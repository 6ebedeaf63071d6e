#include "grad/sliding_fold.h"

#include <algorithm>

#include "grad/apply.h"
#include "ir/reducer.h"
#include "ops/window.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// Arrays, one for each operand, and where along a dimension they have elements that are no padding.
struct Parts {
  std::vector<Instruction*> arrays;
  std::vector<bool> present;
};

class Sliding {
 public:
  Sliding(Builder& b, Instruction* op)
      : b_(b), op_(op), function_(*op->called(0)), n_(op->operand_count() / 2) {
    if (n_ == 1) {
      const ElementType type = op->operand(0)->shape().type();
      if (auto fold = ir::ReducerOf(function_)) identity_ = ir::IdentityOf(*fold, type);
    }
  }

  Instruction* Run() {
    const std::vector<WindowDimension>& window = op_->attributes().Window(Attr::kWindow);
    std::vector<Instruction*> x(op_->operands().begin(), op_->operands().begin() + n_), inits;
    std::vector<Instruction*> present;  // of the dimensions where it tells
    for (int64_t d = std::ssize(window) - 1; d >= 0; --d) {
      const WindowDimension& w = window[static_cast<size_t>(d)];
      if (IsTrivial(w)) continue;
      Parts folded = Along(std::move(x), d, w);
      x = std::move(folded.arrays);
      if (std::ranges::count(folded.present, false) > 0) {
        present.push_back(Constant(folded.present));
        dimensions_.push_back(d);
      }
    }
    for (int64_t k = 0; k < n_; ++k)
      inits.push_back(b_.BroadcastLike(x[0], op_->operand(n_ + k), {}));
    std::vector<Instruction*> results = Both(inits, x);
    for (size_t k = 0; k < present.size(); ++k) {
      Instruction* here = b_.BroadcastLike(x[0], present[k], {dimensions_[k]});
      for (size_t r = 0; r < results.size(); ++r) {
        results[r] = b_.Select(here, results[r], inits[r]);
      }
    }
    return b_.OneOrTuple(std::move(results));
  }

 private:
  Instruction* Constant(const std::vector<bool>& preds) {
    Literal literal(Shape(ElementType::kPred, {std::ssize(preds)}));
    std::ranges::copy(preds, literal.values<bool>().begin());
    return b_.Constant(std::move(literal));
  }

  std::vector<Instruction*> Both(std::vector<Instruction*> x,
                                 const std::vector<Instruction*>& y) const {
    x.insert(x.end(), y.begin(), y.end());
    return Apply(b_, function_, x);
  }

  // Of an element and padding the element.
  Parts Both(const Parts& x, const Parts& y, int64_t d) {
    Parts both{Both(x.arrays, y.arrays), x.present};
    std::vector<bool> only_x = x.present, only_y = y.present;
    for (size_t k = 0; k < only_x.size(); ++k) {
      both.present[k] = x.present[k] || y.present[k];
      only_x[k] = x.present[k] && !y.present[k];
      only_y[k] = y.present[k] && !x.present[k];
    }
    const auto replace = [&](const std::vector<bool>& where, const Parts& by) {
      if (std::ranges::count(where, true) == 0) return;
      Instruction* pred = Constant(where);
      for (size_t k = 0; k < both.arrays.size(); ++k) {
        both.arrays[k] =
            b_.Select(b_.BroadcastLike(both.arrays[k], pred, {d}), by.arrays[k], both.arrays[k]);
      }
    };
    replace(only_x, x);
    replace(only_y, y);
    return both;
  }

  // Places from `start` on.
  Parts Cut(const Parts& x, int64_t d, int64_t start, int64_t count, int64_t stride) {
    Parts cut;
    const SliceDimension slice = {start, start + (count - 1) * stride + 1, stride};
    for (Instruction* array : x.arrays) cut.arrays.push_back(b_.SliceAlong(array, d, slice));
    for (int64_t k = 0; k < count; ++k) {
      cut.present.push_back(x.present[static_cast<size_t>(start + k * stride)]);
    }
    return cut;
  }

  // With the window's padding and holes. They have the identity where there is one; any other
  // number is replaced later.
  Parts Padded(const std::vector<Instruction*>& x, int64_t d, const WindowDimension& w) {
    const int64_t size = x[0]->shape().dim(d), base = (size - 1) * w.base_dilation + 1;
    Parts padded{x, {}};
    for (int64_t k = -w.low; k < base + w.high; ++k) {
      padded.present.push_back(identity_ || (k >= 0 && k < base && k % w.base_dilation == 0));
    }
    if (w.low == 0 && w.high == 0 && w.base_dilation == 1) return padded;
    std::vector<PaddingDimension> padding(static_cast<size_t>(x[0]->shape().rank()));
    padding[static_cast<size_t>(d)] = {w.low, w.high, w.base_dilation - 1};
    for (Instruction*& array : padded.arrays) {
      Instruction* filling =
          identity_ ? b_.Constant(*identity_) : b_.Scalar(array->shape().type(), 1);
      array = b_.Add(Opcode::kPad, {array, filling}, {{Attr::kPadding, padding}});
    }
    return padded;
  }

  // The window's parts have sizes that are powers of two.
  Parts Along(std::vector<Instruction*> x, int64_t d, const WindowDimension& w) {
    const int64_t places =
        op_->shape().is_tuple() ? op_->shape().elements()[0].dim(d) : op_->shape().dim(d);
    Parts part = Padded(x, d, w), all;
    int64_t offset = 0;
    for (int64_t size = 1;; size *= 2) {
      if (w.size & size) {
        Parts next = Cut(part, d, offset * w.window_dilation, places, w.stride);
        all = offset == 0 ? std::move(next) : Both(all, next, d);
        offset += size;
      }
      if (offset == w.size) return all;
      const int64_t distance = size * w.window_dilation;
      const int64_t count = std::ssize(part.present) - distance;
      part = Both(Cut(part, d, 0, count, 1), Cut(part, d, distance, count, 1), d);
    }
  }

  Builder& b_;
  Instruction* op_;
  const ir::Computation& function_;
  const int64_t n_;
  std::optional<Literal> identity_;
  Ints dimensions_;
};

// Whether the window moves along dimensions of known sizes only.
bool IsKnown(const Instruction* op) {
  const std::vector<WindowDimension>& window = op->attributes().Window(Attr::kWindow);
  for (size_t d = 0; d < window.size(); ++d) {
    const Dimension& size = op->operand(0)->shape().dimension(static_cast<int64_t>(d));
    if (!size.is_constant() && !IsTrivial(window[d])) return false;
  }
  return true;
}

}  // namespace

Instruction* SlidingFold(Builder& b, Instruction* op) {
  if (!IsKnown(op)) {
    b.Fail(Unimplemented("'", op->name(),
                         "': reduce-window by such a computation has no derivative ",
                         "along a symbolic dimension"));
    return b.Zeros(op->shape());
  }
  const Shape& first = op->shape().is_tuple() ? op->shape().elements()[0] : op->shape();
  const auto is_empty = [](const Shape& shape) { return std::ranges::count(shape.dims(), 0) > 0; };
  if (!is_empty(first) && !is_empty(op->operand(0)->shape())) return Sliding(b, op).Run();
  const int64_t n = op->operand_count() / 2;
  std::vector<Instruction*> inits;
  for (int64_t k = 0; k < n; ++k) {
    Instruction* init = op->operand(n + k);
    inits.push_back(b.Spread(Shape(init->shape().type(), first.dimensions()), init));
  }
  return b.OneOrTuple(std::move(inits));
}

}  // namespace kiln::grad
