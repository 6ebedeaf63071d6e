#include "stablehlo/import/types.h"

#include <cstring>

#include "base/strings.h"
#include "stablehlo/mlir/floats.h"

namespace kiln::stablehlo {
namespace {

using mlir::Type;
using mlir::TypeKind;

Status NoSuchElement(const Type& element) {
  return Unimplemented("the element type ", element, " is not implemented");
}

Result<ElementType> IntegerType(const Type& element) {
  if (element.is_bool()) return ElementType::kPred;
  const bool is_unsigned = element.signedness == mlir::Signedness::kUnsigned;
  std::optional<ElementType> type = TypeByName(Cat(is_unsigned ? "u" : "s", element.width));
  if (!type) return NoSuchElement(element);
  return *type;
}

Result<Dimension> DimensionOf(const Type& type, size_t d) {
  const int64_t size = type.dimensions[d];
  if (size != mlir::kDynamic) return Dimension(size);
  if (!type.bounds.empty() && type.bounds[d] != mlir::kDynamic) {
    return Dimension::Bounded(type.bounds[d]);
  }
  return Unimplemented("the size of dimension ", d, " of ", type,
                       " is not known; shapes of the arguments may tell it");
}

Result<ElementType> ElementsOf(const Type& tensor, bool expressed) {
  const mlir::Quantization* quantization = expressed ? QuantizationOf(tensor) : nullptr;
  return ElementTypeOf(quantization ? *quantization->expressed : *tensor.element);
}

}  // namespace

Result<ElementType> ElementTypeOf(const Type& element) {
  switch (element.kind) {
    case TypeKind::kInteger:
      return IntegerType(element);
    case TypeKind::kIndex:
      return ElementType::kS64;
    case TypeKind::kFloat: {
      std::optional<ElementType> type = TypeByName(ToLower(FormatOf(element.float_kind).name));
      if (!type) return NoSuchElement(element);
      return *type;
    }
    case TypeKind::kComplex:
      if (element.element->is_float(mlir::FloatKind::kF32)) return ElementType::kC64;
      if (element.element->is_float(mlir::FloatKind::kF64)) return ElementType::kC128;
      return NoSuchElement(element);
    case TypeKind::kQuantized:
      if (element.quantization.block_sizes.empty() && element.quantization.axes.size() <= 1) {
        return ElementTypeOf(*element.quantization.storage);
      }
      return Unimplemented("quantisation by blocks of several axes, ", element,
                           ", is not implemented");
    default:
      return NoSuchElement(element);
  }
}

const mlir::Quantization* QuantizationOf(const Type& type) {
  if (!type.is_tensor() || !type.element->is(TypeKind::kQuantized)) return nullptr;
  return &type.element->quantization;
}

bool HasUnknownSize(const Type& type) {
  if (type.is(TypeKind::kUnrankedTensor)) return true;
  for (const Type* member : type.inputs) {
    if (HasUnknownSize(*member)) return true;
  }
  if (!type.is_tensor()) return false;
  for (size_t d = 0; d < type.dimensions.size(); ++d) {
    const bool bounded = !type.bounds.empty() && type.bounds[d] != mlir::kDynamic;
    if (type.dimensions[d] == mlir::kDynamic && !bounded) return true;
  }
  return false;
}

Result<Shape> ShapeOf(const Type& type, bool expressed) {
  switch (type.kind) {
    case TypeKind::kToken:
      return Shape::Token();
    case TypeKind::kFuture:
      if (type.inputs.size() == 1) return ShapeOf(*type.inputs[0], expressed);
      [[fallthrough]];
    case TypeKind::kTuple: {
      std::vector<Shape> members;
      for (const Type* member : type.inputs) {
        KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOf(*member, expressed));
        members.push_back(std::move(shape));
      }
      Shape tuple = Shape::Tuple(std::move(members));
      KILN_RETURN_IF_ERROR(ValidateShape(tuple));
      return tuple;
    }
    case TypeKind::kTensor:
      break;
    default:
      return Unimplemented("the type ", type, " is not implemented");
  }
  KILN_ASSIGN_OR_RETURN(ElementType element, ElementsOf(type, expressed));
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < type.dimensions.size(); ++d) {
    KILN_ASSIGN_OR_RETURN(Dimension dimension, DimensionOf(type, d));
    dimensions.push_back(dimension);
  }
  Shape shape(element, std::move(dimensions));
  KILN_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

