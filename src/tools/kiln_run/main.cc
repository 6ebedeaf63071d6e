// kiln-run: runs programs in files.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tools/command.h"
#include "tools/kiln_run/check.h"
#include "tools/kiln_run/workers.h"

namespace kiln::run {
namespace {

constexpr std::string_view kTool = "kiln-run";

struct Arguments {
  std::string save_to;  // empty: the files are checked
  std::string platform = "cpu";
  CheckOptions options;
  WorkerOptions workers;
  std::vector<std::string> files;
};

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
  const bool all = ForEachFile(
      arguments.files, arguments.workers,
      [&](const std::string& path) { return CheckFile(path, arguments.options); }, report);
  std::printf("checked %zu: %zu passed, %zu failed, %zu skipped\n", passed + failed + skipped,
              passed, failed, skipped);
  if (!all) return tools::Fail(kTool, "no process could be made");
  return failed == 0 ? 0 : tools::kFailed;
}

int Save(const Arguments& arguments) {
  if (arguments.files.size() != 1) return tools::Fail(kTool, "--save takes one program");
  const auto failure = SaveProgram(arguments.files[0], arguments.save_to, arguments.options);
  return failure ? tools::Fail(kTool, *failure) : 0;
}

int Main(int argc, char** argv) {
  Arguments a;
  a.workers.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App app("Runs programs in files.", "kiln-run");
  CLI::App* what = app.add_option_group("work");
  what->require_option(1);
  bool check = false;
  what->add_flag("--check", check,
                 "run programs that check themselves, StableHLO or saved, and say how it went");
  what->add_option("--save", a.save_to, "compile a program, and save it as a file")
      ->option_text("FILE");
  app.add_option("--platform", a.platform,
                 "reference (the evaluator), cpu, or gpu (emulated where there is none)")
      ->check(CLI::IsMember({"reference", "cpu", "gpu"}))
      ->capture_default_str();
  app.add_flag("--disabled-too", a.options.disabled_too, "also files that are marked RUN-DISABLED");
  app.add_option("--disable", a.options.disabled_passes,
                 "passes to leave out, with commas between: without constant-folding, what is "
                 "checked is compiled code rather than the evaluator that folds it")
      ->option_text("PASS,...");
  app.add_option("--memory-limit", a.options.memory_limit_bytes,
                 "most bytes of temporaries: results are computed again instead of being kept; 0: "
                 "no limit")
      ->check(CLI::NonNegativeNumber)
      ->option_text("BYTES");
  app.add_option("--jobs", a.workers.jobs, "processes at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--deadline", a.workers.deadline_s, "seconds that a file may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("files", a.files, "StableHLO text or bytecode, or saved programs to check")
      ->required();
  if (const auto status = tools::Parse(app, argc, argv)) return *status;
  if (a.platform == "reference") a.options.device = "REFERENCE:0";
  if (a.platform == "gpu") a.options.device = "GPU:0";
  return a.save_to.empty() ? Check(a) : Save(a);
}

}  // namespace
}  // namespace kiln::run

int main(int argc, char** argv) {
  return kiln::tools::Guarded(kiln::run::kTool, [&] { return kiln::run::Main(argc, argv); });
}
