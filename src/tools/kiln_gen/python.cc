// The generated files of Python's binding: tables of functions and constants, and the ops as
// methods.
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
    {"kiln_value", "c_uint64"},    {"kiln_reduction", "c_int32"}, {"kiln_optimizer", "c_int32"},
};

// The type in ctypes. Objects and structs are plain addresses; functions too, because c_void_p
// accepts CFUNCTYPE objects.
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

// How an argument looks in Python: parameters, and the expression that makes C's arguments of them.
struct PythonParameter {
  std::string name;
  std::string_view type;
  std::string_view absent;  // what stands for it where it is left out; empty: it must be given
};
struct PythonArgument {
  std::vector<PythonParameter> parameters;
  std::string passed;
};

constexpr std::string_view kList = "Iterable[int]";
constexpr std::string_view kOptionalList = "Optional[Iterable[int]]";

// Lists with an element per dimension: the first `needed` must be given.
PythonArgument PerDimension(std::string_view function, std::vector<std::string> names,
                            size_t needed) {
  PythonArgument out;
  for (size_t i = 0; i < names.size(); ++i) {
    out.parameters.push_back(
        {names[i], i < needed ? kList : kOptionalList, i < needed ? "" : "None"});
  }
  out.passed = Cat("*", function, "(", Join(names, ", "), ")");
  return out;
}

PythonArgument PythonOf(const Argument& argument) {
  const std::string& name = argument.name;
  // The type, the passed expression, and the default of an optional argument.
  auto plain = [&](std::string_view type, std::string passed, std::string_view absent = "") {
    return PythonArgument{{{name, type, argument.optional ? absent : ""}}, std::move(passed)};
  };
  std::vector<std::string> window = {"window_dimensions", "window_strides", "base_dilations",
                                     "window_dilations",  "padding_low",    "padding_high"};
  switch (argument.kind) {
    case ArgumentKind::kValue:
      return plain("Value", name + ".id");
    case ArgumentKind::kValues:  // an empty list of operands is still given
      return plain("Iterable[Value]", Cat("*values(", name, ")"));
    case ArgumentKind::kInt:
      return plain("int", name, "0");
    case ArgumentKind::kInts:
    case ArgumentKind::kDims:
      return plain(kList, Cat("*ints(", name, ")"), "()");
    case ArgumentKind::kBool:
      return plain("bool", Cat("int(", name, ")"), "False");
    case ArgumentKind::kDirection:
      return plain("str", Cat("direction_number(", name, ")"));
    case ArgumentKind::kSlices:
      return PerDimension("slices", {"start", "limit", "stride"}, 2);
    case ArgumentKind::kPadding:
      return PerDimension("padding", {"low", "high", "interior"}, 2);
    case ArgumentKind::kWindow:
      return PerDimension("window", std::move(window), 1);
    case ArgumentKind::kConvolutionWindow:
      window.push_back("window_reversal");
      return PerDimension("convolution_window", std::move(window), 1);
    case ArgumentKind::kText:
    case ArgumentKind::kConvolution:
      return plain("str", Cat("*text(", name, ")"), "''");
    case ArgumentKind::kFloat:
      return plain("float", name);
    case ArgumentKind::kGroups:
      return plain("Iterable[Iterable[int]]", Cat("*groups(", name, ")"), "()");
    case ArgumentKind::kGraph:
      return plain("Graph", name);
    case ArgumentKind::kGraphs:
      return plain("Iterable[Graph]", Cat("*graphs(", name, ")"));
    case ArgumentKind::kType:
      if (argument.optional) {
        return plain("Optional[DTypeLike]", Cat("optional_dtype_number(", name, ")"), "None");
      }
      return plain("DTypeLike", Cat("dtype_number(", name, ")"));
  }
  return {};
}

// Python keywords that are names of ops.
constexpr std::string_view kKeywords[] = {"and", "assert", "not", "or", "while"};

// With the closing quotes on a line of their own, where there are several.
std::string Docstring(std::string_view doc) {
  const std::string_view indent = "        ", quotes = "\"\"\"";
  std::string out = Wrapped(Cat(indent, quotes), indent, Cat(doc, quotes));
  if (std::count(out.begin(), out.end(), '\n') == 1) return out;
  return Cat(Wrapped(Cat(indent, quotes), indent, doc), indent, quotes, "\n");
}

// Stands for a space at which no line may end.
constexpr char kFixedSpace = '\1';

// As Wrapped(), with fixed spaces.
std::string WrappedPieces(std::string_view first, std::string_view rest,
                          std::vector<std::string> pieces) {
  for (std::string& piece : pieces) std::replace(piece.begin(), piece.end(), ' ', kFixedSpace);
  std::string out = Wrapped(first, rest, Join(pieces, ", "));
  std::replace(out.begin(), out.end(), kFixedSpace, ' ');
  return out;
}

