// Builder functions in addition to those generated from the op table.
#include "kiln/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "capi/graph_builder.h"
#include "capi/op_builder.h"
#include "capi/options.h"
#include "interp/narrow.h"
#include "ir/reducer.h"

namespace kiln::capi {
namespace {

using ir::Instruction;

// A scalar of `type`, or an error for a value out of range.
Result<Literal> ScalarOf(ElementType type, double value) {
  if (IsFloat(type) || IsComplex(type)) return Literal::ScalarOf(type, value);
  auto refuse = [&] {
    return InvalidArgument("scalar: ", value, " is not a value of ", TypeName(type));
  };
  if (std::trunc(value) != value || std::isinf(value)) return refuse();
  return VisitType(type, [&](auto zero) -> Result<Literal> {
    using T = decltype(zero);
    if constexpr (std::same_as<T, bool> || IntType<T>) {
      using Limits = std::numeric_limits<T>;
      // 2^digits is exact as a double, where the largest value may not be.
      if (value >= static_cast<double>(Limits::lowest()) &&
          value < std::ldexp(1.0, Limits::digits)) {
        return Literal::Scalar<T>(type, static_cast<T>(value));
      }
    }
    return refuse();
  });
}

// The op of a reducer, and its identity value.
struct Reducer {
  Opcode opcode;
  Literal init;
};

Result<Reducer> ReducerOf(kiln_reducer reducer, ElementType type) {
  auto with_identity = [&](Opcode opcode) {
    return Reducer{opcode, *ir::IdentityOf(opcode, type)};
  };
  switch (reducer) {
    case KILN_REDUCER_SUM:
      if (type == ElementType::kF8E8M0FNU) {
        return InvalidArgument("reduce: ", TypeName(type), " has no 0, where a sum begins");
      }
      return Reducer{Opcode::kAdd, Literal::ScalarOf(type, 0)};
    case KILN_REDUCER_PRODUCT:
      return with_identity(Opcode::kMultiply);
    case KILN_REDUCER_MAX:
      return with_identity(Opcode::kMaximum);
    case KILN_REDUCER_MIN:
      return with_identity(Opcode::kMinimum);
    // Inference refuses these where the type is neither pred nor an integer, and names the op.
    case KILN_REDUCER_OR:
      return with_identity(Opcode::kOr);
    case KILN_REDUCER_XOR:
      return with_identity(Opcode::kXor);
    case KILN_REDUCER_AND:
      return with_identity(Opcode::kAnd);
    default:
      return InvalidArgument("reduce: ", reducer, " is not a reducer");
  }
}

Result<Instruction*> AddConstant(kiln_graph& graph, Literal literal) {
  GraphBuilder b(graph);
  Instruction* constant = b.Constant(std::move(literal));
  KILN_RETURN_IF_ERROR(b.status());
  return constant;
}

Result<Instruction*> AddParameter(kiln_graph& graph, const Shape& shape, const char* name,
                                  size_t name_length) {
  KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("name", name, name_length));
  auto number = static_cast<int64_t>(graph.entry().parameters().size());
  return graph.Add({.opcode = Opcode::kParameter,
                    .attributes = {{Attr::kParameterNumber, number}},
                    .shape = shape,
                    .name = std::string(text)});
}

// The array `value`, of `graph`, the source of another op's dimensions.
Result<Instruction*> Like(const kiln_graph& graph, kiln_value value) {
  auto like = graph.ValueOf(value);
  if (!like.ok()) return like.status().WithContext("like");
  if (!(*like)->shape().is_array()) {
    return InvalidArgument("like, which is '", (*like)->name(), "', has the shape ",
                           (*like)->shape(), "; expected an array");
  }
  return *like;
}

// The op with the dimensions of `like`; fill(OpBuilder&, like) gives the rest. Bounded dimensions
// for which has_dimension(d) is false, as the op's operand lacks them, get the sizes of `like`
// afterwards.
template <typename HasDimension, typename Fill>
kiln_value AddLike(kiln_graph* graph, Opcode opcode, kiln_value like, HasDimension&& has_dimension,
                   Fill&& fill) {
  return Built(graph, [&]() -> Result<Instruction*> {
    auto value = Like(*graph, like);
    if (!value.ok()) return value.status().WithContext(OpcodeName(opcode));
    OpBuilder op(*graph, opcode);
    fill(op, **value);
    std::vector<Dimension> dims = (*value)->shape().dimensions();
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].is_bounded() && !has_dimension(static_cast<int64_t>(d))) dims[d] = dims[d].size();
    }
    op.Dims(std::move(dims));
    KILN_ASSIGN_OR_RETURN(Instruction * made, op.Finish());
    GraphBuilder b(*graph);
    made = b.WithSizesOf(*value, made);
    KILN_RETURN_IF_ERROR(b.status());
    return made;
  });
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT

