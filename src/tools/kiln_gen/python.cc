// The table that Python's binding is made from.
#include <algorithm>

#include "base/strings.h"
#include "kiln/buffer.h"
#include "kiln/version.h"
#include "tools/kiln_gen/writers.h"

namespace kiln::gen {
namespace {

struct Scalar {
  std::string_view c;
  std::string_view ctypes;
};

constexpr Scalar kScalars[] = {
    {"int32_t", "c_int32"},        {"int64_t", "c_int64"},        {"uint64_t", "c_uint64"},
    {"size_t", "c_size_t"},        {"double", "c_double"},        {"kiln_code", "c_int32"},
    {"kiln_dtype", "c_int32"},     {"kiln_direction", "c_int32"}, {"kiln_reducer", "c_int32"},
    {"kiln_log_level", "c_int32"}, {"kiln_gpu_mode", "c_int32"},  {"kiln_gpu_library", "c_int32"},
    {"kiln_value", "c_uint64"},
};

// The type in ctypes. Objects and structs are plain addresses; functions too, as c_void_p takes
// what CFUNCTYPE makes.
std::string CtypesOf(std::string_view type) {
  if (type.find('(') != type.npos) return "c_void_p";
  std::string base;
  size_t stars = 0;
  for (std::string_view word : Split(type, ' ')) {
    stars += std::count(word.begin(), word.end(), '*');
    word = word.substr(0, word.find('*'));
    if (word != "const" && !word.empty()) base = word;
  }
  if (base == "void" && stars == 0) return "None";
  std::string out = "c_void_p";
  bool scalar = false;
  for (const Scalar& row : kScalars) {
    if (row.c != base) continue;
    scalar = true;
    out = row.ctypes;
  }
  if (base == "char") out = "c_char_p";
  size_t own = scalar ? 0 : 1;  // the star that the type in ctypes stands for
  for (size_t i = own; i < stars; ++i) out = Cat("POINTER(", out, ")");
  return out;
}

std::string_view KindName(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kValue:
      return "value";
    case ArgumentKind::kValues:
      return "values";
    case ArgumentKind::kInt:
      return "int";
    case ArgumentKind::kInts:
      return "ints";
    case ArgumentKind::kBool:
      return "bool";
    case ArgumentKind::kDirection:
      return "direction";
    case ArgumentKind::kSlices:
      return "slices";
    case ArgumentKind::kPadding:
      return "padding";
    case ArgumentKind::kWindow:
      return "window";
    case ArgumentKind::kText:
    case ArgumentKind::kConvolution:
      return "text";
    case ArgumentKind::kFloat:
      return "float";
    case ArgumentKind::kGroups:
      return "groups";
    case ArgumentKind::kConvolutionWindow:
      return "convolution_window";
    case ArgumentKind::kGraph:
      return "graph";
    case ArgumentKind::kGraphs:
      return "graphs";
    case ArgumentKind::kType:
      return "dtype";
    case ArgumentKind::kDims:
      return "dims";
  }
  return "";
}

// A literal, in the quotes that spare escapes.
std::string Quoted(std::string_view text) {
  const char quote = text.find('\'') == text.npos ? '\'' : '"';
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote;
}

// A text as adjacent literals on lines of their own, so that none is too long.
std::string Literals(std::string_view indent, std::string_view text) {
  const size_t around = indent.size() + 4;  // two quotes, a space at the end, a comma behind
  std::string out;
  std::string line;
  for (std::string_view word : Split(text, ' ')) {
    if (!line.empty() && around + line.size() + 1 + word.size() > kColumns) {
      out += Cat(indent, Quoted(line + ' '), "\n");
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  return Cat(out, indent, Quoted(line));
}

std::string FunctionRow(std::string_view name, std::string_view returns,
                        const std::vector<Parameter>& parameters) {
  std::vector<std::string> types;
  for (const Parameter& parameter : parameters) types.push_back(CtypesOf(parameter.type));
  // A returned error is raised by the package, which needs to know it from other addresses.
  std::string result = returns == "kiln_error*" ? "ErrorPointer" : CtypesOf(returns);
  std::string list = Cat(Join(types, ", "), "]),");
  std::string line = Cat("    ", Quoted(name), ": (", result, ", [", list);
  if (line.size() <= kColumns) return line + "\n";
  return Cat("    ", Quoted(name), ": (\n        ", result, ",\n",
             Wrapped("        [", "         ", list));
}

std::string OpRow(const Builder& builder) {
  std::string out = Cat("    ", Quoted(builder.name), ": Op(\n",
                        Literals("        ", builder.op->doc), ",\n        [\n");
  for (const Argument& argument : builder.arguments) {
    // An empty list of operands is still given.
    bool may_miss = argument.optional && argument.kind != ArgumentKind::kValues;
    out += Cat("            Parameter(", Quoted(argument.name), ", ",
               Quoted(KindName(argument.kind)), ", ", may_miss ? "True" : "False", "),\n");
  }
  return out + "        ]),\n";
}

}  // namespace

std::string PythonTable(const std::vector<Builder>& builders,
                        const std::vector<ConstantGroup>& constants) {
  std::string out = Cat(
      "\"\"\"The tables of the C ABI: functions, constants and ops.\n\n",
      Wrapped("", "", Notice("src/capi/api.def, src/ops/ops.def and src/ops/attributes.def")),
      "\"\"\"\n\n"
      "from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, "
      "c_void_p\n\n"
      "from ._schema import ErrorPointer, Op, Parameter\n\n"
      "VERSION = (",
      KILN_VERSION_MAJOR, ", ", KILN_VERSION_MINOR, ", ", KILN_VERSION_PATCH,
      ")\n\n# Memory at a multiple of this is used without a copy.\nALIGNMENT = ", KILN_ALIGNMENT,
      "\n");
  for (const ConstantGroup& group : constants) {
    out += Cat("\n", group.name, " = {\n");
    for (const Constant& constant : group.constants) {
      out += Cat("    ", Quoted(constant.name), ": ", constant.value, ",\n");
    }
    out += "}\n";
  }
  out += "\n# Name: (result, parameters).\nFUNCTIONS = {\n";
  for (const Function& function : Functions()) {
    out += FunctionRow(function.name, function.returns, ParseSignature(function.signature));
  }
  for (const Builder& builder : builders) {
    out += FunctionRow(builder.function(), "kiln_value", ParametersOf(builder));
  }
  out += "}\n\n# Name, without kiln_op_: what it does and what it takes.\nOPS = {\n";
  for (const Builder& builder : builders) out += OpRow(builder);
  return out + "}\n";
}

}  // namespace kiln::gen
