#include "ir/ragged_all_to_all.h"

#include <algorithm>

namespace kiln::ir {
namespace {

constexpr int64_t kMostPieces = 64;

bool Fits(std::span<Instruction* const> operands) {
  if (operands.size() != 6 || !std::ranges::all_of(operands, [](const Instruction* operand) {
        return operand->shape().is_array() && operand->shape().is_static();
      })) {
    return false;
  }
  const Shape &input = operands[0]->shape(), &output = operands[1]->shape();
  if (input.rank() < 1 || input.rank() != output.rank()) return false;
  Shape same = output;
  same.set_dimension(0, input.dimension(0));
  if (!same.SameTypeAndDimensions(input)) return false;
  return std::ranges::all_of(operands.subspan(2), [&](const Instruction* operand) {
    const Shape& shape = operand->shape();
    return IsInteger(shape.type()) && shape.rank() == 1 && shape.dim(0) <= kMostPieces &&
           shape.dim(0) == operands[2]->shape().dim(0);
  });
}

}  // namespace

Instruction* RaggedAllToAll(Builder& b, std::span<Instruction* const> operands) {
  if (!Fits(operands)) return nullptr;
  Instruction *input = operands[0], *output = operands[1];
  const int64_t pieces = operands[2]->shape().dim(0), rank = input->shape().rank();
  if (input->shape().dim(0) == 0) return output;
  const Shape rows(ElementType::kS64, {output->shape().dimension(0)});
  Instruction* row = b.Iota(rows, 0);
  Ints inner, row_sizes = input->shape().dims();
  for (int64_t d = 1; d < rank; ++d) inner.push_back(d);
  row_sizes[0] = 1;
  for (int64_t k = 0; k < pieces; ++k) {
    auto element = [&](size_t operand) {
      Instruction* one = b.Slice(operands[operand], {{k, k + 1, 1}});
      return b.Spread(rows, b.Convert(b.Reshape(one, {}), ElementType::kS64));
    };
    // Where each row of the output is in the piece, and where the input has it.
    Instruction* place = b.Minus(row, element(4));
    Instruction* inside = b.And(b.Compare(Direction::kGe, place, b.Number(rows, 0)),
                                b.Compare(Direction::kLt, place, element(3)));
    Instruction* piece = b.Add(Opcode::kGather, {input, b.Plus(place, element(2))},
                               {{Attr::kOffsetDims, inner},
                                {Attr::kCollapsedSliceDims, Ints{0}},
                                {Attr::kStartIndexMap, Ints{0}},
                                {Attr::kIndexVectorDim, int64_t{1}},
                                {Attr::kSliceSizes, row_sizes}});
    output = b.Select(b.Broadcast(inside, output->shape().dimensions(), {0}), piece, output);
  }
  return output;
}

}  // namespace kiln::ir
