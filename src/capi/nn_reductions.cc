// Functions that reduce along dimensions: softmax, normalisations, statistics, argmax and argmin.
#include <limits>

#include "base/strings.h"
#include "capi/formula.h"
#include "kiln/nn.h"

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT
using V = Formula::Value;

namespace {

constexpr uint32_t kReal = kPredType | kIntType | kFloatType;

V Add(Formula& f, V a, V b) { return f.Add(Opcode::kAdd, {a, b}); }
V Subtract(Formula& f, V a, V b) { return f.Add(Opcode::kSubtract, {a, b}); }
V Multiply(Formula& f, V a, V b) { return f.Add(Opcode::kMultiply, {a, b}); }
V Divide(Formula& f, V a, V b) { return f.Add(Opcode::kDivide, {a, b}); }

// x - max(x), and the sum of its exponentials.
struct Shifted {
  V x, exponentials, sum;
};

Shifted ShiftedOf(Formula& f, V x, const Ints& dimensions) {
  Shifted s;
  s.x = Subtract(f, x, f.Unfold(f.Fold(x, dimensions, KILN_REDUCER_MAX), x, dimensions));
  s.exponentials = f.Add(Opcode::kExponential, {s.x});
  s.sum = f.Fold(s.exponentials, dimensions, KILN_REDUCER_SUM);
  return s;
}

// function(Formula&, x, dimensions) of floats, computed in f32 or wider.
template <typename Function>
kiln_value AlongDimensions(kiln_graph* graph, std::string_view word, kiln_value operand,
                           const int64_t* dimensions, size_t count, Function&& function) {
  return Word(graph, word, [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kFloatType);
    const Ints along = f.Dimensions(x, dimensions, count, false);
    if (!f.ok()) return nullptr;
    const ElementType type = x->shape().type();
    return f.Convert(function(f, f.Convert(x, ComputedType(type)), along), type);
  });
}

V MeanOf(Formula& f, V x, const Ints& dimensions) {
  if (!f.ok()) return nullptr;
  V sum = f.Fold(x, dimensions, KILN_REDUCER_SUM);
  V count = f.Count(x, dimensions, x->shape().type());
  return f.ok() ? Divide(f, sum, f.BroadcastTo(count, sum->shape().dimensions())) : nullptr;
}

// A scale or an offset of a normalisation, given by the user.
V Parameter(Formula& f, std::string_view name, kiln_value parameter, V x) {
  V value = f.Array(name, parameter, kFloatType);
  if (!f.ok()) return nullptr;
  const ElementType type = x->shape().type();
  if (BitWidth(value->shape().type()) > BitWidth(type)) {
    return f.Fail(name, " is ", Formula::Describe(value), "; expected ", TypeName(type),
                  " or a narrower type, as the operand is computed in that");
  }
  return f.BroadcastTo(f.Convert(value, type), x->shape().dimensions());
}

// x / sqrt(square + epsilon).
V Normalised(Formula& f, V x, V square, const Ints& dimensions, double epsilon) {
  if (!f.ok()) return nullptr;
  V scale = f.Add(Opcode::kRsqrt, {Add(f, square, f.Like(square, epsilon))});
  return Multiply(f, x, f.Unfold(scale, x, dimensions));
}

// The type of computation for statistics of a type, and the result's type.
struct StatisticTypes {
  ElementType computed, result;
};

StatisticTypes StatisticTypesOf(ElementType type) {
  if (IsFloat(type) || IsComplex(type)) return {ComputedType(type), type};
  return {ElementType::kF64, ElementType::kF64};
}

// The extreme element and its position: of NaNs and of equal elements the first.
Result<ir::Computation*> FirstExtreme(kiln_graph& graph, ElementType type, ElementType positions,
                                      bool largest) {
  const std::string name =
      Cat(largest ? "argmax_" : "argmin_", TypeName(type), "_", TypeName(positions));
  return graph.Helper(name, [&]() -> Result<ir::Computation*> {
    ir::Computation* c = graph.module().AddComputation(name);
    ir::Builder b(c);
    ir::Instruction* x = b.Parameter(Shape::Scalar(type));
    ir::Instruction* i = b.Parameter(Shape::Scalar(positions));
    ir::Instruction* y = b.Parameter(Shape::Scalar(type));
    ir::Instruction* j = b.Parameter(Shape::Scalar(positions));
    ir::Instruction* better = b.Compare(largest ? Direction::kGt : Direction::kLt, x, y);
    ir::Instruction* same = b.Compare(Direction::kEq, x, y);
    if (IsFloat(type)) {
      ir::Instruction* x_nan = b.Compare(Direction::kNe, x, x);
      ir::Instruction* y_nan = b.Compare(Direction::kNe, y, y);
      better = b.Or(better, b.And(x_nan, b.Compare(Direction::kEq, y, y)));
      same = b.Or(same, b.And(x_nan, y_nan));
    }
    ir::Instruction* first = b.Or(better, b.And(same, b.Compare(Direction::kLt, i, j)));
    ir::Instruction* value = b.Select(first, x, y);
    ir::Instruction* position = b.Select(first, i, j);
    ir::Instruction* root = b.Tuple({value, position});
    KILN_RETURN_IF_ERROR(b.status());
    c->set_root(root);
    return c;
  });
}

