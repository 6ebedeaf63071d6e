// The op table as code: opcodes and their columns of ops.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/element_type.h"

namespace kiln {

enum class Opcode : uint8_t {
#define KILN_OP(Name, ...) k##Name,
#include "ops/ops.def"
};

inline constexpr int kOpcodeCount = 0
#define KILN_OP(Name, ...) +1
#include "ops/ops.def"
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
  kElementwise = 1 << 0,  // an element of the result is made of the operands' at the same index
  kCommutative = 1 << 1,  // in its two operands
  kSideEffect = 1 << 2,
  kCompilerOnly = 1 << 3,   // made by the compiler's passes, not by the C builder
  kExact = 1 << 4,          // of floats the result needs no rounding
  kMovesElements = 1 << 5,  // an element of the result is one of an operand, bit for bit
  // The operand's elements by strides: their positions are known at compile time, and later indices
  // of the result along a dimension are later ones of the operand.
  kView = kMovesElements | 1 << 6,
  kStructural = 1 << 7,    // hands values on, or tells which computation runs
  kCollective = 1 << 8,    // a value for a group of processes, made of all of theirs
  kSessionOnly = 1 << 9,   // run by sessions and the evaluator; has no code
  kLibraryCall = 1 << 10,  // a function behind a fixed signature in compiled code
};

// The work of an op at run time, the criterion of folding, fusion and scheduling.
enum class OpCost : uint8_t {
  kFree,             // none: a name for a value that exists already
  kPlace,            // tells which element, or counts: no memory is read out of order
  kSimple,           // a few instructions for an element
  kDivision,         // tens of cycles for an element
  kFunction,         // an elementary function of an element
  kSpecialFunction,  // a function that is many times an elementary one
  kReduction,        // a computation for each element of the operands
  kContraction,      // sums of products
  kSort,             // n log n comparisons
  kLibrary,          // a decomposition, a transform, random numbers
  kCall,             // of other computations, functions or processes: unknown
};

// The role of an op in a kernel. A kernel has one op, XLA's hero, whose loops it runs; elemental
// ones are computed where they are read.
enum class OpRole : uint8_t {
  kNone,  // in no kernel
  kElemental,
  kReduce,
  kDot,
  kWindow,
  kScatter,
  kSort,
};

// The error of an op's results in compiled code, in units of the last place.
struct Accuracy {
  enum Counts : uint8_t { kOfResult, kOfOne };
  double f16 = 0, bf16 = 0, f32 = 0, f64 = 0;
  Counts counts = kOfResult;

  // `type` is one of these.
  double Of(ElementType type) const;
};
constexpr Accuracy Within(double f16, double bf16, double f32, double f64) {
  return {f16, bf16, f32, f64, Accuracy::kOfResult};
}
constexpr Accuracy WithinOfOne(double f16, double bf16, double f32, double f64) {
  return {f16, bf16, f32, f64, Accuracy::kOfOne};
}
inline constexpr Accuracy kNearest = Within(0.5, 0.5, 0.5, 0.5), kNoBound = {};

// The rules by which an op is differentiated, a mask, which the room grad has (grad/rules.h).
// Without rules the derivative is zero, or, with a reason, there is none.
struct GradientRules {
  enum : uint32_t {
    kPartial = 1 << 0,
    kTranspose = 1 << 1,
    kInEach = 1 << 2,
    kTangent = 1 << 3,
    kExpansion = 1 << 4,
    kOfFlow = 1 << 5,
  };
  uint32_t rules = 0;
  std::string_view reason = {};

  constexpr bool Has(uint32_t rule) const { return (rules & rule) == rule; }
  constexpr GradientRules operator|(GradientRules other) const { return {rules | other.rules}; }
};
// No operand, or no function of floats, or one that is constant between its jumps.
inline constexpr GradientRules kFlat = {};
// Elementwise: the partial derivative by each operand.
inline constexpr GradientRules kPartials = {GradientRules::kPartial};
// Linear in its float operands together, or in each of them with the others held.
inline constexpr GradientRules kLinear = {GradientRules::kTranspose};
inline constexpr GradientRules kMultilinear = {GradientRules::kTranspose | GradientRules::kInEach};
// The result's tangent by the operands'.
inline constexpr GradientRules kTangents = {GradientRules::kTangent};
// By other ops that compute the same.
inline constexpr GradientRules kExpanded = {GradientRules::kExpansion};
// It runs computations, which are differentiated.
inline constexpr GradientRules kFlow = {GradientRules::kOfFlow};
// It only hands values on: differentiation looks through it.
inline constexpr GradientRules kTuples = {};
constexpr GradientRules NoGradient(std::string_view reason) { return {0, reason}; }

struct OpInfo {
  Opcode opcode;
  std::string_view name;        // HLO's
  std::string_view operands;    // as in ops.def
  std::string_view attributes;  // as in ops.def
  uint32_t types;
  uint32_t traits;
  OpCost cost;
  OpRole role;
  Accuracy accuracy;  // kNoBound of ops that are not elementwise
  GradientRules gradient;
  std::string_view doc;
};

const OpInfo& InfoOf(Opcode opcode);
std::optional<Opcode> OpcodeByName(std::string_view hlo_name);
inline std::string_view OpcodeName(Opcode opcode) { return InfoOf(opcode).name; }
inline OpCost OpCostOf(Opcode opcode) { return InfoOf(opcode).cost; }
inline OpRole OpRoleOf(Opcode opcode) { return InfoOf(opcode).role; }
inline bool HasTrait(Opcode opcode, OpTraits trait) {
  return (InfoOf(opcode).traits & trait) == static_cast<uint32_t>(trait);
}

// Questions answered by the columns.

// Whether HLO has the op, too; text has the others as custom calls.
inline bool IsHloOp(Opcode opcode) { return !OpcodeName(opcode).starts_with("kiln."); }
inline bool IsElementwise(Opcode opcode) { return HasTrait(opcode, kElementwise); }
inline bool IsView(Opcode opcode) { return HasTrait(opcode, kView); }
// A function with the cost of many simple ops per element.
inline bool IsTranscendental(Opcode opcode) {
  return OpCostOf(opcode) == OpCost::kFunction || OpCostOf(opcode) == OpCost::kSpecialFunction;
}
// An elementwise op that costs more per element than a load and a store.
inline bool IsExpensive(Opcode opcode) {
  return OpCostOf(opcode) == OpCost::kDivision || IsTranscendental(opcode);
}
// Duplicating the op into each of its users costs nothing.
inline bool IsFreeToRepeat(Opcode opcode) { return OpCostOf(opcode) <= OpCost::kPlace; }
// The op whose loops a kernel runs.
inline bool IsHero(Opcode opcode) { return OpRoleOf(opcode) > OpRole::kElemental; }
// The result differs between processes.
inline bool DependsOnProcess(Opcode opcode) {
  return HasTrait(opcode, kCollective) || opcode == Opcode::kPartitionId ||
         opcode == Opcode::kReplicaId;
}

// Why a session-only op has no code, as the rest of a sentence: "the size of its result depends on
// the values". Empty for other ops.
std::string_view WhyNotCompiled(Opcode opcode);

// The mask bit of a type.
uint32_t TypeMaskOf(ElementType type);

// The number of operands of an op: exactly min if max is equal, any number from min up if -1.
struct Arity {
  int64_t min, max;
};
Arity ArityOf(Opcode opcode);

// The names of the called computations among the op's attributes, in order: "to_apply", "calls",
// "condition", "body", "select", "scatter", "branch_computations" (any number from one up),
// "called_computations" (any number).
bool IsComputationAttribute(std::string_view name);

}  // namespace kiln
