#include <algorithm>

#include "ir/host_call.h"
#include "ir/text.h"
#include "ir/text_values.h"

namespace kiln::ir {
namespace {

// A name as the reader takes it.
std::string Printable(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c == '.' || c == '-';
    if (!fine) c = '_';
  }
  bool letter = !text.empty() && (text[0] == '_' || (text[0] >= 'a' && text[0] <= 'z') ||
                                  (text[0] >= 'A' && text[0] <= 'Z'));
  return letter ? text : Cat("_", text);
}

// Whether the reader takes the text as one word.
bool IsWord(std::string_view text) { return !text.empty() && Printable(text) == text; }

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void Append(const Module& module);
  void Append(const Computation& computation);
  void Append(const Instruction& instruction);
  std::string Take() { return std::move(out_); }

 private:
  template <typename... Args>
  void Add(const Args&... args) {
    (AppendTo(out_, args), ...);
  }
  void AppendHeader(const Module& module);
  void AppendLiteral(const std::shared_ptr<const Literal>& literal);
  void AppendOperands(const Instruction& instruction);
  void AppendForeign(const Instruction& instruction);
  void AppendAttribute(const Instruction& instruction, std::string_view name);
  void AppendOperandLayouts(const Instruction& call);
  void AppendFrontendAttributes(const FrontendAttributes& attributes);
  void AppendControlPredecessors(std::span<Instruction* const> predecessors);
  void AppendCallee(std::string_view attribute, const Computation& callee) {
    Add(", ", attribute, "=%", callee.name());
  }

  PrintOptions options_;
  std::string out_;
};

std::string IndexText(const std::vector<int64_t>& index) { return Cat("{", Join(index, ","), "}"); }

// The name of a module where XLA's reader wants no keyword. Names of instructions have a '%'.
std::string ModuleName(std::string_view name) {
  constexpr std::string_view kKeywords[] = {
      "ENTRY",  "FileLocations", "FileNames",  "FunctionNames", "HloModule",
      "ROOT",   "StackFrames",   "false",      "inf",           "last_tile_dim_replicate",
      "manual", "maximal",       "nan",        "opaque",        "replicated",
      "s1",     "shard_as",      "shard_like", "token",         "true",
      "u1",     "unknown",       "unreduced"};
  std::string text = Printable(name);
  if (TypeByName(text) || std::ranges::find(kKeywords, text) != std::end(kKeywords)) text += '_';
  return text;
}

void Printer::AppendHeader(const Module& module) {
  Add("HloModule ", ModuleName(module.name()));
  if (module.is_scheduled()) Add(", is_scheduled=true");
  if (!module.aliases().empty()) {
    Add(", input_output_alias={ ");
    bool first = true;
    for (const InputOutputAlias& alias : module.aliases()) {
      Add(first ? "" : ", ", IndexText(alias.output_index), ": (", alias.parameter, ", ",
          IndexText(alias.parameter_index), ", ", alias.must_alias ? "must" : "may", "-alias)");
      first = false;
    }
    Add(" }");
  }
  if (const Computation* entry = module.entry(); entry && entry->root()) {
    Add(", entry_computation_layout={(");
    bool first = true;
    for (const Instruction* parameter : entry->parameters()) {
      Add(first ? "" : ", ", ShapeText(parameter->shape(), true));
      first = false;
    }
    Add(")->", ShapeText(entry->root()->shape(), true), "}");
  }
  Add("\n\n");
}

void Printer::Append(const Module& module) {
  AppendHeader(module);
  std::vector<Computation*> order = module.CalleesFirst();
  // The entry comes last, behind computations that it does not call.
  auto entry = std::find(order.begin(), order.end(), module.entry());
  if (entry != order.end()) std::rotate(entry, entry + 1, order.end());
  for (const Computation* computation : order) {
    if (computation == module.entry()) Add("ENTRY ");
    Append(*computation);
    Add("\n\n");
  }
}

