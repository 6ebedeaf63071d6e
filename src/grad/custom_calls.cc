// Derivatives of custom calls: by rules of the user's, and of the library's own functions.
#include <string_view>
#include <utility>

#include "grad/custom.h"
#include "grad/rules.h"
#include "ir/analysis/effects.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// Matrices of the last two dimensions.
struct Matrices {
  Builder& b;
  Shape shape;

  int64_t rows() const { return shape.dim(shape.rank() - 2); }
  int64_t columns() const { return shape.dim(shape.rank() - 1); }
  Matrices Square(int64_t size) const {
    Matrices square = *this;
    square.shape.set_dimension(shape.rank() - 2, size);
    square.shape.set_dimension(shape.rank() - 1, size);
    return square;
  }
  // The number of each element's row or column.
  Instruction* Place(int64_t from_last) const {
    Shape places = shape;
    places.set_type(ElementType::kS32);
    return b.Iota(places, shape.rank() - from_last);
  }
  // x where row direction column, else 0.
  Instruction* Triangle(Direction direction, Instruction* x) const {
    return b.Masked(b.Compare(direction, Place(2), Place(1)), x);
  }
  // The upper left part of x, with zeros where x has none.
  Instruction* Corner(Instruction* x) const {
    std::vector<PaddingDimension> padding(static_cast<size_t>(shape.rank()));
    for (int64_t d = shape.rank() - 2; d < shape.rank(); ++d) {
      padding[static_cast<size_t>(d)].high = shape.dim(d) - x->shape().dim(d);
    }
    return b.Add(Opcode::kPad, {x, b.Scalar(shape.type(), 0)},
                 {{Attr::kPadding, std::move(padding)}});
  }
  Instruction* Product(Instruction* x, Instruction* y) const {
    Ints batch;
    for (int64_t d = 0; d + 2 < shape.rank(); ++d) batch.push_back(d);
    return b.Add(Opcode::kDot, {x, y},
                 {{Attr::kLhsBatchDims, batch},
                  {Attr::kRhsBatchDims, batch},
                  {Attr::kLhsContractingDims, Ints{shape.rank() - 1}},
                  {Attr::kRhsContractingDims, Ints{shape.rank() - 2}}});
  }
  Instruction* Solve(Instruction* triangle, Instruction* x, bool left, bool lower,
                     bool unit) const {
    return b.Add(Opcode::kTriangularSolve, {triangle, x},
                 {{Attr::kLeftSide, left},
                  {Attr::kLower, lower},
                  {Attr::kUnitDiagonal, unit},
                  {Attr::kTransposeA, std::string("NO_TRANSPOSE")}});
  }
};

// P A = L U, with the factors in one matrix: for F = L^-1 P A' U^-1,
//   L' = L tril(F, -1), U' = triu(F) U
// where L and U are made square by columns and rows of the identity.
Derivative LuTangent(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* t = forward.TangentOf(op->operand(0)).array;
  if (!t) return {};
  const Matrices all{b, t->shape()};
  const int64_t m = all.rows(), n = all.columns(), k = std::min(m, n), rank = all.shape.rank();
  const Matrices left = all.Square(m), right = all.Square(n);
  // The rows in their order, by a matrix of ones and zeros.
  Ints outer;
  for (int64_t d = 0; d + 1 < rank; ++d) outer.push_back(d);
  Instruction* order =
      b.Broadcast(b.Convert(b.Element(op, 2), ElementType::kS32), left.shape.dimensions(), outer);
  Instruction* is_from = b.Compare(Direction::kEq, order, left.Place(1));
  Instruction* x = all.Product(b.Convert(is_from, all.shape.type()), t);

  Instruction* factors = b.Element(op, 0);
  const auto with_ones = [&](const Matrices& of, Instruction* triangle, int64_t from) {
    Instruction* ones = b.And(
        b.Compare(Direction::kEq, of.Place(2), of.Place(1)),
        b.Compare(Direction::kGe, of.Place(2), b.Number(of.Place(2), static_cast<double>(from))));
    return b.Select(ones, b.Number(of.shape, 1), triangle);
  };
  // Columns of L beyond k, and rows of U beyond k, are the identity's.
  Instruction* below = all.Triangle(Direction::kGt, factors);
  Instruction* above = all.Triangle(Direction::kLe, factors);
  Instruction* l = with_ones(left, left.Triangle(Direction::kGt, left.Corner(below)), 0);
  Instruction* u = with_ones(right, right.Corner(above), k);
  Instruction* f = all.Solve(u, all.Solve(l, x, true, true, true), false, false, false);
  Instruction* sum = b.Plus(all.Product(l, all.Triangle(Direction::kGt, f)),
                            all.Product(all.Triangle(Direction::kLe, f), u));
  return {.elements = {{sum}}};
}

struct OwnFunction {
  std::string_view target;
  decltype(&LuTangent) tangent;
};
constexpr OwnFunction kOwnFunctions[] = {{"lapack.getrf", LuTangent}};

decltype(&LuTangent) FindOwn(const Instruction& call) {
  const std::string_view target = call.attributes().Text(Attr::kCustomCallTarget);
  for (const OwnFunction& function : kOwnFunctions) {
    if (function.target == target) return function.tangent;
  }
  return nullptr;
}

// The user's rule; null, perhaps with the builder's failure, where there is none.
ir::Computation* BackwardOf(Builder& b, const Options& options, const Instruction& call) {
  if (!options.backward_of) return nullptr;
  Result<ir::Computation*> found = options.backward_of(call);
  if (found.ok()) return *found;
  b.Fail(found.status());
  return nullptr;
}

Status NoRule(const Instruction& call) {
  return Unimplemented("'", call.name(), "': custom-call of the target '",
                       call.attributes().Text(Attr::kCustomCallTarget), "' has no derivative");
}

}  // namespace

template <>
Derivative FlowForward<Opcode::kCustomCall>(Forward& forward, Instruction* op) {
  if (ir::IsMarker(*op)) return forward.TangentOf(op->operand(0));
  Builder& b = forward.builder();
  if (ir::Computation* rule = BackwardOf(b, forward.options(), *op)) {
    return RuleForward(forward, op, *rule);
  }
  if (auto* tangent = FindOwn(*op)) return tangent(forward, op);
  b.Fail(NoRule(*op));
  return {};
}

template <>
void FlowReverse<Opcode::kCustomCall>(Reverse& reverse, Instruction* op,
                                      const Derivative& cotangent) {
  if (ir::IsMarker(*op)) return reverse.Add(op->operand(0), cotangent);
  Builder& b = reverse.builder();
  if (ir::Computation* rule = BackwardOf(b, reverse.options(), *op)) {
    return RuleReverse(reverse, op, *rule, cotangent);
  }
  if (auto* tangent = FindOwn(*op)) return reverse.HandOnTangents(op, tangent, cotangent);
  b.Fail(NoRule(*op));
}

}  // namespace kiln::grad
