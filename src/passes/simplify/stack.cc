#include "passes/simplify/stack.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {

using ir::Instruction;

namespace {

// Of an expression.
constexpr size_t kMostArrays = 64;

// The place in memory of the element that a slice takes; the array is row-major.
std::optional<int64_t> PlaceOf(const Instruction* x) {
  if (x->opcode() != Opcode::kSlice) return std::nullopt;
  int64_t place = 0;
  const auto& slices = x->attributes().Slices(Attr::kSlice);
  for (size_t d = 0; d < slices.size(); ++d) {
    place = place * x->operand(0)->shape().dim(static_cast<int64_t>(d)) + slices[d].start;
  }
  return place;
}

bool IsSameOp(const Instruction* a, const Instruction* b) {
  return a->opcode() == b->opcode() && a->shape().type() == b->shape().type() &&
         a->operand_count() == b->operand_count() && a->attributes() == b->attributes();
}

}  // namespace

Instruction* Stacking::Make(std::vector<Instruction*> scalars) {
  Instruction* array = Array(std::move(scalars));
  if (!array) return nullptr;
  for (const Instruction* x : replaced_) {
    if (x == at_) continue;
    const auto is_replaced = [&](const Instruction* user) { return replaced_.contains(user); };
    if (x->IsRoot() || !std::ranges::all_of(x->users(), is_replaced)) return nullptr;
  }
  return array;
}

Instruction* Stacking::Array(std::vector<Instruction*> scalars) {
  for (Instruction*& x : scalars) {
    while (x->opcode() == Opcode::kReshape) {
      replaced_.insert(x);
      x = x->operand(0);
    }
  }
  if (const auto known = arrays_.find(scalars); known != arrays_.end()) return known->second;
  if (arrays_.size() == kMostArrays) return nullptr;
  const auto count = static_cast<int64_t>(scalars.size());
  Instruction* const first = scalars[0];
  Instruction* array = nullptr;
  if (std::ranges::all_of(scalars, [&](const Instruction* x) { return IsSame(x, first); })) {
    const Shape scalar = Shape::Scalar(first->shape().type());
    Instruction* value =
        first->shape().is_scalar() ? first : MakeShaped(at_, scalar, Opcode::kReshape, {first});
    array = Spread(at_, ShapeOf(scalar.type(), {{count}}), value);
  } else if (first->IsConstant()) {
    array = Constants(scalars);
  } else if (first->opcode() == Opcode::kSlice) {
    array = Elements(scalars);
  } else if (IsElementwise(first->opcode())) {
    array = Elementwise(scalars);
  }
  arrays_[std::move(scalars)] = array;
  return array;
}

Instruction* Stacking::Constants(const std::vector<Instruction*>& scalars) {
  const ElementType type = scalars[0]->shape().type();
  Literal array(ShapeOf(type, {{static_cast<int64_t>(scalars.size())}}));
  std::byte* place = array.data();
  for (const Instruction* x : scalars) {
    if (!x->IsConstant() || x->shape().type() != type) return nullptr;
    std::memcpy(place, x->literal().data(), static_cast<size_t>(x->literal().byte_size()));
    place += x->literal().byte_size();
  }
  return ir::Builder(at_).Constant(std::move(array));
}

Instruction* Stacking::Elements(const std::vector<Instruction*>& scalars) {
  Instruction* x = scalars[0]->operand(0);
  const std::optional<int64_t> start = PlaceOf(scalars[0]), next = PlaceOf(scalars[1]);
  if (!next || *next <= *start || !x->shape().is_row_major()) return nullptr;
  const int64_t stride = *next - *start;
  int64_t place = *start;
  for (const Instruction* scalar : scalars) {
    if (scalar->opcode() != Opcode::kSlice || scalar->operand(0) != x || PlaceOf(scalar) != place) {
      return nullptr;
    }
    place += stride;
  }
  replaced_.insert(scalars.begin(), scalars.end());
  if (x->shape().rank() != 1) {
    x = MakeShaped(at_, ShapeOf(x->shape().type(), {{x->shape().num_elements()}}), Opcode::kReshape,
                   {x});
  }
  const auto count = static_cast<int64_t>(scalars.size());
  const std::vector<SliceDimension> slices = {{*start, place - stride + 1, stride}};
  return MakeShaped(at_, ShapeOf(x->shape().type(), {{count}}), Opcode::kSlice, {x},
                    {{Attr::kSlice, slices}});
}

Instruction* Stacking::Elementwise(const std::vector<Instruction*>& scalars) {
  const Instruction* first = scalars[0];
  const auto is_same = [&](const Instruction* x) { return IsSameOp(x, first); };
  if (!std::ranges::all_of(scalars, is_same)) return nullptr;
  replaced_.insert(scalars.begin(), scalars.end());
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < first->operand_count(); ++k) {
    std::vector<Instruction*> of_all;
    for (const Instruction* x : scalars) of_all.push_back(x->operand(k));
    operands.push_back(Array(std::move(of_all)));
    if (!operands.back()) return nullptr;
  }
  const auto count = static_cast<int64_t>(scalars.size());
  return MakeShaped(at_, ShapeOf(first->shape().type(), {{count}}), first->opcode(),
                    std::move(operands), first->attributes());
}

}  // namespace kiln::passes::simplify