void Printer::Append(const Computation& computation) {
  Add("%", computation.name(), " (");
  bool first = true;
  for (const Instruction* parameter : computation.parameters()) {
    if (!parameter) continue;
    Add(first ? "" : ", ", parameter->name(), ": ", ShapeText(parameter->shape(), false));
    first = false;
  }
  Add(")");
  if (computation.root()) Add(" -> ", ShapeText(computation.root()->shape(), false));
  Add(" {\n");
  for (Instruction* instruction : computation.instructions()) {
    Add("  ");
    if (instruction->IsRoot()) Add("ROOT ");
    Append(*instruction);
    Add("\n");
  }
  Add("}");
}

void Printer::AppendLiteral(const std::shared_ptr<const Literal>& literal) {
  if (!options_.elided) {
    Add(literal->ToString(options_.max_literal_elements));
  } else if (literal->shape().is_array() &&
             literal->shape().num_elements() > options_.max_literal_elements) {
    options_.elided->push_back(literal);
    Add("{...}");
  } else {
    Add(literal->ToString());
  }
}

void Printer::AppendOperands(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kParameter) {
    Add(instruction.attributes().Int(Attr::kParameterNumber));
    return;
  }
  if (instruction.IsConstant()) {
    if (instruction.shared_literal()) {
      AppendLiteral(instruction.shared_literal());
    }
    return;
  }
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    if (i > 0) Add(", ");
    if (i > 0 && i % 5 == 0) Add("/*index=", i, "*/");
    const Instruction* operand = instruction.operand(i);
    if (options_.operand_shapes) Add(ShapeText(operand->shape(), true), " ");
    Add("%", operand->name());
  }
}

void Printer::AppendAttribute(const Instruction& instruction, std::string_view name) {
  std::span<Computation* const> called = instruction.called();
  if (name == "branch_computations") {
    bool pred = instruction.operand_count() > 0 && called.size() == 2 &&
                IsPred(instruction.operand(0)->shape().type());
    if (pred) {
      AppendCallee("true_computation", *called[0]);
      AppendCallee("false_computation", *called[1]);
      return;
    }
    Add(", branch_computations={");
    for (size_t i = 0; i < called.size(); ++i) Add(i > 0 ? ", %" : "%", called[i]->name());
    Add("}");
  } else if (name == "called_computations") {
    for (size_t i = 0; i < called.size(); ++i) {
      Add(i > 0 ? ", %" : ", called_computations={%", called[i]->name());
    }
    if (!called.empty()) Add("}");
  } else if (IsComputationAttribute(name)) {
    size_t i = name == "body" || name == "scatter" ? 1 : 0;
    if (i < called.size()) AppendCallee(name, *called[i]);
  } else if (const AttrInfo* info = AttrByName(name); info && info->key != Attr::kParameterNumber) {
    const Attributes& attributes = instruction.attributes();
    if (!attributes.Has(info->key)) {
      if (info->key == Attr::kLargest) Add(", largest=false");  // its absence is true in text
      return;
    }
    // Texts that are no words, and configurations in XLA's grammar, have quotes.
    const bool quotes = info->key == Attr::kInfeedConfig || info->key == Attr::kOutfeedConfig ||
                        (info->kind == AttrKind::kText && !IsWord(attributes.Text(info->key)));
    Add(", ", name, "=");
    if (quotes) {
      Add("\"", EscapeC(attributes.Text(info->key)), "\"");
    } else {
      Add(AttributeText(attributes, info->key));
    }
  }
}

// A typed call's operands are in layouts that its function relies on.
void Printer::AppendOperandLayouts(const Instruction& call) {
  bool differ = !ir::IsRowMajor(call.shape());
  for (const Instruction* operand : call.operands()) differ |= !ir::IsRowMajor(operand->shape());
  if (!differ) return;
  Add(", operand_layout_constraints={");
  for (int64_t o = 0; o < call.operand_count(); ++o) {
    Add(o > 0 ? ", " : "", ShapeText(call.operand(o)->shape(), true));
  }
  Add("}");
}

