// kiln-opt: reads a module in HLO text, runs passes on it and prints the result.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/strings.h"
#include "draw/dot.h"
#include "draw/page.h"
#include "draw/svg.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "kernel/fusible.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/pipelines.h"
#include "tools/command.h"
#include "tools/folder.h"
#include "tools/input.h"

namespace kiln {
namespace {

struct Arguments {
  std::string passes;  // separated by commas
  std::string pipeline;
  std::string disabled;
  bool fixed_point = false;
  bool split = false;
  bool list = false;
  bool verify = false;
  bool time = false;
  int memory_effort = 0;
  std::string dump_folder;
  std::string emit = "hlo";
  std::string file;
};

std::string Known() {
  std::vector<std::string_view> names;
  for (const passes::Pass& pass : passes::AllPasses()) names.push_back(pass.name);
  return Join(names, ", ");
}

// The names in a list; each must be a pass.
Result<std::vector<std::string_view>> PassNames(std::string_view list) {
  std::vector<std::string_view> names = Split(list, ',');
  for (std::string_view name : names) {
    if (!passes::FindPass(name)) {
      return NotFound("there is no pass '", name, "'; the passes are ", Known());
    }
  }
  return names;
}

void List() {
  size_t width = 0;
  for (const passes::Pass& pass : passes::AllPasses()) width = std::max(width, pass.name.size());
  auto row = [&](std::string_view name, std::string_view summary) {
    std::cout << name << std::string(width + 2 - name.size(), ' ') << summary << "\n";
  };
  for (const passes::Pass& pass : passes::AllPasses()) row(pass.name, pass.summary);
  std::cout << "\nPipelines:\n";
  for (const passes::NamedPipeline& pipeline : passes::AllPipelines()) {
    row(pipeline.name, pipeline.summary);
    for (const passes::PipelineStep& step : pipeline.get()) {
      std::cout << "  " << Join(step.passes, ", ") << (step.to_fixed_point ? ", repeated\n" : "\n");
    }
  }
}

Status WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) return Unavailable("cannot write ", path.string());
  return OkStatus();
}

// The parsed arguments, with names looked up.
struct Job {
  std::string name;
  passes::Pipeline pipeline;
  std::set<std::string> disabled;
};

Result<Job> JobOf(const Arguments& arguments) {
  Job job;
  KILN_ASSIGN_OR_RETURN(std::vector<std::string_view> disabled, PassNames(arguments.disabled));
  job.disabled.insert(disabled.begin(), disabled.end());
  if (arguments.pipeline.empty()) {
    job.name = "passes";
    passes::PipelineStep step;
    KILN_ASSIGN_OR_RETURN(step.passes, PassNames(arguments.passes));
    step.to_fixed_point = arguments.fixed_point;
    job.pipeline = {std::move(step)};
    return job;
  }
  job.name = arguments.pipeline;
  std::vector<std::string_view> names;
  for (const passes::NamedPipeline& pipeline : passes::AllPipelines()) {
    names.push_back(pipeline.name);
    if (pipeline.name != arguments.pipeline) continue;
    job.pipeline = pipeline.get();
    return job;
  }
  return NotFound("there is no pipeline '", arguments.pipeline, "'; the pipelines are ",
                  Join(names, ", "));
}

std::string FourDigits(int64_t number) {
  std::string digits = Cat(number);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

// Runs the passes; dumps and times them as the arguments say.
class Runner {
 public:
  Runner(const Arguments& arguments, const Job& job) : arguments_(arguments), job_(job) {}

  Status Run(ir::Module& module) {
    ++module_number_;
    if (!arguments_.dump_folder.empty()) {
      KILN_RETURN_IF_ERROR(tools::MakeFolder(arguments_.dump_folder));
      Dump(module, "before_optimizations");
    }
    passes::PassContext context;
    context.disabled = job_.disabled;
    context.verify = arguments_.verify;
    context.memory_effort = arguments_.memory_effort;
    context.after_pass = [&](const passes::PassEvent& event) { After(event); };
    if (!arguments_.dump_folder.empty()) {
      context.at_stage = [&](const passes::Stage& stage) {
        Dump(stage.module, passes::DumpName(stage));
      };
    }
    KILN_RETURN_IF_ERROR(passes::RunPipeline(job_.name, job_.pipeline, module, context));
    return dump_status_;
  }

  void PrintTimes() const {
    int64_t total = 0;
    std::vector<std::pair<std::string, Time>> rows(times_.begin(), times_.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return a.second.microseconds > b.second.microseconds;
    });
    std::fprintf(stderr, "%10s %5s %8s  pass\n", "time (us)", "runs", "changes");
    for (const auto& [name, time] : rows) {
      total += time.microseconds;
      std::fprintf(stderr, "%10lld %5lld %8lld  %s\n", static_cast<long long>(time.microseconds),
                   static_cast<long long>(time.runs), static_cast<long long>(time.changes),
                   name.c_str());
    }
    std::fprintf(stderr, "%10lld                 total\n", static_cast<long long>(total));
  }

 private:
  void After(const passes::PassEvent& event) {
    Time& time = times_[std::string(event.pass)];
    ++time.runs;
    time.changes += event.changed;
    time.microseconds += event.microseconds;
  }

  void Dump(const ir::Module& module, const std::string& stage) {
    if (!dump_status_.ok()) return;
    // A module's name is text of the user's: as part of a file's name it must not leave the folder.
    std::string name = module.name();
    std::replace(name.begin(), name.end(), '/', '_');
    dump_status_ =
        WriteFile(std::filesystem::path(arguments_.dump_folder) /
                      Cat("module_", FourDigits(module_number_), ".", name, ".", stage, ".txt"),
                  ir::ToHloText(module));
  }

  struct Time {
    int64_t runs = 0, changes = 0, microseconds = 0;
  };
  const Arguments& arguments_;
  const Job& job_;
  int64_t module_number_ = 0;
  std::map<std::string, Time> times_;
  Status dump_status_;
};

