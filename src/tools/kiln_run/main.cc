// kiln-run: runs programs in files.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tools/kiln_run/check.h"
#include "tools/kiln_run/workers.h"

namespace kiln::run {
namespace {

struct Arguments {
  bool check = false;
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
  if (!all) std::fprintf(stderr, "kiln-run: no process could be made\n");
  return all && failed == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Arguments a;
  a.workers.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App app("Runs programs in files.", "kiln-run");
  app.add_flag("--check", a.check,
               "run StableHLO modules that check themselves, and say how it went")
      ->required();
  app.add_option("--platform", a.platform,
                 "reference (the evaluator), cpu, or gpu (emulated where there is none)")
      ->check(CLI::IsMember({"reference", "cpu", "gpu"}))
      ->capture_default_str();
  app.add_flag("--disabled-too", a.options.disabled_too, "also files that are marked RUN-DISABLED");
  app.add_option("--disable", a.options.disabled_passes,
                 "passes to leave out, with commas between: without constant-folding, what is "
                 "checked is compiled code rather than the evaluator that folds it")
      ->option_text("PASS,...");
  app.add_option("--jobs", a.workers.jobs, "processes at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--deadline", a.workers.deadline_s, "seconds that a file may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("files", a.files, "StableHLO text or bytecode")->required();
  CLI11_PARSE(app, argc, argv);
  if (a.platform == "reference") a.options.device = "REFERENCE:0";
  if (a.platform == "gpu") a.options.device = "GPU:0";
  return Check(a);
}

}  // namespace
}  // namespace kiln::run

int main(int argc, char** argv) { return kiln::run::Main(argc, argv); }
