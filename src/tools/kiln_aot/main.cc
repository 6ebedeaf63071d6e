// kiln-aot: compiles a program ahead of time, to an object and a header.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "aot/build.h"
#include "aot/names.h"
#include "aot/targets.h"
#include "base/output_file.h"
#include "base/stack.h"
#include "base/strings.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/kiln_aot/aarch64.h"
#include "tools/kiln_aot/read_module.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  aot::ModuleOptions input;
  std::string output, header, name, class_name, name_space;
  std::string target = "native";
  int32_t threads = 0;
  bool cxx = false, multi_version = false, full = false;
  int64_t memory_limit_bytes = 0;
};

constexpr std::string_view kTool = "kiln-aot";

Result<aot::Options> OptionsOf(const Arguments& arguments) {
  aot::Options options;
  options.name = arguments.name;
  if (options.name.empty()) {
    if (arguments.input.file == tools::kStandardInput) {
      return InvalidArgument("--name is needed for a program from standard input");
    }
    options.name = aot::CName(fs::path(arguments.input.file).stem().string());
  }
  options.class_name = arguments.class_name;
  const bool has_class = arguments.cxx || !arguments.name_space.empty();
  if (has_class && options.class_name.empty()) options.class_name = options.name;
  if (!arguments.name_space.empty()) {
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
  options.compiler.memory_limit_bytes = arguments.memory_limit_bytes;
  return options;
}

// The files to write.
struct Outputs {
  std::string object, header;
};

// Other names of one file, as far as there is one.
bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error) && !error;
}

Result<Outputs> OutputsOf(const Arguments& arguments, const std::string& name) {
  Outputs outputs{arguments.output, arguments.header};
  if (outputs.object.empty()) outputs.object = name + ".o";
  if (outputs.header.empty()) {
    outputs.header = fs::path(outputs.object).replace_extension(".h").string();
  }
  if (IsSameFile(outputs.object, outputs.header)) {
    return InvalidArgument("the object and the header are both to be ", outputs.header);
  }
  for (const std::string& output : {outputs.object, outputs.header}) {
    if (IsSameFile(output, arguments.input.file)) {
      return InvalidArgument("the program would be overwritten: ", output);
    }
  }
  return outputs;
}

// Neither file is there, or changed, before both have been written.
Status WriteOutputs(const aot::Built& built, const Outputs& outputs) {
  auto object = OutputFile::Create(outputs.object);
  if (!object.ok()) return object.status().WithContext(outputs.object);
  auto header = OutputFile::Create(outputs.header);
  if (!header.ok()) return header.status().WithContext(outputs.header);
  Status written = built.object.Write([&](std::string_view bytes) { return object->Write(bytes); });
  if (!written.ok()) return written.WithContext(outputs.object);
  written = header->Write(built.header);
  if (written.ok()) written = header->Commit();
  if (!written.ok()) return written.WithContext(outputs.header);
  written = object->Commit();
  return written.ok() ? written : written.WithContext(outputs.object);
}

Status Run(const Arguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const aot::Options options, OptionsOf(arguments));
  KILN_ASSIGN_OR_RETURN(const Outputs outputs, OutputsOf(arguments, options.name));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Module> module, aot::ReadModule(arguments.input));
  auto built = aot::Build(*module, options);
  if (!built.ok()) return tools::AtPlace(arguments.input.file, built.status());
  return WriteOutputs(*built, outputs);
}

void AddOptions(CLI::App& app, Arguments& a) {
  app.add_option("input", a.input.file,
                 "HLO text, StableHLO text or portable bytecode; - is standard input")
      ->required()
      ->type_name("FILE");
  app.add_option("-o,--output", a.output, "the object to write (NAME.o)")->type_name("FILE");
  app.add_option("--header", a.header, "the header to write (beside the object, with .h)")
      ->type_name("FILE");
  app.add_option("--name", a.name,
                 "the name in C: NAME_program, NAME_run (that of the input without its end)");
  app.add_flag("--cxx", a.cxx, "the header has a class for C++, too");
  app.add_option("--class", a.class_name, "the class's name (NAME); implies --cxx");
  app.add_option("--namespace", a.name_space,
                 "the class's namespace, as in outer::inner; implies --cxx");
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
      ->check(tools::FromZero())
      ->capture_default_str();
  app.add_option("--entry", a.input.entry, "the function of a StableHLO program (main)");
  auto* shapes =
      app.add_option("--argument", a.input.arguments,
                     "where sizes are open: the shape of each argument, as in f32[2,3], in order")
          ->type_name("SHAPE");
  app.add_option("--symbol", a.input.symbols, "the size of a symbol of HLO text")
      ->type_name("NAME=SIZE")
      ->excludes(shapes);
  app.add_option("--memory-limit", a.memory_limit_bytes,
                 "most bytes of temporaries: results are computed again instead of being kept; 0: "
                 "no limit")
      ->check(tools::FromZero())
      ->option_text("BYTES");
  app.add_flag("--full", a.full, "all optimisations, however long they take in large programs");
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Compiles a program ahead of time, to an object and a header.", std::string(kTool));
  AddOptions(app, arguments);
  if (const auto status = tools::Parse(app, argc, argv)) return *status;
  aot::RegisterAArch64();
  Status status;
  // Recursions are as deep as programs.
  const Status started = OnOwnStack([&] { status = Run(arguments); });
  if (!started.ok()) status = started;
  return status.ok() ? 0 : tools::Fail(kTool, status.ToString());
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  return kiln::tools::Guarded(kiln::kTool, [&] { return kiln::Main(argc, argv); });
}