// The initial value of a reduction to an extreme.
V Worst(Formula& f, ElementType type, bool largest) {
  if (!f.ok()) return nullptr;
  return VisitType(type, [&](auto zero) -> V {
    using T = decltype(zero);
    if constexpr (ComplexType<T>) {
      return f.Fail("there is no order of ", TypeName(type));
    } else {
      using Limits = std::numeric_limits<T>;
      T value = largest ? Limits::lowest() : Limits::max();
      if constexpr (Limits::has_infinity) {
        value = largest ? static_cast<T>(-Limits::infinity()) : Limits::infinity();
      }
      return f.Constant(Literal::Scalar<T>(type, value));
    }
  });
}

kiln_value PositionOf(kiln_graph* graph, std::string_view word, bool largest, kiln_value operand,
                      const int64_t* dimensions, size_t count, int32_t keepdims, kiln_dtype dtype) {
  return Word(graph, word, [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kReal);
    const Ints along = f.Dimensions(x, dimensions, count, true);
    const bool keep = f.Flag("keepdims", keepdims);
    if (!f.ok()) return nullptr;
    if (dtype != 0 && (!IsElementType(dtype) || !IsInteger(static_cast<ElementType>(dtype)))) {
      return f.Fail("dtype ", dtype, " is no integer type");
    }
    const ElementType type = x->shape().type();
    const ElementType wanted = dtype == 0 ? ElementType::kS64 : static_cast<ElementType>(dtype);
    // The reduced dimensions become one, the last.
    Ints order;
    std::vector<Dimension> dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (std::binary_search(along.begin(), along.end(), d)) continue;
      order.push_back(d);
      dims.push_back(x->shape().dimension(d));
    }
    Dimension folded = 1;
    for (int64_t d : along) {
      order.push_back(d);
      if (x->shape().dimension(d).is_bounded()) {
        return f.Fail(Unimplemented("operand is ", Formula::Describe(x),
                                    "; positions along bounded dimensions are not implemented"));
      }
      auto product = Dimension::Product(folded, x->shape().dimension(d));
      if (!product.ok()) return f.Fail(product.status());
      folded = *product;
    }
    const int64_t last = std::ssize(dims);
    if (folded.is_constant() && folded.size() == 0) {
      return f.Fail("operand is ", Formula::Describe(x), "; there is no element along dimensions ",
                    Join(along, ", "));
    }
    const int64_t most = VisitType(wanted, [](auto zero) -> int64_t {
      using T = decltype(zero);
      if constexpr (std::same_as<T, bool> || IntType<T>) {
        constexpr int kDigits = std::numeric_limits<T>::digits;
        return kDigits >= 63 ? INT64_MAX : (int64_t{1} << kDigits) - 1;
      }
      return 0;
    });
    if (folded.is_constant() && folded.size() - 1 > most) {
      return f.Fail("operand is ", Formula::Describe(x), "; ", TypeName(wanted),
                    " does not hold its positions");
    }
    // Positions are counted in a type of generated code that holds the result's values.
    const ElementType positions = BitWidth(wanted) <= 32 && wanted != ElementType::kU32
                                      ? ElementType::kS32
                                      : ElementType::kS64;
    dims.push_back(folded);
    V row = along.size() == 1 && along[0] == x->shape().rank() - 1
                ? x
                : f.Reshape(f.Transpose(x, order), dims);
    V position = f.Iota(Shape(positions, dims), last);
    V none =
        f.Constant(positions == ElementType::kS32 ? Literal::Scalar<int32_t>(positions, INT32_MAX)
                                                  : Literal::Scalar<int64_t>(positions, INT64_MAX));
    V worst = Worst(f, type, largest);
    if (!f.ok()) return nullptr;
    auto first = FirstExtreme(*graph, type, positions, largest);
    if (!first.ok()) return f.Fail(first.status());
    auto both = graph->Add({.opcode = Opcode::kReduce,
                            .operands = {row, position, worst, none},
                            .attributes = {{Attr::kDimensions, Ints{last}}},
                            .called = {*first}});
    if (!both.ok()) return f.Fail(both.status());
    V found = f.Add(Opcode::kGetTupleElement, {*both}, {{Attr::kIndex, int64_t{1}}});
    return f.Kept(f.Convert(found, wanted), x, along, keep);
  });
}

}  // namespace

