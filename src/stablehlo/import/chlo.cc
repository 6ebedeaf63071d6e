// Operations of CHLO that are more than one op of HLO.
#include <cmath>
#include <limits>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

Instruction* Part(Builder& b, Opcode part, Instruction* x) { return b.Add(part, {x}); }

Instruction* Complex(Builder& b, Instruction* real, Instruction* imaginary) {
  return b.Add(Opcode::kComplex, {real, imaginary});
}

Result<Values> Conj(Op& op) {
  Instruction* x = op.operand(0);
  if (!IsComplex(op.type(0))) return Values{x};
  Instruction* imaginary = op.b.Add(Opcode::kNegate, {Part(op.b, Opcode::kImag, x)});
  return op.One(Complex(op.b, Part(op.b, Opcode::kReal, x), imaginary));
}

// (x + iy)^2 = (x + y)(x - y) + 2ixy. If |x| = |y|, one factor is 0, and the other may overflow.
Result<Values> Square(Op& op) {
  Builder& b = op.b;
  if (!IsComplex(op.type(0))) {
    return op.One(b.Add(Opcode::kMultiply, {op.operand(0), op.operand(0)}));
  }
  Instruction* x = Part(b, Opcode::kReal, op.operand(0));
  Instruction* y = Part(b, Opcode::kImag, op.operand(0));
  KILN_RETURN_IF_ERROR(b.status());
  const Shape& shape = x->shape();
  Instruction* equal =
      b.Compare(Direction::kEq, b.Add(Opcode::kAbs, {x}), b.Add(Opcode::kAbs, {y}));
  equal = b.Add(Opcode::kAnd, {equal, b.Add(Opcode::kIsFinite, {x})});
  Instruction* real =
      b.Add(Opcode::kMultiply, {b.Add(Opcode::kSubtract, {x, y}), b.Add(Opcode::kAdd, {x, y})});
  Instruction* xy = b.Add(Opcode::kMultiply, {x, y});
  return op.One(
      Complex(b, b.Select(equal, b.Number(shape, 0), real), b.Add(Opcode::kAdd, {xy, xy})));
}

// atan(z) = -i atanh(iz): the parts of operand and result change places.
Result<Values> Atan(Op& op) {
  Builder& b = op.b;
  Instruction* z = op.operand(0);
  if (!IsComplex(op.type(0))) {
    return op.One(b.Add(Opcode::kAtan2, {z, b.Number(op.shape(0), 1)}));
  }
  Instruction* turned =
      Complex(b, b.Add(Opcode::kNegate, {Part(b, Opcode::kImag, z)}), Part(b, Opcode::kReal, z));
  Instruction* w = b.Add(Opcode::kAtanh, {turned});
  return op.One(
      Complex(b, Part(b, Opcode::kImag, w), b.Add(Opcode::kNegate, {Part(b, Opcode::kReal, w)})));
}

// Functions of real numbers, computed as in XLA, the likely reference of programs: in f32 for
// narrower types.
struct Wide {
  Instruction* x = nullptr;
  Shape shape;
};

Wide Widened(Op& op) {
  Wide wide{op.operand(0), op.shape(0)};
  if (!IsFloat(op.type(0)) || BitWidth(op.type(0)) >= 32) return wide;
  wide.x = op.b.Convert(wide.x, ElementType::kF32);
  wide.shape = Shape(ElementType::kF32, wide.shape.dimensions());
  return wide;
}

// e^(x + log(1/2)), which does not overflow before half of e^x does.
Instruction* HalfExponential(Builder& b, const Shape& shape, Instruction* x) {
  Instruction* log_half = b.Number(shape, std::log(0.5));
  return b.Add(Opcode::kExponential, {b.Add(Opcode::kAdd, {x, log_half})});
}

