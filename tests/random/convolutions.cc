#include "random/convolutions.h"

#include <algorithm>
#include <numeric>

#include "ops/window.h"
#include "random/ops.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x) : RandomMaker(source), x_(x) {}

  Instruction* Convolution() {
    const ElementType type = x_->shape().type();
    std::vector<int64_t> lhs = x_->shape().dims();
    if (x_->shape().num_elements() == 0) return nullptr;
    while (lhs.size() < 2) lhs.push_back(1);
    // Which of lhs's dimensions is what.
    std::vector<int64_t> order(lhs.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), source_.random);
    ConvolutionDimensions d;
    d.input_batch = order[0];
    d.input_feature = order[1];
    d.input_spatial.assign(order.begin() + 2, order.end());
    const int64_t batch = lhs[Place(order[0])], features = lhs[Place(order[1])];
    std::vector<WindowDimension> window;
    int64_t elements = 1, terms = 1;
    for (int64_t at : d.input_spatial) {
      window.push_back(Window(lhs[Place(at)], 3));
      elements *= std::max<int64_t>(*WindowPlaces(window.back(), lhs[Place(at)]), 1);
      terms *= window.back().size;
    }
    const int64_t feature_groups = Chance(30) ? Divisor(features) : 1;
    const int64_t batch_groups = feature_groups == 1 && Chance(20) ? Divisor(batch) : 1;
    const int64_t groups = feature_groups * batch_groups;
    elements *= batch / batch_groups * groups;
    if (elements > source_.max_elements || terms * features > 256) return nullptr;
    const int64_t outputs =
        groups * Pick(1, std::clamp<int64_t>(source_.max_elements / elements, 1, 20));
    // rhs and the result have theirs in any order, too.
    std::vector<int64_t> rhs(lhs.size());
    std::shuffle(order.begin(), order.end(), source_.random);
    d.kernel_input_feature = order[0];
    d.kernel_output_feature = order[1];
    d.kernel_spatial.assign(order.begin() + 2, order.end());
    rhs[Place(order[0])] = features / feature_groups;
    rhs[Place(order[1])] = outputs;
    for (size_t k = 0; k < window.size(); ++k) rhs[Place(d.kernel_spatial[k])] = window[k].size;
    std::shuffle(order.begin(), order.end(), source_.random);
    d.output_batch = order[0];
    d.output_feature = order[1];
    d.output_spatial.assign(order.begin() + 2, order.end());
    Attributes attributes = {{Attr::kWindow, window}, {Attr::kDimLabels, d}};
    if (feature_groups > 1) attributes.Set(Attr::kFeatureGroupCount, feature_groups);
    if (batch_groups > 1) attributes.Set(Attr::kBatchGroupCount, batch_groups);
    ElementType to = type;
    if (Chance(30)) to = WiderSum(type);
    Instruction* x = x_;
    if (lhs.size() != x->shape().dims().size()) {
      x = Add({.opcode = Opcode::kReshape, .operands = {x}, .shape = Shape(type, lhs)});
    }
    return Add({.opcode = Opcode::kConvolution,
                .operands = {x, Parameter(Shape(type, rhs))},
                .attributes = std::move(attributes),
                .shape = Shape::Scalar(to)});
  }

  RandomOp SelectAndScatter() {
    const Shape& shape = x_->shape();
    if (shape.rank() == 0 || shape.rank() > 4) return {};
    std::vector<WindowDimension> window;
    std::vector<int64_t> places;
    int64_t reads = 1;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      WindowDimension w = Window(shape.dim(d), 4);
      w.base_dilation = w.window_dilation = 1;
      w.reversed = false;
      window.push_back(w);
      places.push_back(*WindowPlaces(w, shape.dim(d)));
      reads *= places.back() * w.size;
    }
    if (reads > 8 * source_.max_elements) return {};
    Instruction* given = Parameter(Shape(shape.type(), places));
    RandomOp op{.data = {x_, given}};
    op.rounds = true;
    op.results = {Add({.opcode = Opcode::kSelectAndScatter,
                       .operands = {x_, given, Parameter(Shape::Scalar(shape.type()))},
                       .attributes = {{Attr::kWindow, std::move(window)}},
                       .called = {Select(), Scatter()}})};
    return op;
  }

 private:
  static size_t Place(int64_t i) { return static_cast<size_t>(i); }

  // Of a few places at least, where that can be.
  WindowDimension Window(int64_t size, int64_t most) {
    WindowDimension w;
    w.size = Pick(1, most);
    if (Chance(30)) w.stride = Pick(1, 3);
    if (Chance(20)) w.base_dilation = Pick(1, 3);
    if (Chance(20)) w.window_dilation = Pick(1, 3);
    w.reversed = Chance(20);
    if (Chance(50)) {
      w.low = Pick(-1, 3);
      w.high = Pick(-1, 3);
    }
    if (*WindowPlaces(w, size) == 0 && Chance(95)) {
      w = {};
      w.stride = Pick(1, 2);
    }
    return w;
  }

  Computation* Select() {
    Computation* c = source_.module.AddComputation("select");
    const Shape scalar = Shape::Scalar(x_->shape().type());
    Instruction *kept = ParameterOf(*c, scalar), *next = ParameterOf(*c, scalar);
    constexpr Direction kDirections[] = {Direction::kGe, Direction::kGt, Direction::kLe,
                                         Direction::kNe};
    const Direction direction =
        IsComplex(x_->shape().type()) ? Direction::kNe : kDirections[Pick(0, 3)];
    c->set_root(AddTo(*c, {.opcode = Opcode::kCompare,
                           .operands = {kept, next},
                           .attributes = {{Attr::kDirection, direction}}}));
    return c;
  }

  // The order of what meets shows in the bits.
  Computation* Scatter() {
    Computation* c = source_.module.AddComputation("scatter");
    const Shape scalar = Shape::Scalar(x_->shape().type());
    Instruction *old = ParameterOf(*c, scalar), *added = ParameterOf(*c, scalar);
    constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kAdd, Opcode::kMaximum, Opcode::kSubtract};
    const Opcode opcode = kOps[Pick(0, IsPred(x_->shape().type()) ? 2 : 3)];
    c->set_root(AddTo(*c, {.opcode = opcode, .operands = {old, added}}));
    return c;
  }

  Instruction* x_;
};

}  // namespace

Instruction* RandomConvolution(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Convolution();
}

RandomOp RandomSelectAndScatter(const RandomSource& source, Instruction* x) {
  return Generator(source, x).SelectAndScatter();
}

}  // namespace kiln::testing
