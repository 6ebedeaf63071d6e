#include "passes/simplify/terms.h"

#include <bit>
#include <limits>
#include <unordered_set>

#include "interp/interpreter.h"

namespace kiln::passes::simplify {

using ir::Instruction;

namespace {

Literal AllOnes(ElementType type) {
  Literal ones(Shape::Scalar(type));
  std::memset(ones.data(), IsPred(type) ? 1 : 0xff, static_cast<size_t>(ones.byte_size()));
  return ones;
}

// The greatest value of a type, or the least.
Literal Extreme(ElementType type, bool greatest) {
  Literal extreme(Shape::Scalar(type));
  VisitKernelType(type, [&](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    T& value = extreme.values<T>()[0];
    value = greatest ? Limits::max() : Limits::lowest();
    if constexpr (Limits::has_infinity) value = greatest ? Limits::infinity() : -Limits::infinity();
  });
  return extreme;
}

bool IsSplatOf(const Instruction* x, const Literal& scalar) {
  std::optional<Literal> splat = SplatOf(x);
  return splat && *splat == scalar;
}

}  // namespace

Instruction* MakeShaped(Instruction* at, const Shape& shape, Opcode opcode,
                        std::vector<Instruction*> operands, Attributes attributes) {
  return at->parent()->Create({.opcode = opcode,
                               .operands = std::move(operands),
                               .attributes = std::move(attributes),
                               .shape = shape,
                               .op_name = at->op_name()},
                              at);
}

Instruction* Make(Instruction* at, Opcode opcode, std::vector<Instruction*> operands,
                  Attributes attributes) {
  return MakeShaped(at, at->shape(), opcode, std::move(operands), std::move(attributes));
}

Instruction* MakeReduce(Instruction* at, const Shape& shape, Instruction* operand,
                        Instruction* init, Ints dimensions) {
  return at->parent()->Create({.opcode = Opcode::kReduce,
                               .operands = {operand, init},
                               .attributes = {{Attr::kDimensions, std::move(dimensions)}},
                               .called = {at->called(0)},
                               .shape = shape,
                               .op_name = at->op_name()},
                              at);
}

Shape ShapeOf(ElementType type, std::span<const int64_t> dims) { return Shape(type, dims); }

Shape WithType(const Shape& shape, ElementType type) { return ShapeOf(type, shape.dims()); }

std::optional<Literal> SplatOf(const Instruction* x) {
  while (x->opcode() == Opcode::kBroadcast) x = x->operand(0);
  if (!x->IsConstant() || !x->shape().is_array() || !x->literal().IsSplat()) return std::nullopt;
  Literal scalar(Shape::Scalar(x->shape().type()));
  std::memcpy(scalar.data(), x->literal().data(), static_cast<size_t>(scalar.byte_size()));
  return scalar;
}

Instruction* ScalarOf(Instruction* at, Instruction* x) {
  if (x->shape().is_scalar()) return x;
  if (x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar()) {
    return x->operand(0);
  }
  std::optional<Literal> scalar = SplatOf(x);
  return scalar ? Splat(at, scalar->shape(), *scalar) : nullptr;
}

bool IsConstantTerm(const Instruction* x) {
  while (x->opcode() == Opcode::kBroadcast) x = x->operand(0);
  return x->IsConstant();
}

bool WillBeConstant(const Instruction* x) {
  constexpr size_t kBudget = 256;
  std::unordered_set<const Instruction*> seen = {x};
  std::vector<const Instruction*> work = {x};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (i->IsConstant()) continue;
    if (i->operand_count() == 0 || seen.size() > kBudget) return false;
    if (i->opcode() == Opcode::kOptBarrier) return false;
    for (const Instruction* operand : i->operands()) {
      if (seen.insert(operand).second) work.push_back(operand);
    }
  }
  return true;
}

bool IsSame(const Instruction* a, const Instruction* b) {
  if (a == b) return true;
  if (!a->shape().SameTypeAndDimensions(b->shape())) return false;
  auto scalar = [](const Instruction* x) -> const Instruction* {
    bool spread = x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar();
    return spread ? x->operand(0) : nullptr;
  };
  if (scalar(a) && scalar(a) == scalar(b)) return true;
  std::optional<Literal> of_a = SplatOf(a);
  return of_a && IsSplatOf(b, *of_a);
}

bool IsSigned(const Instruction* x) { return kiln::IsSigned(x->shape().type()); }
bool IsInt(const Instruction* x) { return IsInteger(x->shape().type()); }
bool IsFloat(const Instruction* x) { return kiln::IsFloat(x->shape().type()); }
bool IsPred(const Instruction* x) { return kiln::IsPred(x->shape().type()); }

bool IsAllOnes(const Instruction* x) {
  return !IsFloat(x) && IsKernelType(x->shape().type()) && IsSplatOf(x, AllOnes(x->shape().type()));
}
bool IsLowest(const Instruction* x) {
  return IsKernelType(x->shape().type()) && IsSplatOf(x, Extreme(x->shape().type(), false));
}
bool IsHighest(const Instruction* x) {
  return IsKernelType(x->shape().type()) && IsSplatOf(x, Extreme(x->shape().type(), true));
}

bool IsSpread(const Instruction* x) {
  return x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar();
}

bool IsUsedOnce(const Instruction* x) {
  if (x->users().size() != 1 || x->IsRoot()) return false;
  int64_t uses = 0;
  for (const Instruction* operand : x->users()[0]->operands()) uses += operand == x;
  return uses == 1;
}

Instruction* Spread(Instruction* at, const Shape& shape, Instruction* scalar) {
  if (shape.rank() == 0) return scalar;
  if (shape.num_elements() == 1) return MakeShaped(at, shape, Opcode::kReshape, {scalar});
  return MakeShaped(at, shape, Opcode::kBroadcast, {scalar}, {{Attr::kDimensions, Ints{}}});
}

