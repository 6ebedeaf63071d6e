// Derivatives of conditionals: each branch has its own, and all of them return the same: zeros in
// place of what belongs to another branch.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/split.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;
using Arrays = std::vector<Instruction*>;

namespace {

// The size of a bounded dimension is known where it has a value.
bool CheckZeros(Builder& b, const Instruction& op, const Shape& shape) {
  const bool can =
      shape.is_array() && std::ranges::none_of(shape.dimensions(), &Dimension::is_bounded);
  return CheckShape(can, b, op, shape);
}

}  // namespace

template <>
Derivative FlowForward<Opcode::kConditional>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  const size_t count = op->called().size();
  std::vector<Body> bodies;
  bodies.reserve(count);
  Arrays operands = {op->operand(0)};
  std::vector<Arrays> found;
  Flags has;  // the results with a tangent in any branch
  for (size_t k = 0; k < count; ++k) {
    Instruction* x = op->operand(static_cast<int64_t>(k) + 1);
    Body& body = bodies.emplace_back(*op->called()[k], Body::Takes::kTuple);
    const Arrays tangents = LeavesOf(forward.TangentOf(x), x->shape());
    const Arrays given = AddArguments(body, tangents);
    found.push_back(body.Tangents(forward.options(), given));
    if (!body.status().ok()) b.Fail(body.status());
    Arrays all = ArraysOf(b, LeavesOf(x));
    for (Instruction* t : tangents) {
      if (t) all.push_back(t);
    }
    operands.push_back(b.Tuple(std::move(all)));
    has.resize(found[k].size());
    for (size_t j = 0; j < has.size(); ++j) has[j] |= found[k][j] != nullptr;
  }
  std::vector<Computation*> called;
  for (size_t k = 0; k < count; ++k) {
    Arrays tangents;
    for (size_t j = 0; j < has.size(); ++j) {
      if (!has[j]) continue;
      const Shape& shape = bodies[k].results()[j]->shape();
      if (!found[k][j] && !CheckZeros(b, *op, shape)) return {};
      tangents.push_back(found[k][j] ? found[k][j] : bodies[k].builder().Zeros(shape));
    }
    called.push_back(bodies[k].Return(tangents));
  }
  const Shape shape = called[0]->root()->shape();
  Instruction* now = b.AddShaped(shape, Opcode::kConditional, std::move(operands), op->attributes(),
                                 std::move(called));
  b.replacements().AddLate(op, now);
  Arrays results;
  auto next = static_cast<int64_t>(has.size());
  for (bool one : has) results.push_back(one ? b.Element(now, next++) : nullptr);
  return DerivativeOf(op->shape(), results);
}

namespace {

// A branch, split, and where its values are among those that all branches return.
struct Branch {
  Branch(Instruction* op, size_t k)
      : leaves(LeavesOf(op->operand(static_cast<int64_t>(k) + 1))),
        forward(*op->called()[k], Body::Takes::kTuple),
        backward(*op->parent()->parent(), Cat(op->called()[k]->name(), ".backward"),
                 Body::Takes::kTuple) {}

  // Copies what is read back, and gives the branch its places in `slots`: values behind the
  // results, one branch's or another's.
  void SplitBy(const Reverse& reverse, const Arrays& cotangents, std::vector<Shape>& slots);
  // The values that the backward branch reads.
  Arrays Read(Builder& b, const std::vector<Leaf>& of_op, Instruction* now,
              const Arrays& cotangents) const;

