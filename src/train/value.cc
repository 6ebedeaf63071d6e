#include "train/value.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "kiln/types.h"

namespace kiln::train {
namespace {

using Binary = kiln_value(kiln_graph* graph, kiln_value lhs, kiln_value rhs);

// Of operands of one element type, one of them possibly a scalar.
Value Apply(Binary* function, const Value& lhs, const Value& rhs) {
  return {lhs.graph, function(lhs.graph, lhs.id, rhs.id), lhs.dtype,
          lhs.dims.empty() ? rhs.dims : lhs.dims};
}

Value Like(const Value& value, double number) { return Scalar(value.graph, value.dtype, number); }

std::vector<int64_t> AllOf(const Value& x) {
  std::vector<int64_t> all(x.dims.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kFloat:
      return "floats";
    case Kind::kInteger:
      return "integers";
    case Kind::kNumber:
      return "integers or floats";
    case Kind::kPred:
      return "pred";
  }
  return "";
}

bool IsOfKind(kiln_dtype dtype, Kind kind) {
  if (kind == Kind::kPred) return dtype == KILN_PRED;
  return (kind != Kind::kInteger && IsFloat(dtype)) || (kind != Kind::kFloat && IsInteger(dtype));
}

Result<Value> Shaped(kiln_graph* graph, kiln_value id) {
  kiln_shape shape = KILN_SHAPE_INIT;
  KILN_RETURN_IF_ERROR(TakeStatus(kiln_graph_value_shape(graph, id, &shape)));
  return Value{graph, id, shape.dtype, {shape.dims, shape.dims ? shape.rank : 0}};
}

}  // namespace

Value ValueOf(kiln_graph* graph, kiln_value id) {
  const Result<Value> value = Shaped(graph, id);
  if (value.ok()) return *value;
  // It is the graph's error, or a lack of memory, which becomes it.
  kiln_error_release(Fail(graph, "shape", value.status()));
  return {graph};
}

Value Scalar(kiln_graph* graph, kiln_dtype dtype, double number) {
  return {graph, kiln_op_scalar(graph, dtype, number), dtype};
}

Value operator+(const Value& lhs, const Value& rhs) { return Apply(kiln_op_add, lhs, rhs); }
Value operator-(const Value& lhs, const Value& rhs) { return Apply(kiln_op_subtract, lhs, rhs); }
Value operator*(const Value& lhs, const Value& rhs) { return Apply(kiln_op_multiply, lhs, rhs); }
Value operator/(const Value& lhs, const Value& rhs) { return Apply(kiln_op_divide, lhs, rhs); }
Value Maximum(const Value& lhs, const Value& rhs) { return Apply(kiln_op_maximum, lhs, rhs); }
Value Minimum(const Value& lhs, const Value& rhs) { return Apply(kiln_op_minimum, lhs, rhs); }
Value And(const Value& lhs, const Value& rhs) { return Apply(kiln_op_and, lhs, rhs); }
Value operator+(const Value& lhs, double rhs) { return lhs + Like(lhs, rhs); }
Value operator-(const Value& lhs, double rhs) { return lhs - Like(lhs, rhs); }
Value operator-(double lhs, const Value& rhs) { return Like(rhs, lhs) - rhs; }
Value operator*(double lhs, const Value& rhs) { return Like(rhs, lhs) * rhs; }
Value operator/(double lhs, const Value& rhs) { return Like(rhs, lhs) / rhs; }
Value Maximum(const Value& lhs, double rhs) { return Maximum(lhs, Like(lhs, rhs)); }
Value Minimum(const Value& lhs, double rhs) { return Minimum(lhs, Like(lhs, rhs)); }

Value Compare(const Value& lhs, kiln_direction direction, const Value& rhs) {
  return {lhs.graph, kiln_op_compare(lhs.graph, lhs.id, rhs.id, direction), KILN_PRED,
          lhs.dims.empty() ? rhs.dims : lhs.dims};
}

Value Compare(const Value& lhs, kiln_direction direction, double rhs) {
  return Compare(lhs, direction, Like(lhs, rhs));
}

Value Select(const Value& condition, const Value& on_true, const Value& on_false) {
  return {on_true.graph, kiln_nn_where(on_true.graph, condition.id, on_true.id, on_false.id),
          on_true.dtype, on_true.dims.empty() ? on_false.dims : on_true.dims};
}

Value Convert(const Value& x, kiln_dtype dtype) {
  if (x.dtype == dtype) return x;
  return {x.graph, kiln_op_convert(x.graph, x.id, dtype), dtype, x.dims};
}

Value Apply(Function* function, const Value& x) {
  return {x.graph, function(x.graph, x.id), x.dtype, x.dims};
}

Value Fill(kiln_graph* graph, kiln_dtype dtype, std::span<const int64_t> dims, double number) {
  const kiln_value scalar = kiln_op_scalar(graph, dtype, number);
  return ValueOf(graph, kiln_op_broadcast(graph, scalar, nullptr, 0, dims.data(), dims.size()));
}

Value Reduce(const Value& x, std::span<const int64_t> dimensions, kiln_reducer reducer) {
  return ValueOf(x.graph,
                 kiln_op_reduce_by(x.graph, x.id, dimensions.data(), dimensions.size(), reducer));
}

Value Reduce(const Value& x, kiln_reducer reducer) { return Reduce(x, AllOf(x), reducer); }

Value Mean(const Value& x, std::span<const int64_t> dimensions) {
  return ValueOf(x.graph, kiln_nn_mean(x.graph, x.id, dimensions.data(), dimensions.size(), 0));
}

Value Mean(const Value& x) { return Mean(x, {}); }

Value Unfold(const Value& x, const Value& like, int64_t reduced) {
  if (like.id == 0) return {x.graph};
  std::vector<int64_t> kept = AllOf(like);
  kept.erase(kept.begin() + reduced);
  return {x.graph,
          kiln_op_broadcast(x.graph, x.id, kept.data(), kept.size(), like.dims.data(),
                            like.dims.size()),
          x.dtype, like.dims};
}

bool IsFloat(kiln_dtype dtype) {
  const std::string_view name = kiln_dtype_name(dtype);
  return name.starts_with('f') || name.starts_with("bf");
}

bool IsInteger(kiln_dtype dtype) {
  const char first = *kiln_dtype_name(dtype);
  return first == 's' || first == 'u';
}

kiln_dtype ComputedType(kiln_dtype dtype) { return dtype == KILN_F64 ? KILN_F64 : KILN_F32; }

bool HasDimsOf(const Value& a, const Value& b) {
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end());
}