void Printer::AppendFrontendAttributes(const FrontendAttributes& attributes) {
  std::string_view separator = ", frontend_attributes={";
  for (const auto& [key, text] : attributes.entries()) {
    Add(separator);
    // XLA's keys are words. Others are texts, too.
    if (IsWord(key)) {
      Add(key);
    } else {
      Add("\"", EscapeC(key), "\"");
    }
    Add("=\"", EscapeC(text), "\"");
    separator = ",";
  }
  Add("}");
}

void Printer::AppendControlPredecessors(std::span<Instruction* const> predecessors) {
  std::string_view separator = ", control-predecessors={%";
  for (const Instruction* predecessor : predecessors) {
    Add(separator, predecessor->name());
    separator = ", %";
  }
  if (!predecessors.empty()) Add("}");
}

// An op that HLO lacks as a custom call, with its text as the call's.
void Printer::AppendForeign(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  Add(", custom_call_target=\"", OpcodeName(opcode), "\"");
  // For other readers: a variable's value may change.
  if (HasTrait(opcode, kSideEffect) || opcode == Opcode::kVariable) {
    Add(", custom_call_has_side_effect=true");
  }
  std::optional<Attr> text = TextAttributeOf(opcode);
  if (!text || !instruction.attributes().Has(*text)) return;
  Add(", backend_config=", AttributeText(instruction.attributes(), *text));
}

void Printer::Append(const Instruction& instruction) {
  const std::string_view op = OpcodeName(instruction.opcode());
  const bool foreign = !IsHloOp(instruction.opcode());
  Add("%", instruction.name(), " = ", ShapeText(instruction.shape(), true), " ",
      foreign ? "custom-call" : op, "(");
  AppendOperands(instruction);
  Add(")");
  if (foreign) AppendForeign(instruction);
  if (instruction.opcode() == Opcode::kDot) {
    // XLA's order, without empty batch dimensions.
    const Attributes& attributes = instruction.attributes();
    auto append = [&](Attr key, bool always) {
      const Ints& value = attributes.IntsOf(key);
      if (always || !value.empty()) Add(", ", InfoOf(key).name, "=", AttrValueText(value));
    };
    append(Attr::kLhsBatchDims, false);
    append(Attr::kLhsContractingDims, true);
    append(Attr::kRhsBatchDims, false);
    append(Attr::kRhsContractingDims, true);
  } else {
    for (std::string_view name : Split(InfoOf(instruction.opcode()).attributes, ' ')) {
      if (name.ends_with("?")) name.remove_suffix(1);
      const AttrInfo* info = foreign ? AttrByName(name) : nullptr;
      if (!info || info->key != TextAttributeOf(instruction.opcode())) {
        AppendAttribute(instruction, name);
      }
    }
  }
  if (HasCallLayouts(instruction)) AppendOperandLayouts(instruction);
  if (instruction.frontend_attributes()) {
    AppendFrontendAttributes(*instruction.frontend_attributes());
  }
  AppendControlPredecessors(instruction.control_predecessors());
  if (options_.metadata && !instruction.op_name().empty()) {
    Add(", metadata={op_name=\"", EscapeC(instruction.op_name()), "\"}");
  }
}

template <typename T>
std::string Print(const T& item, const PrintOptions& options) {
  Printer printer(options);
  printer.Append(item);
  return printer.Take();
}

}  // namespace

std::string ToHloText(const Module& module, const PrintOptions& options) {
  return Print(module, options);
}

std::string ToHloText(const Computation& computation, const PrintOptions& options) {
  return Print(computation, options);
}

std::string ToHloText(const Instruction& instruction, const PrintOptions& options) {
  return Print(instruction, options);
}

}  // namespace kiln::ir
