// The files in C and C++, and the linker's list of exports.
#include "base/strings.h"
#include "tools/kiln_gen/writers.h"

namespace kiln::gen {
namespace {

constexpr std::string_view kOpTables = "src/ops/ops.def and src/ops/attributes.def";

// Escapes Doxygen's markup.
std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("\\@<>&#%").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string Comment(const Builder& builder) {
  const OpInfo& op = *builder.op;
  std::string out = Wrapped("/** ", " *  ", Escaped(op.doc));
  std::string more = Cat("Takes ", TypesText(op.types), ".");
  if (op.traits & kSessionOnly) more += " Runs in sessions only.";
  out += Cat(" *\n", Wrapped(" *  ", " *  ", more));
  for (const Parameter& p : ParametersOf(builder)) {
    out += Wrapped(Cat(" *  @param ", p.name, " "), " *         ", p.doc);
  }
  std::string value = Cat("the value, ", Escaped(builder.inference.result));
  if (!builder.inference.mistakes.empty()) {
    value += Cat("; 0 and INVALID_ARGUMENT where ", Escaped(builder.inference.mistakes));
  }
  return out + Wrapped(" *  @return ", " *          ", value + " */");
}

// The call on OpBuilder that adds an argument.
std::string BuilderCall(const Argument& argument) {
  const std::string& name = argument.name;
  const std::string key = Cat("Attr::k", argument.key);
  const std::string list = Cat(name, ", ", name, "_count");
  switch (argument.kind) {
    case ArgumentKind::kValue:
      return Cat("op.Operand(", name, ");");
    case ArgumentKind::kValues:
      return Cat("op.Operands(\"", name, "\", ", list, ");");
    case ArgumentKind::kInt:
      return Cat("op.Int(", key, ", ", argument.optional, ", ", name, ");");
    case ArgumentKind::kInts:
      return Cat("op.IntList(", key, ", ", argument.optional, ", ", list, ");");
    case ArgumentKind::kBool:
      return Cat("op.Bool(", key, ", ", argument.optional, ", ", name, ");");
    case ArgumentKind::kDirection:
      return Cat("op.Order(", key, ", ", name, ");");
    case ArgumentKind::kSlices:
      return Cat("op.Slices(", key, ", start, limit, stride, rank);");
    case ArgumentKind::kPadding:
      return Cat("op.Paddings(", key, ", low, high, interior, rank);");
    case ArgumentKind::kWindow:
      return Cat("op.Window(", key,
                 ", {window_dimensions, window_strides, base_dilations, window_dilations, "
                 "padding_low, padding_high}, rank);");
    case ArgumentKind::kText:
      return Cat("op.Text(", key, ", ", argument.optional, ", ", name, ", ", name, "_length);");
    case ArgumentKind::kFloat:
      return Cat("op.Float(", key, ", ", name, ");");
    case ArgumentKind::kGroups:
      return Cat("op.GroupList(", key, ", ", argument.optional, ", ", name, ", ", name, "_sizes, ",
                 name, "_count);");
    case ArgumentKind::kConvolution:
      return Cat("op.Labels(", key, ", ", name, ", ", name, "_length);");
    case ArgumentKind::kConvolutionWindow:
      return Cat("op.Window(", key,
                 ", {window_dimensions, window_strides, base_dilations, window_dilations, "
                 "padding_low, padding_high, window_reversal}, rank);");
    case ArgumentKind::kGraph:
      return Cat("op.Region(\"", name, "\", ", name, ");");
    case ArgumentKind::kGraphs:
      return Cat("op.Regions(\"", name, "\", ", list, ");");
    case ArgumentKind::kType:
      return Cat(argument.optional ? Cat("if (", name, " != 0) ") : "", "op.Type(", name, ");");
    case ArgumentKind::kDims:
      return Cat("op.Dims(", name, ", rank);");
  }
  return "";
}

}  // namespace

std::string OpsHeader(const std::vector<Builder>& builders) {
  std::string out =
      Cat("/** @file\n", Wrapped(" *  ", " *  ", Notice(kOpTables)), " *\n",
          Wrapped(" *  ", " *  ",
                  "The builder functions: one for each op. Each adds an op to a graph and returns "
                  "its value; see ::kiln_value. Parameters, constants and shorter forms are in "
                  "builder.h."),
          " *\n",
          Wrapped(" *  ", " *  ",
                  "After an error a function returns 0, and kiln_graph_status() returns the "
                  "error, with the op and the shapes of its operands. Errors of every op: "
                  "INVALID_ARGUMENT for a NULL graph, a NULL list with a count, a value of another "
                  "graph, an operand of the wrong kind or element type, an invalid or duplicate "
                  "dimension, and a result too large for memory; UNIMPLEMENTED for a size that "
                  "cannot be computed symbolically; RESOURCE_EXHAUSTED for memory. The pages list "
                  "further errors only."),
          " *\n",
          Wrapped(" *  ", " *  ", Cat("One thread at a time per graph. \\since ", kBuildersSince)),
          " */\n"
          "#ifndef KILN_OPS_H_\n"
          "#define KILN_OPS_H_\n"
          "\n"
          "#include <stddef.h>\n"
          "#include <stdint.h>\n"
          "\n"
          "#include \"kiln/builder.h\"\n"
          "#include \"kiln/export.h\"\n"
          "#include \"kiln/graph.h\"\n"
          "#include \"kiln/types.h\"\n"
          "\n"
          "#ifdef __cplusplus\n"
          "extern \"C\" {\n"
          "#endif\n");
  std::string_view section;
  for (const Builder& builder : builders) {
    if (builder.section != section) {
      if (!section.empty()) out += "\n/** @} */\n";
      section = builder.section;
      out += Cat("\n", Wrapped("/** @name ", " *  ", Cat(section, " */")), "/** @{ */\n");
    }
    out += Cat("\n", Comment(builder), Prototype("KILN_API ", builder), ";\n");
  }
  return out +
         "\n/** @} */\n"
         "\n#ifdef __cplusplus\n"
         "}\n"
         "#endif\n"
         "\n"
         "#endif /* KILN_OPS_H_ */\n";
}

std::string OpsBodies(const std::vector<Builder>& builders) {
  std::string out = Cat(Wrapped("// ", "// ", Notice(kOpTables)),
                        "#include \"kiln/ops.h\"\n"
                        "\n"
                        "#include \"capi/op_builder.h\"\n"
                        "\n"
                        "using kiln::Attr;\n"
                        "using kiln::Opcode;\n"
                        "using kiln::capi::AddOp;\n"
                        "using kiln::capi::OpBuilder;\n");
  for (const Builder& builder : builders) {
    out += Cat("\n", Prototype("", builder), " {\n  return AddOp(graph, Opcode::k",
               builder.enumerator, ", [&](OpBuilder& op) {\n");
    for (const Argument& argument : builder.arguments) {
      out += Cat("    ", BuilderCall(argument), "\n");
    }
    out += "  });\n}\n";
  }
  return out;
}

std::string ApiCheck(const std::vector<ConstantGroup>& constants) {
  std::string out =
      Cat(Wrapped("// ", "// ", Notice("the tables of element types, error codes and directions")),
          "//\n"
          "// Holds the headers against the tables: what compiles agrees.\n"
          "#include <type_traits>\n"
          "\n"
          "#include \"base/status.h\"\n"
          "#include \"kiln/kiln.h\"\n"
          "#include \"ops/attributes.h\"\n"
          "#include \"tensor/element_type.h\"\n"
          "\n"
          "namespace kiln {\n"
          "\n"
          "#define KILN_FUNCTION(name, returns, parameters, role, gives, threads, since) \\\n"
          "  static_assert(std::is_same_v<decltype(&::name), returns(*) parameters>,     \\\n"
          "                #name \": the header and capi/api.def say different things\");\n"
          "#include \"capi/api.def\"\n"
          "#undef KILN_FUNCTION\n");
  for (const ConstantGroup& group : constants) {
    bool first = true;
    for (const Constant& constant : group.constants) {
      if (constant.library.empty()) continue;
      if (first) out += "\n";
      first = false;
      out += Cat("static_assert(", constant.c, " == static_cast<int>(", constant.library, "));\n");
    }
  }
  return out + "\n}  // namespace kiln\n";
}

std::string BuildersTable(const std::vector<Builder>& builders) {
  std::string out =
      Cat(Wrapped("// ", "// ", Notice("src/ops/ops.def and src/ops/attributes.def")),
          "//\n// The builder functions that come from the op table, as rows of api.def.\n",
          "// clang-format off\n");
  for (const Builder& builder : builders) {
    std::vector<std::string> parameters;
    for (const Parameter& parameter : ParametersOf(builder)) {
      parameters.push_back(Declared(parameter));
    }
    out += Cat("KILN_FUNCTION(", builder.function(), ", kiln_value, (", Join(parameters, ", "),
               "), kBuild, \"\", kOne, \"", kBuildersSince, "\")\n");
  }
  return out + "// clang-format on\n";
}

std::string ExportsMap(const std::vector<Builder>& builders) {
  std::string out =
      Cat(Wrapped("# ", "# ", Notice("src/capi/api.def and src/ops/ops.def")), "{\n  global:\n");
  for (const Function& function : Functions()) out += Cat("    ", function.name, ";\n");
  for (const Builder& builder : builders) out += Cat("    ", builder.function(), ";\n");
  return out + "  local: *;\n};\n";
}

}  // namespace kiln::gen