// A method of the graph that adds the op. Optional parameters come last.
std::string OpMethod(const Builder& builder) {
  std::vector<std::string> needed, optional;
  std::string passed = "self";
  for (const Argument& argument : builder.arguments) {
    PythonArgument python = PythonOf(argument);
    for (const PythonParameter& parameter : python.parameters) {
      std::string declared = Cat(parameter.name, ": ", parameter.type);
      if (parameter.absent.empty()) {
        needed.push_back(std::move(declared));
      } else {
        optional.push_back(Cat(declared, " = ", parameter.absent));
      }
    }
    passed += Cat(", ", python.passed);
  }
  needed.insert(needed.end(), optional.begin(), optional.end());
  needed.insert(needed.begin(), "self");
  needed.back() += ") -> Value:";
  bool is_keyword =
      std::find(std::begin(kKeywords), std::end(kKeywords), builder.name) != std::end(kKeywords);
  std::string head = Cat("    def ", builder.name, is_keyword ? "_" : "", "(");
  std::string indent(head.size(), ' ');
  std::string call = Cat("        return self.value(lib.", builder.function(), "(");
  const bool has_effect = (builder.op->traits & kSideEffect) != 0;
  return Cat(WrappedPieces(head, indent, std::move(needed)), Docstring(builder.op->doc),
             has_effect ? "        self.has_effects = True\n" : "",
             Wrapped(call, std::string(call.size(), ' '), Cat(passed, "))")), "\n");
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

}  // namespace

std::string PythonTable(const std::vector<Builder>& builders,
                        const std::vector<ConstantGroup>& constants) {
  std::string out = Cat(
      "\"\"\"The tables of the C ABI: functions and constants.\n\n",
      Wrapped("", "", Notice("src/capi/api.def, src/ops/ops.def and src/ops/attributes.def")),
      "\"\"\"\n\n"
      "import enum\n"
      "from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, "
      "c_void_p\n"
      "from typing import Any, Dict, List, Tuple\n\n"
      "from ._schema import ErrorPointer\n\n"
      "VERSION = (",
      KILN_VERSION_MAJOR, ", ", KILN_VERSION_MINOR, ", ", KILN_VERSION_PATCH,
      ")\n\n# Memory at a multiple of this is used without a copy.\nALIGNMENT = ", KILN_ALIGNMENT,
      "\n");
  for (const ConstantGroup& group : constants) {
    if (group.name == "CODES") {
      out += "\n\nclass Code(enum.IntEnum):\n    \"\"\"What kind of failure.\"\"\"\n\n";
      for (const Constant& code : group.constants) {
        out += Cat("    ", code.name, " = ", code.value, "\n");
      }
      out += "\n";
      continue;
    }
    out += Cat("\n", group.name, " = {\n");
    for (const Constant& constant : group.constants) {
      out += Cat("    ", Quoted(constant.name), ": ", constant.value, ",\n");
    }
    out += "}\n";
  }
  out += "\n# Name: (result, parameters).\nFUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {\n";
  for (const Function& function : Functions()) {
    out += FunctionRow(function.name, function.returns, ParseSignature(function.signature));
  }
  for (const Builder& builder : builders) {
    out += FunctionRow(builder.function(), "kiln_value", ParametersOf(builder));
  }
  return out + "}\n";
}

std::string PythonOps(const std::vector<Builder>& builders) {
  std::string out =
      Cat("\"\"\"The ops as methods of graphs.\n\n",
          Wrapped("", "", Notice("src/ops/ops.def and src/ops/attributes.def")),
          "\"\"\"\n\n"
          "from __future__ import annotations\n\n"
          "from typing import TYPE_CHECKING, Iterable, Optional\n\n"
          "from ._dtypes import DTypeLike, dtype_number\n"
          "from ._library import ints, lib, text\n"
          "from ._ops import (GraphBase, convolution_window, direction_number, graphs, groups,\n"
          "                   optional_dtype_number, padding, slices, values, window)\n\n"
          "if TYPE_CHECKING:\n"
          "    from .graph import Graph\n"
          "    from .value import Value\n\n\n"
          "class GraphOps(GraphBase):\n"
          "    \"\"\"A method for each op, which adds it to the graph.\"\"\"\n\n"
          "    __slots__ = ()\n\n");
  for (const Builder& builder : builders) out += OpMethod(builder);
  out.pop_back();  // an empty line
  return out;
}

}  // namespace kiln::gen