// (e^x + e^-x) / 2.
Result<Values> Cosh(Op& op) {
  Builder& b = op.b;
  if (IsComplex(op.type(0))) return op.One(b.Add(Opcode::kCosh, {op.operand(0)}));
  const Wide w = Widened(op);
  Instruction* sum =
      b.Add(Opcode::kAdd, {HalfExponential(b, w.shape, w.x),
                           HalfExponential(b, w.shape, b.Add(Opcode::kNegate, {w.x}))});
  return op.One(b.Convert(sum, op.type(0)));
}

// (e^x - e^-x) / 2; near 0 by m = e^x - 1 it is (m + m / (m + 1)) / 2.
Result<Values> Sinh(Op& op) {
  Builder& b = op.b;
  if (IsComplex(op.type(0))) return op.One(b.Add(Opcode::kSinh, {op.operand(0)}));
  const Wide w = Widened(op);
  Instruction* large =
      b.Add(Opcode::kSubtract, {HalfExponential(b, w.shape, w.x),
                                HalfExponential(b, w.shape, b.Add(Opcode::kNegate, {w.x}))});
  Instruction* m = b.Add(Opcode::kExponentialMinusOne, {w.x});
  Instruction* one = b.Number(w.shape, 1);
  Instruction* quotient = b.Add(Opcode::kDivide, {m, b.Add(Opcode::kAdd, {m, one})});
  Instruction* small =
      b.Add(Opcode::kMultiply, {b.Number(w.shape, 0.5), b.Add(Opcode::kAdd, {m, quotient})});
  Instruction* near = b.Compare(Direction::kLt, b.Add(Opcode::kAbs, {w.x}), one);
  return op.One(b.Convert(b.Select(near, small, large), op.type(0)));
}

Result<Values> IsInf(Op& op) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::string_view name = op.operation.name;
  Instruction* x = op.operand(0);
  if (name == "chlo.is_inf") x = op.b.Add(Opcode::kAbs, {x});
  Instruction* inf = op.b.Number(op.shape(0), name == "chlo.is_neg_inf" ? -kInf : kInf);
  return op.One(op.b.Compare(Direction::kEq, x, inf));
}

Result<Values> ConstantLike(Op& op) {
  const mlir::Attribute* value = op.Find("value");
  if (!value) return InvalidArgument("the attribute value is missing");
  // A number in the type of the elements, whatever its own type.
  Result<Literal> literal = Status();
  if (value->is(mlir::AttributeKind::kElements)) {
    literal = LiteralOf(*value, *value->type);
  } else if (value->is(mlir::AttributeKind::kFloat)) {
    literal = Literal::ScalarOf(op.type(0), value->number);
  } else if (std::optional<int64_t> number = mlir::IntOf(*value)) {
    literal = Literal::Scalar<int64_t>(ElementType::kS64, *number);
  } else {
    return InvalidArgument("the attribute value must be a number");
  }
  KILN_RETURN_IF_ERROR(literal.status());
  if (!literal->shape().is_scalar()) {
    return InvalidArgument("the attribute value must be one number");
  }
  Instruction* number = op.b.Convert(op.b.Constant(*std::move(literal)), op.type(0));
  return op.One(op.b.Spread(op.shape(0), number));
}

Result<Values> TopK(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t k, op.Int("k"));
  return op.Unpack(op.b.Add(Opcode::kTopK, op.operands, {{Attr::kK, k}, {Attr::kLargest, true}}));
}

