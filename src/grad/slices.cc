#include "grad/slices.h"

#include <algorithm>
#include <cstring>

#include "grad/apply.h"
#include "tensor/extremes.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// A vector of integers of a type.
Literal Integers(ElementType type, const Ints& numbers) {
  Literal literal(Shape(type, {std::ssize(numbers)}));
  const auto width = static_cast<size_t>(ByteWidth(type));
  for (size_t k = 0; k < numbers.size(); ++k) {
    std::memcpy(literal.data() + k * width, &numbers[k], width);
  }
  return literal;
}

// Whether both are the same constant, or one repeated in the same way.
bool IsSameConstant(const Instruction* x, const Instruction* y) {
  if (x->IsConstant() && y->IsConstant()) return x->literal() == y->literal();
  return x->opcode() == Opcode::kBroadcast && y->opcode() == Opcode::kBroadcast &&
         x->shape() == y->shape() && x->dimensions() == y->dimensions() &&
         IsSameConstant(x->operand(0), y->operand(0));
}

}  // namespace

Slices::Slices(const Instruction* op) : op_(op), array_(op->operand(0)) {
  const bool gathers = op->opcode() == Opcode::kGather;
  indices_ = op->operand(gathers ? 1 : op->operand_count() / 2);
  const int64_t rank = array_->shape().rank();
  map_ = SliceMapOf(op->opcode(), op->attributes(), rank, indices_->shape().rank());
  const Shape& slices = gathers ? op->shape() : op->operand(op->operand_count() - 1)->shape();
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t at = map_.slice[static_cast<size_t>(d)];
    const int64_t one = array_->shape().dim(d) == 0 ? 0 : 1;
    sizes_.push_back(at >= 0 ? slices.dimension(at) : Dimension(one));
  }
}

// The greatest start along dimension d, or the greatest number of the indices' type.
std::optional<int64_t> Slices::LastStart(size_t d) const {
  const Dimension& all = array_->shape().dimension(static_cast<int64_t>(d));
  if (all == sizes_[d]) return 0;
  if (!all.is_constant() || !sizes_[d].is_constant()) return std::nullopt;
  const int64_t last = all.size() - sizes_[d].size();
  const int64_t most = Highest(indices_->shape().type()).AsInt(0);
  // That of u64 is no int64.
  return most < 0 ? last : std::min(last, most);
}

// The same at run time, as a vector of one element.
Instruction* Slices::ComputedLastStart(Builder& b, size_t d) const {
  Instruction* all = b.Add(Opcode::kGetDimensionSize, {array_},
                           {{Attr::kDimensions, Ints{static_cast<int64_t>(d)}}});
  if (!sizes_[d].is_constant()) {
    b.Fail(Unimplemented("'", op_->name(), "': ", OpcodeName(op_->opcode()),
                         " has no derivative where its slices have a symbolic size that is not "
                         "the array's"));
  }
  Instruction* last = b.Minus(all, b.Number(all, static_cast<double>(sizes_[d].size())));
  return b.Reshape(b.Convert(last, indices_->shape().type()), {1});
}

// In the places of the index vectors' components.
Instruction* Slices::LastStarts(Builder& b) const {
  const ElementType type = indices_->shape().type();
  const Attr key = SliceAttributesOf(op_->opcode()).start_map;
  Ints numbers;
  std::vector<Instruction*> parts;
  for (int64_t d : op_->attributes().IntsOf(key)) {
    const std::optional<int64_t> last = LastStart(static_cast<size_t>(d));
    numbers.push_back(last.value_or(0));
    parts.push_back(last ? nullptr : ComputedLastStart(b, static_cast<size_t>(d)));
  }
  Instruction* all = nullptr;
  if (std::ranges::count(parts, nullptr) == std::ssize(parts)) {
    all = b.Constant(Integers(type, numbers));
  } else {
    for (size_t c = 0; c < parts.size(); ++c) {
      if (!parts[c]) parts[c] = b.Constant(Integers(type, {numbers[c]}));
    }
    all = b.Concatenate(std::move(parts), 0);
  }
  if (HasVectors()) return b.BroadcastLike(indices_, all, {map_.index_vector_dim});
  return b.BroadcastLike(indices_, b.Reshape(all, {}), {});
}

