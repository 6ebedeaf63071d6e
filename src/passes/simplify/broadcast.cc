#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// Consumers do not repeat an expensive op, so on fewer elements it is a kernel of its own. For
// results of fewer elements than this, such a kernel costs more than the op on each element.
constexpr int64_t kWorthAKernel = 1024;

// Whether the operand may be a scalar beside arrays, by the definition of the op.
bool MayStayScalar(const Instruction* i, int64_t k) {
  return (i->opcode() == Opcode::kSelect && k == 0) || (i->opcode() == Opcode::kClamp && k != 1);
}

// op(broadcast(x), broadcast(y), spread(s)) => broadcast(op(x, y, spread(s)))   where x and y have
// the same dimensions in the same places
Instruction* OpOfBroadcasts(Instruction* i) {
  if (!IsElementwise(i->opcode()) || i->opcode() == Opcode::kCopy || i->shape().rank() == 0) {
    return nullptr;
  }
  // The broadcast of an array, with which the others must agree; null if all repeat scalars.
  const Instruction* lead = nullptr;
  bool all_constant = true, any_spread = false;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    const Instruction* x = i->operand(k);
    all_constant &= IsConstantTerm(x);
    bool scalar = x->shape().is_scalar();
    bool spread = x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar();
    any_spread |= spread;
    if (scalar || spread || SplatOf(x)) continue;
    if (x->opcode() != Opcode::kBroadcast) return nullptr;
    if (lead && (lead->dimensions() != x->dimensions() ||
                 !lead->operand(0)->shape().SameDimensions(x->operand(0)->shape()))) {
      return nullptr;
    }
    lead = x;
  }
  // An array of one repeated constant has become a broadcast before.
  if (!lead && !any_spread) return nullptr;
  Shape small = lead ? WithType(lead->operand(0)->shape(), i->shape().type())
                     : Shape::Scalar(i->shape().type());
  if (small.num_elements() >= i->shape().num_elements()) return nullptr;
  if (IsExpensive(i->opcode()) && !all_constant && i->shape().num_elements() < kWorthAKernel)
    return nullptr;
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    Instruction* x = i->operand(k);
    if (Instruction* scalar = ScalarOf(i, x)) {
      bool stays = MayStayScalar(i, k) && x->shape().is_scalar();
      operands.push_back(stays ? scalar : Spread(i, WithType(small, x->shape().type()), scalar));
    } else {
      operands.push_back(x->operand(0));
    }
  }
  Instruction* op = MakeShaped(i, small, i->opcode(), std::move(operands), i->attributes());
  return Make(i, Opcode::kBroadcast, {op},
              {{Attr::kDimensions, lead ? lead->dimensions() : Ints{}}});
}

Instruction* OfBroadcast(Instruction* i) {
  Instruction* x = i->operand(0);
  bool in_order = std::ranges::is_sorted(i->dimensions());
  // broadcast(x) => x   where no dimension is added or moves
  if (in_order && x->shape() == i->shape()) return x;
  // broadcast(broadcast(x)) => broadcast(x)
  if (x->opcode() == Opcode::kBroadcast) {
    Ints both;
    for (int64_t d : x->dimensions()) both.push_back(i->dimensions()[static_cast<size_t>(d)]);
    return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, both}});
  }
  // broadcast(x) => reshape(x)   where only dimensions of size 1 are added, and none moves
  if (in_order && x->shape().num_elements() == i->shape().num_elements()) {
    return Make(i, Opcode::kReshape, {x});
  }
  // broadcast(x) => transpose(x)   where no dimension is added, and one larger than 1 moves
  // broadcast(x) => reshape(x)   where no dimension is added, and only dimensions of size 1 move
  if (x->shape().rank() == i->shape().rank() && !in_order) {
    Ints permutation(i->dimensions().size()), longer;
    for (size_t d = 0; d < permutation.size(); ++d) {
      int64_t to = i->dimensions()[d];
      permutation[static_cast<size_t>(to)] = static_cast<int64_t>(d);
      if (i->shape().dim(to) != 1) longer.push_back(to);
    }
    if (std::ranges::is_sorted(longer)) return Make(i, Opcode::kReshape, {x});
    return Make(i, Opcode::kTranspose, {x}, {{Attr::kDimensions, std::move(permutation)}});
  }
  // broadcast(iota()) => iota()
  if (x->opcode() == Opcode::kIota) {
    int64_t d = x->attributes().Int(Attr::kIotaDimension);
    return Make(i, Opcode::kIota, {},
                {{Attr::kIotaDimension, i->dimensions()[static_cast<size_t>(d)]}});
  }
  // broadcast(reshape(x)) => broadcast(x)   where the reshape only adds dimensions of size 1
  if (x->opcode() == Opcode::kReshape) {
    std::optional<Ints> places = InsertedOnes(x->operand(0)->shape().dims(), x->shape().dims());
    if (!places) return nullptr;
    Ints both;
    for (int64_t d : *places) both.push_back(i->dimensions()[static_cast<size_t>(d)]);
    return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, both}});
  }
  return nullptr;
}

}  // namespace

Instruction* BroadcastRules(Instruction* i) {
  // constant({c, c, ...}) => broadcast(c)   where kernels have the type   (form)
  if (i->IsConstant() && i->shape().rank() > 0 && i->shape().num_elements() > 1) {
    if (!IsKernelType(i->shape().type())) return nullptr;
    std::optional<Literal> splat = SplatOf(i);
    return splat ? Splat(i, i->shape(), *std::move(splat)) : nullptr;
  }
  if (i->opcode() == Opcode::kBroadcast) return OfBroadcast(i);
  return OpOfBroadcasts(i);
}

}  // namespace kiln::passes::simplify
