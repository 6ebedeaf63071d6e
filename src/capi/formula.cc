#include "capi/formula.h"

#include <algorithm>

#include "base/strings.h"

namespace kiln::capi {

using Value = Formula::Value;

ElementType ComputedType(ElementType type) {
  if (IsComplex(type)) return type;
  return type == ElementType::kF64 ? type : ElementType::kF32;
}

Result<Value> Formula::Finish(Value value) const {
  KILN_RETURN_IF_ERROR(graph().status());
  KILN_RETURN_IF_ERROR(status());
  return value;
}

std::string Formula::Describe(Value value) { return Cat("'", value->name(), "' ", value->shape()); }

Value Formula::Array(std::string_view name, kiln_value value, uint32_t types) {
  Result<Value> found = graph().ValueOf(value);
  if (!found.ok()) return Fail(found.status().WithContext(name));
  const Shape& shape = (*found)->shape();
  if (!shape.is_array()) {
    return Fail(name, " is ", Describe(*found), "; it must be an array");
  }
  if (!(TypeMaskOf(shape.type()) & types)) {
    std::vector<std::string_view> kinds;
    if (types & kPredType) kinds.push_back("pred");
    if (types & kIntType) kinds.push_back("an integer");
    if (types & kFloatType) kinds.push_back("a float");
    if (types & kComplexType) kinds.push_back("a complex number");
    return Fail(name, " is ", Describe(*found), "; the element type must be ", Join(kinds, " or "));
  }
  return *found;
}

Value Formula::OptionalArray(std::string_view name, kiln_value value, uint32_t types) {
  return value == 0 ? nullptr : Array(name, value, types);
}

namespace {

Result<int64_t> DimensionOf(std::string_view name, int64_t dimension, int64_t rank) {
  const int64_t positive = dimension < 0 ? dimension + rank : dimension;
  if (positive >= 0 && positive < rank) return positive;
  return InvalidArgument(name, " has ", dimension, "; expected a dimension from ", -rank,
                         " to below ", rank);
}

}  // namespace

int64_t Formula::Dimension(std::string_view name, int64_t dimension, int64_t rank) {
  Result<int64_t> found = DimensionOf(name, dimension, rank);
  if (found.ok()) return *found;
  Fail(found.status());
  return 0;
}

Ints Formula::Dimensions(Value value, const int64_t* dimensions, size_t count, bool none_is_all) {
  if (!ok()) return {};
  const int64_t rank = value->shape().rank();
  Ints result;
  if (!dimensions && count > 0) {
    Fail("dimensions is NULL, with ", count, " numbers");
    return {};
  }
  for (size_t i = 0; i < count; ++i) {
    Result<int64_t> dimension = DimensionOf("dimensions", dimensions[i], rank);
    if (!dimension.ok()) {
      Fail(dimension.status().WithContext(Cat("operand is ", Describe(value))));
      return {};
    }
    if (std::find(result.begin(), result.end(), *dimension) != result.end()) {
      Fail("operand is ", Describe(value), "; dimensions has ", *dimension, " twice");
      return {};
    }
    result.push_back(*dimension);
  }
  if (count == 0 && none_is_all) {
    for (int64_t d = 0; d < rank; ++d) result.push_back(d);
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool Formula::Flag(std::string_view name, int32_t value) {
  if (value != 0 && value != 1) Fail(name, " is ", value, "; expected 0 or 1");
  return value == 1;
}

Value Formula::Scalar(ElementType type, double value) {
  if (!ok()) return nullptr;
  Result<Value> scalar =
      graph().ValueOf(kiln_op_scalar(&graph(), static_cast<kiln_dtype>(type), value));
  return scalar.ok() ? *scalar : Fail(graph().status());
}

Value Formula::Like(Value value, double scalar) {
  if (!ok()) return nullptr;
  Value constant = Scalar(value->shape().type(), scalar);
  return BroadcastLike(value, constant, {});
}

Value Formula::BroadcastTo(Value value, const std::vector<kiln::Dimension>& dims) {
  if (!ok() || value->shape().dimensions() == dims) return value;
  const Shape shape = value->shape();
  const int64_t lead = std::ssize(dims) - shape.rank();
  std::vector<kiln::Dimension> own;
  Ints places;
  for (int64_t d = 0; d < shape.rank() && lead >= 0; ++d) {
    const kiln::Dimension& to = dims[static_cast<size_t>(lead + d)];
    if (shape.dimension(d) == to) {
      own.push_back(to);
      places.push_back(lead + d);
    } else if (shape.dimension(d) != kiln::Dimension(1)) {
      return Fail(Describe(value), " is not broadcast to ", Shape(shape.type(), dims),
                  ": its dimension ", d, " is ", shape.dimension(d), ", and neither ", to,
                  " nor 1");
    }
  }
  if (lead < 0) {
    return Fail(Describe(value), " is not broadcast to ", Shape(shape.type(), dims),
                ", which has fewer dimensions");
  }
  return Broadcast(Reshape(value, std::move(own)), dims, std::move(places));
}

void Formula::BroadcastTogether(std::span<Value* const> values) {
  if (!ok()) return;
  auto list = [&] {
    std::vector<std::string> all;
    for (Value* value : values) all.push_back(Describe(*value));
    return Join(all, ", ");
  };
  int64_t rank = 0;
  for (Value* value : values) rank = std::max(rank, (*value)->shape().rank());
  std::vector<kiln::Dimension> dims(static_cast<size_t>(rank), 1);
  for (Value* value : values) {
    const Shape& shape = (*value)->shape();
    for (int64_t d = 0; d < shape.rank(); ++d) {
      kiln::Dimension& to = dims[static_cast<size_t>(rank - shape.rank() + d)];
      if (to == kiln::Dimension(1)) to = shape.dimension(d);
      if (shape.dimension(d) == kiln::Dimension(1) || shape.dimension(d) == to) continue;
      Fail("operands ", list(), " are not broadcast together: sizes ", to, " and ",
           shape.dimension(d), " are neither equal nor 1");
      return;
    }
  }
  for (Value* value : values) *value = BroadcastTo(*value, dims);
}

Value Formula::Broadcasting(Opcode opcode, Value lhs, Value rhs) {
  Value* const both[] = {&lhs, &rhs};
  BroadcastTogether(both);
  return Add(opcode, {lhs, rhs});
}

Value Formula::Fold(Value value, const Ints& dimensions, kiln_reducer reducer) {
  if (!ok()) return nullptr;
  Result<Value> folded = graph().ValueOf(kiln_op_reduce_by(
      &graph(), graph().IdOf(value), dimensions.data(), dimensions.size(), reducer));
  return folded.ok() ? *folded : Fail(graph().status());
}

Value Formula::Unfold(Value folded, Value like, const Ints& dimensions) {
  if (!ok()) return nullptr;
  Ints others;
  for (int64_t d = 0; d < like->shape().rank(); ++d) {
    if (!std::binary_search(dimensions.begin(), dimensions.end(), d)) others.push_back(d);
  }
  return BroadcastLike(like, folded, std::move(others));
}

Value Formula::Kept(Value folded, Value like, const Ints& dimensions, bool keep) {
  if (!ok() || !keep) return folded;
  std::vector<kiln::Dimension> dims = like->shape().dimensions();
  for (int64_t d : dimensions) dims[static_cast<size_t>(d)] = 1;
  return Reshape(folded, std::move(dims));
}

Value Formula::Size(Value value, int64_t dimension, ElementType type) {
  if (!ok()) return nullptr;
  const kiln::Dimension& size = value->shape().dimension(dimension);
  if (size.is_constant()) return Scalar(type, static_cast<double>(size.size()));
  return Convert(Add(Opcode::kGetDimensionSize, {value}, {{Attr::kDimensions, Ints{dimension}}}),
                 type);
}

// In f64, which is exact for every possible count.
Value Formula::Count(Value value, const Ints& dimensions, ElementType type) {
  if (!ok()) return nullptr;
  double constant = 1;
  Value product = nullptr;
  for (int64_t d : dimensions) {
    const kiln::Dimension& size = value->shape().dimension(d);
    if (size.is_constant()) {
      constant *= static_cast<double>(size.size());
      continue;
    }
    Value factor = Size(value, d, ElementType::kF64);
    product = product ? Add(Opcode::kMultiply, {product, factor}) : factor;
  }
  if (!product) return Scalar(type, constant);
  return Convert(Add(Opcode::kMultiply, {product, Scalar(ElementType::kF64, constant)}), type);
}

}  // namespace kiln::capi