Instruction* Slices::ClampedIndices(Builder& b) const {
  if (op_->attributes().IntsOf(SliceAttributesOf(op_->opcode()).start_map).empty()) return indices_;
  Instruction* zero = b.BroadcastLike(indices_, b.Scalar(indices_->shape().type(), 0), {});
  return b.Add(Opcode::kClamp, {zero, indices_, LastStarts(b)});
}

Instruction* Slices::Inside(Builder& b, Instruction* slices) const {
  if (op_->attributes().IntsOf(SliceAttributesOf(op_->opcode()).start_map).empty()) return nullptr;
  Instruction* last = LastStarts(b);
  const bool is_clamped = indices_->opcode() == Opcode::kClamp &&
                          indices_->operand(0)->IsConstantOf(0) &&
                          IsSameConstant(indices_->operand(2), last);
  if (is_clamped) return nullptr;
  Instruction* zero = b.BroadcastLike(indices_, b.Scalar(indices_->shape().type(), 0), {});
  Instruction* inside =
      b.And(b.Compare(Direction::kGe, indices_, zero), b.Compare(Direction::kLe, indices_, last));
  if (HasVectors()) inside = b.Reduce(Opcode::kAnd, inside, 1, {map_.index_vector_dim});
  return b.BroadcastLike(slices, inside, Outside());
}

Ints Slices::Outside() const {
  Ints outside;
  for (int64_t d : map_.outside) {
    if (d >= 0) outside.push_back(d);
  }
  return outside;
}

// The dimension numbers under the names of the other op.
Attributes Slices::Of(Opcode opcode) const {
  const Attributes& from = op_->attributes();
  const SliceAttributes theirs = SliceAttributesOf(op_->opcode());
  const SliceAttributes ours = SliceAttributesOf(opcode);
  Attributes attributes = {{Attr::kIndexVectorDim, map_.index_vector_dim}};
  for (auto name :
       {&SliceAttributes::slice_dims, &SliceAttributes::dropped_dims, &SliceAttributes::start_map,
        &SliceAttributes::operand_batch, &SliceAttributes::indices_batch}) {
    attributes.Set(ours.*name, from.IntsOf(theirs.*name));
  }
  return attributes;
}

Instruction* Slices::Scatter(Builder& b, Instruction* x, Instruction* indices, Instruction* slices,
                             ir::Computation* combiner) const {
  Attributes attributes = Of(Opcode::kScatter);
  if (op_->attributes().Bool(Attr::kUniqueIndices)) attributes.Set(Attr::kUniqueIndices, true);
  return b.Add(Opcode::kScatter, {x, indices, slices}, std::move(attributes), std::nullopt,
               {combiner});
}

Instruction* Slices::AddTo(Builder& b, Instruction* x, Instruction* indices,
                           Instruction* slices) const {
  return Scatter(b, x, indices, slices, b.Reducer(Opcode::kAdd, x->shape().type(), "sum"));
}

Instruction* Slices::PutInto(Builder& b, Instruction* x, Instruction* slices) const {
  const ElementType type = x->shape().type();
  Combination last(b, "last", {{type}});
  last.computation->set_root(last.next[0]);
  return Scatter(b, x, indices_, slices, last.computation);
}

Instruction* Slices::Gather(Builder& b, Instruction* x) const {
  Attributes attributes = Of(Opcode::kGather);
  SymbolicNumbers symbolic;
  Ints sizes;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    sizes.push_back(sizes_[d].size());
    if (sizes_[d].is_symbolic()) {
      symbolic.push_back({Attr::kSliceSizes, static_cast<int64_t>(d), sizes_[d]});
    }
  }
  attributes.Set(Attr::kSliceSizes, std::move(sizes));
  if (!symbolic.empty()) attributes.Set(Attr::kSymbolic, std::move(symbolic));
  return b.Add(Opcode::kGather, {x, indices_}, std::move(attributes));
}

}  // namespace kiln::grad
