// Quantised values are integers: round(x / scale) + zero_point, clamped to a range.
#include "stablehlo/import/quantised.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Quantization;

// A number broadcast to a shape, or one for each index of the quantised axis.
Instruction* Numbers(Builder& b, const Shape& shape, std::optional<int64_t> axis,
                     const std::vector<double>& numbers) {
  if (!axis || numbers.size() == 1) return b.Number(shape, numbers[0]);
  Literal vector(Shape(shape.type(), {std::ssize(numbers)}));
  const auto width = static_cast<size_t>(ByteWidth(shape.type()));
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Literal number = Literal::ScalarOf(shape.type(), numbers[k]);
    std::memcpy(vector.data() + k * width, number.data(), width);
  }
  return b.SpreadAlong(shape, *axis, b.Constant(std::move(vector)));
}

std::optional<int64_t> AxisOf(const Quantization& q) {
  if (q.axes.empty()) return std::nullopt;
  return q.axes[0];
}

std::vector<double> ZeroPointsOf(const Quantization& q) {
  return std::vector<double>(q.zero_points.begin(), q.zero_points.end());
}

bool HasZeroPoint(const Quantization& q) {
  return std::ranges::any_of(q.zero_points, [](int64_t zero) { return zero != 0; });
}

Shape WithType(const Shape& shape, ElementType type) { return Shape(type, shape.dimensions()); }

// The integers less their zero points, in a type that holds the difference.
Instruction* Centred(Builder& b, Instruction* x, const Quantization& q, ElementType type) {
  if (!x) return nullptr;
  const Shape shape = WithType(x->shape(), type);
  x = b.Convert(x, type);
  if (!HasZeroPoint(q)) return x;
  return b.Add(Opcode::kSubtract, {x, Numbers(b, shape, AxisOf(q), ZeroPointsOf(q))});
}

// The largest magnitude of a centred integer.
double RangeOf(const Quantization& q) {
  double range = 0;
  for (int64_t zero : q.zero_points) {
    const auto z = static_cast<double>(zero);
    range = std::max({range, std::fabs(static_cast<double>(q.storage_max) - z),
                      std::fabs(static_cast<double>(q.storage_min) - z)});
  }
  return range;
}

// round(x + zero point), clamped.
Instruction* Rounded(Builder& b, Instruction* x, const Quantization& q) {
  if (!x) return nullptr;
  const Shape shape = x->shape();
  if (HasZeroPoint(q)) {
    x = b.Add(Opcode::kAdd, {x, Numbers(b, shape, AxisOf(q), ZeroPointsOf(q))});
  }
  x = b.Add(Opcode::kClamp, {b.Scalar(shape.type(), static_cast<double>(q.storage_min)), x,
                             b.Scalar(shape.type(), static_cast<double>(q.storage_max))});
  if (IsFloat(shape.type())) x = b.Add(Opcode::kRoundNearestEven, {x});
  Result<ElementType> storage = ElementTypeOf(*q.storage);
  return storage.ok() ? b.Convert(x, *storage) : b.Fail(storage.status());
}

// The sums of rhs along what is contracted, for all of a result of `shape`.
Instruction* SumsOfRhs(Builder& b, Instruction* rhs, const Product& product, ElementType type,
                       const Shape& shape) {
  Ints contracted, places;
  for (int64_t d = 0; d < rhs->shape().rank(); ++d) {
    if (auto place = product.result_dimension(d)) {
      places.push_back(*place);
    } else {
      contracted.push_back(d);
    }
  }
  return b.Broadcast(b.Sum(b.Convert(rhs, type), std::move(contracted)), shape.dimensions(),
                     std::move(places));
}

struct IntegerProduct {
  const Quantization &lhs, &rhs, &result;
  std::optional<int64_t> axis;  // of the result, along which rhs has several scales
};

// The sums of products of centred integers. Where those of rhs are centred as they are, and both
// are bytes, factors stay bytes:
//
//   sum((x - zero) * w) = sum(x * w) - zero * sum(w)
Result<Instruction*> SumsOf(Op& op, const Product& product, const IntegerProduct& q,
                            ElementType type) {
  Builder& b = op.b;
  Instruction *lhs = op.operand(0), *rhs = op.operand(1);
  const bool are_bytes = q.lhs.storage->width == 8 && lhs && rhs &&
                         lhs->shape().type() == rhs->shape().type() &&
                         IsSigned(lhs->shape().type()) == IsSigned(type) && !HasZeroPoint(q.rhs);
  if (!are_bytes) {
    return product.make(Centred(b, lhs, q.lhs, type), Centred(b, rhs, q.rhs, type), type);
  }
  const bool has_zero = HasZeroPoint(q.lhs);
  const auto zero = has_zero ? static_cast<double>(q.lhs.zero_points[0]) : 0;
  if (has_zero && product.pad) lhs = product.pad(lhs, b.Scalar(lhs->shape().type(), zero));
  KILN_ASSIGN_OR_RETURN(Instruction * sums, product.make(lhs, rhs, type));
  if (!has_zero || !sums) return sums;
  Instruction* more = SumsOfRhs(b, rhs, product, type, sums->shape());
  return b.Minus(sums, b.Times(more, b.Number(more->shape(), zero)));
}