// The common dimensions of broadcast operands. Trailing dimensions are aligned, unless `dimensions`
// maps the dimensions of the operand of lower rank.
Status BroadcastAll(Op& op, const std::optional<Ints>& dimensions) {
  int64_t rank = 0;
  for (const Instruction* x : op.operands) rank = std::max(rank, x->shape().rank());
  std::vector<Dimension> to(static_cast<size_t>(rank), Dimension(1));
  std::vector<Ints> places;
  for (const Instruction* x : op.operands) {
    const Shape& shape = x->shape();
    Ints place;
    for (int64_t d = 0; d < shape.rank(); ++d) place.push_back(rank - shape.rank() + d);
    if (dimensions && shape.rank() < rank) place = *dimensions;
    if (std::ssize(place) != shape.rank()) {
      return InvalidArgument("broadcast_dimensions has ", place.size(), " numbers for ", shape);
    }
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const int64_t at = place[static_cast<size_t>(d)];
      if (at < 0 || at >= rank) {
        return InvalidArgument("broadcast_dimensions has ", at, "; expected 0 to below ", rank);
      }
      Dimension& size = to[static_cast<size_t>(at)];
      const Dimension& own = shape.dimension(d);
      if (size == own || own == Dimension(1)) continue;
      if (size != Dimension(1)) {
        return InvalidArgument("dimension ", d, " of ", shape, " is to be repeated to ", size);
      }
      size = own;
    }
    places.push_back(std::move(place));
  }
  for (size_t i = 0; i < op.operands.size(); ++i) {
    op.operands[i] = op.b.BroadcastInDim(op.operands[i], to, places[i]);
  }
  return op.b.status();
}

// "chlo.broadcast_add" is "stablehlo.add" of broadcast operands.
Result<Values> Broadcast(Op& op) {
  std::optional<Ints> dimensions;
  if (op.Find("broadcast_dimensions")) {
    KILN_ASSIGN_OR_RETURN(dimensions, op.IntList("broadcast_dimensions"));
  }
  KILN_RETURN_IF_ERROR(BroadcastAll(op, dimensions));
  constexpr std::string_view kPrefix = "chlo.broadcast_";
  const std::string_view name = op.operation.name.substr(kPrefix.size());
  const bool of_chlo = name == "next_after" || name == "polygamma" || name == "zeta";
  return LowerAs(op, Cat(of_chlo ? "chlo." : "stablehlo.", name));
}

constexpr Row kRows[] = {
    {"chlo.atan", Atan, 1, 1, 0, Quantised::kExpressed},
    {"chlo.conj", Conj},
    {"chlo.cosh", Cosh, 1, 1, 0, Quantised::kExpressed},
    {"chlo.constant_like", ConstantLike},
    {"chlo.is_inf", IsInf},
    {"chlo.is_neg_inf", IsInf},
    {"chlo.is_pos_inf", IsInf},
    {"chlo.sinh", Sinh, 1, 1, 0, Quantised::kExpressed},
    {"chlo.square", Square, 1, 1, 0, Quantised::kExpressed},
    {"chlo.top_k", TopK, 1, 2},
    {"chlo.broadcast_add", Broadcast, 2},
    {"chlo.broadcast_and", Broadcast, 2},
    {"chlo.broadcast_atan2", Broadcast, 2},
    {"chlo.broadcast_compare", Broadcast, 2},
    {"chlo.broadcast_complex", Broadcast, 2},
    {"chlo.broadcast_divide", Broadcast, 2},
    {"chlo.broadcast_maximum", Broadcast, 2},
    {"chlo.broadcast_minimum", Broadcast, 2},
    {"chlo.broadcast_multiply", Broadcast, 2},
    {"chlo.broadcast_next_after", Broadcast, 2},
    {"chlo.broadcast_or", Broadcast, 2},
    {"chlo.broadcast_polygamma", Broadcast, 2},
    {"chlo.broadcast_power", Broadcast, 2},
    {"chlo.broadcast_remainder", Broadcast, 2},
    {"chlo.broadcast_select", Broadcast, 3},
    {"chlo.broadcast_shift_left", Broadcast, 2},
    {"chlo.broadcast_shift_right_arithmetic", Broadcast, 2},
    {"chlo.broadcast_shift_right_logical", Broadcast, 2},
    {"chlo.broadcast_subtract", Broadcast, 2},
    {"chlo.broadcast_xor", Broadcast, 2},
    {"chlo.broadcast_zeta", Broadcast, 2},
};

}  // namespace

std::span<const Row> ChloRows() { return kRows; }

}  // namespace kiln::stablehlo