Instruction* Splat(Instruction* at, const Shape& shape, Literal scalar) {
  // An array of one element is a constant itself.
  bool one = shape.num_elements() == 1;
  Shape of_constant = one ? shape : scalar.shape();
  if (one) {
    Literal array(shape);
    std::memcpy(array.data(), scalar.data(), static_cast<size_t>(scalar.byte_size()));
    scalar = std::move(array);
  }
  Instruction* constant =
      at->parent()->Create({.opcode = Opcode::kConstant,
                            .shape = std::move(of_constant),
                            .literal = std::make_shared<const Literal>(std::move(scalar)),
                            .op_name = at->op_name()},
                           at);
  return one ? constant : Spread(at, shape, constant);
}

Instruction* SplatNumber(Instruction* at, const Shape& shape, double value) {
  return Splat(at, shape, Literal::ScalarOf(shape.type(), value));
}

Instruction* SplatAllOnes(Instruction* at, const Shape& shape) {
  return Splat(at, shape, AllOnes(shape.type()));
}

Instruction* OnConstants(Instruction* at, Opcode opcode, Instruction* a, Instruction* b) {
  ir::Computation* c = at->parent();
  Shape shape = WithType(a->shape(), a->shape().type());
  std::vector<Literal> scalars;
  for (const Instruction* x : {a, b}) {
    if (!x) continue;
    if (std::optional<Literal> scalar = SplatOf(x)) scalars.push_back(*std::move(scalar));
  }
  if (scalars.size() < (b ? 2 : 1)) {
    return MakeShaped(at, shape, opcode, b ? std::vector{a, b} : std::vector{a});
  }
  std::vector<Instruction*> operands;
  std::vector<const Literal*> values;
  for (const Literal& scalar : scalars) {
    operands.push_back(Splat(at, scalar.shape(), scalar));
    values.push_back(&scalar);
  }
  Instruction* op = MakeShaped(at, Shape::Scalar(shape.type()), opcode, operands);
  auto value = interp::EvaluateInstruction(*op, values);
  if (!value.ok()) return Spread(at, shape, op);  // Whoever compiles it says why.
  c->Remove(op);
  for (Instruction* operand : operands) c->Remove(operand);
  return Splat(at, shape, *std::move(value));
}

bool IsIdempotent(Opcode opcode, ElementType type) {
  switch (opcode) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return true;
    case Opcode::kAdd:
    case Opcode::kMultiply:
      return kiln::IsPred(type);
    default:
      return false;
  }
}

std::optional<Ints> InsertedOnes(std::span<const int64_t> from, std::span<const int64_t> to) {
  Ints places;
  for (size_t d = 0; d < to.size(); ++d) {
    if (places.size() < from.size() && from[places.size()] == to[d]) {
      places.push_back(static_cast<int64_t>(d));
    } else if (to[d] != 1) {
      return std::nullopt;
    }
  }
  if (places.size() < from.size()) return std::nullopt;
  return places;
}

std::optional<Opcode> ReducerOf(const Instruction& reduce) {
  if (reduce.operand_count() != 2) return std::nullopt;
  const Instruction* root = reduce.called(0)->root();
  if (!HasTrait(root->opcode(), kCommutative) || root->operand(0)->opcode() != Opcode::kParameter ||
      root->operand(1)->opcode() != Opcode::kParameter || root->operand(0) == root->operand(1)) {
    return std::nullopt;
  }
  return root->opcode();
}

Instruction* MakeSum(Instruction* at, const Shape& shape, Instruction* x, Ints dimensions) {
  ElementType type = shape.type();
  ir::Computation* sum = at->parent()->parent()->AddComputation("sum");
  std::vector<Instruction*> terms;
  for (int64_t n : {0, 1}) {
    terms.push_back(sum->Create({.opcode = Opcode::kParameter,
                                 .attributes = {{Attr::kParameterNumber, n}},
                                 .shape = Shape::Scalar(type)}));
  }
  sum->set_root(sum->Create(
      {.opcode = Opcode::kAdd, .operands = std::move(terms), .shape = Shape::Scalar(type)}));
  return at->parent()->Create({.opcode = Opcode::kReduce,
                               .operands = {x, SplatNumber(at, Shape::Scalar(type), 0)},
                               .attributes = {{Attr::kDimensions, std::move(dimensions)}},
                               .called = {sum},
                               .shape = shape,
                               .op_name = at->op_name()},
                              at);
}

std::optional<int64_t> PowerOfTwo(const Instruction* x) {
  std::optional<Literal> splat = SplatOf(x);
  if (!splat || !IsInt(x) || !IsKernelType(x->shape().type())) return std::nullopt;
  return VisitKernelType(x->shape().type(), [&](auto zero) -> std::optional<int64_t> {
    using T = decltype(zero);
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      T value = splat->values<T>()[0];
      using Unsigned = std::make_unsigned_t<T>;
      if (value > 0 && std::has_single_bit(static_cast<Unsigned>(value))) {
        return std::countr_zero(static_cast<Unsigned>(value));
      }
    }
    return std::nullopt;
  });
}

Instruction* RoundingBias(Instruction* at, Instruction* x, int64_t n) {
  Shape shape = WithType(x->shape(), x->shape().type());
  int64_t width = BitWidth(shape.type());
  auto bits = [&](int64_t k) { return SplatNumber(at, shape, static_cast<double>(k)); };
  Instruction* sign = MakeShaped(at, shape, Opcode::kShiftRightArithmetic, {x, bits(width - 1)});
  return MakeShaped(at, shape, Opcode::kShiftRightLogical, {sign, bits(width - n)});
}

}  // namespace kiln::passes::simplify
