#include <algorithm>

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

}  // namespace

Result<bool> FoldTransposes(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    for (Instruction* i : c->instructions()) {
      if (i->opcode() != Opcode::kDot) continue;
      // One operand that stands on both sides is folded on one side after the other.
      changed |= FoldInto(*c, i, 0);
      changed |= FoldInto(*c, i, 1);
    }
  }
  return changed;
}

}  // namespace kiln::passes
