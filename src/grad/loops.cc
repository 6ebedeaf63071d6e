// Derivatives of loops.
//
// Forward mode: a loop whose state has the tangents, too. Reverse mode: the loop stores what the
// derivative of its body reads, an array of all iterations for each value, and a second loop goes
// through the iterations backwards.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/split.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;
using Arrays = std::vector<Instruction*>;

namespace {

// Adds those that depend on active ones in an iteration, and those by them in the next ...
Flags ActiveInAll(Body& body, const Options& options, Flags active) {
  while (true) {
    const Flags results = body.ActiveResults(options, active);
    bool grows = false;
    for (size_t k = 0; k < active.size(); ++k) {
      if (results[k] && !active[k]) active[k] = 1, grows = true;
    }
    if (!grows) return active;
  }
}

// Of the active ones, those that have cotangents, by those that have them after the loop.
Flags ReachedInAll(Body& body, const Options& options, const Flags& active, Flags reached) {
  while (true) {
    const Flags arguments = body.ReachedArguments(options, active, reached);
    bool grows = false;
    for (size_t k = 0; k < active.size(); ++k) {
      if (arguments[k] && !reached[k]) reached[k] = 1, grows = true;
    }
    if (!grows) return reached;
  }
}

}  // namespace

template <>
Derivative FlowForward<Opcode::kWhile>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* state = op->operand(0);
  Body condition(*op->called(0), Body::Takes::kTuple), body(*op->called(1), Body::Takes::kTuple);
  Arrays tangents = LeavesOf(forward.TangentOf(state), state->shape());
  Flags active;
  for (const Instruction* t : tangents) active.push_back(t != nullptr);
  active = ActiveInAll(body, forward.options(), std::move(active));
  const std::vector<Leaf> leaves = LeavesOf(state);
  Arrays operands = ArraysOf(b, leaves);
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (active[k] && !tangents[k]) tangents[k] = b.Zeros(leaves[k].shape());
    if (active[k]) operands.push_back(tangents[k]);
  }
  AddArguments(condition, tangents);
  const Arrays given = AddArguments(body, tangents);
  const Arrays found = body.Tangents(forward.options(), given);
  Arrays next;
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (active[k]) {
      next.push_back(found[k] ? found[k] : body.builder().Zeros(leaves[k].shape()));
    }
  }
  Computation* both = body.Return(next);
  if (!body.status().ok()) b.Fail(body.status());
  Instruction* now =
      b.AddShaped(both->root()->shape(), Opcode::kWhile, {b.Tuple(std::move(operands))},
                  op->attributes(), {condition.ReturnOne(), both});
  b.replacements().AddLate(op, now);
  Arrays results;
  auto element = static_cast<int64_t>(leaves.size());
  for (bool one : active) results.push_back(one ? b.Element(now, element++) : nullptr);
  return DerivativeOf(op->shape(), results);
}

namespace {

// A loop in reverse mode.
class LoopReverse {
 public:
  LoopReverse(Reverse& reverse, Instruction* op)
      : reverse_(reverse),
        b_(reverse.builder()),
        op_(op),
        leaves_(LeavesOf(op->operand(0))),
        condition_(*op->called(0), Body::Takes::kTuple),
        body_(*op->called(1), Body::Takes::kTuple),
        held_(leaves_.size(), Held::kNo),
        variables_(leaves_.size()) {}

  void Run(const Derivative& cotangent) {
    Arrays cotangents = LeavesOf(cotangent, op_->shape());
    const std::optional<int64_t> trips = Analyse();
    if (!trips) {
      b_.Fail(Unimplemented(
          "'", op_->name(),
          "': while has no derivative in reverse mode where the number of its iterations is not "
          "known when it is built; forward mode differentiates any loop"));
      return;
    }
    trips_ = *trips;
    if (trips_ == 0) {
      for (size_t k = 0; k < leaves_.size(); ++k) {
        if (cotangents[k]) AddTo(reverse_, leaves_[k], cotangents[k]);
      }
      return;
    }
    SplitBody(cotangents);
    if (!b_.ok()) return;
    BuildBackward();
    Instruction* now = split_->residuals().empty() ? nullptr : PutForward();
    PutBackward(cotangents, now);
    for (Body* body : {&condition_, &body_}) {
      if (!now) body->Clear();
    }
  }

 private:
  std::optional<int64_t> Analyse();
  void SplitBody(const Arrays& cotangents);
  void BuildBackward();
  Instruction* VariableIn(Body& body, Instruction* counter, size_t k);
  Instruction* PutForward();
  void PutBackward(const Arrays& cotangents, Instruction* now);

