#include "interp/shape_ops.h"

#include "base/strings.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

Literal Iota(const Instruction& i) {
  Literal out(i.shape());
  int64_t dimension = i.attributes().Int(Attr::kIotaDimension);
  std::vector<int64_t> dims = i.shape().dims();
  int64_t stride = RowMajorStrides(dims)[dimension];
  VisitType(i.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    auto o = out.values<T>();
    for (size_t k = 0; k < o.size(); ++k) {
      o[k] = static_cast<T>(static_cast<int64_t>(k) / stride % dims[dimension]);
    }
  });
  return out;
}

// Writes `from` into `to` at offset + sum of index * stride, index running over `from`; elements
// that fall outside `to` by the per-dimension positions are dropped.
void Scatter(const Literal& from, std::span<const int64_t> low, std::span<const int64_t> step,
             Literal& to) {
  std::vector<int64_t> dims = from.shape().dims(), out_dims = to.shape().dims();
  std::vector<int64_t> strides = RowMajorStrides(out_dims);
  if (Product(dims) == 0) return;
  size_t width = static_cast<size_t>(ByteWidth(to.shape().type()));
  std::vector<int64_t> index(dims.size());
  const std::byte* source = from.data();
  do {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t position = low[d] + index[d] * step[d];
      inside &= position >= 0 && position < out_dims[d];
      offset += position * strides[d];
    }
    if (inside) std::memcpy(to.data() + static_cast<size_t>(offset) * width, source, width);
    source += width;
  } while (NextIndex(dims, index));
}

Literal Concatenate(const Instruction& i, std::span<const Literal* const> operands) {
  Literal out(i.shape());
  size_t rank = static_cast<size_t>(i.shape().rank());
  std::vector<int64_t> low(rank, 0), step(rank, 1);
  int64_t dimension = i.dimensions()[0];
  for (const Literal* operand : operands) {
    Scatter(*operand, low, step, out);
    low[dimension] += operand->shape().dim(dimension);
  }
  return out;
}

Literal Pad(const Instruction& i, const Literal& operand, const Literal& value) {
  Literal out(i.shape());
  CopyStrided(value, 0, std::vector<int64_t>(i.shape().rank(), 0), out);
  std::vector<int64_t> low, step;
  for (const PaddingDimension& p : i.attributes().Padding(Attr::kPadding)) {
    low.push_back(p.low);
    step.push_back(p.interior + 1);
  }
  Scatter(operand, low, step, out);
  return out;
}

}  // namespace

void CopyStrided(const Literal& from, int64_t offset, std::span<const int64_t> strides,
                 Literal& to) {
  std::vector<int64_t> dims = to.shape().dims();
  if (Product(dims) == 0) return;
  size_t width = static_cast<size_t>(ByteWidth(to.shape().type()));
  std::vector<int64_t> index(dims.size());
  std::byte* out = to.data();
  do {
    int64_t at = offset;
    for (size_t d = 0; d < dims.size(); ++d) at += index[d] * strides[d];
    std::memcpy(out, from.data() + static_cast<size_t>(at) * width, width);
    out += width;
  } while (NextIndex(dims, index));
}

Result<Literal> EvaluateShapeOp(const Instruction& i, std::span<const Literal* const> operands) {
  if (i.opcode() == Opcode::kIota) return Iota(i);
  const Literal& x = *operands[0];
  std::vector<int64_t> from_strides = RowMajorStrides(x.shape().dims());
  std::vector<int64_t> strides(static_cast<size_t>(i.shape().rank()), 0);
  int64_t offset = 0;
  switch (i.opcode()) {
    case Opcode::kBroadcast:
      for (size_t d = 0; d < i.dimensions().size(); ++d)
        strides[i.dimensions()[d]] = from_strides[d];
      break;
    case Opcode::kReshape: {
      Literal out(i.shape());
      std::memcpy(out.data(), x.data(), static_cast<size_t>(x.byte_size()));
      return out;
    }
    case Opcode::kTranspose:
      for (size_t d = 0; d < strides.size(); ++d) strides[d] = from_strides[i.dimensions()[d]];
      break;
    case Opcode::kSlice: {
      const auto& slices = i.attributes().Slices(Attr::kSlice);
      for (size_t d = 0; d < strides.size(); ++d) {
        strides[d] = from_strides[d] * slices[d].stride;
        offset += from_strides[d] * slices[d].start;
      }
      break;
    }
    case Opcode::kConcatenate:
      return Concatenate(i, operands);
    case Opcode::kPad:
      return Pad(i, x, *operands[1]);
    default:
      return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for it");
  }
  Literal out(i.shape());
  CopyStrided(x, offset, strides, out);
  return out;
}

}  // namespace kiln::interp
