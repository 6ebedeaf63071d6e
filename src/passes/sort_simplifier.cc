#include <algorithm>
#include <optional>
#include <unordered_map>

#include "passes/call_layouts.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// sort(x, y, ...) => (x, y, ...)   where the dimension has size 1 at most
Instruction* OfOneElement(Instruction* sort) {
  if (sort->operand(0)->shape().dimension(sort->dimensions()[0]).is_symbolic()) return nullptr;
  if (sort->operand(0)->shape().dim(sort->dimensions()[0]) > 1) return nullptr;
  Instruction* whole = sort->operand(0);
  if (sort->shape().is_tuple()) {
    const std::vector<Instruction*> operands(sort->operands().begin(), sort->operands().end());
    whole = MakeTuple(sort->parent(), operands, sort);
  }
  // The layout of a root or of a loop's state is part of its meaning.
  return WithLayouts(whole, sort->shape(), sort);
}

// Which operands are compared, or needed in their new order.
std::vector<bool> NeededOperands(const Instruction& sort) {
  std::vector<bool> needed(static_cast<size_t>(sort.operand_count()), sort.IsRoot());
  for (const Instruction* user : sort.users()) {
    if (user->opcode() != Opcode::kGetTupleElement) {
      needed.assign(needed.size(), true);
      break;
    }
    needed[static_cast<size_t>(user->attributes().Int(Attr::kIndex))] = true;
  }
  const Computation& comparator = *sort.called(0);
  for (const Instruction* p : comparator.parameters()) {
    if (p->users().empty() && !p->IsRoot()) continue;
    needed[static_cast<size_t>(p->attributes().Int(Attr::kParameterNumber) / 2)] = true;
  }
  return needed;
}

// The comparator without the parameters of operands that are not needed.
Computation* ComparatorOf(const Instruction& sort, const std::vector<bool>& needed) {
  ir::Module& module = *sort.parent()->parent();
  const Computation& old = *sort.called(0);
  Computation* comparator = module.AddComputation(old.name());
  std::vector<int64_t> number(needed.size());
  int64_t next = 0;
  for (size_t k = 0; k < needed.size(); ++k) {
    number[k] = next;
    next += needed[k] ? 2 : 0;
  }
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (Instruction* i : old.instructions()) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    if (i->opcode() == Opcode::kParameter) {
      int64_t old_number = i->attributes().Int(Attr::kParameterNumber);
      size_t operand = static_cast<size_t>(old_number / 2);
      if (!needed[operand]) continue;
      spec.attributes.Set(Attr::kParameterNumber, number[operand] + old_number % 2);
    }
    copies[i] = comparator->Create(std::move(spec));
  }
  comparator->set_root(copies.at(old.root()));
  return comparator;
}

// sort(x, y, ...) => sort(x, ...)   where y is not compared, and its result is unused
bool DropOperands(Instruction* sort) {
  if (!sort->shape().is_tuple()) return false;
  std::vector<bool> needed = NeededOperands(*sort);
  // One that orders nothing stays where nothing else is left.
  if (std::ranges::find(needed, true) == needed.end()) needed[0] = true;
  if (std::ranges::find(needed, false) == needed.end()) return false;
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;
  std::vector<int64_t> place(needed.size(), -1);
  for (size_t k = 0; k < needed.size(); ++k) {
    if (!needed[k]) continue;
    place[k] = static_cast<int64_t>(operands.size());
    operands.push_back(sort->operand(static_cast<int64_t>(k)));
    shapes.push_back(sort->shape().elements()[k]);
  }
  bool one = operands.size() == 1;
  ir::InstructionSpec spec = ir::CopySpec(*sort, std::move(operands));
  spec.called = {ComparatorOf(*sort, needed)};
  spec.shape = one ? shapes[0] : Shape::Tuple(std::move(shapes));
  Computation& c = *sort->parent();
  Instruction* smaller = c.Create(std::move(spec), sort);
  std::vector<Instruction*> users(sort->users().begin(), sort->users().end());
  for (Instruction* user : users) {
    int64_t index = place[static_cast<size_t>(user->attributes().Int(Attr::kIndex))];
    c.ReplaceAllUses(user, one ? smaller : ir::ElementOf(smaller, index, user));
    c.Remove(user);
  }
  c.Remove(sort);
  return true;
}

