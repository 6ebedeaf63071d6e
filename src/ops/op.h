// The op table as code: opcodes and what ops.def says of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/element_type.h"

namespace kiln {

enum class Opcode : uint8_t {
#define KILN_OP(Name, text, operands, attributes, inference, types, traits, doc) k##Name,
#include "ops/ops.def"
#undef KILN_OP
};

inline constexpr int kOpcodeCount = 0
#define KILN_OP(Name, text, operands, attributes, inference, types, traits, doc) +1
#include "ops/ops.def"
#undef KILN_OP
    ;

enum TypeMask : uint32_t {
  kPredType = 1,
  kIntType = 2,
  kFloatType = 4,
  kComplexType = 8,
  kNumber = kIntType | kFloatType | kComplexType,
  kLogic = kPredType | kIntType,
  kAny = kNumber | kPredType,
};

enum OpTraits : uint32_t {
  kNoTraits = 0,
  kElementwise = 1,
  kCommutative = 2,
  kTranscendental = 4,
  kSideEffect = 8,
  kSessionOnly = 16,
  kFree = 32,
  kCompilerOnly = 64,
};

struct OpInfo {
  Opcode opcode;
  std::string_view name;        // HLO's
  std::string_view operands;    // as in ops.def
  std::string_view attributes;  // as in ops.def
  uint32_t types;
  uint32_t traits;
  std::string_view doc;
};

const OpInfo& InfoOf(Opcode opcode);
std::optional<Opcode> OpcodeByName(std::string_view hlo_name);
inline std::string_view OpcodeName(Opcode opcode) { return InfoOf(opcode).name; }
inline bool HasTrait(Opcode opcode, OpTraits trait) { return InfoOf(opcode).traits & trait; }
// Whether HLO has the op, too; text has the others as custom calls.
inline bool IsHloOp(Opcode opcode) { return !OpcodeName(opcode).starts_with("kiln."); }
inline bool IsElementwise(Opcode opcode) { return HasTrait(opcode, kElementwise); }

// The mask bit of a type.
uint32_t TypeMaskOf(ElementType type);

// How many operands an op takes: exactly min where max is equal, any number from min up where -1.
struct Arity {
  int64_t min, max;
};
Arity ArityOf(Opcode opcode);

// The names of the called computations among the op's attributes, in order: "to_apply", "calls",
// "condition", "body", "select", "scatter", "branch_computations" (any number from one up),
// "called_computations" (any number).
bool IsComputationAttribute(std::string_view name);

}  // namespace kiln
