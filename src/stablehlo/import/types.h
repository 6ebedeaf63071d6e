// Types of the tree as shapes.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "stablehlo/mlir/attribute.h"
#include "stablehlo/mlir/type.h"
#include "tensor/literal.h"
#include "tensor/shape.h"

namespace kiln::stablehlo {

// Of quantised types that of the integers. UNIMPLEMENTED where Kiln has no such elements.
Result<ElementType> ElementTypeOf(const mlir::Type& element);

// The quantisation of a tensor's elements, or null.
const mlir::Quantization* QuantizationOf(const mlir::Type& type);
inline bool IsQuantized(const mlir::Type& type) { return QuantizationOf(type) != nullptr; }

// Whether a size in it is neither known nor bounded.
bool HasUnknownSize(const mlir::Type& type);

// The shape of a tensor, token, tuple or future, and with `expressed` that of the floats that
// quantised elements stand for. A future of one value is that value, one of several a tuple. Sizes
// must be known or bounded.
Result<Shape> ShapeOf(const mlir::Type& type, bool expressed = false);

// Whether a value of the shape may stand where the type is declared: sizes that the type does not
// know may be any, and where it knows a bound, any up to that.
bool Fits(const mlir::Type& type, const Shape& shape, bool expressed = false);

// The value of dense elements, integers and floats. `type` is the constant's, whose elements may be
// quantised where the attribute has integers.
Result<Literal> LiteralOf(const mlir::Attribute& attribute, const mlir::Type& type);

}  // namespace kiln::stablehlo
