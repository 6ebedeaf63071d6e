#include "aot/header.h"

#include <algorithm>
#include <span>
#include <utility>

#include "aot/names.h"
#include "base/strings.h"
#include "kiln/aot.h"

namespace kiln::aot {
namespace {

// The type of an element in C, and in C++.
std::string_view CType(const Shape& shape) {
  if (shape.is_token()) return "void";
  switch (shape.type()) {
    case ElementType::kF32:
      return "float";
    case ElementType::kF64:
      return "double";
    case ElementType::kS16:
      return "int16_t";
    case ElementType::kS32:
      return "int32_t";
    case ElementType::kS64:
      return "int64_t";
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
      // Truth values, and numbers of a byte or less.
      return IsSigned(shape.type()) ? "int8_t" : "uint8_t";
  }
}

int64_t ElementsOf(const Shape& shape) { return shape.is_token() ? 0 : shape.num_elements(); }

// "f32[2,3], 24 bytes".
std::string Described(const Shape& shape) {
  return Cat(shape.ToString(false), shape.is_row_major() ? "" : " in another order of dimensions",
             ", ", shape.byte_size(), " bytes");
}

// Where a class for C++ is: {"outer", "inner", "Class"}.
using ClassPath = std::vector<std::string>;

class Header {
 public:
  Header(const program::Program& program, const HeaderOptions& options, ClassPath class_path)
      : program_(program),
        options_(options),
        class_path_(std::move(class_path)),
        signature_(program.signature),
        names_(NamesOf(program.signature)),
        upper_(ToUpper(options.name)) {}

