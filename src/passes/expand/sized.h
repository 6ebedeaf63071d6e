// Arrays with dynamic sizes: the form of values of bounded dimensions after expand-bounded.
#pragma once

#include <functional>
#include <vector>

#include "passes/expand/builder.h"

namespace kiln::passes::expand {

// An array as large as the bounds, and the size of each dimension: an s32[] from 0 to the bound, or
// null for the bound. Elements beyond are undefined.
struct Sized {
  ir::Instruction* array = nullptr;
  std::vector<ir::Instruction*> sizes;

  const Shape& shape() const { return array->shape(); }
  int64_t rank() const { return shape().rank(); }
  ir::Instruction* size(int64_t d) const { return sizes[static_cast<size_t>(d)]; }
};

// Bounds as constants, in tuples too.
Shape WithBounds(Shape shape);

// s32[]: the size of a dimension.
ir::Instruction* SizeOf(Builder& b, const Sized& x, int64_t d);
ir::Instruction* S32(Builder& b, int64_t value);
// min(max(x, low), high) of integer scalars.
ir::Instruction* Clamped(Builder& b, ir::Instruction* x, int64_t low, ir::Instruction* high);

// A pred for each element: whether it is defined, by some dimensions; null if all are.
ir::Instruction* IsThere(Builder& b, const Sized& x, const Ints& dimensions);
// The array with a scalar in place of undefined elements, by some dimensions.
ir::Instruction* Filled(Builder& b, const Sized& x, const Ints& dimensions, Literal scalar);
// With zeros, or, of a type without one, with zero bits.
ir::Instruction* ZeroFilled(Builder& b, const Sized& x, const Ints& dimensions);
Ints AllDimensions(const Sized& x);

// The sizes of a result with dimensions from the operands. place(o, d) is the result's dimension
// for dimension d of operand o, or -1. Of several sizes for one dimension the smallest counts.
using Place = std::function<int64_t(size_t o, int64_t d)>;
std::vector<ir::Instruction*> SizesBy(Builder& b, const std::vector<Sized>& operands, int64_t rank,
                                      const Place& place);

// The instruction once more, on arrays, to arrays of the bounds.
ir::Instruction* OnArrays(Builder& b, const ir::Instruction* i,
                          std::vector<ir::Instruction*> operands);
std::vector<ir::Instruction*> ArraysOf(const std::vector<Sized>& operands);

// The replacement of an op on such operands: its result, or the elements of its result. Unsupported
// ops are UNIMPLEMENTED.
using SizedOp = Result<std::vector<Sized>> (*)(Builder& b, const ir::Instruction* i,
                                               const std::vector<Sized>& operands);
Status HasNoCode(const ir::Instruction* i, const std::vector<Sized>& operands);

// sized_moves.cc
//
// Whether the value, an integer scalar, is known to be this size.
bool IsSize(const ir::Instruction& i, int64_t size);
Result<std::vector<Sized>> SizedReshape(Builder& b, const ir::Instruction* i,
                                        const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedReverse(Builder& b, const ir::Instruction* i,
                                        const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedConcatenate(Builder& b, const ir::Instruction* i,
                                            const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedSetDimensionSize(Builder& b, const ir::Instruction* i,
                                                 const std::vector<Sized>& operands);
// sized_slices.cc
Result<std::vector<Sized>> SizedDynamicSlice(Builder& b, const ir::Instruction* i,
                                             const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedDynamicUpdateSlice(Builder& b, const ir::Instruction* i,
                                                   const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedGather(Builder& b, const ir::Instruction* i,
                                       const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedScatter(Builder& b, const ir::Instruction* i,
                                        const std::vector<Sized>& operands);
// sized_folds.cc
Result<std::vector<Sized>> SizedReduce(Builder& b, const ir::Instruction* i,
                                       const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedDot(Builder& b, const ir::Instruction* i,
                                    const std::vector<Sized>& operands);
Result<std::vector<Sized>> SizedSort(Builder& b, const ir::Instruction* i,
                                     const std::vector<Sized>& operands);

}  // namespace kiln::passes::expand
