#include "passes/simplify/terms.h"

#include <bit>
#include <unordered_set>

#include "interp/interpreter.h"
#include "ir/reducer.h"
#include "tensor/extremes.h"

namespace kiln::passes::simplify {

using ir::Instruction;

namespace {

bool IsSplatOf(const Instruction* x, const Literal& scalar) {
  std::optional<Literal> splat = SplatOf(x);
  return splat && *splat == scalar;
}

}  // namespace

Instruction* MakeShaped(Instruction* at, const Shape& shape, Opcode opcode,
                        std::vector<Instruction*> operands, Attributes attributes,
                        std::vector<ir::Computation*> called) {
  return ir::Builder(at).AddShaped(shape, opcode, std::move(operands), std::move(attributes),
                                   std::move(called));
}

Instruction* Make(Instruction* at, Opcode opcode, std::vector<Instruction*> operands,
                  Attributes attributes) {
  return MakeShaped(at, at->shape(), opcode, std::move(operands), std::move(attributes));
}

Instruction* MakeReduce(Instruction* at, const Shape& shape, Instruction* operand,
                        Instruction* init, Ints dimensions) {
  return MakeShaped(at, shape, Opcode::kReduce, {operand, init},
                    {{Attr::kDimensions, std::move(dimensions)}}, {at->called(0)});
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
  return !IsFloat(x) && IsKernelType(x->shape().type()) &&
         IsSplatOf(x, kiln::AllOnes(x->shape().type()));
}
bool IsLowest(const Instruction* x) {
  return IsKernelType(x->shape().type()) && IsSplatOf(x, Lowest(x->shape().type()));
}
bool IsHighest(const Instruction* x) {
  return IsKernelType(x->shape().type()) && IsSplatOf(x, Highest(x->shape().type()));
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
  if (shape.num_elements() != 1)
    return Spread(at, shape, ir::Builder(at).Constant(std::move(scalar)));
  Literal array(shape);
  std::memcpy(array.data(), scalar.data(), static_cast<size_t>(scalar.byte_size()));
  return ir::Builder(at).Constant(shape, std::make_shared<const Literal>(std::move(array)));
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
  return reduce.operand_count() == 2 ? ir::ReducerOf(*reduce.called(0)) : std::nullopt;
}

Instruction* MakeSum(Instruction* at, const Shape& shape, Instruction* x, Ints dimensions) {
  ir::Builder b(at);
  return b.AddShaped(shape, Opcode::kReduce, {x, b.Scalar(shape.type(), 0)},
                     {{Attr::kDimensions, std::move(dimensions)}},
                     {b.Reducer(Opcode::kAdd, shape.type(), "sum")});
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
