// The vocabulary of nn.h's functions: ops on values, with NumPy's broadcasting, and errors kept to
// the end.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capi/graph_builder.h"
#include "capi/op_builder.h"
#include "kiln/builder.h"
#include "ops/op.h"

namespace kiln::capi {

// After the first error every function returns null, and ignores null operands.
class Formula : public GraphBuilder {
 public:
  using Value = ir::Instruction*;
  using GraphBuilder::GraphBuilder;

  template <typename... Args>
  Value Fail(const Args&... message) {
    return GraphBuilder::Fail(InvalidArgument(message...));
  }
  Value Fail(Status status) { return GraphBuilder::Fail(std::move(status)); }
  // The value, or the first error.
  Result<Value> Finish(Value value) const;

  // The user's value: an array of one of the types; `name` is the parameter's.
  Value Array(std::string_view name, kiln_value value, uint32_t types);
  // An optional value: null for 0.
  Value OptionalArray(std::string_view name, kiln_value value, uint32_t types);
  // The user's dimensions of a value, none negative and in ascending order; all of them for an
  // empty list with `none_is_all`.
  Ints Dimensions(Value value, const int64_t* dimensions, size_t count, bool none_is_all);
  // One dimension of `rank` that may count from the end.
  int64_t Dimension(std::string_view name, int64_t dimension, int64_t rank);
  bool Flag(std::string_view name, int32_t value);

  // A scalar of the type, which must have the value.
  Value Scalar(ElementType type, double value);
  // A scalar of the value's type, with its dimensions.
  Value Like(Value value, double scalar);

  // NumPy's broadcasting: to given dimensions, or of several values to common ones.
  Value BroadcastTo(Value value, const std::vector<kiln::Dimension>& dims);
  void BroadcastTogether(std::span<Value* const> values);
  Value Broadcasting(Opcode opcode, Value lhs, Value rhs);

  // Reductions along dimensions, absent from the result.
  Value Fold(Value value, const Ints& dimensions, kiln_reducer reducer);
  // Broadcasts a reduction's result back to the dimensions of `like`.
  Value Unfold(Value folded, Value like, const Ints& dimensions);
  // A reduction's result, with its dimensions kept as size 1 if requested.
  Value Kept(Value folded, Value like, const Ints& dimensions, bool keep);
  // The number of elements along dimensions, as a scalar of a float type.
  Value Count(Value value, const Ints& dimensions, ElementType type);
  // The size of a dimension, as a scalar of an integer type of 32 bits at least.
  Value Size(Value value, int64_t dimension, ElementType type);

  // "'x' f32[2,3]".
  static std::string Describe(Value value);
};

// The float type of computation: f32 for narrower ones.
ElementType ComputedType(ElementType type);

inline constexpr uint32_t kAnyType = ~uint32_t{0};

// build(Formula&) -> Formula::Value as a builder function named `word`.
template <typename Build>
kiln_value Word(kiln_graph* graph, std::string_view word, Build&& build) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    Formula formula(*graph);
    Result<ir::Instruction*> value = formula.Finish(build(formula));
    if (!value.ok()) return value.status().WithContext(word);
    return value;
  });
}

}  // namespace kiln::capi