bool Fits(const Type& type, const Shape& shape, bool expressed) {
  switch (type.kind) {
    case TypeKind::kToken:
      return shape.is_token();
    case TypeKind::kFuture:
      if (type.inputs.size() == 1) return Fits(*type.inputs[0], shape, expressed);
      [[fallthrough]];
    case TypeKind::kTuple: {
      bool fits = shape.is_tuple() && shape.elements().size() == type.inputs.size();
      for (size_t i = 0; fits && i < type.inputs.size(); ++i) {
        fits = Fits(*type.inputs[i], shape.elements()[i], expressed);
      }
      return fits;
    }
    case TypeKind::kTensor:
    case TypeKind::kUnrankedTensor:
      break;
    default:
      return false;
  }
  Result<ElementType> element = ElementsOf(type, expressed);
  if (!shape.is_array() || !element.ok() || *element != shape.type()) return false;
  if (type.is(TypeKind::kUnrankedTensor)) return true;
  if (shape.rank() != type.rank()) return false;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int64_t declared = type.dimensions[static_cast<size_t>(d)];
    const Dimension& size = shape.dimension(d);
    if (declared != mlir::kDynamic) {
      if (size != Dimension(declared)) return false;
    } else if (!type.bounds.empty()) {
      const int64_t bound = type.bounds[static_cast<size_t>(d)];
      if (bound != mlir::kDynamic && size.size() > bound) return false;
    }
  }
  return true;
}

Result<Literal> LiteralOf(const mlir::Attribute& attribute, const Type& type) {
  KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOf(type));
  if (!shape.is_array() || !shape.is_static()) {
    return InvalidArgument("found a constant of ", type, "; expected a tensor of known sizes");
  }
  const ElementType element = shape.type();
  if (attribute.is(mlir::AttributeKind::kElements)) {
    KILN_ASSIGN_OR_RETURN(Shape found, ShapeOf(*attribute.type));
    const int64_t count = found.num_elements();
    const int64_t bytes = static_cast<int64_t>(attribute.elements().size());
    const bool whole = attribute.splat || bytes == count * ByteWidth(found.type());
    const bool same =
        IsQuantized(type) ? ByteWidth(found.type()) == ByteWidth(element) : found.type() == element;
    if (found.dims() != shape.dims() || !same || !whole) {
      return InvalidArgument("found elements of ", *attribute.type, " for a constant of ", type);
    }
    if (attribute.owner && shape.byte_size() == bytes) {
      return Literal::Borrowed(shape, reinterpret_cast<const std::byte*>(attribute.lent.data()),
                               attribute.owner);
    }
    // All elements are equal: the value is one of them, broadcast by the caller.
    Literal literal(attribute.splat ? Shape::Scalar(element) : shape);
    if (literal.byte_size() != bytes) {
      return InvalidArgument("found ", bytes, " bytes for a constant of ", type);
    }
    if (bytes > 0)
      std::memcpy(literal.data(), attribute.elements().data(), static_cast<size_t>(bytes));
    return literal;
  }
  switch (attribute.kind) {
    case mlir::AttributeKind::kBool:
    case mlir::AttributeKind::kInteger: {
      const int64_t number = *mlir::IntOf(attribute);
      if (IsPred(element)) return Literal::Scalar<bool>(element, number != 0);
      if (!IsInteger(element)) break;
      // The low bytes are the number in a narrower type.
      Literal literal(Shape::Scalar(element));
      std::memcpy(literal.data(), &number, static_cast<size_t>(literal.byte_size()));
      return literal;
    }
    case mlir::AttributeKind::kFloat:
      if (IsFloat(element)) return Literal::ScalarOf(element, attribute.number);
      break;
    default:
      break;
  }
  return InvalidArgument("found no value of a constant of ", type);
}

}  // namespace kiln::stablehlo
