#include "aot/header.h"

#include <algorithm>
#include <utility>

#include "aot/names.h"
#include "base/strings.h"

namespace kiln::aot {
namespace {

// The type of an element in C, and in C++.
std::string_view CType(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "float";
    case ElementType::kF64:
      return "double";
    case ElementType::kS8:
      return "int8_t";
    case ElementType::kS16:
      return "int16_t";
    case ElementType::kS32:
      return "int32_t";
    case ElementType::kS64:
      return "int64_t";
    case ElementType::kU8:
      return "uint8_t";
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBF16:
      return "uint16_t";
    case ElementType::kU32:
      return "uint32_t";
    case ElementType::kU64:
      return "uint64_t";
    case ElementType::kC64:
      return "kiln_aot_c64";
    case ElementType::kC128:
      return "kiln_aot_c128";
    default:
      return "uint8_t";  // truth values, and numbers of a byte or less
  }
}

// "f32[2,3], 24 bytes".
std::string Described(const Shape& shape) {
  return Cat(shape.ToString(false), shape.is_row_major() ? "" : " in another order of dimensions",
             ", ", shape.byte_size(), " bytes");
}

class Header {
 public:
  Header(const program::Program& program, const HeaderOptions& options)
      : program_(program),
        options_(options),
        signature_(program.signature),
        names_(NamesOf(program.signature)),
        upper_(ToUpper(options.name)) {}