// sort(x, y, x) => sort(x, y)   where the first of equal operands is compared and read in the place
// of the other
bool MergeOperands(Instruction* sort) {
  bool changed = false;
  for (int64_t k = 1; k < sort->operand_count(); ++k) {
    auto first = std::ranges::find(sort->operands(), sort->operand(k));
    const int64_t j = first - sort->operands().begin();
    if (j == k) continue;
    std::vector<Instruction*> users(sort->users().begin(), sort->users().end());
    for (Instruction* user : users) {
      if (user->opcode() != Opcode::kGetTupleElement || user->attributes().Int(Attr::kIndex) != k ||
          (user->users().empty() && !user->IsRoot())) {
        continue;
      }
      Instruction* other = ir::ElementOf(sort, j, user);
      if (!(other->shape() == user->shape())) continue;
      sort->parent()->ReplaceAllUses(user, other);
      sort->parent()->Remove(user);
      changed = true;
    }
    for (int64_t side : {0, 1}) {
      const Instruction* p = sort->called(0)->parameter(2 * k + side);
      if (p->users().empty() && !p->IsRoot()) continue;
      Computation* comparator = OwnCallee(sort, 0);
      comparator->Move(comparator->parameter(2 * j + side), comparator->instructions().front());
      comparator->ReplaceAllUses(comparator->parameter(2 * k + side),
                                 comparator->parameter(2 * j + side));
      changed = true;
    }
  }
  return changed;
}

// Whether the comparator puts operand 0's larger elements first, or its smaller ones; nothing where
// it makes another order than topk does.
std::optional<bool> LargestFirst(const Computation& comparator, int64_t operand) {
  const Instruction* root = comparator.root();
  if (root->opcode() != Opcode::kCompare) return std::nullopt;
  const ElementType type = root->operand(0)->shape().type();
  // Without a total order, floats have equal zeros, and NaNs unequal to themselves.
  if (!IsInteger(type) && !(IsFloat(type) && root->attributes().Has(Attr::kOrderType))) {
    return std::nullopt;
  }
  const Instruction *left = comparator.parameter(2 * operand),
                    *right = comparator.parameter(2 * operand + 1);
  const bool straight = root->operand(0) == left && root->operand(1) == right;
  if (!straight && (root->operand(0) != right || root->operand(1) != left)) return std::nullopt;
  switch (root->attributes().DirectionOf(Attr::kDirection)) {
    case Direction::kGt:
      return straight;
    case Direction::kLt:
      return !straight;
    default:
      return std::nullopt;
  }
}

// How many of the first elements along its last dimension a slice takes; nothing where it takes
// others, or not all along other dimensions.
std::optional<int64_t> FirstOf(const Instruction& slice) {
  if (slice.opcode() != Opcode::kSlice || !slice.shape().is_row_major()) return std::nullopt;
  const Shape& from = slice.operand(0)->shape();
  const auto& dims = slice.attributes().Slices(Attr::kSlice);
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool is_last = d + 1 == dims.size();
    if (dims[d].start != 0 || dims[d].stride != 1) return std::nullopt;
    if (!is_last && dims[d].limit != from.dim(static_cast<int64_t>(d))) return std::nullopt;
  }
  return dims.back().limit;
}