// All sums are exact, and rescaled once to the result's scale.
Result<Values> LowerIntegers(Op& op, const Product& product, const IntegerProduct& q) {
  Builder& b = op.b;
  // The factor of the result, for each index of its axis.
  std::vector<double> scales;
  const size_t count = std::max(q.rhs.scales.size(), q.result.scales.size());
  auto at = [](const std::vector<double>& list, size_t k) {
    return list[list.size() == 1 ? 0 : k];
  };
  bool plain = true;
  for (size_t k = 0; k < count; ++k) {
    scales.push_back(q.lhs.scales[0] * at(q.rhs.scales, k) / at(q.result.scales, k));
    plain &= static_cast<float>(scales.back()) == 1.0f;
  }
  const double bound =
      static_cast<double>(product.terms) * RangeOf(q.lhs) * RangeOf(q.rhs) + RangeOf(q.result);
  const ElementType type =
      bound < static_cast<double>(INT32_MAX) ? ElementType::kS32 : ElementType::kS64;
  KILN_RETURN_IF_ERROR(b.status());
  KILN_ASSIGN_OR_RETURN(Instruction * sums, SumsOf(op, product, q, type));
  KILN_RETURN_IF_ERROR(b.status());
  if (plain) return op.One(Rounded(b, sums, q.result));
  KILN_ASSIGN_OR_RETURN(ElementType expressed, ElementTypeOf(*q.result.expressed));
  const ElementType real = expressed == ElementType::kF64 ? expressed : ElementType::kF32;
  Instruction* numbers = b.Convert(sums, real);
  KILN_RETURN_IF_ERROR(b.status());
  Instruction* factor = Numbers(b, numbers->shape(), q.axis, scales);
  return op.One(Rounded(b, b.Add(Opcode::kMultiply, {numbers, factor}), q.result));
}

Result<Values> UniformQuantize(Op& op) {
  const Quantization *from = QuantizationOf(op.operand_type(0)),
                     *to = QuantizationOf(op.result_type(0));
  if (!to) return InvalidArgument("the result is of ", op.result_type(0), ", not quantised");
  Instruction* x = from ? Dequantise(op.b, op.operand(0), *from) : op.operand(0);
  return op.One(Quantise(op.b, x, *to));
}

Result<Values> UniformDequantize(Op& op) {
  const Quantization* from = QuantizationOf(op.operand_type(0));
  if (!from) return InvalidArgument("the operand is of ", op.operand_type(0), ", not quantised");
  return op.One(Dequantise(op.b, op.operand(0), *from));
}

constexpr Row kRows[] = {
    {"stablehlo.uniform_quantize", UniformQuantize, 1, 1, 0, Quantised::kOwn},
    {"stablehlo.uniform_dequantize", UniformDequantize, 1, 1, 0, Quantised::kOwn},
};

}  // namespace

std::span<const Row> QuantisedRows() { return kRows; }

Instruction* Dequantise(Builder& b, Instruction* x, const Quantization& q) {
  if (!x) return nullptr;
  Result<ElementType> expressed = ElementTypeOf(*q.expressed);
  if (!expressed.ok()) return b.Fail(expressed.status());
  const Shape shape = WithType(x->shape(), *expressed);
  // The difference of 32-bit integers may need one more bit.
  if (HasZeroPoint(q)) {
    x = Centred(b, x, q, q.storage->width < 32 ? ElementType::kS32 : ElementType::kS64);
  }
  return b.Add(Opcode::kMultiply,
               {b.Convert(x, *expressed), Numbers(b, shape, AxisOf(q), q.scales)});
}

Instruction* Quantise(Builder& b, Instruction* x, const Quantization& q) {
  if (!x) return nullptr;
  Result<ElementType> expressed = ElementTypeOf(*q.expressed);
  if (!expressed.ok()) return b.Fail(expressed.status());
  const Shape shape = WithType(x->shape(), *expressed);
  x = b.Convert(x, *expressed);
  return Rounded(b, b.Add(Opcode::kDivide, {x, Numbers(b, shape, AxisOf(q), q.scales)}), q);
}

Result<Values> LowerProduct(Op& op, const Product& product) {
  const Quantization *lhs = QuantizationOf(op.operand_type(0)),
                     *rhs = QuantizationOf(op.operand_type(1)),
                     *result = QuantizationOf(op.result_type(0));
  std::optional<int64_t> axis;
  if (rhs && !rhs->axes.empty()) axis = product.result_dimension(rhs->axes[0]);
  if (result && !result->axes.empty() && !axis) axis = result->axes[0];
  // Scales must be constant within a sum, and of a single dimension of the result.
  const bool fits = lhs && rhs && result && lhs->axes.empty() &&
                    (rhs->axes.empty() || product.result_dimension(rhs->axes[0])) &&
                    (result->axes.empty() || result->axes[0] == *axis);
  const bool counts = fits && (rhs->scales.size() == 1 || result->scales.size() == 1 ||
                               rhs->scales.size() == result->scales.size());
  if (counts) return LowerIntegers(op, product, {*lhs, *rhs, *result, axis});
  Instruction* l = lhs ? Dequantise(op.b, op.operand(0), *lhs) : op.operand(0);
  Instruction* r = rhs ? Dequantise(op.b, op.operand(1), *rhs) : op.operand(1);
  KILN_RETURN_IF_ERROR(op.b.status());
  KILN_ASSIGN_OR_RETURN(ElementType type,
                        result ? ElementTypeOf(*result->expressed) : op.ResultElement(0));
  KILN_ASSIGN_OR_RETURN(Instruction * x, product.make(l, r, type));
  return op.One(result ? Quantise(op.b, x, *result) : x);
}

}  // namespace kiln::stablehlo
