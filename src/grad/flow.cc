// Derivatives of calls and branches.
#include "grad/flow.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "grad/custom.h"
#include "grad/rules.h"
#include "grad/split.h"
#include "ir/analysis/effects.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;
using Arrays = std::vector<Instruction*>;

Flags ActiveOf(const Reverse& reverse, std::span<const Leaf> leaves) {
  Flags active;
  for (const Leaf& leaf : leaves) {
    active.push_back(reverse.IsActive(leaf.value) && IsDifferentiable(leaf.shape()));
  }
  return active;
}

void BindConstants(Body& body, std::span<const Leaf> leaves) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (const Instruction* constant = ConstantOf(leaves[k])) body.Bind(k, *constant);
  }
}

Arrays ArraysOf(ir::Builder& b, std::span<const Leaf> leaves) {
  Arrays arrays;
  for (const Leaf& leaf : leaves) arrays.push_back(ArrayOf(b, leaf));
  return arrays;
}

Arrays AddArguments(Body& body, std::span<Instruction* const> derivatives) {
  Arrays arguments;
  for (const Instruction* x : derivatives) {
    arguments.push_back(x ? body.AddArgument(x->shape()) : nullptr);
  }
  return arguments;
}

Instruction* PutBefore(Builder& b, Instruction* op, ir::Builder& early, Arrays operands,
                       std::vector<Computation*> called) {
  // A loop or a branch returns what each of its computations does.
  const Shape shape = called.back()->root()->shape();
  Instruction* now = early.AddShaped(shape, op->opcode(), std::move(operands), op->attributes(),
                                     std::move(called));
  if (!early.ok()) b.Fail(early.status());
  b.replacements().Add(op, now);
  return now;
}

bool CheckShape(bool can, Builder& b, const Instruction& op, const Shape& shape) {
  if (can) return true;
  b.Fail(Unimplemented("'", op.name(), "': ", OpcodeName(op.opcode()),
                       " has no derivative where that needs values of the shape ", shape));
  return false;
}

namespace {

// The arrays but for null.
Arrays Present(std::span<Instruction* const> arrays) {
  Arrays present;
  for (Instruction* x : arrays) {
    if (x) present.push_back(x);
  }
  return present;
}

// The cotangents of a body's arguments, as a backward computation of what it reads.
struct Backward {
  Backward(Body& forward, const Options& options, const Flags& active,
           std::span<Instruction* const> of_results, Held held, bool recomputes)
      : last(forward.computation()->instructions().back()), count(forward.arguments().size()) {
    given = AddArguments(forward, of_results);
    cotangents = forward.Cotangents(options, active, given);
    split.emplace(forward, Split::Parts{last, count, std::vector<Held>(count, held), recomputes},
                  cotangents);
  }

