// kiln-aot: compiles a program ahead of time, to an object and a header.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aot/build.h"
#include "aot/names.h"
#include "aot/targets.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/stack.h"
#include "base/strings.h"
#include "ir/specialise.h"
#include "ir/text.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"
#include "tools/kiln_aot/aarch64.h"

namespace kiln {
namespace {

struct Arguments {
  std::string input, output, header, name, class_name, name_space, entry;
  std::string target = "native";
  std::vector<std::string> symbols;  // "name=size"
  int32_t threads = 0;
  bool cxx = false, multi_version = false, full = false;
};

// HLO text begins so, behind comments; everything else is MLIR.
bool IsHloText(std::string_view text) {
  while (true) {
    text = Trim(text);
    const size_t line = text.find('\n');
    if (!StartsWith(text, "//") || line == text.npos) break;
    text.remove_prefix(line);
  }
  return StartsWith(text, "HloModule");
}

Result<std::unique_ptr<ir::Module>> ReadModule(std::string_view text, const std::string& entry) {
  if (!stablehlo::IsBytecode(text) && IsHloText(text)) return ir::ParseHloText(text);
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<mlir::Module> tree, stablehlo::IsBytecode(text)
                                                                ? stablehlo::ReadBytecode(text)
                                                                : stablehlo::ReadText(text));
  stablehlo::ImportOptions options;
  options.entry = entry;
  return stablehlo::Import(*tree, options);
}

Result<std::unique_ptr<ir::Module>> WithSizes(std::unique_ptr<ir::Module> module,
                                              const std::vector<std::string>& symbols) {
  SymbolSizes sizes;
  for (const std::string& given : symbols) {
    const std::vector<std::string_view> parts = Split(given, '=');
    const std::optional<int64_t> size = parts.size() == 2 ? ParseInt(parts[1]) : std::nullopt;
    if (!size || *size < 0) {
      return InvalidArgument("--symbol ", given, " is not of the form NAME=SIZE");
    }
    sizes[std::string(parts[0])] = *size;
  }
  if (ir::SymbolsOf(*module).empty()) return module;
  return ir::Specialise(*module, sizes);
}

Result<aot::Options> OptionsOf(const Arguments& arguments) {
  aot::Options options;
  options.name = arguments.name;
  if (options.name.empty()) {
    options.name = aot::CName(std::filesystem::path(arguments.input).stem().string());
  }
  options.class_name = arguments.class_name;
  if (arguments.cxx && options.class_name.empty()) options.class_name = options.name;
  if (!options.class_name.empty() && !arguments.name_space.empty()) {
    options.class_name = Cat(arguments.name_space, "::", options.class_name);
  }
  if (arguments.multi_version) {
    options.targets = aot::X86Levels();
  } else {
    KILN_ASSIGN_OR_RETURN(target::Target target, aot::TargetByName(arguments.target));
    options.targets = {std::move(target)};
  }
  options.threads = arguments.threads;
  options.compiler.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (arguments.full) options.compiler.optimization = codegen::Optimization::kFull;
  return options;
}

Status Run(const Arguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const aot::Options options, OptionsOf(arguments));
  const std::optional<std::string> text = ReadFile(arguments.input);
  if (!text) return NotFound("it cannot be read");
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, ReadModule(*text, arguments.entry));
  KILN_ASSIGN_OR_RETURN(module, WithSizes(std::move(module), arguments.symbols));
  KILN_ASSIGN_OR_RETURN(const aot::Built built, aot::Build(*module, options));
  const std::string output = arguments.output.empty() ? options.name + ".o" : arguments.output;
  const std::string header = arguments.header.empty()
                                 ? std::filesystem::path(output).replace_extension(".h").string()
                                 : arguments.header;
  KILN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(output));
  KILN_RETURN_IF_ERROR(
      built.object.Write([&](std::string_view bytes) { return file.Write(bytes); }));
  KILN_ASSIGN_OR_RETURN(OutputFile header_file, OutputFile::Create(header));
  KILN_RETURN_IF_ERROR(header_file.Write(built.header));
  KILN_RETURN_IF_ERROR(header_file.Commit());
  return file.Commit();
}

int Fail(std::string_view message) {
  std::fprintf(stderr, "kiln-aot: %.*s\n", static_cast<int>(message.size()), message.data());
  return 1;
}

void AddOptions(CLI::App& app, Arguments& a) {
  app.add_option("input", a.input, "HLO text, StableHLO text or portable bytecode")
      ->required()
      ->type_name("FILE");
  app.add_option("-o,--output", a.output, "the object to write (NAME.o)")->type_name("FILE");
  app.add_option("--header", a.header, "the header to write (beside the object, with .h)")
      ->type_name("FILE");
  app.add_option("--name", a.name,
                 "the name in C: NAME_program, NAME_run (that of the input without its end)");
  app.add_flag("--cxx", a.cxx, "the header has a class for C++, too");
  app.add_option("--class", a.class_name, "the class's name (NAME); implies --cxx");
  app.add_option("--namespace", a.name_space, "the class's namespace, as in outer::inner");
  auto* target =
      app.add_option("--target", a.target,
                     "native (this machine), x86-64-v2, x86-64-v3, x86-64-v4, the name of a "
                     "processor as LLVM has it, or aarch64")
          ->capture_default_str()
          ->type_name("CPU");
  app.add_flag("--multi-version", a.multi_version,
               "code for x86-64-v2, v3 and v4, of which the processor's is chosen at the start")
      ->excludes(target);
  app.add_option("--threads", a.threads,
                 "how many threads the program recommends, and its class has by default; 0: one "
                 "for each CPU")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--entry", a.entry, "the function of a StableHLO program (main)");
  app.add_option("--symbol", a.symbols, "the size of a symbol of the program's shapes")
      ->type_name("NAME=SIZE");
  app.add_flag("--full", a.full, "all optimisations, however long they take in large programs");
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Compiles a program ahead of time, to an object and a header.", "kiln-aot");
  AddOptions(app, arguments);
  CLI11_PARSE(app, argc, argv);
  aot::RegisterAArch64();
  Status status;
  // Recursions are as deep as programs.
  const Status started = OnOwnStack([&] { status = Run(arguments); });
  if (!started.ok()) status = started;
  return status.ok() ? 0 : Fail(Cat(arguments.input, ": ", status.ToString()));
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  try {
    return kiln::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    return kiln::Fail("out of memory");
  }
}
