#include "interp/shape_ops.h"

#include <algorithm>

#include "base/strings.h"
#include "interp/narrow.h"
#include "interp/strided.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// A walk over part of an array: its first element, and the stride of each step.
struct View {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

template <typename Word>
void CopyWords(const std::byte* from, const View& source, std::byte* to, const View& target,
               std::span<const int64_t> dims) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(Word));
  from += source.offset * kWidth;
  to += target.offset * kWidth;
  if (dims.empty()) {
    std::memcpy(to, from, sizeof(Word));
    return;
  }
  if (std::ranges::find(dims, 0) != dims.end()) return;
  const int64_t count = dims.back(), from_step = source.strides.back() * kWidth,
                to_step = target.strides.back() * kWidth;
  ForEachRow(dims, source.strides, target.strides, [&](int64_t x, int64_t y) {
    const std::byte* read = from + x * kWidth;
    std::byte* written = to + y * kWidth;
    if (from_step == kWidth && to_step == kWidth) {
      std::memcpy(written, read, static_cast<size_t>(count) * sizeof(Word));
      return;
    }
    if (from_step == 0 && to_step == kWidth) {
      Word word;
      std::memcpy(&word, read, sizeof(Word));
      for (int64_t k = 0; k < count; ++k) std::memcpy(written + k * kWidth, &word, sizeof(Word));
      return;
    }
    for (int64_t k = 0; k < count; ++k) {
      std::memcpy(written + k * to_step, read + k * from_step, sizeof(Word));
    }
  });
}

// to[target of index] = from[source of index] for every index of `dims`.
Status Copy(const Instruction& i, const Literal& from, const View& source, Literal& to,
            const View& target, std::span<const int64_t> dims) {
  switch (ByteWidth(to.shape().type())) {
    case 1:
      CopyWords<uint8_t>(from.data(), source, to.data(), target, dims);
      return OkStatus();
    case 2:
      CopyWords<uint16_t>(from.data(), source, to.data(), target, dims);
      return OkStatus();
    case 4:
      CopyWords<uint32_t>(from.data(), source, to.data(), target, dims);
      return OkStatus();
    case 8:
      CopyWords<uint64_t>(from.data(), source, to.data(), target, dims);
      return OkStatus();
    case 16:
      CopyWords<std::complex<double>>(from.data(), source, to.data(), target, dims);
      return OkStatus();
    default:
      return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for shape ",
                           i.shape());
  }
}

// The result's elements in order, read from the operand by `source`.
Result<Literal> Gather(const Instruction& i, const Literal& from, const View& source) {
  Literal out(i.shape());
  std::vector<int64_t> dims = out.shape().dims();
  KILN_RETURN_IF_ERROR(Copy(i, from, source, out, {0, RowMajorStrides(dims)}, dims));
  return out;
}

Literal Iota(const Instruction& i) {
  Literal out(i.shape());
  std::vector<int64_t> dims = i.shape().dims();
  std::vector<int64_t> steps(dims.size(), 0);
  steps[static_cast<size_t>(i.attributes().Int(Attr::kIotaDimension))] = 1;
  VisitType(i.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    auto o = out.values<T>();
    size_t next = 0;
    ForEachOffset(dims, steps, [&](int64_t count) { o[next++] = static_cast<T>(count); });
  });
  return out;
}

Result<Literal> Broadcast(const Instruction& i, const Literal& x) {
  std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  View source{0, std::vector<int64_t>(static_cast<size_t>(i.shape().rank()), 0)};
  for (size_t d = 0; d < strides.size(); ++d) source.strides[i.dimensions()[d]] = strides[d];
  return Gather(i, x, source);
}

Result<Literal> Reverse(const Instruction& i, const Literal& x) {
  std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  View source{0, strides};
  for (int64_t d : i.dimensions()) {
    // A dimension of size 0 has no last element.
    source.offset += strides[d] * std::max<int64_t>(x.shape().dim(d) - 1, 0);
    source.strides[d] = -strides[d];
  }
  return Gather(i, x, source);
}

// Bit k of an array of elements of `width` bits each, in as many bytes as needed. The lowest bits
// come first.
struct Bits {
  explicit Bits(ElementType type)
      : width(IsPred(type) ? 1 : BitWidth(type)), bytes(ByteWidth(type)) {}
  int64_t ByteOf(int64_t bit) const { return bit / width * bytes + bit % width / 8; }
  int64_t width, bytes;
};