  std::string Text() {
    // Names that differ by case alone are those of two headers.
    const std::string guard = Cat("KILN_AOT_", options_.name, "_H_");
    Line("/* The program '", Comment(program_.name), "', compiled ahead of time by kiln-aot.");
    for (const std::string& target : options_.targets) Line(" * For: ", Comment(target), ".");
    Line(" */\n#ifndef ", guard, "\n#define ", guard, "\n");
    Line("#include <kiln/aot.h>\n");
    Line("#if KILN_AOT_VERSION != ", KILN_AOT_VERSION);
    Line("#error \"the program was compiled by kiln-aot of another version of Kiln\"\n#endif\n");
    Line("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    Line("extern const kiln_aot_program ", options_.name, "_program;\n");
    Macros();
    UserFunctions();
    RunFunction();
    Line("#ifdef __cplusplus\n} /* extern \"C\" */");
    if (!class_path_.empty()) Class();
    Line("#endif\n\n#endif /* ", guard, " */");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(const Args&... args) {
    text_ += Cat(args..., "\n");
  }
  // A comment must not end in the middle, nor seem to begin there.
  static std::string Comment(std::string_view text) {
    std::string safe = EscapeC(text);
    for (std::string_view mark : {"*/", "/*"}) {
      for (size_t at; (at = safe.find(mark)) != safe.npos;) safe.insert(at + 1, 1, ' ');
    }
    return safe;
  }
  // Where a result's memory may be.
  std::string AliasOf(size_t result) const {
    const int argument = signature_.aliases[result];
    return argument < 0 ? "" : Cat(", may be in the memory of argument ", argument);
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
  void ClassArray(const Shape& shape, const std::string& name, bool is_result, size_t number);
  void ClassElements(const Shape& shape, const std::string& name);

  const program::Program& program_;
  const HeaderOptions& options_;
  const ClassPath class_path_;
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
    Line("/* ", is_result ? "Result " : "Argument ", i, ": ", Described(shape),
         is_result ? AliasOf(i) : "", ". */");
    Line("#define ", prefix, "_RANK ", shape.rank());
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Line("#define ", prefix, "_DIM", d, " ", shape.dim(d));
    }
    Line("#define ", prefix, "_ELEMENTS ", ElementsOf(shape));
    Line("#define ", prefix, "_BYTES ", shape.byte_size());
    Line("#define ", prefix, "_ALIGNMENT ",
         is_result ? program::kAlignment : options_.argument_alignments[i]);
    Line("#define ", prefix, "_ASSERT(array) KILN_AOT_ASSERT_BYTES(array, ", prefix, "_BYTES)\n");
  });
}

void Header::UserFunctions() {
  if (options_.user_functions.empty()) return;
  Line("/* What its custom calls call, to be defined by the program that links it. */");
  for (const std::string& function : options_.user_functions) {
    Line("kiln_aot_function ", function, ";");
  }
  Line();
}

void Header::RunFunction() {
  Line("/* kiln_aot_run with typed arguments. Addresses are aligned to ..._ALIGNMENT. */");
  Line("static inline int32_t ", options_.name, "_run(");
  Line("    kiln_aot_instance* instance,");
  ForEachArray([&](const Shape& shape, const std::string& name, bool is_result, size_t) {
    Line("    ", is_result ? "" : "const ", CType(shape), "* ", name, ", /* ", Described(shape),
         " */");
  });
  Line("    kiln_aot_error* error) {");
  auto list = [&](std::string_view type, std::string_view name,
                  const std::vector<std::string>& items) {
    Line("  ", type, " ", name, "[] = {", items.empty() ? "NULL" : Join(items, ", "), "};");
  };
  list("const void* const", "arguments_", names_.arguments);
  list("void* const", "results_", names_.results);
  Line("  return kiln_aot_run(instance, arguments_, results_, error);\n}\n");
}

// References to elements: `name`(i, j), beside `name`_data().
void Header::ClassElements(const Shape& shape, const std::string& name) {
  const std::vector<int64_t> strides = shape.strides();
  std::vector<std::string> parameters, offsets;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    parameters.push_back(Cat("size_t dim", d));
    offsets.push_back(Cat("dim", d, " * ", strides[static_cast<size_t>(d)]));
  }
  const std::string offset = offsets.empty() ? "0" : Join(offsets, " + ");
  for (const char* constant : {"", "const "}) {
    Line("  ", constant, CType(shape), "& ", name, "(", Join(parameters, ", "), ") ", constant,
         "{ return ", name, "_data()[", offset, "]; }");
  }
}

void Header::ClassArray(const Shape& shape, const std::string& name, bool is_result,
                        size_t number) {
  const std::string type(CType(shape));
  const std::string own = Cat(is_result ? "result" : "arg", number);
  const std::string address = Cat(is_result ? "results_[" : "arguments_[", number, "]");
  Line("\n  // ", is_result ? "Result " : "Argument ", number, is_result ? "" : Cat(", ", name),
       ": ", Described(shape), ".");
  Line("  ", type, "* ", own, "_data() { return static_cast<", type, "*>(",
       is_result ? address : Cat("const_cast<void*>(", address, ")"), "); }");
  Line("  const ", type, "* ", own, "_data() const { return static_cast<const ", type, "*>(",
       address, "); }");
  Line("  void set_", own, "_data(", is_result ? "" : "const ", "void* data) { ", address,
       " = data; }");
  Line("  static constexpr size_t ", own, "_count() { return ", ElementsOf(shape), "; }");
  Line("  static constexpr size_t ", own, "_size() { return ", shape.byte_size(), "; }");
  if (!shape.is_token()) ClassElements(shape, own);
  if (is_result) return;
  Line("  ", type, "* arg_", name, "_data() { return ", own, "_data(); }");
  Line("  const ", type, "* arg_", name, "_data() const { return ", own, "_data(); }");
  Line("  void set_arg_", name, "_data(const void* data) { set_", own, "_data(data); }");
  if (!shape.is_token()) ClassElements(shape, Cat("arg_", name));
}

// Whether the class, or its base, has a member of that name.
bool IsMember(std::string_view name) {
  for (std::string_view begin : {"arg", "result", "set_arg", "set_result"}) {
    if (!StartsWith(name, begin) || name.size() == begin.size()) continue;
    const char next = name[begin.size()];
    if (next == '_' || (next >= '0' && next <= '9')) return true;
  }
  constexpr std::string_view kMembers[] = {
      "program",         "num_args",  "num_results", "LookupArgIndex",      "Run",
      "set_thread_pool", "error_msg", "threads",     "error_code",          "arguments_",
      "results_",        "error_",    "memory_",     "argument_addresses_", "result_addresses_",
      "pool_",           "instance_", "AotProgram"};
  return std::ranges::find(kMembers, name) != std::end(kMembers);
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
  Line("  static int LookupArgIndex(const char* name) {");
  Line("    return AotProgram::LookupArgIndex(", program, ", name);\n  }");
  ForEachArray([&](const Shape& shape, const std::string& array, bool is_result, size_t i) {
    ClassArray(shape, array, is_result, i);
  });
  Line("\n private:");
  Line("  const void* argument_addresses_[", std::max<size_t>(arguments, 1), "];");
  Line("  void* result_addresses_[", std::max<size_t>(results, 1), "];");
}

void Header::Class() {
  const std::string& name = class_path_.back();
  const std::span outer(class_path_.data(), class_path_.size() - 1);
  Line();
  for (const std::string& space : outer) Line("namespace ", space, " {");
  Line("\n// The program with its arrays; Run() runs it. One thread at a time.");
  Line("class ", name, " : public ::kiln::AotProgram {");
  ClassMembers(name);
  Line("};\n");
  for (size_t i = outer.size(); i > 0; --i) Line("}  // namespace ", outer[i - 1]);
}

// The parts of "ns::inner::Class".
Result<ClassPath> ParseClassName(std::string_view name, const HeaderOptions& options) {
  ClassPath path;
  for (std::string_view rest = name;;) {
    const size_t end = rest.find("::");
    path.emplace_back(rest.substr(0, end));
    if (!IsCName(path.back())) {
      return InvalidArgument("'", name, "' is no name of a class in C++");
    }
    if (end == rest.npos) break;
    rest.remove_prefix(end + 2);
  }
  if (IsMember(path.back())) {
    return InvalidArgument("a class cannot be named '", path.back(),
                           "', as one of its members is; give it another name");
  }
  const std::string& outermost = path.front();
  if (outermost == options.name + "_program" || outermost == options.name + "_run" ||
      std::ranges::find(options.user_functions, outermost) != options.user_functions.end()) {
    return InvalidArgument("'", outermost, "' is another name in the header of '", options.name,
                           "', and cannot be that of a class or namespace");
  }
  return path;
}

}  // namespace