  const Instruction* last;
  size_t count;
  Arrays given, cotangents;
  std::optional<Split> split;
};

// In the backward computation: arguments for all that it reads, in the order of Operands().
Arrays CopyInto(Body& to, const Body& forward, const Backward& backward) {
  ir::InstructionMap<Instruction*> made(*forward.computation());
  for (size_t k : backward.split->arguments()) {
    made[forward.arguments()[k]] = to.AddArgument(forward.arguments()[k]->shape());
  }
  for (const Instruction* x : backward.split->residuals()) made[x] = to.AddArgument(x->shape());
  for (const Instruction* x : backward.given) {
    if (x) made[x] = to.AddArgument(x->shape());
  }
  return backward.split->CopyBackward(to, made);
}

// Where a residual is found: among the results, or the values that were added to them.
std::optional<size_t> PlaceOf(const Arrays& results, const Instruction* x) {
  const auto it = std::ranges::find(results, x);
  if (it == results.end()) return std::nullopt;
  return static_cast<size_t>(it - results.begin());
}

bool IsCheckpoint(const Instruction& call) {
  const std::string* text = call.FindFrontendAttribute(kGradientAttribute);
  return text && *text == kCheckpoint && !ir::HasSideEffect(call);
}

Derivative CallForward(Forward& forward, Instruction* op) {
  if (Computation* rule = RuleOf(*op->called(0))) return RuleForward(forward, op, *rule);
  Builder& b = forward.builder();
  Body body(*op->called(0), Body::Takes::kEach);
  Arrays operands = ArraysOf(b, LeavesOf(op->operands())), tangents;
  for (const Instruction* x : op->operands()) {
    const Arrays leaves = LeavesOf(forward.TangentOf(x), x->shape());
    tangents.insert(tangents.end(), leaves.begin(), leaves.end());
  }
  const Arrays given = AddArguments(body, tangents);
  const Arrays found = body.Tangents(forward.options(), given);
  if (!body.status().ok()) b.Fail(body.status());
  const Arrays extra = Present(found), more = Present(tangents);
  operands.insert(operands.end(), more.begin(), more.end());
  Computation* both = body.Return(extra);
  Instruction* now = b.AddShaped(both->root()->shape(), op->opcode(), std::move(operands),
                                 op->attributes(), {both});
  b.replacements().AddLate(op, now);
  Arrays results;
  auto next = static_cast<int64_t>(found.size());
  for (const Instruction* x : found) results.push_back(x ? b.Element(now, next++) : nullptr);
  return DerivativeOf(op->shape(), results);
}

void CallReverse(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  if (Computation* rule = RuleOf(*op->called(0))) return RuleReverse(reverse, op, *rule, cotangent);
  Builder& b = reverse.builder();
  const std::vector<Leaf> leaves = LeavesOf(op->operands()), of_op = LeavesOf(op);
  const Arrays given = LeavesOf(cotangent, op->shape());
  const bool is_checkpoint = IsCheckpoint(*op);
  Body body(*op->called(0), Body::Takes::kEach);
  BindConstants(body, leaves);
  Backward backward(body, reverse.options(), ActiveOf(reverse, leaves), given, Held::kYes,
                    is_checkpoint);
  Split& split = *backward.split;
  Body back(*b.computation()->parent(), Cat(op->called(0)->name(), ".backward"),
            Body::Takes::kEach);
  const Arrays found = CopyInto(back, body, backward);
  if (!body.status().ok()) b.Fail(body.status());

  // The call with its residuals.
  Arrays extra;
  for (Instruction* x : split.residuals()) {
    if (!PlaceOf(body.results(), x)) extra.push_back(x);
  }
  Instruction* now = nullptr;
  split.DropBackward();
  if (extra.empty()) {
    body.Clear();
  } else {
    Replacements::Early early(b.replacements(), op);
    Computation* both = body.Return(extra);
    now = PutBefore(b, op, early, ArraysOf(early, leaves), {both});
  }

  // What the backward computation reads.
  Arrays operands;
  for (size_t k : split.arguments()) operands.push_back(ArrayOf(b, leaves[k]));
  auto next = static_cast<int64_t>(body.results().size());
  for (Instruction* x : split.residuals()) {
    const std::optional<size_t> place = PlaceOf(body.results(), x);
    operands.push_back(!place ? b.Element(now, next++)
                       : now  ? b.Element(now, static_cast<int64_t>(*place))
                              : ArrayOf(b, of_op[*place]));
  }
  const Arrays more = Present(given);
  operands.insert(operands.end(), more.begin(), more.end());
  if (is_checkpoint) {
    // The values are computed again when the cotangents are there, and are not those of before.
    Instruction* barrier = b.Add(Opcode::kOptBarrier, {b.Tuple(operands)});
    for (size_t k = 0; k < operands.size(); ++k) {
      operands[k] = b.Element(barrier, static_cast<int64_t>(k));
    }
  }
  back.Return(Present(found));
  Instruction* call = b.AddShaped(back.computation()->root()->shape(), Opcode::kCall,
                                  std::move(operands), {}, {back.computation()});
  next = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    if (found[k]) AddTo(reverse, leaves[k], b.Element(call, next++));
  }
}

}  // namespace

template <>
Derivative FlowForward<Opcode::kCall>(Forward& forward, Instruction* op) {
  return CallForward(forward, op);
}
template <>
void FlowReverse<Opcode::kCall>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  CallReverse(reverse, op, cotangent);
}

template <>
Derivative FlowForward<Opcode::kFusion>(Forward& forward, Instruction* op) {
  return CallForward(forward, op);
}
template <>
void FlowReverse<Opcode::kFusion>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  CallReverse(reverse, op, cotangent);
}

}  // namespace kiln::grad
