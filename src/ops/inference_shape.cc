// Leaves, and ops that only move elements.
#include <algorithm>

#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

// More parameters than any program has; a larger number is an error.
constexpr int64_t kMaxParameters = int64_t{1} << 20;

std::string Entry(std::string_view what, int64_t i) { return Cat("; ", what, " of dimension ", i); }

Status CannotYet(const InferenceInput& input, int64_t dimension) {
  return Unimplemented(Describe(input), "; dimension ", dimension,
                       " is not a constant, and can only be taken whole");
}

// The size of low + operand + high with `interior` between each pair, or nothing on overflow.
bool PaddedSize(int64_t size, const PaddingDimension& pad, int64_t* result) {
  int64_t gaps = 0;
  return !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), pad.interior, &gaps) &&
         !__builtin_add_overflow(size, gaps, result) &&
         !__builtin_add_overflow(*result, pad.low, result) &&
         !__builtin_add_overflow(*result, pad.high, result);
}

// The product of the dimensions, and the bounded ones, sorted.
struct Elements {
  Dimension product = 1;
  std::vector<int64_t> bounds;
  bool operator==(const Elements&) const = default;
};

Result<Elements> ElementsOf(const Shape& shape) {
  Elements elements;
  // ValidateShape has bounded the product of every valid shape.
  int64_t constant = 1;
  for (const Dimension& d : shape.dimensions()) {
    if (d.is_constant()) {
      constant *= d.size();
    } else if (d.is_bounded()) {
      elements.bounds.push_back(d.size());
    } else {
      KILN_ASSIGN_OR_RETURN(elements.product, Dimension::Product(elements.product, d));
    }
  }
  KILN_ASSIGN_OR_RETURN(elements.product, Dimension::Product(elements.product, constant));
  std::sort(elements.bounds.begin(), elements.bounds.end());
  return elements;
}

// Whether there are as many elements, or bytes, in both.
Result<bool> EquallyMany(const Shape& a, const Shape& b, bool bytes) {
  if (a.is_static() && b.is_static()) {
    return bytes ? a.byte_size() == b.byte_size() : a.num_elements() == b.num_elements();
  }
  KILN_ASSIGN_OR_RETURN(Elements left, ElementsOf(a));
  KILN_ASSIGN_OR_RETURN(Elements right, ElementsOf(b));
  if (bytes) {
    KILN_ASSIGN_OR_RETURN(left.product, Dimension::Product(left.product, ByteWidth(a.type())));
    KILN_ASSIGN_OR_RETURN(right.product, Dimension::Product(right.product, ByteWidth(b.type())));
  }
  return left == right;
}

// size + low + high + interior * (size - 1): for symbolic sizes at least one element is assumed if
// the interior is padded.
Result<Dimension> SymbolicPaddedSize(const Dimension& size, const Dimension& low,
                                     const Dimension& high, int64_t interior) {
  KILN_ASSIGN_OR_RETURN(Dimension gaps, Dimension::Difference(size, 1));
  KILN_ASSIGN_OR_RETURN(gaps, Dimension::Product(gaps, interior));
  KILN_ASSIGN_OR_RETURN(Dimension sum, Dimension::Sum(size, gaps));
  KILN_ASSIGN_OR_RETURN(sum, Dimension::Sum(sum, low));
  return Dimension::Sum(sum, high);
}

// ceil((limit - start) / stride).
Result<Dimension> SymbolicSliceSize(const Dimension& start, const Dimension& limit,
                                    int64_t stride) {
  KILN_ASSIGN_OR_RETURN(Dimension span, Dimension::Difference(limit, start));
  KILN_ASSIGN_OR_RETURN(span, Dimension::Sum(span, stride - 1));
  return Dimension::Quotient(span, stride);
}

}  // namespace

Result<Shape> InferDeclared(const InferenceInput& input) {
  if (!input.declared) return Error(input, ": the result's shape is missing");
  KILN_RETURN_IF_ERROR(ValidateShape(*input.declared).WithContext(OpcodeName(input.opcode)));
  if (input.opcode == Opcode::kConstant && !input.declared->is_static()) {
    return Error(input, ": shape is ", *input.declared, "; every dimension must be a number");
  }
  int64_t number = input.attributes.Int(Attr::kParameterNumber);
  if (number < 0 || number >= kMaxParameters) {
    return Error(input, ": parameter_number is ", number, "; expected 0 to below ", kMaxParameters);
  }
  return *input.declared;
}