ArrayNames NamesOf(const program::Signature& signature) {
  UniqueNames unique;
  // Other names in the header, which an array's would hide, or be mixed up with in macros.
  for (std::string_view other :
       {"instance",          "error",          "arguments_",   "results_",      "kiln_aot_run",
        "kiln_aot_instance", "kiln_aot_error", "kiln_aot_c64", "kiln_aot_c128", "int8_t",
        "int16_t",           "int32_t",        "int64_t",      "uint8_t",       "uint16_t",
        "uint32_t",          "uint64_t",       "NULL",         "MEMORY",        "STACK"}) {
    unique.Make(other);
  }
  ArrayNames names;
  const bool one = signature.results.size() == 1;
  // Results first: theirs do not depend on the arguments'.
  for (size_t i = 0; i < signature.results.size(); ++i) {
    names.results.push_back(unique.Make(one ? "result" : Cat("result", i)));
  }
  for (const std::string& name : signature.parameter_names) {
    // A class has arg_NAME(i, j) and arg_NAME_data().
    names.arguments.push_back(unique.Make(name.empty() ? "argument" : name, "_data"));
  }
  return names;
}

Result<std::string> HeaderText(const program::Program& program, const HeaderOptions& options) {
  // kiln/aot.h has kiln_aot_program and kiln_aot_run.
  if (!IsCName(options.name) || options.name == "kiln_aot") {
    return InvalidArgument("'", options.name, "' is no name in C for a program");
  }
  ClassPath path;
  if (!options.class_name.empty()) {
    KILN_ASSIGN_OR_RETURN(path, ParseClassName(options.class_name, options));
  }
  return Header(program, options, std::move(path)).Text();
}

}  // namespace kiln::aot
