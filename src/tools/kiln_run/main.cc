// kiln-run: runs programs in files.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "flags/table.h"
#include "tools/command.h"
#include "tools/kiln_run/check.h"
#include "tools/kiln_run/run_files.h"
#include "tools/kiln_run/workers.h"

namespace kiln::run {
namespace {

constexpr std::string_view kTool = "kiln-run";

struct Arguments {
  bool check = false;
  std::string save_to;  // empty: not saved
  std::string platform = "cpu", reference = "reference", format = "auto";
  int deadline_s = 0, jobs = 0;  // 0: by what is done
  bool with_reference = true, random_inputs = true;
  double absolute = 0, relative = 0;
  std::string disabled_passes;
  int64_t memory_limit_bytes = 0;
  bool disabled_too = false;
  RunOptions run;
  std::vector<std::string> files;
};

CheckOptions CheckOptionsOf(const Arguments& a) {
  return {.device = a.run.judge.device,
          .disabled_passes = a.disabled_passes,
          .memory_limit_bytes = a.memory_limit_bytes,
          .disabled_too = a.disabled_too};
}

int Check(const Arguments& arguments) {
  size_t passed = 0, failed = 0, skipped = 0;
  auto report = [&](size_t index, const Outcome& outcome) {
    const char* path = arguments.files[index].c_str();
    switch (outcome.verdict) {
      case Verdict::kPass:
        ++passed;
        std::printf("PASS %s\n", path);
        break;
      case Verdict::kFail:
        ++failed;
        std::printf("FAIL %s: %s\n", path, outcome.reason.c_str());
        break;
      case Verdict::kSkip:
        ++skipped;
        std::printf("SKIP %s: %s\n", path, outcome.reason.c_str());
        break;
    }
    std::fflush(stdout);
  };
  const CheckOptions options = CheckOptionsOf(arguments);
  const bool all = ForEachFile(
      arguments.files, arguments.run.workers,
      [&](const std::string& path) { return CheckFile(path, options); }, report);
  std::printf("checked %zu: %zu passed, %zu failed, %zu skipped\n", passed + failed + skipped,
              passed, failed, skipped);
  if (!all) return tools::Fail(kTool, "no process could be made");
  return failed == 0 ? 0 : tools::kFailed;
}

int Save(const Arguments& arguments) {
  if (arguments.files.size() != 1) return tools::Fail(kTool, "--save takes one program");
  const auto failure =
      SaveProgram(arguments.files[0], arguments.save_to, CheckOptionsOf(arguments));
  return failure ? tools::Fail(kTool, *failure) : 0;
}

// The arguments without those of XLA's forms that the parser does not know: --xla_NAME=VALUE is a
// flag of the environment variable XLA_FLAGS, and an empty platform no reference.
std::vector<char*> TakeXlaFlags(int argc, char** argv) {
  static char no_reference[] = "--reference=none";
  const char* const variable = flags::NameOf(flags::Variable::kXlaFlags);
  const char* old = std::getenv(variable);
  std::string all = old ? old : "";
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with("--xla_")) {
      rest.push_back(argument == "--reference_platform=" ? no_reference : argv[i]);
      continue;
    }
    // A name of a file with flags has no place for more.
    all += (all.empty() ? "" : " ") + std::string(argument);
  }
  if (rest.size() < static_cast<size_t>(argc)) setenv(variable, all.c_str(), 1);
  return rest;
}

void AddWhat(CLI::App& app, Arguments& a) {
  CLI::App* what = app.add_option_group("work",
                                        "Without one of these, each program is run and "
                                        "held against the reference.");
  what->require_option(0, 1);
  what->add_flag("--check", a.check,
                 "run programs that check themselves, StableHLO or saved, and say how it went");
  what->add_option("--save", a.save_to, "compile a program, and save it as a file")
      ->option_text("FILE");
}