  std::vector<Leaf> leaves;  // of the operand
  Body forward, backward;
  Arrays found;  // the cotangents of the leaves in `backward`
  std::optional<Split> split;
  std::vector<size_t> places;  // of residuals, among results and slots
};

void Branch::SplitBy(const Reverse& reverse, const Arrays& cotangents, std::vector<Shape>& slots) {
  BindConstants(forward, leaves);
  const size_t count = forward.arguments().size();
  const Instruction* last = forward.computation()->instructions().back();
  const Arrays given = AddArguments(forward, cotangents);
  const Arrays by_forward = forward.Cotangents(reverse.options(), ActiveOf(reverse, leaves), given);
  split.emplace(forward, Split::Parts{last, count, std::vector<Held>(count, Held::kYes)},
                by_forward);
  ir::InstructionMap<Instruction*> made(*forward.computation());
  for (size_t k : split->arguments()) {
    made[forward.arguments()[k]] = backward.AddArgument(forward.arguments()[k]->shape());
  }
  const Arrays& results = forward.results();
  Flags taken(slots.size());
  for (const Instruction* x : split->residuals()) {
    made[x] = backward.AddArgument(x->shape());
    size_t place = static_cast<size_t>(std::ranges::find(results, x) - results.begin());
    if (place == results.size()) {
      size_t slot = 0;
      while (slot < slots.size() && (taken[slot] || slots[slot] != x->shape())) ++slot;
      if (slot == slots.size()) {
        slots.push_back(x->shape());
        taken.push_back(0);
      }
      taken[slot] = 1;
      place += slot;
    }
    places.push_back(place);
  }
  for (const Instruction* x : given) {
    if (x) made[x] = backward.AddArgument(x->shape());
  }
  found = split->CopyBackward(backward, made);
}

Arrays Branch::Read(Builder& b, const std::vector<Leaf>& of_op, Instruction* now,
                    const Arrays& cotangents) const {
  Arrays read;
  for (size_t k : split->arguments()) read.push_back(ArrayOf(b, leaves[k]));
  for (size_t place : places) {
    read.push_back(now ? b.Element(now, static_cast<int64_t>(place)) : ArrayOf(b, of_op[place]));
  }
  for (Instruction* x : cotangents) {
    if (x) read.push_back(x);
  }
  return read;
}

using Branches = std::vector<std::unique_ptr<Branch>>;

// The branches' results with the slots behind them, in place of the op.
Instruction* PutForward(Builder& b, Instruction* op, const Branches& branches,
                        const std::vector<Shape>& slots) {
  Replacements::Early early(b.replacements(), op);
  Arrays operands = {op->operand(0)};
  std::vector<Computation*> called;
  for (const auto& branch : branches) {
    const size_t results = branch->forward.results().size();
    Arrays values(slots.size());
    for (size_t r = 0; r < branch->places.size(); ++r) {
      if (branch->places[r] < results) continue;
      values[branch->places[r] - results] = branch->split->residuals()[r];
    }
    branch->split->DropBackward();
    for (size_t s = 0; s < slots.size(); ++s) {
      if (!values[s] && !CheckZeros(b, *op, slots[s])) return nullptr;
      if (!values[s]) values[s] = branch->forward.builder().Zeros(slots[s]);
    }
    operands.push_back(early.Tuple(ArraysOf(early, branch->leaves)));
    called.push_back(branch->forward.Return(values));
  }
  return PutBefore(b, op, early, std::move(operands), std::move(called));
}

// The leaves of operands with a cotangent in any branch, each once.
std::vector<Leaf> SourcesOf(const Branches& branches) {
  std::vector<Leaf> sources;
  for (const auto& branch : branches) {
    for (size_t k = 0; k < branch->found.size(); ++k) {
      if (branch->found[k] && !std::ranges::count(sources, branch->leaves[k])) {
        sources.push_back(branch->leaves[k]);
      }
    }
  }
  return sources;
}

// All branches return the cotangents of all sources.
Computation* ReturnCotangents(Builder& b, const Instruction& op, Branch& branch,
                              const std::vector<Leaf>& sources) {
  Builder& inside = branch.backward.builder();
  Arrays sums(sources.size());
  for (size_t k = 0; k < branch.found.size(); ++k) {
    if (!branch.found[k]) continue;
    Instruction*& sum =
        sums[static_cast<size_t>(std::ranges::find(sources, branch.leaves[k]) - sources.begin())];
    sum = sum ? inside.Accumulate(sum, branch.found[k]) : branch.found[k];
  }
  for (size_t s = 0; s < sources.size(); ++s) {
    if (sums[s]) continue;
    if (!CheckZeros(b, op, sources[s].shape())) return nullptr;
    sums[s] = inside.Zeros(sources[s].shape());
  }
  return branch.backward.Return(sums);
}

}  // namespace

template <>
void FlowReverse<Opcode::kConditional>(Reverse& reverse, Instruction* op,
                                       const Derivative& cotangent) {
  Builder& b = reverse.builder();
  const Arrays cotangents = LeavesOf(cotangent, op->shape());
  Branches branches;
  std::vector<Shape> slots;
  for (size_t k = 0; k < op->called().size(); ++k) {
    Branch& branch = *branches.emplace_back(std::make_unique<Branch>(op, k));
    branch.SplitBy(reverse, cotangents, slots);
    if (!branch.forward.status().ok()) b.Fail(branch.forward.status());
  }
  const std::vector<Leaf> sources = SourcesOf(branches);
  if (sources.empty() || !b.ok()) return;
  std::vector<Computation*> called;
  for (const auto& branch : branches) {
    called.push_back(ReturnCotangents(b, *op, *branch, sources));
  }
  if (!b.ok()) return;
  Instruction* now = slots.empty() ? nullptr : PutForward(b, op, branches, slots);
  if (!b.ok()) return;
  const std::vector<Leaf> of_op = LeavesOf(op);
  Arrays operands = {op->operand(0)};
  for (const auto& branch : branches) {
    operands.push_back(b.Tuple(branch->Read(b, of_op, now, cotangents)));
  }
  const Shape shape = called[0]->root()->shape();
  Instruction* backward = b.AddShaped(shape, Opcode::kConditional, std::move(operands),
                                      op->attributes(), std::move(called));
  for (size_t s = 0; s < sources.size(); ++s) {
    AddTo(reverse, sources[s], b.Element(backward, static_cast<int64_t>(s)));
  }
}

}  // namespace kiln::grad
