#include <algorithm>
#include <optional>

#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// The operand's dimensions named by the transposed one's: result dimension d was permutation[d].
Ints Permuted(const Ints& dims, const Ints& permutation) {
  Ints result;
  for (int64_t d : dims) result.push_back(permutation[d]);
  return result;
}

// Whether the dimensions that are neither batch nor contracting keep their order: the dot's result
// lists them in the order of the operand.
bool FreeDimensionsKeepOrder(const Ints& permutation, const Ints& batch, const Ints& contracting) {
  int64_t last = -1;
  for (size_t d = 0; d < permutation.size(); ++d) {
    bool taken = std::find(batch.begin(), batch.end(), static_cast<int64_t>(d)) != batch.end() ||
                 std::find(contracting.begin(), contracting.end(), static_cast<int64_t>(d)) !=
                     contracting.end();
    if (taken) continue;
    if (permutation[d] < last) return false;
    last = permutation[d];
  }
  return true;
}

// dot(transpose(x), y) => dot(x, y),  dot(x, transpose(y)) => dot(x, y)   with other dimension
// numbers, where the free dimensions keep their order
bool FoldInto(Computation& c, Instruction* dot, int64_t side) {
  Instruction* transpose = dot->operand(side);
  if (transpose->opcode() != Opcode::kTranspose) return false;
  Attr batch = side == 0 ? Attr::kLhsBatchDims : Attr::kRhsBatchDims;
  Attr contracting = side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims;
  Attributes& attributes = dot->mutable_attributes();
  const Ints& permutation = transpose->dimensions();
  if (!FreeDimensionsKeepOrder(permutation, attributes.IntsOf(batch),
                               attributes.IntsOf(contracting))) {
    return false;
  }
  if (attributes.Has(batch)) {
    attributes.Set(batch, Permuted(attributes.IntsOf(batch), permutation));
  }
  if (attributes.Has(contracting)) {
    attributes.Set(contracting, Permuted(attributes.IntsOf(contracting), permutation));
  }
  c.ReplaceOperand(dot, side, transpose->operand(0));
  return true;
}

// The dimensions of `from` that the reshape joins into dimension d of its result, all others being
// the same; the first, and how many.
struct Joined {
  int64_t first = 0, count = 0;
};
std::optional<Joined> JoinedInto(int64_t d, const Shape& from, const Shape& to) {
  const int64_t count = from.rank() - to.rank() + 1;
  if (count < 2) return std::nullopt;
  for (int64_t i = 0; i < to.rank(); ++i) {
    if (i != d && from.dim(i < d ? i : i + count - 1) != to.dim(i)) return std::nullopt;
  }
  int64_t size = 1;
  for (int64_t i = 0; i < count; ++i) size *= from.dim(d + i);
  if (size != to.dim(d)) return std::nullopt;  // of no elements
  return Joined{d, count};
}

// Whether numbers that groups of elements along the joined dimensions have in common, such as
// scales, are among those that x is made of element by element.
bool IsOfGroups(const Instruction* x, const Joined& joined) {
  constexpr int kMostOps = 8;
  for (int ops = 0; ops < kMostOps && IsElementwise(x->opcode()); ++ops) {
    const Instruction* next = nullptr;
    for (const Instruction* operand : x->operands()) {
      if (operand->opcode() != Opcode::kBroadcast) {
        next = operand;
        continue;
      }
      const int64_t there = std::ranges::count_if(operand->dimensions(), [&](int64_t d) {
        return d >= joined.first && d < joined.first + joined.count;
      });
      if (there > 0 && there < joined.count) return true;
    }
    if (!next) return false;
    x = next;
  }
  return false;
}

// The same dimensions where one of them has fallen into several, all of which are taken if it was.
Ints Split(const Ints& dims, int64_t d, int64_t count) {
  Ints result;
  for (int64_t dim : dims) {
    if (dim != d) {
      result.push_back(dim < d ? dim : dim + count - 1);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) result.push_back(d + i);
  }
  return result;
}

// dot(x, reshape(w)) => dot(reshape(x), w),  dot(reshape(w), y) => dot(w, reshape(y))   where the
// reshape joins groups of elements, scaled by numbers of their own, into a contracting dimension:
// in the kernel each variable of the sum then tells the place of the scale, or does not matter to
// it
bool FoldGroups(Computation& c, Instruction* dot, int64_t side) {
  Instruction *reshape = dot->operand(side), *other = dot->operand(1 - side);
  if (reshape->opcode() != Opcode::kReshape || reshape == other) return false;
  Instruction* groups = reshape->operand(0);
  for (const Instruction* i : {reshape, other, groups}) {
    if (!i->shape().is_row_major() || !i->shape().is_static()) return false;
  }
  const Attr batch[] = {Attr::kLhsBatchDims, Attr::kRhsBatchDims};
  const Attr contracting[] = {Attr::kLhsContractingDims, Attr::kRhsContractingDims};
  Attributes& attributes = dot->mutable_attributes();
  const Ints summed[] = {attributes.IntsOf(contracting[0]), attributes.IntsOf(contracting[1])};
  for (size_t k = 0; k < summed[0].size(); ++k) {
    const int64_t d[] = {summed[0][k], summed[1][k]};
    const auto joined = JoinedInto(d[side], groups->shape(), reshape->shape());
    if (!joined || !IsOfGroups(groups, *joined)) continue;
    std::vector<Dimension> dims = other->shape().dimensions();
    const auto from = groups->shape().dimensions().begin() + joined->first;
    const auto at = dims.erase(dims.begin() + d[1 - side]);
    dims.insert(at, from, from + joined->count);
    Instruction* split = c.Create({.opcode = Opcode::kReshape,
                                   .operands = {other},
                                   .shape = Shape(other->shape().type(), std::move(dims))},
                                  dot);
    for (size_t s : {0, 1}) {
      attributes.Set(contracting[s], Split(summed[s], d[s], joined->count));
      if (attributes.Has(batch[s])) {
        attributes.Set(batch[s], Split(attributes.IntsOf(batch[s]), d[s], joined->count));
      }
    }
    c.ReplaceOperand(dot, side, groups);
    c.ReplaceOperand(dot, 1 - side, split);
    return true;
  }
  return false;
}

}  // namespace

Result<bool> FoldTransposes(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    for (Instruction* i : c->instructions()) {
      if (i->opcode() != Opcode::kDot) continue;
      // One operand that stands on both sides is folded on one side after the other.
      changed |= FoldInto(*c, i, 0);
      changed |= FoldInto(*c, i, 1);
      changed |= FoldGroups(*c, i, 0);
      changed |= FoldGroups(*c, i, 1);
    }
  }
  return changed;
}

}  // namespace kiln::passes
