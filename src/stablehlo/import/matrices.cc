#include "stablehlo/import/matrices.h"

#include <algorithm>
#include <limits>

namespace kiln::stablehlo {

using ir::Computation;
using ir::Instruction;

int64_t ColumnsOfALoop(int64_t columns) {
  constexpr int64_t kLeast = 32, kMostLoops = 32;
  return std::max(kLeast, (columns + kMostLoops - 1) / kMostLoops);
}

int64_t FirstHalf(int64_t columns, int64_t of_a_loop) {
  if (columns <= of_a_loop) return columns;
  return (columns / 2 + of_a_loop - 1) / of_a_loop * of_a_loop;
}

Instruction* Along(Builder& b, const Shape& shape, Instruction* x, Ints dimensions) {
  return b.Add(Opcode::kBroadcast, {x}, {{Attr::kDimensions, std::move(dimensions)}}, shape);
}

Instruction* Places(Builder& b, const Ints& sizes, int64_t dimension) {
  const Shape shape = ArrayShape(ElementType::kS32, sizes);
  return b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, dimension}}, shape);
}

Instruction* Block(Builder& b, Instruction* x, int64_t first_row, int64_t last_row,
                   int64_t first_column, int64_t last_column) {
  if (!x) return nullptr;
  return b.Slice(
      x, {{0, x->shape().dim(0), 1}, {first_row, last_row, 1}, {first_column, last_column, 1}});
}

Instruction* ColumnAt(Builder& b, Instruction* x, Instruction* i) {
  if (!x) return nullptr;
  const int64_t batch = x->shape().dim(0), rows = x->shape().dim(1);
  Instruction* zero = b.Scalar(ElementType::kS32, 0);
  return b.Reshape(b.Add(Opcode::kDynamicSlice, {x, zero, zero, i},
                         {{Attr::kDynamicSliceSizes, Ints{batch, rows, 1}}}),
                   Ints{batch, rows});
}

Instruction* RowAt(Builder& b, Instruction* x, Instruction* i) {
  if (!x) return nullptr;
  Ints sizes = x->shape().dims();
  Instruction* zero = b.Scalar(ElementType::kS32, 0);
  Values operands = {x, zero, i};
  if (sizes.size() == 3) operands.push_back(zero);
  sizes[1] = 1;
  Instruction* row =
      b.Add(Opcode::kDynamicSlice, std::move(operands), {{Attr::kDynamicSliceSizes, sizes}});
  sizes.erase(sizes.begin() + 1);
  return b.Reshape(row, sizes);
}

Instruction* Magnitude(Builder& b, Instruction* x) {
  if (!x) return nullptr;
  auto abs = [&](Instruction* part) { return b.Add(Opcode::kAbs, {part}); };
  const bool is_complex = IsComplex(x->shape().type());
  Instruction* size =
      is_complex
          ? b.Add(Opcode::kAdd, {abs(b.Add(Opcode::kReal, {x})), abs(b.Add(Opcode::kImag, {x}))})
          : abs(x);
  const Shape sizes = ArrayShape(PartOf(x->shape().type()), x->shape().dims());
  return b.Select(b.Compare(Direction::kEq, size, size), size,
                  b.Number(sizes, std::numeric_limits<double>::infinity()));
}

Instruction* Product(Builder& b, Instruction* x, Instruction* y) {
  return b.Add(Opcode::kDot, {x, y},
               {{Attr::kLhsBatchDims, Ints{0}},
                {Attr::kRhsBatchDims, Ints{0}},
                {Attr::kLhsContractingDims, Ints{2}},
                {Attr::kRhsContractingDims, Ints{1}}});
}

Values Loop(Builder& b, Values state, int64_t count,
            const std::function<Values(Builder&, Instruction*, const Values&)>& turn) {
  const size_t size = state.size();
  state.push_back(b.Scalar(ElementType::kS32, 0));
  Instruction* initial = b.Tuple(std::move(state));
  if (!initial) return Values(size, nullptr);
  ir::Module& module = *b.computation()->parent();
  auto parts_of = [&](Builder& inside) {
    Instruction* parameter = inside.Parameter(initial->shape());
    Values parts;
    for (size_t k = 0; k <= size; ++k) {
      parts.push_back(inside.Element(parameter, static_cast<int64_t>(k)));
    }
    return parts;
  };
  Builder c(module.AddComputation("condition"));
  c.computation()->set_root(c.Compare(Direction::kLt, parts_of(c).back(),
                                      c.Scalar(ElementType::kS32, static_cast<double>(count))));
  Builder body(module.AddComputation("body"));
  Values parts = parts_of(body);
  Instruction* number = parts.back();
  parts.pop_back();
  Values next = turn(body, number, parts);
  next.push_back(body.Add(Opcode::kAdd, {number, body.Scalar(ElementType::kS32, 1)}));
  body.computation()->set_root(body.Tuple(std::move(next)));
  for (const Builder* made : {&c, &body}) {
    if (!made->status().ok()) b.Fail(made->status());
  }
  Instruction* loop =
      b.Add(Opcode::kWhile, {initial}, {}, std::nullopt, {c.computation(), body.computation()});
  Values results;
  for (size_t k = 0; k < size; ++k) results.push_back(b.Element(loop, static_cast<int64_t>(k)));
  return results;
}

}  // namespace kiln::stablehlo
