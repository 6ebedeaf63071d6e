#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool Contains(const Ints& list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

// One operand of a dot, by the roles of its dimensions.
struct Side {
  Instruction* x;
  const Ints& batch;
  const Ints& contracting;
  // The places of its dimensions in the result: batch dimensions first, then the left side's free
  // ones, then the right side's. -1 for contracting dimensions.
  Ints places;
  bool has_free = false;  // of more than one element
};

Side SideOf(Instruction* i, int64_t side) {
  const Attributes& a = i->attributes();
  Side s{i->operand(side), a.IntsOf(side == 0 ? Attr::kLhsBatchDims : Attr::kRhsBatchDims),
         a.IntsOf(side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims)};
  int64_t next = static_cast<int64_t>(s.batch.size());
  // The left side's free dimensions precede the right side's.
  if (side == 1) {
    next = i->operand(0)->shape().rank() - static_cast<int64_t>(s.contracting.size());
  }
  for (int64_t d = 0; d < s.x->shape().rank(); ++d) {
    if (Contains(s.contracting, d)) {
      s.places.push_back(-1);
      continue;
    }
    auto in_batch = std::ranges::find(s.batch, d);
    bool is_free = in_batch == s.batch.end();
    s.places.push_back(is_free ? next++ : in_batch - s.batch.begin());
    s.has_free |= is_free && s.x->shape().dim(d) > 1;
  }
  return s;
}

// x in the result's type, in which products are taken.
Instruction* InResultType(Instruction* i, Instruction* x) {
  if (x->shape().type() == i->shape().type()) return x;
  return MakeShaped(i, WithType(x->shape(), i->shape().type()), Opcode::kConvert, {x});
}

// x broadcast to the result's shape, with its dimensions at these places.
Instruction* InResultShape(Instruction* i, Instruction* x, const Ints& places) {
  if (std::ranges::is_sorted(places) && x->shape().rank() == i->shape().rank()) return x;
  return MakeShaped(i, WithType(i->shape(), i->shape().type()), Opcode::kBroadcast, {x},
                    {{Attr::kDimensions, places}});
}

// One factor of a product without sums, in the result's shape.
Instruction* Factor(Instruction* i, const Side& side) {
  Instruction* x = side.x;
  std::vector<int64_t> dims;
  Ints places;
  for (size_t d = 0; d < side.places.size(); ++d) {
    if (side.places[d] < 0) continue;
    places.push_back(side.places[d]);
    dims.push_back(x->shape().dim(static_cast<int64_t>(d)));
  }
  Shape shape = ShapeOf(x->shape().type(), dims);
  if (!x->shape().SameDimensions(shape)) x = MakeShaped(i, shape, Opcode::kReshape, {x});
  return InResultShape(i, InResultType(i, x), places);
}

// The sum of x along the contracting dimensions, in the result's shape.
Instruction* Summed(Instruction* i, const Side& side, Instruction* x) {
  Ints places, contracting;
  std::vector<int64_t> dims;
  for (size_t d = 0; d < side.places.size(); ++d) {
    if (side.places[d] < 0) {
      contracting.push_back(static_cast<int64_t>(d));
    } else {
      places.push_back(side.places[d]);
      dims.push_back(x->shape().dim(static_cast<int64_t>(d)));
    }
  }
  Shape shape = ShapeOf(i->shape().type(), dims);
  return InResultShape(i, MakeSum(i, shape, x, std::move(contracting)), places);
}

// dot(x, ones) => broadcast(reduce(x, +)),  dot(ones, y) => broadcast(reduce(y, +))   (order)
Instruction* WithOnes(Instruction* i, const Side& x, const Side& ones) {
  if (!ones.x->IsConstantOf(1.0) || IsPred(i)) return nullptr;
  return Summed(i, x, InResultType(i, x.x));
}

// A dot of more products is a kernel with a schedule of its own. Of fewer, a sum fused with its
// neighbours is cheaper.
constexpr int64_t kFewProducts = 1024;