Result<std::string> Emit(const ir::Module& module, const std::string& kind) {
  if (kind == "dot") return draw::ToDot(module);
  if (kind == "svg") return draw::ToSvg(module);
  if (kind == "html") return draw::ToHtml(module);
  if (kind == "buffers") {
    passes::AssignmentOptions options;
    kernel::FusionAnalysis analysis;
    options.may_share = [&](const ir::Instruction& i, int64_t operand, int64_t output) {
      return kernel::MayShareBuffer(i, operand, output, analysis);
    };
    options.updated_operand = kernel::UpdatedOperand;
    KILN_ASSIGN_OR_RETURN(passes::BufferAssignment assignment,
                          passes::AssignBuffers(module, options));
    return assignment.ToString();
  }
  return ir::ToHloText(module);
}

// The modules in a file: one, or with --split as many as "// -----" lines part. Each piece has as
// many empty lines in front as stand before it, so that errors name the file's lines.
std::vector<std::string> Pieces(const std::string& text, bool split) {
  if (!split) return {text};
  std::vector<std::string> pieces(1);
  int64_t line = 0;
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    ++line;
    if (one == "// -----") {
      pieces.emplace_back(static_cast<size_t>(line), '\n');
    } else {
      pieces.back() += one + "\n";
    }
  }
  return pieces;
}

// The text to print.
Result<std::string> Run(const Arguments& arguments) {
  KILN_ASSIGN_OR_RETURN(Job job, JobOf(arguments));
  KILN_ASSIGN_OR_RETURN(std::string text, tools::ReadInput(arguments.file));
  Runner runner(arguments, job);
  std::string out;
  for (const std::string& piece : Pieces(text, arguments.split)) {
    int64_t made_up = 0;
    auto module = ir::ParseHloText(piece, {.made_up = &made_up});
    if (!module.ok()) return tools::AtPlace(arguments.file, module.status());
    if (made_up > 0) {
      std::fprintf(stderr, "%lld values of constants without elements and of infeeds are made up\n",
                   static_cast<long long>(made_up));
    }
    KILN_RETURN_IF_ERROR(runner.Run(**module));
    // A printed module is always verified, even if passes were not.
    KILN_RETURN_IF_ERROR(ir::Verify(**module));
    KILN_ASSIGN_OR_RETURN(std::string emitted, Emit(**module, arguments.emit));
    out += emitted;
  }
  if (arguments.time) runner.PrintTimes();
  return out;
}

constexpr std::string_view kTool = "kiln-opt";

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs passes on a module in HLO text and prints the result.", "kiln-opt");
  app.add_option("file", arguments.file, "the module; - is standard input")->type_name("FILE");
  auto* pass_list = app.add_option("--passes", arguments.passes, "passes to run, in this order")
                        ->type_name("PASS,...");
  app.add_option("--pipeline", arguments.pipeline, "a pipeline to run: cpu, gpu or op-by-op")
      ->type_name("NAME")
      ->excludes(pass_list);
  app.add_option("--disable", arguments.disabled, "passes of the pipeline to leave out")
      ->type_name("PASS,...");
  app.add_flag("--fixed-point", arguments.fixed_point,
               "repeat --passes until none changes anything");
  app.add_option("--memory-effort", arguments.memory_effort,
                 "how much time rematerialisation spends to save memory")
      ->check(CLI::Range(0, passes::kMostMemoryEffort));
  app.add_flag("--split", arguments.split, "the file holds modules parted by lines \"// -----\"");
  app.add_flag("--list", arguments.list, "list the passes and pipelines");
  app.add_flag("--verify", arguments.verify, "verify the module after each pass");
  app.add_option("--dump-dir", arguments.dump_folder, "write the HLO text after each pass here")
      ->type_name("DIR");
  app.add_flag("--time", arguments.time, "print the time of each pass to standard error");
  app.add_option("--emit", arguments.emit, "what to print: hlo, dot, svg, html or buffers (hlo)")
      ->check(CLI::IsMember({"hlo", "dot", "svg", "html", "buffers"}))
      ->type_name("KIND");
  if (const auto status = tools::Parse(app, argc, argv)) return *status;
  if (arguments.list) {
    List();
    return 0;
  }
  if (arguments.file.empty()) return tools::Fail(kTool, "no file is given; --help says more");
  auto text = Run(arguments);
  if (!text.ok()) return tools::Fail(kTool, text.status().message());
  std::cout << *text << std::flush;
  return std::cout ? 0 : tools::Fail(kTool, "cannot write to standard output");
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  return kiln::tools::Guarded(kiln::kTool, [&] { return kiln::Main(argc, argv); });
}