Result<Shape> InferIota(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  const Shape& shape = *input.declared;
  uint32_t mask = InfoOf(input.opcode).types;
  if (!(TypeMaskOf(shape.type()) & mask)) {
    return Error(input, ": shape is ", shape, "; the element type must be ", MaskText(mask));
  }
  int64_t dimension = input.attributes.Int(Attr::kIotaDimension);
  if (dimension < 0 || dimension >= shape.rank()) {
    return Error(input, ": shape is ", shape, "; iota_dimension is ", dimension,
                 "; expected a dimension from 0 to below ", shape.rank());
  }
  return WithoutLayout(shape);
}

Result<Shape> InferBitcastConvert(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  const Shape& operand = OperandShape(input, 0);
  ElementType from = operand.type(), to = input.declared->type();
  auto bits = [](ElementType type) { return IsPred(type) ? 1 : BitWidth(type); };
  int64_t narrow = std::min(bits(from), bits(to)), wide = std::max(bits(from), bits(to));
  if (wide % narrow != 0) {
    return Error(input, "; ", wide, " bits are no multiple of the ", narrow, " of ",
                 TypeName(bits(from) < bits(to) ? from : to));
  }
  std::vector<Dimension> dimensions = operand.dimensions();
  if (bits(to) < bits(from)) {
    dimensions.push_back(wide / narrow);
  } else if (bits(to) > bits(from)) {
    if (dimensions.empty() || dimensions.back() != Dimension(wide / narrow)) {
      return Error(input, "; the last dimension must be of size ", wide / narrow,
                   ", to be one element of ", TypeName(to));
    }
    dimensions.pop_back();
  }
  return Shape(to, std::move(dimensions));
}

Result<Shape> InferBroadcast(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  const Shape& operand = OperandShape(input, 0);
  const Shape& result = *input.declared;
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  if (static_cast<int64_t>(dimensions.size()) != operand.rank()) {
    return Error(input, "; dimensions has ", dimensions.size(), " entries; expected ",
                 operand.rank());
  }
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, result.rank()));
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const Dimension& to = result.dimension(dimensions[i]);
    if (operand.dimension(i) != to) {
      return Error(input, "; its dimension ", i, " becomes dimension ", dimensions[i],
                   " of the result, of size ", to, "; they must be equal");
    }
  }
  Shape shape = WithoutLayout(result);
  shape.set_type(operand.type());
  return shape;
}

Result<Shape> InferConcatenate(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& first = OperandShape(input, 0);
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  if (dimensions.size() != 1) {
    return Error(input, "; dimensions has ", dimensions.size(), " entries; expected 1");
  }
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, first.rank()));
  int64_t along = dimensions[0];
  Shape result = WithoutLayout(first);
  bool bounded = first.dimension(along).is_bounded();
  for (size_t i = 1; i < input.operands.size(); ++i) {
    const Shape& operand = *input.operands[i];
    bool fits = operand.type() == first.type() && operand.rank() == first.rank();
    for (int64_t d = 0; fits && d < first.rank(); ++d) {
      fits = d == along || operand.dimension(d) == first.dimension(d);
    }
    if (!fits) return Error(input, "; they must be equal but for dimension ", along);
    bounded |= operand.dimension(along).is_bounded();
    if (operand.dimension(along).is_symbolic() || result.dimension(along).is_symbolic()) {
      if (bounded) return CannotYet(input, along);
      KILN_ASSIGN_OR_RETURN(Dimension sum, Symbolic(input, along,
                                                    Dimension::Sum(result.dimension(along),
                                                                   operand.dimension(along))));
      result.set_dimension(along, sum);
      continue;
    }
    int64_t size = 0;
    if (__builtin_add_overflow(result.dim(along), operand.dim(along), &size)) {
      return Error(input, "; dimension ", along, " of the result does not fit in an int64");
    }
    result.set_dimension(along, bounded ? Dimension::Bounded(size) : Dimension(size));
  }
  return result;
}