kiln_value kiln_nn_softmax(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                           size_t dimensions_count) {
  return AlongDimensions(graph, "softmax", operand, dimensions, dimensions_count,
                         [](Formula& f, V x, const Ints& along) {
                           Shifted s = ShiftedOf(f, x, along);
                           return Divide(f, s.exponentials, f.Unfold(s.sum, x, along));
                         });
}

kiln_value kiln_nn_log_softmax(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                               size_t dimensions_count) {
  return AlongDimensions(graph, "log_softmax", operand, dimensions, dimensions_count,
                         [](Formula& f, V x, const Ints& along) {
                           Shifted s = ShiftedOf(f, x, along);
                           return Subtract(f, s.x,
                                           f.Unfold(f.Add(Opcode::kLog, {s.sum}), x, along));
                         });
}

kiln_value kiln_nn_layer_norm(kiln_graph* graph, kiln_value operand, kiln_value scale,
                              kiln_value offset, const int64_t* dimensions, size_t dimensions_count,
                              double epsilon) {
  return AlongDimensions(graph, "layer_norm", operand, dimensions, dimensions_count,
                         [&](Formula& f, V x, const Ints& along) {
                           V centred = Subtract(f, x, f.Unfold(MeanOf(f, x, along), x, along));
                           V variance = MeanOf(f, Multiply(f, centred, centred), along);
                           V y = Normalised(f, centred, variance, along, epsilon);
                           if (scale) y = Multiply(f, y, Parameter(f, "scale", scale, x));
                           if (offset) y = Add(f, y, Parameter(f, "offset", offset, x));
                           return y;
                         });
}

kiln_value kiln_nn_rms_norm(kiln_graph* graph, kiln_value operand, kiln_value scale,
                            const int64_t* dimensions, size_t dimensions_count, double epsilon) {
  return AlongDimensions(graph, "rms_norm", operand, dimensions, dimensions_count,
                         [&](Formula& f, V x, const Ints& along) {
                           V square = MeanOf(f, Multiply(f, x, x), along);
                           V y = Normalised(f, x, square, along, epsilon);
                           if (scale) y = Multiply(f, y, Parameter(f, "scale", scale, x));
                           return y;
                         });
}

kiln_value kiln_nn_mean(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                        size_t dimensions_count, int32_t keepdims) {
  return Word(graph, "mean", [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kReal | kComplexType);
    const Ints along = f.Dimensions(x, dimensions, dimensions_count, true);
    const bool keep = f.Flag("keepdims", keepdims);
    if (!f.ok()) return nullptr;
    const auto [computed, result] = StatisticTypesOf(x->shape().type());
    V mean = f.Convert(MeanOf(f, f.Convert(x, computed), along), result);
    return f.Kept(mean, x, along, keep);
  });
}

kiln_value kiln_nn_variance(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                            size_t dimensions_count, double ddof, int32_t keepdims) {
  return Word(graph, "variance", [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kReal | kComplexType);
    const Ints along = f.Dimensions(x, dimensions, dimensions_count, true);
    const bool keep = f.Flag("keepdims", keepdims);
    if (!f.ok()) return nullptr;
    auto [computed, result] = StatisticTypesOf(x->shape().type());
    V wide = f.Convert(x, computed);
    V centred = Subtract(f, wide, f.Unfold(MeanOf(f, wide, along), x, along));
    V square = nullptr;
    if (IsComplex(computed)) {
      V real = f.Add(Opcode::kReal, {centred}), imaginary = f.Add(Opcode::kImag, {centred});
      square = Add(f, Multiply(f, real, real), Multiply(f, imaginary, imaginary));
      result = PartOf(result);
    } else {
      square = Multiply(f, centred, centred);
    }
    V sum = f.Fold(square, along, KILN_REDUCER_SUM);
    V count = Subtract(f, f.Count(x, along, ElementType::kF64), f.Scalar(ElementType::kF64, ddof));
    V divisor = f.Add(Opcode::kMaximum, {count, f.Scalar(ElementType::kF64, 0)});
    if (!f.ok()) return nullptr;
    divisor = f.BroadcastTo(f.Convert(divisor, sum->shape().type()), sum->shape().dimensions());
    return f.Kept(f.Convert(Divide(f, sum, divisor), result), x, along, keep);
  });
}

kiln_value kiln_nn_argmax(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                          size_t dimensions_count, int32_t keepdims, kiln_dtype dtype) {
  return PositionOf(graph, "argmax", true, operand, dimensions, dimensions_count, keepdims, dtype);
}

kiln_value kiln_nn_argmin(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                          size_t dimensions_count, int32_t keepdims, kiln_dtype dtype) {
  return PositionOf(graph, "argmin", false, operand, dimensions, dimensions_count, keepdims, dtype);
}
