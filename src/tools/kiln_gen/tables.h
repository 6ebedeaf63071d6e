// The sources of the generated files: the op table as builder functions of the C ABI, the table of
// the other functions, and the constants of the headers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ops/op.h"

namespace kiln::gen {

// --- Builder functions, from ops/ops.def

// An argument of an op; in C it is one parameter or several.
enum class ArgumentKind {
  kValue,
  kValues,
  kInt,
  kInts,
  kBool,
  kDirection,
  kSlices,
  kPadding,
  kWindow,
  kText,
  kFloat,
  kGroups,
  kConvolution,
  kConvolutionWindow,  // may be reversed
  kGraph,
  kGraphs,
  kType,
  kDims,
};

struct Argument {
  ArgumentKind kind;
  std::string name;
  bool optional = false;
  std::string key;  // an attribute's enumerator
  std::string doc;
};

struct Parameter {
  std::string type;
  std::string name;
  std::string doc;
};

// A row of inference.def.
struct Inference {
  std::string_view result;
  std::string_view mistakes;
};

struct Builder {
  const OpInfo* op;
  std::string enumerator;
  std::string_view section;  // of ops.def
  std::string name;          // what bindings call it: the name without "kiln.", with '_' for '-'
  Inference inference;
  std::vector<Argument> arguments;

  std::string function() const { return "kiln_op_" + name; }
};

// The title of the section of ops.def that the op is in.
std::string_view SectionOf(Opcode opcode);

// The version that brought the builder functions.
inline constexpr std::string_view kBuildersSince = "0.1";

// The parameters in C of an argument.
std::vector<Parameter> ParametersOf(const Argument& argument);
// All parameters in C, the graph first.
std::vector<Parameter> ParametersOf(const Builder& builder);

// One for each op, except hand-written functions and ops not available to users. Fails for an
// operand without a description, or an unknown attribute.
Result<std::vector<Builder>> Builders();

// --- The other functions, from capi/api.def

enum class Role { kInit, kCreate, kRetain, kRelease, kQuery, kUpdate, kBuild, kRun, kWrite };
enum class Threads { kAny, kOne };

struct Function {
  std::string_view name;
  std::string_view returns;
  std::string_view signature;  // "(kiln_graph* graph, size_t number)"
  Role role;
  std::string_view gives;
  Threads threads;
  std::string_view since;
};
const std::vector<Function>& Functions();

// The parameters of a signature, without documentation.
std::vector<Parameter> ParseSignature(std::string_view signature);

// --- Constants

struct Constant {
  std::string name;     // what bindings call it: "f32", "LT"
  std::string c;        // "KILN_F32"
  std::string library;  // the enumerator inside the library, "ElementType::kF32"; may be empty
  int64_t value;
};

struct ConstantGroup {
  std::string name;  // "DTYPES"
  std::vector<Constant> constants;
};
std::vector<ConstantGroup> ConstantGroups();

}  // namespace kiln::gen
