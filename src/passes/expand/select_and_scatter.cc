// select-and-scatter as two folds: of each window to its selected element, and, for each element of
// the operand, of the windows that contain it, in their order. No two writes meet, so nothing is
// scattered.
#include <algorithm>
#include <numeric>

#include "base/integers.h"
#include "ir/reducer.h"
#include "passes/control/computations.h"
#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Computation;
using ir::Instruction;

size_t At(int64_t i) { return static_cast<size_t>(i); }

// The result of a computation of two scalars, appended to their computation.
Instruction* Apply(const Computation& function, Instruction* x, Instruction* y) {
  // The body is copied to before something.
  Instruction* call = x->parent()->Create({.opcode = Opcode::kTuple, .shape = Shape::Tuple({})});
  Instruction* result = CopyBody(call, function, std::vector<Instruction*>{x, y});
  x->parent()->Remove(call);
  return result;
}

// A computation of scalars for a reduce, under construction.
struct Function {
  Function(Computation* like, std::string_view name, std::initializer_list<ElementType> types)
      : computation(like->parent()->AddComputation(name)), b(computation, nullptr, nullptr) {
    for (int64_t n = 0; n < static_cast<int64_t>(2 * types.size()); ++n) {
      p.push_back(b.Parameter(Shape::Scalar(types.begin()[At(n) % types.size()])));
    }
  }
  Computation* computation;
  Builder b;
  std::vector<Instruction*> p;
};

class Folds {
 public:
  Folds(Builder& b, Instruction* i)
      : i_(i),
        b_(b),
        x_(i->operand(0)),
        source_(i->operand(1)),
        init_(i->operand(2)),
        type_(i->shape().type()),
        window_(i->attributes().Window(Attr::kWindow)),
        rank_(x_->shape().rank()),
        index_(x_->shape().num_elements() < INT32_MAX ? ElementType::kS32 : ElementType::kS64) {}

  Result<Instruction*> Run() {
    if (Adds() && IsFloat(type_) && !IsKernelType(type_)) {
      // As f32, which has a -0, and is rounded once.
      source_ = b_.Convert(source_, WideOf(type_));
      init_ = b_.Convert(init_, WideOf(type_));
    }
    Instruction* result = nullptr;
    if (x_->shape().num_elements() == 0 || source_->shape().num_elements() == 0) {
      result = b_.Spread(Shape(init_->shape().type(), i_->shape().dimensions()), init_);
      if (result == init_) result = b_.Unary(Opcode::kCopy, init_);
    } else {
      result = Gathered(Selected());
    }
    KILN_RETURN_IF_ERROR(status_);
    result = b_.Convert(result, type_);
    if (!(result->shape() == i_->shape())) result->set_shape(i_->shape());
    return result;
  }

 private:
  Instruction* Patches(Instruction* x, std::vector<WindowDimension> window) {
    return b_.Add(Opcode::kPatches, {x}, {{Attr::kWindow, std::move(window)}});
  }

  // The dimensions of patches that are the window's.
  Ints WindowDims() const {
    Ints dims(At(rank_));
    std::iota(dims.begin(), dims.end(), rank_);
    return dims;
  }

  Instruction* Zero(ElementType type) { return b_.Constant(Literal(Shape::Scalar(type))); }

