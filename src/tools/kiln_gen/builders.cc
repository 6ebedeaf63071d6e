#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "ops/attributes.h"
#include "tools/kiln_gen/tables.h"

namespace kiln::gen {
namespace {

struct Description {
  std::string_view name;
  std::string_view doc;
};

// Descriptions of operands and called computations by name, in addition to the op's documentation.
constexpr Description kNames[] = {
    {"operand", "the operand"},
    {"operands", "the operands"},
    {"random", "unsigned numbers as wide as the operand's, of its dimensions"},
    {"triangle", "a: square matrices in the last two dimensions"},
    {"sides", "b: matrices in the last two dimensions, of the element type of a"},
    {"lhs", "the left operand"},
    {"rhs", "the right operand"},
    {"min", "the lower bound"},
    {"max", "the upper bound"},
    {"pred", "the condition, a pred"},
    {"on_true", "the value where it is true"},
    {"on_false", "the value where it is false"},
    {"mask", "a pred of the operand's first dimensions"},
    {"data", "arrays for the message"},
    {"padding_value", "the scalar to pad with"},
    {"start_indices", "integers: the starts of the slices"},
    {"update", "the new contents of the slice, of the operand's element type"},
    {"scatter_indices", "integers: the index vectors"},
    {"updates", "the updates of each operand, of its element type"},
    {"init_values", "the initial value of each operand, a scalar of its element type"},
    {"index", "the index of the branch"},
    {"size", "the size, an s32 scalar"},
    {"scale", "the factor of each feature"},
    {"offset", "the addend of each feature"},
    {"mean", "the mean of each feature"},
    {"variance", "the variance of each feature"},
    {"grad_output", "the gradient, of the operand's shape"},
    {"source", "an element for each position of the window"},
    {"init_value", "the initial value, a scalar"},
    {"a", "the lower bound, or the mean: a scalar"},
    {"b", "the upper bound, or the standard deviation: a scalar"},
    {"initial_state", "the state, u64[2] or u64[3]"},
    {"token", "a token: the preceding work"},
    {"to_apply", "the computation, copied"},
    {"select", "a computation of two scalars to a pred, copied"},
    {"scatter", "a computation of two scalars to one, copied"},
    {"condition", "a computation to one pred, copied"},
    {"body", "a computation to a value of the operand's shape, copied"},
    {"branch_computations", "the branches, one for each operand, copied"},
};

constexpr std::string_view kEnumerators[] = {
#define KILN_OP(Name, ...) #Name,
#include "ops/ops.def"
};

// The rows of ops.def: titles of sections, and between them ops.
struct Row {
  std::string_view section;
  std::optional<Opcode> opcode;
};
constexpr Row kRows[] = {
#define KILN_OP(Name, ...) {"", Opcode::k##Name},
#define KILN_OP_SECTION(title) {title, std::nullopt},
#include "ops/ops.def"
};

// By opcode: the row of inference.def.
enum class Rule {
#define KILN_INFERENCE(name, result, mistakes) k##name,
#include "ops/inference.def"
#undef KILN_INFERENCE
};
constexpr Rule kRules[] = {
#define KILN_OP(Name, text, operands, attributes, inference, ...) Rule::k##inference,
#include "ops/ops.def"
};
constexpr Inference kInferences[] = {
#define KILN_INFERENCE(name, result, mistakes) {result, mistakes},
#include "ops/inference.def"
#undef KILN_INFERENCE
};

constexpr std::string_view kAttributeEnumerators[] = {
#define KILN_ATTRIBUTE(Name, text, kind, doc) #Name,
#include "ops/attributes.def"
#undef KILN_ATTRIBUTE
};

bool EndsWith(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::string NameOf(std::string_view name) {
  if (name.starts_with("kiln.")) name.remove_prefix(5);
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// A sentence as the rest of another one: without its full stop, and without its capital unless
// that begins a name.
std::string AsPhrase(std::string_view sentence) {
  EndsWith(sentence, ".");
  std::string out(sentence);
  bool capital = out.size() > 1 && out[0] >= 'A' && out[0] <= 'Z';
  if (capital && out[1] >= 'a' && out[1] <= 'z') out[0] += 'a' - 'A';
  return out;
}

ArgumentKind KindOf(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return ArgumentKind::kInt;
    case AttrKind::kInts:
      return ArgumentKind::kInts;
    case AttrKind::kBool:
      return ArgumentKind::kBool;
    case AttrKind::kDirection:
      return ArgumentKind::kDirection;
    case AttrKind::kSlices:
      return ArgumentKind::kSlices;
    case AttrKind::kPadding:
      return ArgumentKind::kPadding;
    case AttrKind::kWindow:
      return ArgumentKind::kWindow;
    case AttrKind::kText:
    case AttrKind::kQuoted:
    case AttrKind::kAliases:   // of custom calls alone, which have no generated builder
    case AttrKind::kSymbolic:  // of no op in the table
      return ArgumentKind::kText;
    case AttrKind::kFloat:
      return ArgumentKind::kFloat;
    case AttrKind::kGroups:
      return ArgumentKind::kGroups;
    case AttrKind::kConvolution:
      return ArgumentKind::kConvolution;
  }
  return ArgumentKind::kInt;
}

Result<std::string> Describe(const OpInfo& op, std::string_view name) {
  for (const Description& row : kNames) {
    if (row.name != name) continue;
    bool same_shape = name == "rhs" && (op.traits & kElementwise);
    return Cat(row.doc, same_shape ? ", of the left one's shape" : "");
  }
  return NotFound(op.name, ": '", name, "' needs a description in src/tools/kiln_gen/builders.cc");
}

Status AddOperands(const OpInfo& op, std::vector<Argument>& arguments) {
  for (std::string_view name : Split(op.operands, ' ')) {
    bool one_or_more = EndsWith(name, "...");
    bool any_number = EndsWith(name, "*");
    KILN_ASSIGN_OR_RETURN(std::string doc, Describe(op, name));
    arguments.push_back({one_or_more || any_number ? ArgumentKind::kValues : ArgumentKind::kValue,
                         std::string(name), any_number, "", std::move(doc)});
  }
  return OkStatus();
}

Status AddAttributes(const OpInfo& op, std::vector<Argument>& arguments) {
  const Argument type{ArgumentKind::kType, "dtype", false, "", "the result's element type"};
  const Argument dims{ArgumentKind::kDims, "dims", false, "", ""};
  for (std::string_view name : Split(op.attributes, ' ')) {
    bool optional = EndsWith(name, "?");
    if (name == "@type" || name == "@shape") {
      arguments.push_back(type);
      arguments.back().optional = optional;
    }
    if (name == "@dims" || name == "@shape") arguments.push_back(dims);
    if (name.starts_with('@')) continue;
    // Part of the direction there.
    if (name == "type") continue;
    if (IsComputationAttribute(name)) {
      KILN_ASSIGN_OR_RETURN(std::string doc, Describe(op, name));
      bool several = name == "branch_computations";
      arguments.push_back({several ? ArgumentKind::kGraphs : ArgumentKind::kGraph,
                           std::string(name), optional, "", std::move(doc)});
      continue;
    }
    const AttrInfo* info = AttrByName(name);
    if (!info) return NotFound(op.name, ": attributes.def has no '", name, "'");
    ArgumentKind kind = KindOf(info->kind);
    if (kind == ArgumentKind::kWindow && op.opcode == Opcode::kConvolution) {
      kind = ArgumentKind::kConvolutionWindow;
    }
    arguments.push_back({kind, std::string(name), optional,
                         std::string(kAttributeEnumerators[static_cast<int>(info->key)]),
                         AsPhrase(info->doc)});
  }
  return OkStatus();
}

Parameter CountOf(const Argument& argument) {
  return {"size_t", argument.name + "_count", Cat("length of `", argument.name, "`")};
}

}  // namespace

std::vector<Parameter> ParametersOf(const Argument& argument) {
  const std::string& name = argument.name;
  const std::string none = argument.optional ? "; may be NULL with count 0" : "";
  const Parameter rank{"size_t", "rank", "number of dimensions"};
  switch (argument.kind) {
    case ArgumentKind::kValue:
      return {{"kiln_value", name, argument.doc}};
    case ArgumentKind::kValues:
      return {{"const kiln_value*", name, argument.doc + none}, CountOf(argument)};
    case ArgumentKind::kInt:
      return {{"int64_t", name, argument.doc + (argument.optional ? " (0: omitted)" : "")}};
    case ArgumentKind::kInts:
      return {{"const int64_t*", name, argument.doc + none}, CountOf(argument)};
    case ArgumentKind::kBool:
      return {{"int32_t", name, argument.doc + " (0 or 1)"}};
    case ArgumentKind::kDirection:
      return {{"kiln_direction", name, argument.doc}};
    case ArgumentKind::kSlices:
      return {{"const int64_t*", "start", "per dimension the first position"},
              {"const int64_t*", "limit", "per dimension the end, exclusive"},
              {"const int64_t*", "stride", "per dimension the distance of positions, at least 1"},
              rank};
    case ArgumentKind::kPadding:
      return {{"const int64_t*", "low", "per dimension elements added below; negative: cut off"},
              {"const int64_t*", "high", "per dimension elements added above; negative: cut off"},
              {"const int64_t*", "interior",
               "per dimension elements added between two neighbours, not negative"},
              rank};
    case ArgumentKind::kWindow:
    case ArgumentKind::kConvolutionWindow: {
      std::vector<Parameter> all = {
          {"const int64_t*", "window_dimensions", "per dimension the window's size, at least 1"},
          {"const int64_t*", "window_strides",
           "per dimension the step of the window, at least 1; NULL: 1"},
          {"const int64_t*", "base_dilations",
           "per dimension the distance of the operand's neighbours, at least 1; NULL: 1"},
          {"const int64_t*", "window_dilations",
           "per dimension the distance of the window's neighbours, at least 1; NULL: 1"},
          {"const int64_t*", "padding_low",
           "per dimension padding below; negative: cut off; NULL: 0"},
          {"const int64_t*", "padding_high",
           "per dimension padding above; negative: cut off; NULL: 0"}};
      if (argument.kind == ArgumentKind::kConvolutionWindow) {
        all.push_back({"const int32_t*", "window_reversal",
                       "per dimension whether the window's elements are reversed "
                       "(0 or 1); NULL: 0"});
      }
      all.push_back(rank);
      return all;
    }
    case ArgumentKind::kText:
      return {{"const char*", name, argument.doc},
              {"size_t", name + "_length", Cat("bytes of `", name, "`")}};
    case ArgumentKind::kFloat:
      return {{"double", name, argument.doc}};
    case ArgumentKind::kGroups:
      return {
          {"const int64_t*", name, argument.doc + ": all numbers, one list after the other" + none},
          {"const int64_t*", name + "_sizes", "the length of each list"},
          {"size_t", name + "_count", "the number of lists"}};
    case ArgumentKind::kConvolution:
      return {{"const char*", name, argument.doc},
              {"size_t", name + "_length", Cat("bytes of `", name, "`")}};
    case ArgumentKind::kGraph:
      return {{"const kiln_graph*", name, argument.doc}};
    case ArgumentKind::kGraphs:
      return {{"const kiln_graph* const*", name, argument.doc}, CountOf(argument)};
    case ArgumentKind::kType:
      return {{"kiln_dtype", name,
               argument.doc + (argument.optional ? "; 0: that of the operands" : "")}};
    case ArgumentKind::kDims:
      return {{"const int64_t*", name,
               "the result's sizes: constants, symbols of kiln_graph_symbol() or bounds of "
               "kiln_graph_bounded_size(); may be NULL with rank 0"},
              {"size_t", "rank", "number of the result's dimensions"}};
  }
  return {};
}

std::vector<Parameter> ParametersOf(const Builder& builder) {
  std::vector<Parameter> all = {{"kiln_graph*", "graph", "the graph to add to"}};
  for (const Argument& argument : builder.arguments) {
    for (Parameter& parameter : ParametersOf(argument)) all.push_back(std::move(parameter));
  }
  return all;
}

std::string_view SectionOf(Opcode opcode) {
  std::string_view section;
  for (const Row& row : kRows) {
    if (row.opcode == opcode) break;
    if (!row.opcode) section = row.section;
  }
  return section;
}

Result<std::vector<Builder>> Builders() {
  std::vector<Builder> builders;
  for (int i = 0; i < kOpcodeCount; ++i) {
    Opcode opcode = static_cast<Opcode>(i);
    // Parameters are numbered, constants filled, custom calls and host callbacks described by
    // functions of builder.h and custom_call.h.
    if (opcode == Opcode::kParameter || opcode == Opcode::kConstant ||
        opcode == Opcode::kCustomCall || opcode == Opcode::kHostCallback ||
        HasTrait(opcode, kCompilerOnly)) {
      continue;
    }
    const OpInfo& op = InfoOf(opcode);
    Builder builder{&op,
                    std::string(kEnumerators[i]),
                    SectionOf(opcode),
                    NameOf(op.name),
                    kInferences[static_cast<size_t>(kRules[i])],
                    {}};
    KILN_RETURN_IF_ERROR(AddOperands(op, builder.arguments));
    KILN_RETURN_IF_ERROR(AddAttributes(op, builder.arguments));
    builders.push_back(std::move(builder));
  }
  return builders;
}

}  // namespace kiln::gen