  std::string Text() {
    const std::string guard = Cat("KILN_AOT_", upper_, "_H_");
    Line("/* The program '", Comment(program_.name), "', compiled ahead of time by kiln-aot.");
    Line(" * For: ", Comment(program_.target), ". */");
    Line("#ifndef ", guard, "\n#define ", guard, "\n");
    Line("#include <kiln/aot.h>\n");
    Line("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    Line("extern const kiln_aot_program ", options_.name, "_program;\n");
    Macros();
    UserFunctions();
    RunFunction();
    Line("#ifdef __cplusplus\n} /* extern \"C\" */");
    if (!options_.class_name.empty()) Class();
    Line("#endif\n\n#endif /* ", guard, " */");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(const Args&... args) {
    text_ += Cat(args..., "\n");
  }
  // A comment must not end in the middle.
  static std::string Comment(std::string_view text) {
    std::string safe = EscapeC(text);
    for (size_t at; (at = safe.find("*/")) != safe.npos;) safe.replace(at, 2, "* /");
    return safe;
  }
  // Calls f(array, name, is_result, number) for arguments, then results.
  template <typename F>
  void ForEachArray(const F& f) const {
    for (size_t i = 0; i < names_.arguments.size(); ++i) {
      f(signature_.parameters[i], names_.arguments[i], false, i);
    }
    for (size_t i = 0; i < names_.results.size(); ++i) {
      f(signature_.results[i], names_.results[i], true, i);
    }
  }

  void Macros();
  void UserFunctions();
  void RunFunction();
  void Class();
  void ClassMembers(const std::string& name);
  void ClassArrays();

  const program::Program& program_;
  const HeaderOptions& options_;
  const program::Signature& signature_;
  const ArrayNames names_;
  const std::string upper_;
  std::string text_;
};

void Header::Macros() {
  Line("/* For kiln_aot_place, and what a run takes of the stack at most. */");
  Line("#define ", upper_, "_MEMORY_BYTES ", options_.memory_bytes);
  Line("#define ", upper_, "_STACK_BYTES ", options_.stack_bytes);
  Line("/* --threads of kiln-aot; 0: all CPUs. */");
  Line("#define ", upper_, "_THREADS ", options_.threads, "\n");
  ForEachArray([&](const Shape& shape, const std::string& name, bool is_result, size_t i) {
    const std::string prefix = Cat(upper_, "_", name);
    Line("/* ", is_result ? "Result " : "Argument ", i, ": ", Described(shape), ". */");
    Line("#define ", prefix, "_RANK ", shape.rank());
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Line("#define ", prefix, "_DIM", d, " ", shape.dim(d));
    }
    Line("#define ", prefix, "_ELEMENTS ", shape.num_elements());
    Line("#define ", prefix, "_BYTES ", shape.byte_size());
    Line("#define ", prefix, "_ALIGNMENT ",
         is_result ? program::kAlignment : options_.argument_alignments[i]);
    Line("#define ", prefix, "_ASSERT(array) KILN_AOT_ASSERT_BYTES(array, ", prefix, "_BYTES)\n");
  });
}

void Header::UserFunctions() {
  if (options_.user_targets.empty()) return;
  Line(
      "/* The functions that its custom calls call, to be defined by the program that links it. "
      "*/");
  for (const std::string& target : options_.user_targets) {
    Line("kiln_aot_function ", CName(target), ";");
  }
  Line();
}

void Header::RunFunction() {
  Line("/* kiln_aot_run with typed arguments. Addresses are aligned to ..._ALIGNMENT. */");
  Line("static inline int32_t ", options_.name, "_run(");
  Line("    kiln_aot_instance* instance,");
  ForEachArray([&](const Shape& shape, const std::string& name, bool is_result, size_t) {
    Line("    ", is_result ? "" : "const ", CType(shape.type()), "* ", name, ", /* ",
         Described(shape), " */");
  });
  Line("    kiln_aot_error* error) {");
  auto list = [&](std::string_view type, std::string_view name,
                  const std::vector<std::string>& items) {
    Line("  ", type, " ", name, "[] = {", items.empty() ? "0" : Join(items, ", "), "};");
  };
  list("const void* const", "arguments_", names_.arguments);
  list("void* const", "results_", names_.results);
  Line("  return kiln_aot_run(instance, arguments_, results_, error);\n}\n");
}

void Header::ClassArrays() {
  ForEachArray([&](const Shape& shape, const std::string& name, bool is_result, size_t i) {
    const std::string type(CType(shape.type()));
    const std::string number = Cat(is_result ? "result" : "arg", i);
    Line("\n  // ", is_result ? "Result " : "Argument ", i, is_result ? "" : Cat(", ", name), ": ",
         Described(shape), ".");
    const std::string list = Cat(is_result ? "results_[" : "arguments_[", i, "]");
    if (is_result) {
      Line("  ", type, "* ", number, "_data() { return static_cast<", type, "*>(", list, "); }");
      Line("  void set_", number, "_data(void* data) { ", list, " = data; }");
    } else {
      Line("  ", type, "* ", number, "_data() { return static_cast<", type, "*>(const_cast<void*>(",
           list, ")); }");
      Line("  void set_", number, "_data(const void* data) { ", list, " = data; }");
      Line("  ", type, "* arg_", name, "_data() { return ", number, "_data(); }");
      Line("  void set_arg_", name, "_data(const void* data) { set_", number, "_data(data); }");
    }
    Line("  const ", type, "* ", number, "_data() const { return static_cast<const ", type, "*>(",
         list, "); }");
    Line("  static constexpr size_t ", number, "_count() { return ", shape.num_elements(), "; }");
    Line("  static constexpr size_t ", number, "_size() { return ", shape.byte_size(), "; }");
  });
}

void Header::ClassMembers(const std::string& name) {
  const std::string program = Cat("::", options_.name, "_program");
  const size_t arguments = names_.arguments.size(), results = names_.results.size();
  Line(" public:");
  Line("  // With memory of its own for arguments and results; `threads` as in");
  Line("  // kiln_aot_pool_create, 1 for none but the caller's.");
  Line("  explicit ", name, "(int32_t threads = ", options_.threads, ")");
  Line("      : AotProgram(", program, ", threads, argument_addresses_, result_addresses_) {}");
  Line("  static const kiln_aot_program& program() { return ", program, "; }");
  Line("  static constexpr size_t num_args() { return ", arguments, "; }");
  Line("  static constexpr size_t num_results() { return ", results, "; }");
  Line("  static int LookupArgument(const char* name) {");
  Line("    return AotProgram::LookupArgument(", program, ", name);\n  }");
  ClassArrays();
  Line("\n private:");
  Line("  const void* argument_addresses_[", std::max<size_t>(arguments, 1), "];");
  Line("  void* result_addresses_[", std::max<size_t>(results, 1), "];");
}

void Header::Class() {
  std::vector<std::string_view> parts;
  for (std::string_view part : Split(options_.class_name, ':')) {
    if (!part.empty()) parts.push_back(part);
  }
  const std::string name(parts.back());
  parts.pop_back();
  Line();
  for (std::string_view part : parts) Line("namespace ", part, " {");
  Line("\n// The program with its arrays; Run() runs it. One thread at a time.");
  Line("class ", name, " : public kiln::AotProgram {");
  ClassMembers(name);
  Line("};\n");
  for (; !parts.empty(); parts.pop_back()) Line("}  // namespace ", parts.back());
}

// "ns::inner::Class".
Status CheckClassName(std::string_view name) {
  std::string_view rest = name;
  while (true) {
    const size_t end = rest.find("::");
    if (!IsCName(rest.substr(0, end))) {
      return InvalidArgument("'", name, "' is no name of a class in C++");
    }
    if (end == rest.npos) return OkStatus();
    rest.remove_prefix(end + 2);
  }
}

}  // namespace

ArrayNames NamesOf(const program::Signature& signature) {
  UniqueNames unique;  // also from those of the function's own
  for (std::string_view own : {"instance", "error", "arguments_", "results_"}) unique.Make(own);
  ArrayNames names;
  const bool one = signature.results.size() == 1;
  // Results first: theirs do not depend on the arguments'.
  for (size_t i = 0; i < signature.results.size(); ++i) {
    names.results.push_back(unique.Make(one ? "result" : Cat("result", i)));
  }
  for (const std::string& name : signature.parameter_names) {
    names.arguments.push_back(unique.Make(name.empty() ? "argument" : name));
  }
  return names;
}

Result<std::string> HeaderText(const program::Program& program, const HeaderOptions& options) {
  if (!IsCName(options.name)) return InvalidArgument("'", options.name, "' is no name in C");
  if (!options.class_name.empty()) KILN_RETURN_IF_ERROR(CheckClassName(options.class_name));
  return Header(program, options).Text();
}

}  // namespace kiln::aot