void AddCompiling(CLI::App& app, Arguments& a) {
  app.add_option("--platform", a.platform,
                 "reference (the evaluator), cpu, or gpu (emulated where there is none); also by "
                 "XLA's names: interpreter, host, cuda")
      ->transform(tools::OneOf({{"reference", "REFERENCE:0"},
                                {"interpreter", "REFERENCE:0"},
                                {"cpu", "CPU:0"},
                                {"host", "CPU:0"},
                                {"gpu", "GPU:0"},
                                {"cuda", "GPU:0"}}))
      ->option_text("NAME");
  app.add_option("--disable", a.disabled_passes,
                 "passes to leave out, with commas between: without constant-folding, what is "
                 "checked is compiled code rather than the evaluator that folds it")
      ->option_text("PASS,...");
  app.add_option("--memory-limit", a.memory_limit_bytes,
                 "most bytes of temporaries: results are computed again instead of being kept; 0: "
                 "no limit")
      ->check(tools::FromZero())
      ->option_text("BYTES");
  app.add_option("--dump-to,--dump_to", a.run.judge.compile.dump_folder,
                 "write every stage of the compilation into this folder")
      ->option_text("DIR");
}

void AddInputs(CLI::App& app, Arguments& a) {
  ArgumentSource& source = a.run.judge.arguments;
  app.add_option("--input-format,--input_format", a.format, "hlo, stablehlo, or auto")
      ->transform(tools::OneOf({{"auto", "auto"},
                                {"hlo", "hlo"},
                                {"txt", "hlo"},
                                {"stablehlo", "stablehlo"},
                                {"mhlo", "stablehlo"}}))
      ->option_text("FORMAT");
  app.add_option("--inputs,--input_literals_file", source.files,
                 "arguments from .npy, .npz and .safetensors files, by name or in order")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile)
      ->option_text("FILE,...");
  app.add_option("--write-inputs", a.run.judge.input_folder,
                 "write the arguments as .npy files into this folder, for --inputs")
      ->option_text("DIR");
  app.add_option("--seed", source.seed, "of the arguments that are in no file (0)")
      ->option_text("N");
  app.add_flag("--random-inputs,--random_init_input_literals", a.random_inputs,
               "false: zeros in their place");
  app.add_flag("--large-floats,--use_large_float_range", source.large_floats,
               "floats up to 1e6 among them");
}

void AddResults(CLI::App& app, Arguments& a) {
  JudgeOptions& judge = a.run.judge;
  app.add_option("--reference,--reference_platform", a.reference,
                 "reference: compare with the evaluator's results; none: compare nothing")
      ->transform(tools::OneOf(
          {{"reference", "reference"}, {"interpreter", "reference"}, {"none", "none"}}))
      ->option_text("NAME");
  app.add_flag("--run-reference,--run_reference_module", a.with_reference,
               "false: compare nothing");
  app.add_option("--abs-error,--abs_error_bound", a.absolute, "floats may differ by as much (0)")
      ->check(tools::FromZero())
      ->option_text("BOUND");
  app.add_option("--rel-error,--rel_error_bound", a.relative,
                 "or by this part of the largest magnitude in their array (f64 1e-6, f32 1e-3, f16 "
                 "and bf16 1e-2)")
      ->check(tools::FromZero())
      ->option_text("BOUND");
  app.add_option("--iterations", judge.iterations,
                 "runs, the first of several not being counted (1)")
      ->check(CLI::Range(1, 1 << 24))
      ->option_text("N");
  app.add_option("--outputs,--output_literals_file", judge.output_folder,
                 "write the results as .npy files into this folder")
      ->option_text("DIR");
  const auto picture = [&](const char* name, std::string& folder, const char* what) {
    app.add_flag(name, folder, what)->option_text("[=DIR]");
  };
  picture("--dot", judge.pictures.dot,
          "write the graphs before and after the passes, for Graphviz: NAME.before.dot and "
          "NAME.after.dot, here or in the folder");
  picture("--svg", judge.pictures.svg, "the same as pictures in SVG");
  picture("--html", judge.pictures.html,
          "write a page for a browser, NAME.html: the graphs, the time of each kernel, and what "
          "each pass changed");
  app.add_flag("--print,--print_literals", judge.print, "print arguments and results");
  app.add_flag("--json", a.run.json, "print one JSON document");
  app.add_flag("--isolate,--isolate_instructions", a.run.isolate,
               "name the first instruction that differs");
  app.add_flag("--reduce", a.run.reduce_to,
               "make a failing program small, and write it to NAME.reduced.hlo, or --reduce=FILE")
      ->option_text("[=FILE]");
}

