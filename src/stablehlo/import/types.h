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

// For quantised types the integers' type. UNIMPLEMENTED for elements unknown to Kiln.
Result<ElementType> ElementTypeOf(const mlir::Type& element);

// The quantisation of a tensor's elements, or null.
const mlir::Quantization* QuantizationOf(const mlir::Type& type);
inline bool IsQuantized(const mlir::Type& type) { return QuantizationOf(type) != nullptr; }

// Whether it has a dynamic size without a bound.
bool HasUnknownSize(const mlir::Type& type);

// The shape of a tensor, token, tuple or future; with `expressed`, quantised elements have their
// float type. A future of one value is that value, a future of several a tuple. Sizes must be
// static or bounded.
Result<Shape> ShapeOf(const mlir::Type& type, bool expressed = false);

// Whether a value of the shape conforms to a declared type: dynamic sizes may be any, bounded ones
// any up to the bound.
bool Fits(const mlir::Type& type, const Shape& shape, bool expressed = false);

// The value of dense elements, integers and floats. `type` is the constant's, whose elements may be
// quantised where the attribute has integers.
Result<Literal> LiteralOf(const mlir::Attribute& attribute, const mlir::Type& type);

}  // namespace kiln::stablehlo
