// Transposes of products: each factor's cotangent is a product of the result's and the other
// factor.
#include <algorithm>

#include "grad/rules.h"
#include "ops/other_dimensions.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

Ints Count(int64_t first, size_t count) {
  Ints numbers(count);
  for (size_t k = 0; k < count; ++k) numbers[k] = first + static_cast<int64_t>(k);
  return numbers;
}

}  // namespace

// C[b, m, n] = sum_k A[b, m, k] B[b, n, k]: dA[b, m, k] = sum_n dC[b, m, n] B[b, n, k], and dB
// alike, each then in the order of the factor's dimensions
template <>
bool Transpose<Opcode::kDot>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  const Attributes& attributes = op->attributes();
  const Ints* batch[2] = {&attributes.IntsOf(Attr::kLhsBatchDims),
                          &attributes.IntsOf(Attr::kRhsBatchDims)};
  const Ints* summed[2] = {&attributes.IntsOf(Attr::kLhsContractingDims),
                           &attributes.IntsOf(Attr::kRhsContractingDims)};
  Ints free[2];
  for (int k : {0, 1}) {
    Ints named = *batch[k];
    named.insert(named.end(), summed[k]->begin(), summed[k]->end());
    free[k] = OtherDimensions(op->operand(k)->shape().rank(), named);
  }
  for (int k : {0, 1}) {
    Instruction *x = op->operand(k), *other = op->operand(1 - k);
    if (!reverse.IsActive(x)) continue;
    const size_t batches = batch[k]->size();
    // The result has the batch, the free dimensions of lhs, those of rhs.
    const int64_t from = static_cast<int64_t>(batches + (k == 0 ? free[0].size() : 0));
    const ElementType type = op->shape().type();
    Instruction* product = b.Add(Opcode::kDot, {cotangent.array, b.Convert(other, type)},
                                 {{Attr::kLhsBatchDims, Count(0, batches)},
                                  {Attr::kRhsBatchDims, *batch[1 - k]},
                                  {Attr::kLhsContractingDims, Count(from, free[1 - k].size())},
                                  {Attr::kRhsContractingDims, free[1 - k]}},
                                 Shape::Scalar(type));
    // It has the batch, the free dimensions of x, and the summed ones in the order of `other`.
    Ints place(static_cast<size_t>(x->shape().rank()));
    for (size_t i = 0; i < batches; ++i) {
      place[static_cast<size_t>((*batch[k])[i])] = static_cast<int64_t>(i);
    }
    for (size_t i = 0; i < free[k].size(); ++i) {
      place[static_cast<size_t>(free[k][i])] = static_cast<int64_t>(batches + i);
    }
    for (size_t i = 0; i < summed[k]->size(); ++i) {
      const int64_t theirs = (*summed[1 - k])[i];
      const auto rank =
          std::ranges::count_if(*summed[1 - k], [&](int64_t d) { return d < theirs; });
      place[static_cast<size_t>((*summed[k])[i])] =
          static_cast<int64_t>(batches + free[k].size()) + rank;
    }
    reverse.Add(x, b.Convert(b.Transpose(product, std::move(place)), x->shape().type()));
  }
  return true;
}

}  // namespace kiln::grad