// dot(x, v) => reduce(x * broadcast(v), +),  dot(v, y) => reduce(broadcast(v) * y, +)   where v has
// no free dimensions larger than 1, and there are few products   (order; integers, f32 and f64;
// each product is rounded)
Instruction* OfVector(Instruction* i, const Side& x, const Side& v) {
  ElementType type = i->shape().type();
  if (!IsInteger(type) && type != ElementType::kF32 && type != ElementType::kF64) return nullptr;
  if (v.has_free || x.x->shape().num_elements() > kFewProducts) return nullptr;
  // v without its free dimensions, all of size 1, and the places of the others in x.
  std::vector<int64_t> dims;
  Ints in_x;
  for (int64_t d = 0; d < v.x->shape().rank(); ++d) {
    auto batch = std::ranges::find(v.batch, d), contracting = std::ranges::find(v.contracting, d);
    if (batch != v.batch.end()) {
      in_x.push_back(x.batch[static_cast<size_t>(batch - v.batch.begin())]);
    } else if (contracting != v.contracting.end()) {
      in_x.push_back(x.contracting[static_cast<size_t>(contracting - v.contracting.begin())]);
    } else {
      continue;
    }
    dims.push_back(v.x->shape().dim(d));
  }
  Instruction* small = v.x;
  Shape shape = ShapeOf(small->shape().type(), dims);
  if (!small->shape().SameDimensions(shape)) {
    small = MakeShaped(i, shape, Opcode::kReshape, {small});
  }
  small = InResultType(i, small);
  Shape wide = WithType(x.x->shape(), type);
  if (!std::ranges::is_sorted(in_x) || small->shape().rank() != wide.rank()) {
    small = MakeShaped(i, wide, Opcode::kBroadcast, {small}, {{Attr::kDimensions, in_x}});
  }
  Instruction* product = MakeShaped(i, wide, Opcode::kMultiply, {InResultType(i, x.x), small});
  return Summed(i, x, product);
}

// dot(concatenate(x, y), c) => dot(x, slice(c)) + dot(y, slice(c))   where the concatenation is
// along a contracting dimension and has no other users, and c will be a constant   (order; on
// either side; not of halves, since each dot would be rounded)
Instruction* OfConcatenate(Instruction* i, int64_t side) {
  Instruction *parts = i->operand(side), *c = i->operand(1 - side);
  if (parts->opcode() != Opcode::kConcatenate || !IsUsedOnce(parts) || !WillBeConstant(c)) {
    return nullptr;
  }
  if (IsHalf(i->shape().type()) || IsPred(i)) return nullptr;
  const Attributes& a = i->attributes();
  const Ints& dims = a.IntsOf(side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims);
  const Ints& other = a.IntsOf(side == 0 ? Attr::kRhsContractingDims : Attr::kLhsContractingDims);
  auto along = std::ranges::find(dims, parts->dimensions()[0]);
  // Each further part costs an addition of results.
  if (along == dims.end() || 4 * (parts->operand_count() - 1) * i->shape().num_elements() >
                                 parts->shape().num_elements()) {
    return nullptr;
  }
  size_t d = static_cast<size_t>(other[static_cast<size_t>(along - dims.begin())]);
  std::vector<SliceDimension> slices;
  for (int64_t size : c->shape().dims()) slices.push_back({0, size, 1});
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction* sum = nullptr;
  int64_t begin = 0;
  for (int64_t k = 0; k < parts->operand_count(); ++k) {
    Instruction* part = parts->operand(k);
    bool last = k + 1 == parts->operand_count();
    std::vector<int64_t> sizes = c->shape().dims();
    sizes[d] = part->shape().dim(parts->dimensions()[0]);
    slices[d] = {begin, begin + sizes[d], 1};
    begin += sizes[d];
    Instruction* cut = MakeShaped(i, ShapeOf(c->shape().type(), sizes), Opcode::kSlice, {c},
                                  {{Attr::kSlice, slices}});
    std::vector<Instruction*> operands = {part, cut};
    if (side == 1) std::swap(operands[0], operands[1]);
    Instruction* product = MakeShaped(i, shape, Opcode::kDot, std::move(operands), a);
    sum = sum ? MakeShaped(i, last ? i->shape() : shape, Opcode::kAdd, {sum, product}) : product;
  }
  return sum;
}