  // The number of an iteration, and a constant of its type.
  Shape CounterShape() const {
    const bool is_small = trips_ <= std::numeric_limits<int32_t>::max();
    return Shape::Scalar(is_small ? ElementType::kS32 : ElementType::kS64);
  }
  Instruction* Count(ir::Builder& b, int64_t number) const {
    const Shape shape = CounterShape();
    return b.Constant(shape.type() == ElementType::kS32
                          ? Literal::Scalar<int32_t>(shape.type(), static_cast<int32_t>(number))
                          : Literal::Scalar<int64_t>(shape.type(), number));
  }
  // The values of a residual in all iterations, along a new first dimension.
  Shape StackShape(const Shape& shape) const {
    Ints sizes = shape.dims();
    sizes.insert(sizes.begin(), trips_);
    return Shape(shape.type(), sizes);
  }
  static Arrays Starts(ir::Builder& b, Instruction* counter, const Shape& of_one) {
    Arrays starts(static_cast<size_t>(of_one.rank()) + 1, b.Scalar(counter->shape().type(), 0));
    starts[0] = counter;
    return starts;
  }

  Reverse& reverse_;
  Builder& b_;
  Instruction* op_;
  const std::vector<Leaf> leaves_;  // of the state before the loop
  Body condition_, body_;
  std::vector<Held> held_;
  std::vector<std::optional<ir::InductionVariable>> variables_;
  int64_t trips_ = 0;
  Flags reached_;  // the leaves with cotangents
  Arrays given_;   // their arguments in body_
  std::optional<Split> split_;
  std::optional<Body> backward_;
};

// The trip count, and which values of the state need not be stored. A loop without nested calls,
// with known numbers in place, is made for that.
std::optional<int64_t> LoopReverse::Analyse() {
  ir::Module& module = *op_->parent()->parent();
  Computation* scratch = module.AddComputation("loop");
  ir::Builder b(scratch, nullptr, {}, ir::Builder::Operands::kTrusted);
  Arrays state;
  for (const Leaf& leaf : leaves_) {
    const Instruction* constant = ConstantOf(leaf);
    state.push_back(constant ? b.Constant(constant->shared_literal()) : b.Parameter(leaf.shape()));
  }
  Instruction* probe =
      b.AddShaped(body_.Return()->root()->shape(), Opcode::kWhile, {b.Tuple(state)}, {},
                  {condition_.ReturnOne(), body_.computation()});
  for (size_t k = 0; k < leaves_.size(); ++k) {
    if (!ir::IsInvariant(*probe, static_cast<int64_t>(k))) continue;
    held_[k] = Held::kInvariant;
    if (!state[k]->IsConstant()) continue;
    condition_.Bind(k, *state[k]);
    body_.Bind(k, *state[k]);
  }
  const ir::Induction induction = ir::InductionOf(*probe);
  for (const ir::InductionVariable& variable : induction.variables) {
    const auto k = static_cast<size_t>(variable.element);
    if (held_[k] != Held::kNo) continue;
    held_[k] = Held::kYes;
    variables_[k] = variable;
  }
  scratch->Clear();
  return induction.trip_count;
}

void LoopReverse::SplitBody(const Arrays& cotangents) {
  const Options& options = reverse_.options();
  const Flags active = ActiveInAll(body_, options, ActiveOf(reverse_, leaves_));
  reached_.clear();
  for (size_t k = 0; k < leaves_.size(); ++k) reached_.push_back(active[k] && cotangents[k]);
  reached_ = ReachedInAll(body_, options, active, std::move(reached_));
  const bool recomputes = options.recompute_loops && !ir::HasSideEffect(*body_.computation());
  // The state is returned by new results.
  Instruction* root = body_.computation()->root();
  body_.computation()->set_root(nullptr);
  body_.computation()->Remove(root);
  const Instruction* last = body_.computation()->instructions().back();
  for (size_t k = 0; k < leaves_.size(); ++k) {
    given_.push_back(reached_[k] ? body_.AddArgument(leaves_[k].shape()) : nullptr);
  }
  Arrays found = body_.Cotangents(options, active, given_);
  for (size_t k = 0; k < leaves_.size(); ++k) {
    if (!reached_[k]) found[k] = nullptr;
  }
  split_.emplace(body_, Split::Parts{last, leaves_.size(), held_, recomputes}, found);
  if (!body_.status().ok()) b_.Fail(body_.status());
  for (const Instruction* x : split_->residuals()) {
    const bool can = x->shape().is_array() && x->shape().is_static();
    if (!CheckShape(can, b_, *op_, x->shape())) return;
  }
}

// while(state, number, stacks): stacks[number] = the residuals of the iteration
Instruction* LoopReverse::PutForward() {
  Replacements::Early early(b_.replacements(), op_);
  Arrays operands = ArraysOf(early, leaves_);
  operands.push_back(Count(early, 0));
  condition_.AddArgument(CounterShape());
  split_->DropBackward();
  Builder& b = body_.builder();
  Instruction* counter = body_.AddArgument(CounterShape());
  Arrays next = {b.Plus(counter, Count(b, 1))};
  for (Instruction* x : split_->residuals()) {
    const Shape shape = StackShape(x->shape());
    operands.push_back(early.Number(shape, 0));
    condition_.AddArgument(shape);
    Instruction* stack = body_.AddArgument(shape);
    Ints one = shape.dims();
    one[0] = 1;
    Arrays update = Starts(b, counter, x->shape());
    update.insert(update.begin(), {stack, b.Reshape(x, Shape(shape.type(), one).dimensions())});
    next.push_back(b.Add(Opcode::kDynamicUpdateSlice, std::move(update)));
  }
  Computation* both = body_.Return(next);
  return PutBefore(b_, op_, early, {early.Tuple(std::move(operands))},
                   {condition_.ReturnOne(), both});
}

// An induction variable: start + step * number
Instruction* LoopReverse::VariableIn(Body& body, Instruction* counter, size_t k) {
  Builder& b = body.builder();
  const ir::InductionVariable& variable = *variables_[k];
  const ElementType type = leaves_[k].shape().type();
  const auto number = [&](int64_t value) {
    return b.Convert(b.Constant(Literal::Scalar<int64_t>(ElementType::kS64, value)), type);
  };
  Instruction* way = b.Convert(counter, type);
  if (variable.step != 1) way = b.Times(way, number(variable.step));
  if (!variable.start) return b.Plus(way, body.AddArgument(leaves_[k].shape()));
  return *variable.start == 0 ? way : b.Plus(way, number(*variable.start));
}

// The body of a loop over (number, cotangents, stacks, invariants).
void LoopReverse::BuildBackward() {
  Body& body = backward_.emplace(*op_->parent()->parent(), Cat(op_->called(1)->name(), ".backward"),
                                 Body::Takes::kTuple);
  Builder& b = body.builder();
  ir::InstructionMap<Instruction*> made(*body_.computation());
  Instruction* counter = body.AddArgument(CounterShape());
  for (Instruction* x : given_) {
    if (x) made[x] = body.AddArgument(x->shape());
  }
  const size_t changing = body.arguments().size();
  for (const Instruction* x : split_->residuals()) {
    Instruction* stack = body.AddArgument(StackShape(x->shape()));
    Ints one = stack->shape().dims();
    one[0] = 1;
    Arrays slice = Starts(b, counter, x->shape());
    slice.insert(slice.begin(), stack);
    Instruction* there =
        b.Add(Opcode::kDynamicSlice, std::move(slice), {{Attr::kDynamicSliceSizes, one}});
    made[x] = b.Reshape(there, x->shape().dimensions());
  }
  for (size_t k : split_->arguments()) {
    made[body_.arguments()[k]] =
        variables_[k] ? VariableIn(body, counter, k) : body.AddArgument(leaves_[k].shape());
  }
  const Arrays found = split_->CopyBackward(body, made);
  Arrays next = {b.Plus(counter, Count(b, -1))};
  for (size_t k = 0; k < leaves_.size(); ++k) {
    if (reached_[k]) next.push_back(found[k] ? found[k] : b.Zeros(leaves_[k].shape()));
  }
  next.insert(next.end(), body.arguments().begin() + static_cast<std::ptrdiff_t>(changing),
              body.arguments().end());
  body.Return(next);
}

// From the last iteration down to the first.
void LoopReverse::PutBackward(const Arrays& cotangents, Instruction* now) {
  Arrays operands = {Count(b_, trips_ - 1)};
  for (size_t k = 0; k < leaves_.size(); ++k) {
    if (!reached_[k]) continue;
    operands.push_back(cotangents[k] ? cotangents[k] : b_.Zeros(leaves_[k].shape()));
  }
  const auto stacks = static_cast<int64_t>(leaves_.size()) + 1;
  for (int64_t r = 0; r < std::ssize(split_->residuals()); ++r) {
    operands.push_back(b_.Element(now, stacks + r));
  }
  for (size_t k : split_->arguments()) {
    if (!variables_[k] || !variables_[k]->start) operands.push_back(ArrayOf(b_, leaves_[k]));
  }
  Body condition(*op_->parent()->parent(), Cat(op_->called(0)->name(), ".backward"),
                 Body::Takes::kTuple);
  for (const Instruction* x : operands) condition.AddArgument(x->shape());
  Builder& b = condition.builder();
  condition.computation()->set_root(
      b.Compare(Direction::kGe, condition.arguments()[0], Count(b, 0)));
  Computation* body = backward_->computation();
  Instruction* loop =
      b_.AddShaped(body->root()->shape(), Opcode::kWhile, {b_.Tuple(std::move(operands))}, {},
                   {condition.computation(), body});
  int64_t next = 1;
  for (size_t k = 0; k < leaves_.size(); ++k) {
    if (reached_[k]) AddTo(reverse_, leaves_[k], b_.Element(loop, next++));
  }
}

}  // namespace

template <>
void FlowReverse<Opcode::kWhile>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  LoopReverse(reverse, op).Run(cotangent);
}

}  // namespace kiln::grad
