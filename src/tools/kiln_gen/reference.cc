// The reference pages of the manual.
#include <algorithm>

#include "base/strings.h"
#include "ops/accuracy.h"
#include "tools/kiln_gen/writers.h"

namespace kiln::gen {
namespace {

std::string PageHead(std::string_view title, std::string_view sources) {
  return Cat("<!-- ", Notice(sources), " -->\n# ", title, "\n\n");
}

// '|' would end a table's cell.
std::string Cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string TraitsText(const OpInfo& op) {
  const uint32_t traits = op.traits;
  std::vector<std::string_view> names;
  if (traits & kElementwise) names.push_back("elementwise");
  if (traits & kCommutative) names.push_back("commutative");
  if (IsTranscendental(op.opcode)) names.push_back("transcendental");
  if (traits & kSideEffect) names.push_back("has side effects");
  if (traits & kSessionOnly) names.push_back("runs in sessions only");
  if (op.cost == OpCost::kFree) names.push_back("costs nothing at run time");
  if (traits & kCompilerOnly) names.push_back("made by the compiler");
  return Join(names, ", ");
}

std::string_view ComplexUnits(ComplexAccuracy::Counts counts) {
  switch (counts) {
    case ComplexAccuracy::kOfPart:
      return "";
    case ComplexAccuracy::kOfTerms:
      return ", unless the real part is a difference of nearly equal numbers";
    case ComplexAccuracy::kOfExponent:
      return ", of the result's absolute value, in c128 times 1 + |rhs * log(lhs)|";
  }
  return "";
}

// "Within 0.51 ULP in f16, 0.51 in bf16, 1.8 in f32 and 1.5 in f64."
std::string AccuracyText(const Accuracy& accuracy) {
  if (accuracy.f16 <= 0.5 && accuracy.bf16 <= 0.5 && accuracy.f32 <= 0.5 && accuracy.f64 <= 0.5) {
    return "The nearest number.";
  }
  std::string out = Cat("Within ", accuracy.f16, " ULP in f16, ", accuracy.bf16, " in bf16, ",
                        accuracy.f32, " in f32 and ", accuracy.f64, " in f64");
  if (accuracy.counts == Accuracy::kOfOne) out += ", of the larger of the result and 1";
  return out + ".";
}

std::string ComplexAccuracyText(const ComplexAccuracy& accuracy) {
  return Cat("For complex numbers each part is within ", accuracy.c64, " ULP in c64 and ",
             accuracy.c128, " in c128", ComplexUnits(accuracy.counts), ".");
}

// "Derivative: that of the computations."
std::string GradientText(const OpInfo& op) {
  const GradientRules& gradient = op.gradient;
  const auto text = [&]() -> std::string {
    if (!gradient.reason.empty()) return Cat("none: ", gradient.reason);
    if (op.opcode == Opcode::kTuple || op.opcode == Opcode::kGetTupleElement) {
      return "that of the elements";
    }
    if (gradient.Has(GradientRules::kOfFlow)) return "that of what it calls";
    if (gradient.Has(GradientRules::kPartial)) return "a partial one by each operand";
    if (gradient.Has(GradientRules::kTangent)) return "a rule of its own";
    if (gradient.Has(GradientRules::kInEach)) return "the op, which is linear in each operand";
    if (gradient.Has(GradientRules::kTranspose)) return "the op, which is linear";
    if (gradient.Has(GradientRules::kExpansion)) return "that of other ops with the same result";
    return "0";
  };
  return Cat("Derivative: ", text(), ".");
}

std::string OpSection(const OpInfo& op, const Builder* builder) {
  std::string out = Cat("\n### ", op.name, "\n\n", Wrapped("", "", op.doc), "\n");
  if (builder) {
    out += Cat("```text\n", Prototype("", *builder), "\n```\n\n");
    out += "| parameter | meaning |\n|---|---|\n";
    for (const Parameter& parameter : ParametersOf(*builder)) {
      if (parameter.name == "graph") continue;
      out += Cat("| `", Declared(parameter), "` | ", Cell(parameter.doc), " |\n");
    }
    out += "\n";
  }
  std::string facts = Cat("Takes ", TypesText(op.types), ".");
  if (builder) {
    facts += Cat(" The result is ", builder->inference.result, ".");
    if (!builder->inference.mistakes.empty()) {
      facts += Cat(" INVALID_ARGUMENT where ", builder->inference.mistakes, ".");
    }
  }
  std::string traits = TraitsText(op);
  if (!traits.empty()) {
    traits[0] += 'A' - 'a';
    facts += Cat(" ", traits, ".");
  }
  if (const Accuracy* accuracy = AccuracyOf(op.opcode)) {
    facts += Cat(" ", AccuracyText(*accuracy));
  }
  if (const ComplexAccuracy* accuracy = ComplexAccuracyOf(op.opcode)) {
    facts += Cat(" ", ComplexAccuracyText(*accuracy));
  }
  return Cat(out, Wrapped("", "", facts), "\n", Wrapped("", "", GradientText(op)));
}

std::string_view RoleText(Role role) {
  switch (role) {
    case Role::kInit:
      return "sets options to their defaults";
    case Role::kCreate:
      return "makes";
    case Role::kRetain:
      return "adds a reference";
    case Role::kRelease:
      return "gives a reference back";
    case Role::kQuery:
      return "reads";
    case Role::kUpdate:
      return "changes its first argument";
    case Role::kBuild:
      return "adds to a graph";
    case Role::kRun:
      return "runs a program";
    case Role::kWrite:
      return "writes a file";
  }
  return "";
}

std::string_view ThreadsText(Threads threads) {
  switch (threads) {
    case Threads::kAny:
      return "any";
    case Threads::kOne:
      return "one";
  }
  return "";
}

std::string GivesText(std::string_view gives) {
  std::vector<std::string> names;
  for (std::string_view name : Split(gives, ' ')) names.push_back(Cat("`", name, "`"));
  return Join(names, ", ");
}

}  // namespace

std::string OpsReference(const std::vector<Builder>& builders) {
  std::string out = Cat(
      PageHead("Ops", "src/ops/ops.def, src/ops/attributes.def and src/ops/complex_accuracy.def"),
      "The ops under their HLO names, with their builder functions in `kiln/ops.h`. The semantics\n"
      "are XLA's operation semantics. Each function adds to a graph and returns the op's value, or "
      "0\n"
      "after an error, which `kiln_graph_status` returns. Operands of an elementwise op have the "
      "same\n"
      "dimensions: nothing is broadcast unless stated.\n"
      "\n"
      "Error bounds, in units of the last place, are those of compiled code "
      "([Accuracy](accuracy.md)).\n"
      "Derivatives are for floats and complex numbers ([Gradients](../gradients.md)).\n"
      "\n"
      "Parameters, constants and shorter forms are built by the functions of `builder.h` in the\n"
      "[table of functions](api.md).\n");
  std::string_view section;
  for (int i = 0; i < kOpcodeCount; ++i) {
    const OpInfo& op = InfoOf(static_cast<Opcode>(i));
    if (SectionOf(op.opcode) != section) {
      section = SectionOf(op.opcode);
      out += Cat("\n## ", section, "\n");
    }
    auto builder = std::find_if(builders.begin(), builders.end(),
                                [&](const Builder& b) { return b.op == &op; });
    out += OpSection(op, builder == builders.end() ? nullptr : &*builder);
  }
  return out;
}

std::string AccuracyReference() {
  std::string out = Cat(
      PageHead("Accuracy", "src/ops/ops.def and src/ops/complex_accuracy.def"),
      "The largest errors of compiled code, on CPUs and GPUs, in units of the last place "
      "(ULP). 0.5 means a\n"
      "correctly rounded result. Tests check all results against these bounds: for f16 and bf16, "
      "and for f32\n"
      "functions of one operand, at every operand; for f64 at ten million operands, and for two "
      "operands at\n"
      "samples ([Numerics](../numerics.md)).\n\n"
      "| op | f16 | bf16 | f32 | f64 | units |\n|---|---|---|---|---|---|\n");
  for (int i = 0; i < kOpcodeCount; ++i) {
    const Accuracy* a = AccuracyOf(static_cast<Opcode>(i));
    if (!a) continue;
    std::string name(OpcodeName(static_cast<Opcode>(i)));
    std::string anchor = name;
    std::erase(anchor, '.');
    out +=
        Cat("| [`", name, "`](ops.md#", anchor, ") | ", a->f16, " | ", a->bf16, " | ", a->f32,
            " | ", a->f64, " | ",
            a->counts == Accuracy::kOfOne ? "of the larger of the result and 1" : "of the result",
            " |\n");
  }
  out +=
      "\n## Complex numbers\n\n"
      "The same for each of the parts, at three hundred thousand operands of all sizes, many of "
      "them\n"
      "next to zeros and poles. Sums, differences and products have the errors of their parts.\n\n"
      "| op | c64 | c128 | units |\n|---|---|---|---|\n";
  for (int i = 0; i < kOpcodeCount; ++i) {
    const ComplexAccuracy* a = ComplexAccuracyOf(static_cast<Opcode>(i));
    if (!a) continue;
    const std::string_view name = OpcodeName(static_cast<Opcode>(i));
    std::string_view units = ComplexUnits(a->counts);
    if (!units.empty()) units.remove_prefix(2);
    out +=
        Cat("| [`", name, "`](ops.md#", name, ") | ", a->c64, " | ", a->c128, " | ", units, " |\n");
  }
  return out;
}

std::string ApiReference(const std::vector<Builder>& builders, const Headers& headers) {
  std::string out = Cat(
      PageHead("Functions", "src/capi/api.def and src/ops/ops.def"),
      "All functions of the C ABI, by header; the headers document them.\n"
      "\n"
      "- **hands over**: the parameters that receive a reference, to be released by the caller "
      "with\n"
      "  `_release`. A returned `kiln_error*` belongs to the caller, too. All other returned or\n"
      "  written pointers are borrowed from the first argument.\n"
      "- **threads**: *any* thread at any time, or *one* thread at a time per first argument.\n"
      "- **since**: the first version with the function.\n");
  std::string_view header;
  for (const Function& function : Functions()) {
    std::string_view own = headers.find(function.name)->second;
    if (own != header) {
      header = own;
      out += Cat("\n## ", header, "\n\n| function | role | hands over | threads | since |\n",
                 "|---|---|---|---|---|\n");
    }
    out += Cat("| `", function.returns, " ", function.name, function.signature, "` | ",
               RoleText(function.role), " | ", GivesText(function.gives), " | ",
               ThreadsText(function.threads), " | ", function.since, " |\n");
  }
  out +=
      "\n## ops.h\n\nThe builder functions, described in the [reference of the ops](ops.md). They "
      "add "
      "to a graph,\nare for one thread at a time per graph, and hand nothing over.\n\n"
      "| function | since |\n|---|---|\n";
  for (const Builder& builder : builders) {
    // A heading's anchor has no dots.
    std::string anchor(builder.op->name);
    std::erase(anchor, '.');
    out += Cat("| [`", builder.function(), "`](ops.md#", anchor, ") | ", kBuildersSince, " |\n");
  }
  return out;
}

}  // namespace kiln::gen
