// The rules of shape inference, one per row of inference.def, and their helpers. Private to the
// inference_*.cc files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ops/inference.h"

namespace kiln::rules {

// InferShape has checked the number of operands, the presence and kind of attributes, and the
// number of called computations before each rule.
#define KILN_INFERENCE(name, result, mistakes) \
  Result<Shape> Infer##name(const InferenceInput& input);
#include "ops/inference.def"
#undef KILN_INFERENCE

// "add: operands have shapes f32[2,3] and f32[3,2]": the head of every message.
std::string Describe(const InferenceInput& input);

template <typename... Args>
Status Error(const InferenceInput& input, const Args&... args) {
  return InvalidArgument(Describe(input), args...);
}

inline const Shape& OperandShape(const InferenceInput& input, int64_t i) {
  return *input.operands[i];
}

// Every operand is an array.
Status RequireArrays(const InferenceInput& input);
// Every operand is an array whose element type is in the op's mask.
Status RequireTypes(const InferenceInput& input);
// The declared shape is there; it is an array.
Status RequireDeclaredArray(const InferenceInput& input);
// Each number is in [0, rank) and none occurs twice; `what` names the list in messages.
Status RequireAxes(const InferenceInput& input, std::string_view what, const Ints& axes,
                   int64_t rank);

// The number at a position of an attribute, whose value has `plain` there.
Dimension NumberAt(const InferenceInput& input, Attr key, int64_t position, int64_t plain);
// A computed symbolic size, or UNIMPLEMENTED if the computation failed.
Result<Dimension> Symbolic(const InferenceInput& input, int64_t dimension, Result<Dimension> size);

// The called computation takes N accumulators and N elements, scalars like these, to N results.
Status RequireReducer(const InferenceInput& input, const std::vector<Shape>& scalars);

// The element type of a sum of products: the operands', or a declared wider one.
Result<ElementType> ProductType(const InferenceInput& input);

// "(f32[2], s32[])", and the first few of many.
std::string ShapeList(std::span<const Shape> shapes);

// The shape with default layouts throughout.
Shape WithoutLayout(Shape shape);

// "a float type", "pred or an integer type", ...
std::string MaskText(uint32_t mask);

}  // namespace kiln::rules