void AddFiles(CLI::App& app, Arguments& a) {
  app.add_flag("--disabled-too", a.disabled_too, "with --check: also files marked RUN-DISABLED");
  app.add_option("--jobs", a.jobs, "processes at once (1; with --check as many as processors)")
      ->check(tools::AboveZero())
      ->option_text("N");
  app.add_option("--deadline", a.deadline_s,
                 "seconds that a file may take (600; with --check 60), and that each try of "
                 "--reduce may")
      ->check(tools::AboveZero())
      ->option_text("SECONDS");
  app.add_option("files", a.files,
                 "HLO text, StableHLO text or bytecode; with --check also saved "
                 "programs")
      ->required();
}

// What follows from several of them; a mistake, or nothing.
std::string Finish(const CLI::App& app, Arguments& a) {
  JudgeOptions& judge = a.run.judge;
  judge.device = a.platform == "cpu" ? "CPU:0" : a.platform;
  judge.format = a.format == "hlo"         ? Format::kHlo
                 : a.format == "stablehlo" ? Format::kStableHlo
                                           : Format::kAuto;
  for (std::string* folder : {&judge.pictures.dot, &judge.pictures.svg, &judge.pictures.html}) {
    if (*folder == "true") *folder = ".";
    if (*folder == "false") folder->clear();
  }
  judge.has_reference = a.with_reference && a.reference != "none";
  judge.arguments.zeros = !a.random_inputs;
  judge.compile.disabled_passes = a.disabled_passes;
  judge.compile.memory_limit_bytes = a.memory_limit_bytes;
  if (app.count("--abs-error") > 0) judge.bounds.absolute = a.absolute;
  if (app.count("--rel-error") > 0) judge.bounds.relative = a.relative;
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  a.run.workers.jobs = a.jobs > 0 ? a.jobs : a.check ? static_cast<int>(processors) : 1;
  a.run.workers.deadline_s = a.deadline_s > 0 ? a.deadline_s : a.check ? 60 : 600;
  if (a.files.size() > 1) {
    if (!judge.output_folder.empty()) return "--outputs takes one program";
    if (!judge.input_folder.empty()) return "--write-inputs takes one program";
    if (!judge.arguments.files.empty()) return "--inputs takes one program";
    if (a.run.reduce_to.find('.') != std::string::npos) return "--reduce=FILE takes one program";
  }
  return "";
}

int Main(int argc, char** argv) {
  Arguments a;
  CLI::App app("Runs programs in files, and holds their results against the evaluator's.",
               "kiln-run");
  AddWhat(app, a);
  AddCompiling(app, a);
  AddInputs(app, a);
  AddResults(app, a);
  AddFiles(app, a);
  std::vector<char*> rest = TakeXlaFlags(argc, argv);
  if (const auto status = tools::Parse(app, static_cast<int>(rest.size()), rest.data())) {
    return *status;
  }
  const std::string mistake = Finish(app, a);
  if (!mistake.empty()) return tools::Fail(kTool, mistake);
  if (a.check) return Check(a);
  if (!a.save_to.empty()) return Save(a);
  return RunFiles(a.files, a.run) ? 0 : tools::kFailed;
}

}  // namespace
}  // namespace kiln::run

int main(int argc, char** argv) {
  return kiln::tools::Guarded(kiln::run::kTool, [&] { return kiln::run::Main(argc, argv); });
}