// The new dimension is the last: bits are in the same order before and after.
Literal BitcastConvert(const Instruction& i, const Literal& x) {
  Literal out(i.shape());
  Bits from(x.shape().type()), to(i.shape().type());
  if (from.width >= 8 && to.width >= 8) {
    if (out.byte_size() > 0) {
      std::memcpy(out.data(), x.data(), static_cast<size_t>(out.byte_size()));
    }
    return out;
  }
  for (int64_t bit = 0; bit < x.shape().num_elements() * from.width; ++bit) {
    auto source = static_cast<unsigned>(x.data()[from.ByteOf(bit)]);
    unsigned value = source >> (bit % from.width % 8) & 1;
    out.data()[to.ByteOf(bit)] |= static_cast<std::byte>(value << (bit % to.width % 8));
  }
  Normalise(out.shape().type(), out.data(), out.shape().num_elements());
  return out;
}

Result<Literal> Transpose(const Instruction& i, const Literal& x) {
  std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  View source;
  for (int64_t d : i.dimensions()) source.strides.push_back(strides[d]);
  return Gather(i, x, source);
}

Result<Literal> Slice(const Instruction& i, const Literal& x) {
  std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  View source;
  const auto& slices = i.attributes().Slices(Attr::kSlice);
  for (size_t d = 0; d < strides.size(); ++d) {
    source.offset += strides[d] * slices[d].start;
    // An unused stride may be any number.
    bool steps = i.shape().dim(static_cast<int64_t>(d)) > 1;
    source.strides.push_back(steps ? strides[d] * slices[d].stride : 0);
  }
  return Gather(i, x, source);
}

Result<Literal> Concatenate(const Instruction& i, std::span<const Literal* const> operands) {
  Literal out(i.shape());
  View target{0, RowMajorStrides(i.shape().dims())};
  int64_t along = i.dimensions()[0];
  for (const Literal* operand : operands) {
    std::vector<int64_t> dims = operand->shape().dims();
    KILN_RETURN_IF_ERROR(Copy(i, *operand, {0, RowMajorStrides(dims)}, out, target, dims));
    target.offset += dims[along] * target.strides[along];
  }
  return out;
}

Result<Literal> Pad(const Instruction& i, const Literal& x, const Literal& value) {
  std::vector<int64_t> out_dims = i.shape().dims();
  KILN_ASSIGN_OR_RETURN(Literal out,
                        Gather(i, value, {0, std::vector<int64_t>(out_dims.size(), 0)}));
  // The range of the operand's positions inside the result, dimension by dimension. The amounts may
  // be as large as an int64, so their products need more.
  using Big = __int128;
  View source, target;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  std::vector<int64_t> out_strides = RowMajorStrides(out_dims);
  const auto& padding = i.attributes().Padding(Attr::kPadding);
  for (size_t d = 0; d < strides.size(); ++d) {
    Big low = padding[d].low, step = Big{padding[d].interior} + 1;
    Big first = low < 0 ? (-low + step - 1) / step : 0;
    Big room = out_dims[d] - low;
    Big limit = std::min<Big>(x.shape().dim(static_cast<int64_t>(d)),
                              room > 0 ? (room + step - 1) / step : 0);
    if (first >= limit) return out;
    dims.push_back(static_cast<int64_t>(limit - first));
    source.offset += static_cast<int64_t>(first) * strides[d];
    source.strides.push_back(strides[d]);
    target.offset += static_cast<int64_t>(low + first * step) * out_strides[d];
    target.strides.push_back(dims.back() > 1 ? static_cast<int64_t>(step) * out_strides[d] : 0);
  }
  KILN_RETURN_IF_ERROR(Copy(i, x, source, out, target, dims));
  return out;
}

}  // namespace

Result<Literal> EvaluateShapeOp(const Instruction& i, std::span<const Literal* const> operands) {
  switch (i.opcode()) {
    case Opcode::kIota:
      return Iota(i);
    case Opcode::kBroadcast:
      return Broadcast(i, *operands[0]);
    case Opcode::kBitcastConvert:
      return BitcastConvert(i, *operands[0]);
    case Opcode::kConcatenate:
      return Concatenate(i, operands);
    case Opcode::kGetDimensionSize: {
      int64_t size = operands[0]->shape().dim(i.dimensions()[0]);
      return Literal::Scalar(ElementType::kS32, static_cast<int32_t>(size));
    }
    case Opcode::kPad:
      return Pad(i, *operands[0], *operands[1]);
    case Opcode::kBitcast:
    case Opcode::kReshape: {
      Literal out(i.shape());
      if (out.byte_size() > 0) {
        std::memcpy(out.data(), operands[0]->data(), static_cast<size_t>(out.byte_size()));
      }
      if (out.shape().type() != operands[0]->shape().type()) {
        Normalise(out.shape().type(), out.data(), out.shape().num_elements());
      }
      return out;
    }
    case Opcode::kReverse:
      return Reverse(i, *operands[0]);
    case Opcode::kSlice:
      return Slice(i, *operands[0]);
    case Opcode::kTranspose:
      return Transpose(i, *operands[0]);
    default:
      return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for it");
  }
}

}  // namespace kiln::interp
