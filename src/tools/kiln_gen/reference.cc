// The reference pages of the manual.
#include <algorithm>

#include "base/strings.h"
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

std::string TraitsText(uint32_t traits) {
  std::vector<std::string_view> names;
  if (traits & kElementwise) names.push_back("elementwise");
  if (traits & kCommutative) names.push_back("commutative");
  if (traits & kTranscendental) names.push_back("transcendental");
  if (traits & kSideEffect) names.push_back("has side effects");
  if (traits & kSessionOnly) names.push_back("runs in sessions only");
  if (traits & kFree) names.push_back("costs nothing at run time");
  return Join(names, ", ");
}

std::string OpSection(const OpInfo& op, const Builder* builder) {
  std::string out = Cat("\n## ", op.name, "\n\n", Wrapped("", "", op.doc), "\n");
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
  std::string traits = TraitsText(op.traits);
  if (!traits.empty()) {
    traits[0] += 'A' - 'a';
    facts += Cat(" ", traits, ".");
  }
  return out + Wrapped("", "", facts);
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
  std::string out =
      Cat(PageHead("Ops", "src/ops/ops.def and src/ops/attributes.def"),
          "The ops under their HLO names, with the functions of `kiln/ops.h` that build them. The\n"
          "semantics are those of XLA's operation semantics. Each function takes the graph to add "
          "to and\n"
          "returns the op's value, or 0 after a mistake, which `kiln_graph_status` tells. Operands "
          "of an\n"
          "elementwise op have the same dimensions: nothing is broadcast unless an op says so.\n"
          "\n"
          "Parameters, constants and shorter forms are built by functions that are listed with\n"
          "`builder.h` in the [table of functions](api.md).\n");
  for (int i = 0; i < kOpcodeCount; ++i) {
    const OpInfo& op = InfoOf(static_cast<Opcode>(i));
    auto builder = std::find_if(builders.begin(), builders.end(),
                                [&](const Builder& b) { return b.op == &op; });
    out += OpSection(op, builder == builders.end() ? nullptr : &*builder);
  }
  return out;
}

std::string ApiReference(const std::vector<Builder>& builders, const Headers& headers) {
  std::string out =
      Cat(PageHead("Functions", "src/capi/api.def and src/ops/ops.def"),
          "All functions of the C ABI, by header; the headers say what they do.\n"
          "\n"
          "- **hands over**: the parameters that receive a reference, which the caller gives back "
          "with\n"
          "  `_release`. A returned `kiln_error*` belongs to the caller, too. All other pointers "
          "that a\n"
          "  function returns or writes are borrowed from its first argument.\n"
          "- **threads**: *any* thread at any time, or *one* thread at a time per first argument.\n"
          "- **since**: the version that brought the function.\n");
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