std::string Describe(const Value& value) {
  std::vector<std::string> sizes;
  for (int64_t size : value.dims) {
    kiln_text* text = nullptr;
    kiln_error_release(kiln_graph_symbol_text(value.graph, size, &text));
    sizes.push_back(text ? kiln_text_data(text, nullptr) : "?");
    kiln_text_release(text);
  }
  return Cat(kiln_dtype_name(value.dtype), "[", Join(sizes, ","), "]");
}

std::string NameOf(const Value& value) {
  size_t length = 0;
  const char* name = kiln_graph_value_op_name(value.graph, value.id, &length);
  if (length == 0) name = kiln_graph_value_name(value.graph, value.id, &length);
  return name ? std::string(name, length) : std::string();
}

Status SetName(const Value& value, const std::string& name) {
  return TakeStatus(kiln_graph_set_op_name(value.graph, value.id, name.data(), name.size()));
}

Status TakeStatus(kiln_error* error) {
  if (!error) return OkStatus();
  size_t length = 0;
  const char* message = kiln_error_message(error, &length);
  Status status(static_cast<Code>(kiln_error_code(error)), std::string(message, length));
  kiln_error_release(error);
  return status;
}

Result<Value> Given(kiln_graph* graph, std::string_view name, kiln_value id, Kind kind) {
  Result<Value> value = Shaped(graph, id);
  if (!value.ok()) return value.status().WithContext(name);
  if (!IsOfKind(value->dtype, kind)) {
    return InvalidArgument(name, " is ", Describe(*value), "; expected ", KindName(kind));
  }
  return value;
}

Result<Value> GivenScalar(kiln_graph* graph, std::string_view name, kiln_value id, Kind kind) {
  KILN_ASSIGN_OR_RETURN(Value value, Given(graph, name, id, kind));
  if (!value.dims.empty()) {
    return InvalidArgument(name, " is ", Describe(value), "; expected a scalar");
  }
  return value;
}

Result<Value> GivenCondition(kiln_graph* graph, std::string_view name, kiln_value id) {
  if (id == 0) return Value{graph};
  return GivenScalar(graph, name, id, Kind::kPred);
}

Result<Values> GivenFloats(kiln_graph* graph, std::string_view name, const kiln_value* ids,
                           size_t count) {
  if (!ids && count > 0) return InvalidArgument(name, " is NULL, with a count of ", count);
  Values values;
  for (size_t i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(Value value, Given(graph, Cat(name, "[", i, "]"), ids[i], Kind::kFloat));
    values.push_back(value);
  }
  return values;
}

Status CheckNumber(std::string_view name, double number, double least, double most) {
  if (std::isfinite(number) && number >= least && number <= most) return OkStatus();
  return InvalidArgument(name, " is ", number, "; expected a number from ", least, " to ", most);
}

Status CheckPositive(std::string_view name, double number) {
  if (std::isfinite(number) && number > 0) return OkStatus();
  return InvalidArgument(name, " is ", number, "; expected a number above 0");
}

kiln_error* Fail(kiln_graph* graph, const char* function, const Status& status) noexcept {
  const Status named = WithContextIfPossible(status, [&] { return std::string_view(function); });
  return kiln_graph_fail(graph, static_cast<kiln_code>(named.code()), named.message().data(),
                         named.message().size());
}

void Store(std::span<const Value> values, kiln_value* out) {
  for (const Value& value : values) *out++ = value.id;
}

}  // namespace kiln::train
