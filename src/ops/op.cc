#include "ops/op.h"

#include <string>
#include <unordered_map>

#include "base/strings.h"

namespace kiln {
namespace {

constexpr OpInfo kOps[] = {
#define KILN_OP(Name, text, operands, attributes, inference, evaluator, types, traits, cost, role, \
                gradient, doc)                                                                     \
  {Opcode::k##Name, text,         operands, attributes, types, traits,                             \
   OpCost::cost,    OpRole::role, kNoBound, gradient,   doc},
#define KILN_ELEMENTWISE_OP(Name, text, operands, attributes, inference, types, traits, cost, \
                            accuracy, gradient, doc)                                          \
  {                                                                                           \
      Opcode::k##Name,                                                                        \
      text,                                                                                   \
      operands,                                                                               \
      attributes,                                                                             \
      types,                                                                                  \
      (traits) | kElementwise,                                                                \
      OpCost::cost,                                                                           \
      OpRole::kElemental,                                                                     \
      accuracy,                                                                               \
      gradient,                                                                               \
      doc},
#include "ops/ops.def"
};

}  // namespace

const OpInfo& InfoOf(Opcode opcode) { return kOps[static_cast<int>(opcode)]; }

std::optional<Opcode> OpcodeByName(std::string_view hlo_name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, Opcode>;
    for (const OpInfo& info : kOps) map->emplace(info.name, info.opcode);
    return map;
  }();
  auto it = by_name->find(hlo_name);
  if (it == by_name->end()) return std::nullopt;
  return it->second;
}

std::string_view WhyNotCompiled(Opcode opcode) {
  switch (opcode) {
    case Opcode::kUnique:
    case Opcode::kNonzero:
    case Opcode::kBooleanMask:
      return "the size of its result depends on the values";
    case Opcode::kPrint:
      return "it prints during the run";
    case Opcode::kAssert:
      return "it may fail the run";
    case Opcode::kHostCallback:
      return "it calls a function on the host";
    case Opcode::kVariable:
    case Opcode::kAssign:
    case Opcode::kAssignAdd:
      return "variables belong to a session";
    default:
      return "";
  }
}

uint32_t TypeMaskOf(ElementType type) {
  switch (CategoryOf(type)) {
    case TypeCategory::kBoolean:
      return kPredType;
    case TypeCategory::kSigned:
    case TypeCategory::kUnsigned:
      return kIntType;
    case TypeCategory::kFloat:
      return kFloatType;
    case TypeCategory::kComplex:
      return kComplexType;
  }
  return 0;
}

Arity ArityOf(Opcode opcode) {
  Arity arity{0, 0};
  bool open = false;
  for (std::string_view name : Split(InfoOf(opcode).operands, ' ')) {
    if (name.ends_with("...")) {
      open = true;
      ++arity.min;
    } else if (name.ends_with("*")) {
      open = true;
    } else {
      ++arity.min;
    }
  }
  arity.max = open ? -1 : arity.min;
  return arity;
}

bool IsComputationAttribute(std::string_view name) {
  return name == "to_apply" || name == "calls" || name == "condition" || name == "body" ||
         name == "select" || name == "scatter" || name == "branch_computations" ||
         name == "called_computations";
}

}  // namespace kiln
