#include "tools/kiln_run/run_files.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "tools/kiln_run/report.h"
#include "tools/kiln_run/shrink.h"

namespace kiln::run {
namespace {

Outcome Work(const std::string& path, const JudgeOptions& options) {
  const Record record = Judge(path, options);
  const bool passes = record.failure.ok() && !record.differs();
  return {passes ? Verdict::kPass : Verdict::kFail, DumpJson(ToJson(record, options))};
}

Json Isolated(const std::string& path, const JudgeOptions& options) {
  const auto failed = [](const Status& status) { return Json{{"failure", status.ToString()}}; };
  auto program = ReadProgram(path, options.format);
  if (!program.ok()) return failed(program.status());
  auto arguments = MakeArguments(*program->module, options.arguments);
  if (!arguments.ok()) return failed(arguments.status());
  auto culprit = Isolate(*program, arguments->values, options);
  if (!culprit.ok()) return failed(culprit.status());
  if (!*culprit) return Json{{"failure", "every one agrees as a result"}};
  return ToJson(**culprit);
}

// The result of work in a process of its own.
Json InProcess(const std::string& path, const WorkerOptions& workers,
               const std::function<Json(const std::string& path)>& work) {
  Json made;
  const auto report = [&](size_t, const Outcome& outcome) {
    made = Json::parse(outcome.reason, nullptr, false);
    if (!made.is_object()) made = {{"failure", outcome.reason}};
  };
  const auto run = [&](const std::string& file) {
    return Outcome{Verdict::kPass, DumpJson(work(file))};
  };
  if (!ForEachFile({path}, workers, run, report)) made = {{"failure", "no process could be made"}};
  return made;
}

std::string ReducedName(const std::string& path, const std::string& to) {
  if (to != "true") return to;
  return std::filesystem::path(path).filename().replace_extension(".reduced.hlo").string();
}

// What is asked for beside the verdict.
void LookCloser(const std::string& path, const RunOptions& options, Json& report) {
  if (FailureKind(report) == "differs" && options.isolate) {
    report["isolated"] = InProcess(path, options.workers, [&](const std::string& file) {
      return Isolated(file, options.judge);
    });
  }
  if (options.reduce_to.empty() || options.reduce_to == "false") return;
  report["reduced"] = ReduceFailure(path, report, options.judge, options.workers.deadline_s,
                                    ReducedName(path, options.reduce_to));
}

}  // namespace

bool RunFiles(const std::vector<std::string>& paths, const RunOptions& options) {
  size_t passed = 0;
  Json reports = Json::array();
  const auto report = [&](size_t index, const Outcome& outcome) {
    Json made = FileReport(paths[index], outcome);
    const bool passes = made["verdict"] == "pass";
    passed += passes;
    if (!passes) LookCloser(paths[index], options, made);
    if (options.json) {
      reports.push_back(std::move(made));
      return;
    }
    std::fputs(ToText(made).c_str(), stdout);
    std::fflush(stdout);
  };
  const bool all = ForEachFile(
      paths, options.workers, [&](const std::string& path) { return Work(path, options.judge); },
      report);
  if (options.json) {
    std::printf("%s\n", reports.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (paths.size() > 1) {
    std::printf("ran %zu: %zu passed, %zu failed\n", paths.size(), passed, paths.size() - passed);
  }
  if (!all) std::fputs("kiln-run: no process could be made\n", stderr);
  return all && passed == paths.size();
}

}  // namespace kiln::run