kiln_value kiln_op_parameter(kiln_graph* graph, kiln_dtype dtype, const int64_t* dims, size_t rank,
                             const char* name, size_t name_length) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    if (!IsElementType(dtype)) {
      return InvalidArgument("parameter: dtype ", dtype, " is not an element type");
    }
    auto dimensions = graph->Dimensions(dims, rank);
    if (!dimensions.ok()) return dimensions.status().WithContext("parameter");
    return AddParameter(*graph, Shape(static_cast<ElementType>(dtype), *std::move(dimensions)),
                        name, name_length);
  });
}

kiln_value kiln_op_parameter_like(kiln_graph* graph, const kiln_graph* other, kiln_value like,
                                  const char* name, size_t name_length) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    KILN_RETURN_IF_ERROR(NotNull("parameter", {{"other", other}}));
    auto value = other->ValueOf(like);
    if (!value.ok()) return value.status().WithContext("parameter: like");
    return AddParameter(*graph, (*value)->shape(), name, name_length);
  });
}

kiln_value kiln_op_constant(kiln_graph* graph, kiln_dtype dtype, const int64_t* dims, size_t rank,
                            const void* data, size_t bytes) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    auto shape = ShapeOf(dtype, dims, rank);
    if (!shape.ok()) return shape.status().WithContext("constant");
    if (bytes != static_cast<size_t>(shape->byte_size())) {
      return InvalidArgument("constant: bytes is ", bytes, "; ", *shape, " takes ",
                             shape->byte_size());
    }
    if (!data && bytes > 0) return InvalidArgument("constant: data is NULL");
    Literal literal(*shape);
    if (bytes > 0) std::memcpy(literal.data(), data, bytes);
    if (IsPred(shape->type())) {
      for (uint8_t b : literal.values<uint8_t>()) {
        if (b > 1) return InvalidArgument("constant: a pred is the byte ", b, "; expected 0 or 1");
      }
    }
    Literal normal = literal;
    interp::Normalise(shape->type(), normal.data(), shape->num_elements());
    if (!(normal == literal)) {
      return InvalidArgument(
          "constant: an element of ", TypeName(shape->type()),
          " has bits above its own; expected a byte that ",
          IsSigned(shape->type()) ? "repeats its sign there" : "has zeros there");
    }
    return AddConstant(*graph, std::move(literal));
  });
}

kiln_value kiln_op_scalar(kiln_graph* graph, kiln_dtype dtype, double value) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    if (!IsElementType(dtype)) {
      return InvalidArgument("constant: dtype ", dtype, " is not an element type");
    }
    KILN_ASSIGN_OR_RETURN(Literal literal, ScalarOf(static_cast<ElementType>(dtype), value));
    return AddConstant(*graph, std::move(literal));
  });
}

