#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool Contains(const Ints& list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

// One factor of a product without sums, in the result's shape: batch dimensions go first, the free
// ones to where the result has them.
Instruction* Factor(Instruction* i, int64_t side, int64_t first_free) {
  Instruction* x = i->operand(side);
  const Attributes& a = i->attributes();
  const Ints& batch = a.IntsOf(side == 0 ? Attr::kLhsBatchDims : Attr::kRhsBatchDims);
  const Ints& contracting =
      a.IntsOf(side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims);
  std::vector<int64_t> dims;
  Ints places;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (Contains(contracting, d)) continue;
    auto in_batch = std::ranges::find(batch, d);
    places.push_back(in_batch == batch.end() ? first_free++ : in_batch - batch.begin());
    dims.push_back(x->shape().dim(d));
  }
  Shape shape = ShapeOf(x->shape().type(), dims);
  if (!x->shape().SameDimensions(shape)) x = MakeShaped(i, shape, Opcode::kReshape, {x});
  // The product is taken in the result's type.
  if (x->shape().type() != i->shape().type()) {
    x = MakeShaped(i, WithType(shape, i->shape().type()), Opcode::kConvert, {x});
  }
  if (std::ranges::is_sorted(places) && shape.rank() == i->shape().rank()) return x;
  return MakeShaped(i, WithType(i->shape(), i->shape().type()), Opcode::kBroadcast, {x},
                    {{Attr::kDimensions, places}});
}

}  // namespace

Instruction* DotRules(Instruction* i) {
  if (i->opcode() != Opcode::kDot) return nullptr;
  const Attributes& a = i->attributes();
  int64_t terms = 1;
  for (int64_t d : a.IntsOf(Attr::kLhsContractingDims)) terms *= i->operand(0)->shape().dim(d);
  // dot(x, y) => 0   where there is nothing to sum over
  if (terms == 0) return SplatNumber(i, i->shape(), 0);
  // dot(x, y) => broadcast(x) * broadcast(y) + 0   where each sum has one term; the sum begins at
  // +0, which makes +0 of -0   (a negative product that underflows is a zero of either sign)
  if (terms == 1) {
    int64_t batch = static_cast<int64_t>(a.IntsOf(Attr::kLhsBatchDims).size());
    int64_t contracting = static_cast<int64_t>(a.IntsOf(Attr::kLhsContractingDims).size());
    int64_t left = i->operand(0)->shape().rank() - batch - contracting;
    Instruction *x = Factor(i, 0, batch), *y = Factor(i, 1, batch + left);
    if (!IsFloat(i)) return Make(i, Opcode::kMultiply, {x, y});
    Shape shape = WithType(i->shape(), i->shape().type());
    return Make(i, Opcode::kAdd,
                {MakeShaped(i, shape, Opcode::kMultiply, {x, y}), SplatNumber(i, shape, 0)});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
