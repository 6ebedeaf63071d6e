#include "grad/apply.h"

#include <algorithm>
#include <unordered_map>

#include "ir/reducer.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;

namespace {

// A computation's instructions on arrays in place of its scalars.
class Application {
 public:
  Application(Builder& b, std::span<Instruction* const> arguments) : b_(b), arguments_(arguments) {
    const auto given = std::ranges::find_if(arguments, [](const Instruction* x) { return x; });
    like_ = given == arguments.end() ? nullptr : *given;
  }

  std::vector<Instruction*> Run(const Computation& function) {
    if (!like_) {
      const Shape& result = function.root()->shape();
      return Values(result.is_array() ? 1 : result.elements().size());
    }
    for (const Instruction* i : function.instructions()) {
      values_[i] = Of(*i);
      if (failed_) return Zeros(function.root()->shape());
    }
    return values_[function.root()];
  }

 private:
  // The elements of a tuple; of an array one.
  using Values = std::vector<Instruction*>;

  Values Of(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::kParameter:
        return {arguments_[static_cast<size_t>(i.attributes().Int(Attr::kParameterNumber))]};
      case Opcode::kConstant:
        if (!i.shape().is_scalar()) break;
        return {b_.BroadcastLike(like_, b_.Constant(i.shared_literal()), {})};
      case Opcode::kTuple:
        if (!std::ranges::all_of(i.operands(), IsScalar)) break;
        return Operands(i);
      case Opcode::kGetTupleElement:
        return {values_[i.operand(0)][static_cast<size_t>(i.attributes().Int(Attr::kIndex))]};
      case Opcode::kCall:
        if (!std::ranges::all_of(i.operands(), IsScalar)) break;
        return Apply(b_, *i.called(0), Operands(i));
      default:
        if (!i.shape().is_scalar() || !std::ranges::all_of(i.operands(), IsScalar)) break;
        if (IsElementwise(i.opcode()) || IsView(i.opcode()) || ir::IsScalarBitcast(i)) {
          return {OfScalars(i)};
        }
    }
    failed_ = true;
    b_.Fail(Unimplemented("'", i.name(),
                          "': the derivative of a computation of scalars with the op ",
                          OpcodeName(i.opcode())));
    return {};
  }

  static bool IsScalar(const Instruction* x) { return x->shape().is_scalar(); }

  Values Operands(const Instruction& i) {
    Values operands;
    for (const Instruction* x : i.operands()) operands.push_back(values_[x][0]);
    return operands;
  }

  Instruction* OfScalars(const Instruction& i) {
    Values operands = Operands(i);
    if (std::ranges::count(operands, nullptr)) return nullptr;
    if (IsView(i.opcode())) return operands[0];
    return b_.AddShaped(InPlaceOf(i.shape()), i.opcode(), std::move(operands), i.attributes());
  }

  // The shape of an array in place of a scalar.
  Shape InPlaceOf(const Shape& scalar) const {
    return Shape(scalar.type(), like_->shape().dimensions());
  }

  // What stands for results after a failure.
  Values Zeros(const Shape& result) {
    if (result.is_array()) return {b_.Zeros(InPlaceOf(result))};
    Values zeros;
    for (const Shape& element : result.elements()) zeros.push_back(b_.Zeros(InPlaceOf(element)));
    return zeros;
  }

  Builder& b_;
  const std::span<Instruction* const> arguments_;
  Instruction* like_;
  bool failed_ = false;
  std::unordered_map<const Instruction*, Values> values_;
};

}  // namespace

std::vector<Instruction*> Apply(Builder& b, const Computation& function,
                                std::span<Instruction* const> arguments) {
  return Application(b, arguments).Run(function);
}

Combination::Combination(const Builder& at, std::string_view name,
                         std::span<const ElementType> types)
    : computation(at.computation()->parent()->AddComputation(name)), b(computation) {
  for (std::vector<Instruction*>* parameters : {&accumulated, &next}) {
    for (ElementType type : types) parameters->push_back(b.Parameter(Shape::Scalar(type)));
  }
}

std::optional<Opcode> FoldOf(const Instruction* op) {
  if (op->operand_count() != 2) return std::nullopt;
  return ir::ReducerOf(*op->called(0));
}

}  // namespace kiln::grad