Result<Shape> InferGetDimensionSize(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  if (dimensions.size() != 1) {
    return Error(input, "; dimensions has ", dimensions.size(), " entries; expected 1");
  }
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, operand.rank()));
  const Dimension& dimension = operand.dimension(dimensions[0]);
  if (dimension.size() > INT32_MAX) {
    return Error(input, "; the size of dimension ", dimensions[0], " does not fit in an s32");
  }
  return Shape::Scalar(ElementType::kS32);
}

// A result declared with the bound as a constant has that size, and the operand must have it, too.
Result<Shape> InferSetDimensionSize(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  if (dimensions.size() != 1) {
    return Error(input, "; dimensions has ", dimensions.size(), " entries; expected 1");
  }
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, operand.rank()));
  if (OperandShape(input, 1) != Shape::Scalar(ElementType::kS32)) {
    return Error(input, "; the size must be s32[]");
  }
  const Dimension& dimension = operand.dimension(dimensions[0]);
  if (dimension.is_symbolic()) {
    return Error(input, "; dimension ", dimension, " has no bound");
  }
  Dimension size = Dimension::Bounded(dimension.size());
  const Shape* declared = input.declared;
  if (declared && declared->rank() == operand.rank() &&
      declared->dimension(dimensions[0]) == Dimension(dimension.size())) {
    size = dimension.size();
  }
  Shape shape = WithoutLayout(operand);
  shape.set_dimension(dimensions[0], size);
  return shape;
}

Result<Shape> InferPad(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  const Shape& value = OperandShape(input, 1);
  if (!value.is_scalar() || value.type() != operand.type()) {
    return Error(input, "; the padding value must be a scalar of the operand's type");
  }
  const auto& padding = input.attributes.Padding(Attr::kPadding);
  if (static_cast<int64_t>(padding.size()) != operand.rank()) {
    return Error(input, "; padding has ", padding.size(), " entries; expected ", operand.rank());
  }
  Shape result = WithoutLayout(operand);
  for (int64_t i = 0; i < operand.rank(); ++i) {
    if (padding[i] == PaddingDimension{}) continue;
    if (operand.dimension(i).is_bounded()) return CannotYet(input, i);
    if (padding[i].interior < 0) {
      return Error(input, Entry("interior padding", i), " is ", padding[i].interior,
                   "; it must not be negative");
    }
    const Dimension low = NumberAt(input, Attr::kPadding, 3 * i, padding[i].low);
    const Dimension high = NumberAt(input, Attr::kPadding, 3 * i + 1, padding[i].high);
    if (operand.dimension(i).is_symbolic() || low.is_symbolic() || high.is_symbolic()) {
      KILN_ASSIGN_OR_RETURN(
          Dimension padded,
          Symbolic(input, i,
                   SymbolicPaddedSize(operand.dimension(i), low, high, padding[i].interior)));
      if (padded.is_constant() && padded.size() < 0) {
        return Error(input, Entry("padding", i), " leaves ", padded.size(), " elements");
      }
      result.set_dimension(i, padded);
      continue;
    }
    int64_t size = 0;
    if (!PaddedSize(operand.dim(i), padding[i], &size)) {
      return Error(input, "; dimension ", i, " of the result does not fit in an int64");
    }
    if (size < 0) {
      return Error(input, Entry("padding", i), " leaves ", size,
                   " elements; it must not cut off more than there are");
    }
    result.set_dimension(i, size);
  }
  return result;
}

Result<Shape> InferReshape(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  const Shape& operand = OperandShape(input, 0);
  Shape result = WithoutLayout(*input.declared);
  // A bitcast may reinterpret the bytes as another type.
  const bool bytes = input.opcode == Opcode::kBitcast;
  Result<bool> fits = EquallyMany(operand, result, bytes);
  if (!fits.ok()) {
    return Unimplemented(Describe(input), "; the result is ", *input.declared, "; ",
                         fits.status().message());
  }
  if (!*fits) {
    return Error(
        input, "; the result is ", *input.declared, "; they must have equally many ",
        bytes ? "bytes" : "elements",
        operand.is_static() && result.is_static() ? "" : ", with the same symbols and bounds");
  }
  if (!bytes) result.set_type(operand.type());
  return result;
}