  // The number of each of the operand's elements, from 1 on.
  Instruction* Numbers() {
    const Shape flat(index_, {x_->shape().num_elements()});
    Instruction* count = b_.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, int64_t{0}}}, flat);
    count = b_.Plus(count, b_.Number(flat, 1));
    return b_.Reshape(count, x_->shape().dimensions());
  }

  // For each place of the window the number of the element that is selected, 0 where none is there.
  Instruction* Selected() {
    const ElementType type = x_->shape().type();
    Function f(i_->parent(), "selection", {type, index_});
    Instruction *value = f.p[0], *number = f.p[1], *next = f.p[2], *next_number = f.p[3];
    Instruction* zero = f.b.Number(next_number, 0);
    // It stays if there is one, and the next is none or not preferred.
    Instruction* stays =
        f.b.Or(f.b.Compare(Direction::kEq, next_number, zero), Apply(*i_->called(0), value, next));
    stays = f.b.And(f.b.Compare(Direction::kNe, number, zero), stays);
    Instruction* selected = f.b.Select(stays, value, next);
    f.computation->set_root(f.b.Tuple({selected, f.b.Select(stays, number, next_number)}));
    KeepStatus(f);
    Instruction* fold =
        b_.Add(Opcode::kReduce,
               {Patches(x_, window_), Patches(Numbers(), window_), Zero(type), Zero(index_)},
               {{Attr::kDimensions, WindowDims()}}, std::nullopt, {f.computation});
    return b_.Element(fold, 1);
  }

  // The windows of an element, along one dimension: an element at place `block * size + rest -
  // first` is in windows `block + view`.
  struct Blocks {
    int64_t size, count, first;
    WindowDimension view;
  };

  // Element i is in windows floor((i + low) / stride) and some before it.
  Blocks InBlocks(int64_t d) const {
    const WindowDimension& w = window_[At(d)];
    const int64_t before = w.low < 0 ? CeilDiv(-w.low, w.stride) : 0;
    Blocks b;
    b.size = w.stride;
    b.first = w.low + before * w.stride;
    b.count = CeilDiv(x_->shape().dim(d) + b.first, w.stride);
    b.view.size = CeilDiv(w.size, w.stride);
    b.view.low = before + b.view.size - 1;
    b.view.high = b.count - source_->shape().dim(d) - before;
    return b;
  }

  // Windows of the source with holes.
  Blocks OneByOne(int64_t d) const {
    const WindowDimension& w = window_[At(d)];
    const int64_t size = x_->shape().dim(d), places = source_->shape().dim(d);
    Blocks b{.size = 1, .count = size, .first = 0, .view = {}};
    b.view.size = w.size;
    b.view.base_dilation = w.stride;
    b.view.low = w.size - 1 - w.low;
    b.view.high = size + w.size - 1 - b.view.low - ((places - 1) * w.stride + 1);
    return b;
  }

  // Blocks cost only their final slice.
  std::vector<Blocks> ChooseBlocks() const {
    std::vector<Blocks> blocks;
    const int64_t most = 4 * x_->shape().num_elements() + 1024;
    int64_t elements = 1;
    for (int64_t d = 0; d < rank_; ++d) {
      blocks.push_back(InBlocks(d));
      const Blocks& b = blocks.back();
      if (__builtin_mul_overflow(elements, b.size, &elements) ||
          __builtin_mul_overflow(elements, b.count, &elements) || elements > most) {
        blocks.clear();
        for (d = 0; d < rank_; ++d) blocks.push_back(OneByOne(d));
        return blocks;
      }
    }
    return blocks;
  }

  // [block, rest, ...] by the operand's dimensions.
  static std::vector<Dimension> DimensionsOf(const std::vector<Blocks>& blocks) {
    std::vector<Dimension> dims;
    for (const Blocks& b : blocks) {
      dims.emplace_back(b.count);
      dims.emplace_back(b.size);
    }
    return dims;
  }

  Instruction* Gathered(Instruction* selected) {
    const std::vector<Blocks> blocks = ChooseBlocks();
    std::vector<WindowDimension> view;
    std::vector<PaddingDimension> around;
    std::vector<Dimension> all = DimensionsOf(blocks), joined;
    Ints elements(2 * At(rank_)), windows;
    std::iota(elements.begin(), elements.end(), 0);
    for (int64_t d = 0; d < rank_; ++d) {
      const Blocks& b = blocks[At(d)];
      const int64_t size = x_->shape().dim(d);
      view.push_back(b.view);
      around.push_back({b.first, b.count * b.size - b.first - size, 0});
      joined.emplace_back(b.count * b.size);
      windows.push_back(2 * d);
    }
    for (int64_t d = 0; d < rank_; ++d) {
      all.emplace_back(view[At(d)].size);
      windows.push_back(2 * rank_ + d);
    }
    auto spread = [&](Instruction* x, const Ints& dims) {
      return b_.Add(Opcode::kBroadcast, {x}, {{Attr::kDimensions, dims}},
                    Shape(x->shape().type(), all));
    };
    Instruction* nobody = b_.Constant(Literal::ScalarOf(index_, -1));
    Instruction* number =
        b_.Add(Opcode::kPad, {Numbers(), nobody}, {{Attr::kPadding, std::move(around)}});
    number = spread(b_.Reshape(number, DimensionsOf(blocks)), elements);
    Instruction* is_it =
        b_.Compare(Direction::kEq, spread(Patches(selected, view), windows), number);
    Instruction* value = spread(Patches(source_, view), windows);
    Instruction* sum = b_.Reshape(Scattered(is_it, value), std::move(joined));
    if (sum->shape().SameDimensions(x_->shape())) return sum;
    std::vector<SliceDimension> slices;
    for (int64_t d = 0; d < rank_; ++d) {
      const int64_t first = blocks[At(d)].first;
      slices.push_back({first, first + x_->shape().dim(d), 1});
    }
    return b_.Add(Opcode::kSlice, {sum}, {{Attr::kSlice, std::move(slices)}});
  }

  // Whether scatter is the sum of its parameters.
  bool Adds() const { return ir::ReducerOf(*i_->called(1)) == Opcode::kAdd; }

  Instruction* Scattered(Instruction* is_it, Instruction* value) {
    const ElementType type = value->shape().type();
    Ints dims(At(rank_));
    std::iota(dims.begin(), dims.end(), 2 * rank_);
    if (Adds()) {
      // Nothing is changed by adding -0.
      Instruction* none = b_.Number(value, IsFloat(type) ? -0.0 : 0);
      return b_.ReduceFrom(init_, Opcode::kAdd, b_.Select(is_it, value, none), std::move(dims),
                           "sum");
    }
    Function f(i_->parent(), "scattering", {type, ElementType::kPred});
    Instruction* next = Apply(*i_->called(1), f.p[0], f.p[2]);
    f.computation->set_root(f.b.Tuple({f.b.Select(f.p[3], next, f.p[0]), f.p[1]}));
    KeepStatus(f);
    Instruction* fold =
        b_.Add(Opcode::kReduce, {value, is_it, init_, Zero(ElementType::kPred)},
               {{Attr::kDimensions, std::move(dims)}}, std::nullopt, {f.computation});
    return b_.Element(fold, 0);
  }

  void KeepStatus(const Function& f) {
    if (status_.ok()) status_ = f.b.status();
  }

  Instruction* i_;
  Builder& b_;
  Instruction *x_, *source_, *init_;
  const ElementType type_;
  const std::vector<WindowDimension>& window_;
  const int64_t rank_;
  const ElementType index_;
  Status status_;
};

}  // namespace

Result<Instruction*> SelectAndScatter(Builder& b, Instruction* i) { return Folds(b, i).Run(); }

}  // namespace kiln::passes::expand
