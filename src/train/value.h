// Values of a graph of the C ABI as expressions, and its errors as statuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/exception.h"
#include "base/status.h"
#include "base/strings.h"
#include "kiln/builder.h"
#include "kiln/error.h"
#include "kiln/graph.h"
#include "kiln/nn.h"
#include "kiln/ops.h"

namespace kiln::train {

// An array of a graph. After the graph's first error it has no id, and no shape.
struct Value {
  kiln_graph* graph = nullptr;
  kiln_value id = 0;
  kiln_dtype dtype = 0;
  std::span<const int64_t> dims = {};  // they live as long as the graph
};
using Values = std::vector<Value>;

// With its shape.
Value ValueOf(kiln_graph* graph, kiln_value id);
Value Scalar(kiln_graph* graph, kiln_dtype dtype, double number);

// Elementwise; a scalar is broadcast to the other operand's dimensions.
Value operator+(const Value& lhs, const Value& rhs);
Value operator-(const Value& lhs, const Value& rhs);
Value operator*(const Value& lhs, const Value& rhs);
Value operator/(const Value& lhs, const Value& rhs);
Value Maximum(const Value& lhs, const Value& rhs);
Value Minimum(const Value& lhs, const Value& rhs);
Value And(const Value& lhs, const Value& rhs);
Value operator+(const Value& lhs, double rhs);
Value operator-(const Value& lhs, double rhs);
Value operator-(double lhs, const Value& rhs);
Value operator*(double lhs, const Value& rhs);
Value operator/(double lhs, const Value& rhs);
Value Maximum(const Value& lhs, double rhs);
Value Minimum(const Value& lhs, double rhs);
Value Compare(const Value& lhs, kiln_direction direction, const Value& rhs);
Value Compare(const Value& lhs, kiln_direction direction, double rhs);
// A scalar condition is for all elements.
Value Select(const Value& condition, const Value& on_true, const Value& on_false);
Value Convert(const Value& x, kiln_dtype dtype);
using Function = kiln_value(kiln_graph* graph, kiln_value operand);
Value Apply(Function* function, const Value& x);
inline Value Square(const Value& x) { return x * x; }
inline Value Sqrt(const Value& x) { return Apply(kiln_op_sqrt, x); }

// A number everywhere.
Value Fill(kiln_graph* graph, kiln_dtype dtype, std::span<const int64_t> dims, double number);
// Over some dimensions, or over all.
Value Reduce(const Value& x, std::span<const int64_t> dimensions, kiln_reducer reducer);
Value Reduce(const Value& x, kiln_reducer reducer);
Value Mean(const Value& x, std::span<const int64_t> dimensions);
Value Mean(const Value& x);
// To the dimensions of `like`, along all of these but one.
Value Unfold(const Value& x, const Value& like, int64_t reduced);

bool IsFloat(kiln_dtype dtype);
bool IsInteger(kiln_dtype dtype);
// The type of the computation: f32 for narrower floats.
kiln_dtype ComputedType(kiln_dtype dtype);
bool HasDimsOf(const Value& a, const Value& b);
// "f32[2,n]".
std::string Describe(const Value& value);
// The op name, or else the name in HLO text.
std::string NameOf(const Value& value);
Status SetName(const Value& value, const std::string& op_name);

// The kinds of values that the caller may give.
enum class Kind { kFloat, kInteger, kNumber, kPred };
// The caller's value, an array of that kind; `name` is the parameter's.
Result<Value> Given(kiln_graph* graph, std::string_view name, kiln_value id, Kind kind);
Result<Value> GivenScalar(kiln_graph* graph, std::string_view name, kiln_value id, Kind kind);
// A scalar pred that may be 0, for one that is true: a value without an id.
Result<Value> GivenCondition(kiln_graph* graph, std::string_view name, kiln_value id);
// A list of floats.
Result<Values> GivenFloats(kiln_graph* graph, std::string_view name, const kiln_value* ids,
                           size_t count);
Status CheckNumber(std::string_view name, double number, double least, double most);
Status CheckPositive(std::string_view name, double number);

// The error, given back.
Status TakeStatus(kiln_error* error);
// The failure as the graph's error, with the name of the function.
kiln_error* Fail(kiln_graph* graph, const char* function, const Status& status) noexcept;

// extend() -> Status as a function of the C ABI that adds to a graph. Mistakes, exceptions among
// them, become the graph's error.
template <typename Extend>
kiln_error* Extended(kiln_graph* graph, const char* function, Extend&& extend) noexcept {
  if (kiln_error* error = kiln_graph_status(graph)) return error;
  const Status status = Try(extend);
  return status.ok() ? kiln_graph_status(graph) : Fail(graph, function, status);
}

// build() -> Result<Value> as a builder function.
template <typename Build>
kiln_value Built(kiln_graph* graph, const char* function, Build&& build) noexcept {
  kiln_value made = 0;
  kiln_error_release(Extended(graph, function, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const Value value, build());
    made = value.id;
    return OkStatus();
  }));
  return made;
}

// Hands values over to the caller.
void Store(std::span<const Value> values, kiln_value* out);

}  // namespace kiln::train