namespace {

Status SetSymbolicSlice(const InferenceInput& input, int64_t i, Shape& result) {
  const SliceDimension& s = input.attributes.Slices(Attr::kSlice)[static_cast<size_t>(i)];
  const Dimension size = result.dimension(i);
  const Dimension* to = input.attributes.SymbolicAt(Attr::kSlice, 3 * i + 1);
  const Dimension start = NumberAt(input, Attr::kSlice, 3 * i, s.start);
  const Dimension limit = to                                    ? *to
                          : s.limit == -1 && size.is_symbolic() ? size
                                                                : Dimension(s.limit);
  if (s.stride < 1) {
    return Error(input, Entry("stride", i), " is ", s.stride, "; it must be at least 1");
  }
  auto negative = [](const Dimension& d) { return d.is_constant() && d.size() < 0; };
  KILN_ASSIGN_OR_RETURN(Dimension span, Symbolic(input, i, Dimension::Difference(limit, start)));
  KILN_ASSIGN_OR_RETURN(Dimension rest, Symbolic(input, i, Dimension::Difference(size, limit)));
  if (negative(start) || negative(limit) || negative(span) || negative(rest)) {
    return Error(input, Entry("slice", i), " is from ", start, " to ", limit,
                 "; expected 0 <= start <= limit <= ", size);
  }
  KILN_ASSIGN_OR_RETURN(Dimension taken,
                        Symbolic(input, i, SymbolicSliceSize(start, limit, s.stride)));
  result.set_dimension(i, taken);
  return OkStatus();
}

}  // namespace

Result<Shape> InferReverse(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  KILN_RETURN_IF_ERROR(
      RequireAxes(input, "dimensions", input.attributes.IntsOf(Attr::kDimensions), operand.rank()));
  return WithoutLayout(operand);
}

// On a symbolic dimension, limit -1 is its size. Other limits are checked when the symbols are
// substituted.
Result<Shape> InferSlice(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  const auto& slices = input.attributes.Slices(Attr::kSlice);
  if (static_cast<int64_t>(slices.size()) != operand.rank()) {
    return Error(input, "; slice has ", slices.size(), " entries; expected ", operand.rank());
  }
  Shape result = WithoutLayout(operand);
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const SliceDimension& s = slices[i];
    const Dimension& d = operand.dimension(i);
    const Dimension* from = input.attributes.SymbolicAt(Attr::kSlice, 3 * i);
    const Dimension* to = input.attributes.SymbolicAt(Attr::kSlice, 3 * i + 1);
    if (!from && !to && s == SliceDimension{0, d.size(), 1}) continue;
    if (d.is_bounded()) return CannotYet(input, i);
    if (d.is_symbolic() || from || to) {
      KILN_RETURN_IF_ERROR(SetSymbolicSlice(input, i, result));
      continue;
    }
    if (s.start < 0 || s.limit < s.start || s.limit > d.size()) {
      return Error(input, Entry("slice", i), " is from ", s.start, " to ", s.limit,
                   "; expected 0 <= start <= limit <= ", d.size());
    }
    if (s.stride < 1) {
      return Error(input, Entry("stride", i), " is ", s.stride, "; it must be at least 1");
    }
    int64_t span = s.limit - s.start;
    result.set_dimension(i, span == 0 ? 0 : (span - 1) / s.stride + 1);
  }
  return result;
}

Result<Shape> InferTranspose(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  if (static_cast<int64_t>(dimensions.size()) != operand.rank()) {
    return Error(input, "; dimensions has ", dimensions.size(), " entries; expected ",
                 operand.rank());
  }
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, operand.rank()));
  Shape result = WithoutLayout(operand);
  for (int64_t i = 0; i < operand.rank(); ++i) {
    result.set_dimension(i, operand.dimension(dimensions[i]));
  }
  return result;
}

}  // namespace kiln::rules
