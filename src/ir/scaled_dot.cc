#include "ir/scaled_dot.h"

namespace kiln::ir {

Instruction* TimesScale(Builder& b, Instruction* x, Instruction* scale, ElementType type,
                        int64_t block) {
  if (!x || !scale) return nullptr;
  const Shape& shape = x->shape();
  auto fail = [&] {
    return b.Fail(InvalidArgument("has a scale ", scale->shape(), " for ", shape));
  };
  if (!scale->shape().is_array() || !shape.is_array() || !shape.is_static() ||
      !scale->shape().is_static()) {
    return fail();
  }
  Instruction* wide = b.Convert(x, type);
  Instruction* by = b.Convert(scale, type);
  if (by && by->shape().is_scalar()) return b.Times(wide, b.Spread(shape, by));
  if (scale->shape().rank() != shape.rank()) return fail();
  std::vector<Dimension> blocks, whole;
  std::vector<SliceDimension> slices;
  Ints places;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int64_t size = shape.dim(d), count = scale->shape().dim(d);
    int64_t each = 1;
    if (count < size) each = block > 0 ? block : count > 0 ? size / count : 0;
    if (each <= 0 || count > (INT64_MAX / each) || count * each < size ||
        (block == 0 && count * each != size)) {
      return fail();
    }
    places.push_back(std::ssize(blocks));
    blocks.emplace_back(count);
    if (each != 1) blocks.emplace_back(each);
    whole.emplace_back(count * each);
    slices.push_back({0, size, 1});
  }
  by = b.Reshape(b.Broadcast(by, std::move(blocks), std::move(places)), std::move(whole));
  return b.Times(wide, b.Slice(by, std::move(slices)));
}

Instruction* ScaledDot(Builder& b, std::span<Instruction* const> operands_then_scales,
                       const Attributes& dot, ElementType type, int64_t block) {
  const bool narrow = IsFloat(type) && BitWidth(type) < 32;
  const ElementType wide = narrow ? ElementType::kF32 : type;
  std::span<Instruction* const> o = operands_then_scales;
  Instruction* lhs = TimesScale(b, o[0], o[2], wide, block);
  Instruction* rhs = TimesScale(b, o[1], o[3], wide, block);
  return b.Convert(b.Add(Opcode::kDot, {lhs, rhs}, dot), type);
}

}  // namespace kiln::ir