// What an operand is widened from, for a product that is as wide: bf16 or bytes. Null for others.
Instruction* WidenedFrom(const Side& side) {
  if (side.x->opcode() != Opcode::kConvert) return nullptr;
  Instruction* x = side.x->operand(0);
  const ElementType from = x->shape().type(), to = side.x->shape().type();
  const bool is_byte = from == ElementType::kS8 || from == ElementType::kU8;
  const bool is_word = to == ElementType::kS32 || to == ElementType::kU32;
  return (from == ElementType::kBF16 && to == ElementType::kF32) || (is_byte && is_word) ? x
                                                                                         : nullptr;
}

// Products are the same, as they are not rounded.
Instruction* OfWidened(Instruction* i, const Side& lhs, const Side& rhs) {
  const ElementType type = i->shape().type();
  Instruction *x = WidenedFrom(lhs), *y = WidenedFrom(rhs);
  if (!x || !y || x->shape().type() != y->shape().type()) return nullptr;
  if (type != lhs.x->shape().type()) return nullptr;
  // The bits of integers do not depend on the sign.
  ElementType sum = type;
  if (IsInt(i)) sum = IsSigned(x) ? ElementType::kS32 : ElementType::kU32;
  if (sum == type) return Make(i, Opcode::kDot, {x, y}, i->attributes());
  Instruction* product =
      MakeShaped(i, WithType(i->shape(), sum), Opcode::kDot, {x, y}, i->attributes());
  return Make(i, Opcode::kConvert, {product});
}

}  // namespace

Instruction* DotRules(Instruction* i) {
  if (i->opcode() != Opcode::kDot) return nullptr;
  const Attributes& a = i->attributes();
  int64_t terms = 1;
  for (int64_t d : a.IntsOf(Attr::kLhsContractingDims)) terms *= i->operand(0)->shape().dim(d);
  // dot(x, y) => 0   where a contracting dimension is empty
  if (terms == 0) return SplatNumber(i, i->shape(), 0);
  // dot(x, y) => broadcast(x) * broadcast(y) + 0   where each sum has one term   (floats: sums
  // begin at +0, so -0 becomes +0)
  Side lhs = SideOf(i, 0), rhs = SideOf(i, 1);
  if (terms == 1) {
    Instruction *x = Factor(i, lhs), *y = Factor(i, rhs);
    if (!IsFloat(i)) return Make(i, Opcode::kMultiply, {x, y});
    Shape shape = WithType(i->shape(), i->shape().type());
    return Make(i, Opcode::kAdd,
                {MakeShaped(i, shape, Opcode::kMultiply, {x, y}), SplatNumber(i, shape, 0)});
  }
  // dot(x, 0) => 0,  dot(0, y) => 0   (integers)
  if (!IsFloat(i) && (lhs.x->IsConstantOf(0.0) || rhs.x->IsConstantOf(0.0))) {
    return SplatNumber(i, i->shape(), 0);
  }
  if (Instruction* sum = WithOnes(i, lhs, rhs)) return sum;
  if (Instruction* sum = WithOnes(i, rhs, lhs)) return sum;
  if (Instruction* sum = OfVector(i, lhs, rhs)) return sum;
  if (Instruction* sum = OfVector(i, rhs, lhs)) return sum;
  // dot(convert(x), convert(y)) => dot(x, y)   of bf16, or of bytes; sums stay in the wider type
  if (Instruction* product = OfWidened(i, lhs, rhs)) return product;
  if (Instruction* sum = OfConcatenate(i, 0)) return sum;
  return OfConcatenate(i, 1);
}

}  // namespace kiln::passes::simplify