// slice(sort(x, iota())) => topk(x)   where only the first sorted elements and their indices are
// read, along the last dimension (floats: in total order)
bool OfFirstElements(Instruction* sort) {
  const int64_t count = sort->operand_count();
  const Shape& shape = sort->operand(0)->shape();
  if (count > 2 || sort->IsRoot() || !shape.is_static() || !shape.is_row_major() ||
      sort->dimensions()[0] != shape.rank() - 1) {
    return false;
  }
  // Which operand is sorted; the other one, if any, counts.
  std::optional<bool> largest;
  int64_t sorted = 0;
  for (; sorted < count && !largest; ++sorted) {
    largest = LargestFirst(*sort->called(0), sorted);
  }
  if (!largest) return false;
  --sorted;
  if (count == 2) {
    const Instruction* iota = sort->operand(1 - sorted);
    if (iota->opcode() != Opcode::kIota || iota->shape().type() != ElementType::kS32 ||
        iota->attributes().Int(Attr::kIotaDimension) != shape.rank() - 1) {
      return false;
    }
  }
  int64_t most = 0;
  std::vector<std::pair<Instruction*, int64_t>> slices;  // and the operand whose elements it takes
  auto take = [&](const Instruction* of, int64_t operand) {
    if (of->IsRoot()) return false;
    for (Instruction* user : of->users()) {
      std::optional<int64_t> first = FirstOf(*user);
      if (!first || *first == 0) return false;
      most = std::max(most, *first);
      slices.emplace_back(user, operand);
    }
    return true;
  };
  if (count == 1) {
    if (!take(sort, 0)) return false;
  } else {
    for (const Instruction* user : sort->users()) {
      if (user->opcode() != Opcode::kGetTupleElement) return false;
      if (!take(user, user->attributes().Int(Attr::kIndex))) return false;
    }
  }
  if (slices.empty() || most >= shape.dim(shape.rank() - 1)) return false;
  std::vector<int64_t> dims = shape.dims();
  dims.back() = most;
  Instruction* x = sort->operand(sorted);
  Instruction* top = sort->parent()->Create(
      {.opcode = Opcode::kTopK,
       .operands = {x},
       .attributes = {{Attr::kK, most}, {Attr::kLargest, *largest}},
       .shape = Shape::Tuple({Shape(x->shape().type(), std::span<const int64_t>(dims)),
                              Shape(ElementType::kS32, std::span<const int64_t>(dims))}),
       .op_name = sort->op_name()},
      sort);
  for (auto [slice, operand] : slices) {
    Instruction* first = ir::ElementOf(top, operand == sorted ? 0 : 1, slice);
    if (slice->shape().dim(shape.rank() - 1) == most) {
      sort->parent()->ReplaceAllUses(slice, first);
      sort->parent()->Remove(slice);
    } else {
      sort->parent()->ReplaceOperand(slice, 0, first);
    }
  }
  std::vector<Instruction*> elements(sort->users().begin(), sort->users().end());
  for (Instruction* element : elements) sort->parent()->Remove(element);
  sort->parent()->Remove(sort);
  return true;
}

bool Simplify(Computation& c) {
  std::vector<Instruction*> sorts;
  for (Instruction* i : c.instructions()) {
    bool dead = i->users().empty() && !i->IsRoot();
    if (i->opcode() == Opcode::kSort && !dead) sorts.push_back(i);
  }
  bool changed = false;
  for (Instruction* sort : sorts) {
    if (Instruction* simpler = OfOneElement(sort)) {
      c.ReplaceAllUses(sort, simpler);
      c.Remove(sort);
      changed = true;
    } else {
      if (OfFirstElements(sort)) {
        changed = true;
        continue;
      }
      changed |= MergeOperands(sort);
      changed |= DropOperands(sort);
    }
  }
  return changed;
}

}  // namespace

Result<bool> SimplifySorts(ir::Module& module, const PassContext& context) {
  bool changed = false;
  std::vector<Computation*> computations;
  for (const auto& c : module.computations()) computations.push_back(c.get());
  for (Computation* c : computations) changed |= Simplify(*c);
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