kiln_value kiln_op_matmul(kiln_graph* graph, kiln_value lhs, kiln_value rhs) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    OpBuilder dot(*graph, Opcode::kDot);
    dot.Operand(lhs);
    dot.Operand(rhs);
    auto left = graph->ValueOf(lhs), right = graph->ValueOf(rhs);
    if (left.ok() && right.ok()) {
      const Shape &a = (*left)->shape(), &b = (*right)->shape();
      if (!a.is_array() || !b.is_array() || a.rank() == 0 || b.rank() == 0) {
        return WithOperands(
            InvalidArgument("matmul of ", a, " and ", b, "; expected arrays of rank 1 or more"),
            Opcode::kDot, {{*left, *right}});
      }
      Ints batches;
      for (int64_t d = 0; d < std::max(a.rank(), b.rank()) - 2; ++d) batches.push_back(d);
      const int64_t from_left = a.rank() - 1, from_right = std::max<int64_t>(b.rank() - 2, 0);
      dot.IntList(Attr::kLhsBatchDims, true, batches.data(), batches.size());
      dot.IntList(Attr::kRhsBatchDims, true, batches.data(), batches.size());
      dot.IntList(Attr::kLhsContractingDims, true, &from_left, 1);
      dot.IntList(Attr::kRhsContractingDims, true, &from_right, 1);
    }
    return dot.Finish();
  });
}

kiln_value kiln_op_broadcast_like(kiln_graph* graph, kiln_value operand, kiln_value like,
                                  const int64_t* dimensions, size_t dimensions_count) {
  auto has = [&](int64_t d) {
    return dimensions && std::count(dimensions, dimensions + dimensions_count, d) > 0;
  };
  return AddLike(graph, Opcode::kBroadcast, like, has, [&](OpBuilder& op, const ir::Instruction&) {
    op.Operand(operand);
    op.IntList(Attr::kDimensions, false, dimensions, dimensions_count);
  });
}

kiln_value kiln_op_reshape_like(kiln_graph* graph, kiln_value operand, kiln_value like) {
  return AddLike(
      graph, Opcode::kReshape, like, [](int64_t) { return true; },
      [&](OpBuilder& op, const ir::Instruction&) { op.Operand(operand); });
}

kiln_value kiln_op_iota_like(kiln_graph* graph, kiln_value like, int64_t iota_dimension) {
  return AddLike(
      graph, Opcode::kIota, like, [](int64_t) { return false; },
      [&](OpBuilder& op, const ir::Instruction& value) {
        op.Int(Attr::kIotaDimension, false, iota_dimension);
        op.Type(static_cast<kiln_dtype>(value.shape().type()));
      });
}

kiln_value kiln_op_reduce_by(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                             size_t dimensions_count, kiln_reducer reducer) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    auto value = graph->ValueOf(operand);
    if (!value.ok()) return value.status().WithContext("reduce: operand");
    const Shape& shape = (*value)->shape();
    if (!shape.is_array()) {
      return InvalidArgument("reduce: the operand '", (*value)->name(), "' has the shape ", shape,
                             "; expected an array");
    }
    if (!dimensions && dimensions_count > 0) {
      return InvalidArgument("reduce: dimensions is NULL, with ", dimensions_count, " numbers");
    }
    KILN_ASSIGN_OR_RETURN(Reducer what, ReducerOf(reducer, shape.type()));
    const std::string name = Cat(OpcodeName(what.opcode), "_", TypeName(shape.type()));
    KILN_ASSIGN_OR_RETURN(ir::Computation * fold, graph->Helper(name, [&] {
      return ir::AddReducer(graph->module(), what.opcode, shape.type(), name);
    }));
    GraphBuilder b(*graph);
    ir::Instruction* reduced =
        b.Add(Opcode::kReduce, {*value, b.Constant(std::move(what.init))},
              {{Attr::kDimensions, Ints(dimensions, dimensions + dimensions_count)}}, std::nullopt,
              {fold});
    KILN_RETURN_IF_ERROR(b.status());
    return reduced;
  });
}
