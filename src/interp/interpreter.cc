#include "interp/interpreter.h"

#include <memory>
#include <unordered_map>

#include "base/float_environment.h"
#include "base/strings.h"
#include "interp/elementwise.h"
#include "interp/reduction.h"
#include "interp/shape_ops.h"

namespace kiln::interp {
namespace {

using ir::Computation;
using ir::Instruction;
using Value = std::shared_ptr<const Literal>;

class Run {
 public:
  explicit Run(const Options& options) : options_(options), budget_(options.max_instructions) {}

  Result<Value> Call(const Computation& c, std::vector<Value> arguments) {
    std::unordered_map<const Instruction*, Value> values;
    std::unordered_map<const Instruction*, int64_t> uses_left;
    for (const auto& i : c.instructions())
      uses_left[i.get()] = static_cast<int64_t>(i->users().size());
    for (const auto& owned : c.instructions()) {
      const Instruction* i = owned.get();
      if (--budget_ < 0) {
        return Status(Code::kDeadlineExceeded, Cat("evaluation took more than ",
                                                   options_.max_instructions, " instructions"));
      }
      std::vector<Value> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(values.at(operand));
      KILN_ASSIGN_OR_RETURN(values[i], Step(*i, operands, arguments));
      // A value goes with its last user.
      for (size_t k = 0; k < operands.size(); ++k) {
        const Instruction* operand = i->operand(static_cast<int64_t>(k));
        bool seen = false;
        for (size_t before = 0; before < k; ++before) {
          seen |= i->operand(static_cast<int64_t>(before)) == operand;
        }
        if (!seen && --uses_left[operand] == 0 && operand != c.root()) values[operand].reset();
      }
    }
    return values.at(c.root());
  }

 private:
  Result<Value> Step(const Instruction& i, const std::vector<Value>& operands,
                     const std::vector<Value>& arguments) {
    switch (i.opcode()) {
      case Opcode::kParameter:
        return arguments[static_cast<size_t>(i.attributes().Int(Attr::kParameterNumber))];
      case Opcode::kConstant:
        return i.shared_literal();
      case Opcode::kCall:
      case Opcode::kFusion:
        return Call(*i.called(0), operands);
      case Opcode::kWhile:
        return While(i, operands[0]);
      case Opcode::kConditional:
        return Conditional(i, operands);
      default:
        break;
    }
    std::vector<const Literal*> literals;
    for (const Value& v : operands) literals.push_back(v.get());
    Options rest = options_;
    rest.max_instructions = budget_;
    if (i.opcode() == Opcode::kReduce) {
      KILN_ASSIGN_OR_RETURN(Literal value, EvaluateReduce(i, literals, rest));
      return std::make_shared<const Literal>(std::move(value));
    }
    KILN_ASSIGN_OR_RETURN(Literal value, EvaluateInstruction(i, literals));
    return std::make_shared<const Literal>(std::move(value));
  }

  Result<Value> While(const Instruction& i, Value state) {
    while (true) {
      KILN_ASSIGN_OR_RETURN(Value go_on, Call(*i.called(0), {state}));
      if (!go_on->values<bool>()[0]) return state;
      KILN_ASSIGN_OR_RETURN(state, Call(*i.called(1), {state}));
    }
  }

  Result<Value> Conditional(const Instruction& i, const std::vector<Value>& operands) {
    int64_t branches = static_cast<int64_t>(i.called().size()), branch;
    if (IsPred(operands[0]->shape().type())) {
      branch = operands[0]->values<bool>()[0] ? 0 : 1;
    } else {
      branch = operands[0]->values<int32_t>()[0];
      if (branch < 0 || branch >= branches) branch = branches - 1;
    }
    return Call(*i.called(branch), {operands[static_cast<size_t>(branch) + 1]});
  }

  const Options& options_;
  int64_t budget_;
};

}  // namespace

Result<Literal> Evaluate(const Computation& computation, std::span<const Literal> arguments,
                         const Options& options) {
  if (arguments.size() != computation.parameters().size()) {
    return InvalidArgument("'", computation.name(), "' takes ", computation.parameters().size(),
                           " arguments; ", arguments.size(), " were given");
  }
  std::vector<Value> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Shape& wanted = computation.parameter(static_cast<int64_t>(i))->shape();
    if (!arguments[i].shape().SameTypeAndDimensions(wanted)) {
      return InvalidArgument("argument ", i, " of '", computation.name(), "' has shape ",
                             arguments[i].shape(), "; ", wanted, " is expected");
    }
    values.push_back(std::make_shared<const Literal>(arguments[i]));
  }
  DefaultFloatEnvironment environment;
  KILN_ASSIGN_OR_RETURN(Value result, Run(options).Call(computation, std::move(values)));
  return *result;
}

Result<Literal> Evaluate(const ir::Module& module, std::span<const Literal> arguments,
                         const Options& options) {
  return Evaluate(*module.entry(), arguments, options);
}

Result<Literal> EvaluateInstruction(const Instruction& i,
                                    std::span<const Literal* const> operands) {
  bool supported = true;
  auto check = [&](const Shape& shape) {
    ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
      supported &= !leaf.is_array() || (IsSupported(leaf.type()) && leaf.is_static());
    });
  };
  check(i.shape());
  for (const Literal* operand : operands) check(operand->shape());
  if (!supported) {
    return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for '", i.name(),
                         "' of shape ", i.shape());
  }
  if (IsElementwise(i.opcode())) return EvaluateElementwise(i, operands);
  switch (i.opcode()) {
    case Opcode::kConstant:
      return i.literal();
    case Opcode::kTuple: {
      std::vector<Literal> elements;
      for (const Literal* operand : operands) elements.push_back(*operand);
      return Literal::Tuple(std::move(elements));
    }
    case Opcode::kGetTupleElement:
      return operands[0]->elements()[static_cast<size_t>(i.attributes().Int(Attr::kIndex))];
    case Opcode::kDot:
      return EvaluateDot(i, operands);
    case Opcode::kReduce:
      return EvaluateReduce(i, operands, {});
    default:
      return EvaluateShapeOp(i, operands);
  }
}

}  // namespace kiln::interp
