#include "suites.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "process.h"

namespace kiln::gpu_check {
namespace {

using State = TestResult::State;
using Clock = std::chrono::steady_clock;

// The tests of programs, and a few of them (tests/support/labels.h).
const std::vector<std::string> kProgramTests = {"--in=programs", "--not-label=slow,corpus,standin"};
const std::vector<std::string> kFewTests = {"--label=gpu_smoke"};
constexpr const char* kPrograms[] = {"capi-gpu", "capi-gpu_training"};
constexpr size_t kBatch = 4;
constexpr double kBatchSeconds = 240;

std::vector<std::pair<std::string, std::string>> EnvironmentOf(const Settings& settings) {
  return {{"KILN_TEST_DEVICE", settings.emulated() ? "GPU" : "CUDA"}};
}

// "Suite.Name" of every test that the filter takes.
std::vector<std::string> NamesIn(const std::string& listing) {
  std::vector<std::string> names;
  std::istringstream lines(listing);
  std::string line, suite;
  while (std::getline(lines, line)) {
    std::string name = line.substr(0, line.find("  #"));
    if (!name.starts_with("  ")) {
      suite = name;
    } else if (!suite.empty()) {
      names.push_back(suite + name.substr(2));
    }
  }
  return names;
}

// Runs of tests in processes, several at a time.
class Runs {
 public:
  Runs(const Settings& settings, std::string unit, std::vector<std::string> names)
      : settings_(settings), unit_(std::move(unit)) {
    // Those that compile most come first, alone. Of the others neighbours take similar time: they
    // are dealt out.
    auto is_long = [](const std::string& name) {
      return name.starts_with("Gpu") || name.starts_with("RandomGraphs");
    };
    for (const std::string& name : names) {
      if (is_long(name)) waiting_.push_back({name});
    }
    std::erase_if(names, is_long);
    size_t batches = (names.size() + kBatch - 1) / kBatch;
    for (size_t b = 0; b < batches; ++b) {
      std::vector<std::string>& batch = waiting_.emplace_back();
      for (size_t i = b; i < names.size(); i += batches) batch.push_back(names[i]);
    }
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(settings.test_seconds));
  }

  std::vector<TestResult> Finish() {
    int jobs = settings_.jobs > 0
                   ? settings_.jobs
                   : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (int i = 0; i < jobs; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& t : threads) t.join();
    return std::move(results_);
  }

 private:
  void Work() {
    while (true) {
      std::vector<std::string> batch;
      {
        std::lock_guard lock(mutex_);
        if (waiting_.empty()) return;
        batch = std::move(waiting_.front());
        waiting_.pop_front();
      }
      Run(batch);
    }
  }

  double SecondsLeft() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }

  void Run(const std::vector<std::string>& batch) {
    double seconds = std::min(kBatchSeconds, SecondsLeft());
    if (seconds <= 1) {
      for (const std::string& name : batch) {
        Add({name, State::kFailed, 0, "not run: the time for tests was over"});
      }
      return;
    }
    Result<Outcome> outcome = RunProcess({unit_, "--gtest_filter=" + Join(batch, ":")},
                                         EnvironmentOf(settings_), seconds);
    if (!outcome.ok()) {
      for (const std::string& name : batch) {
        Add({name, State::kFailed, 0, outcome.status().ToString()});
      }
      return;
    }
    Read(batch, *outcome);
  }

  // What the tests have printed. The one that a process died in has failed, and what was to come
  // after it runs in another. So does what fails after a failure: it may be a consequence, as a
  // GPU's context that is lost is for the whole process.
  void Read(const std::vector<std::string>& batch, const Outcome& outcome) {
    std::set<std::string> left(batch.begin(), batch.end());
    std::istringstream lines(outcome.output);
    std::string line, running, text;
    bool has_failure = false;
    while (std::getline(lines, line)) {
      if (line.starts_with("[ RUN      ] ")) {
        running = line.substr(13);
        text.clear();
        continue;
      }
      const bool passed = line.starts_with("[       OK ] "),
                 failed = line.starts_with("[  FAILED  ] "),
                 skipped = line.starts_with("[  SKIPPED ] ");
      if (running.empty() || !(passed || failed || skipped)) {
        text += line + "\n";
        continue;
      }
      const bool may_be_consequence = failed && has_failure;
      has_failure |= failed;
      if (!may_be_consequence) {
        left.erase(running);
        size_t open = line.rfind('(');
        double seconds = open == std::string::npos ? 0 : 1e-3 * std::atof(line.c_str() + open + 1);
        Add({running,
             passed    ? State::kPassed
             : skipped ? State::kSkipped
                       : State::kFailed,
             seconds, failed ? Tail(text, 1500) : ""});
      }
      running.clear();
    }
    if (!running.empty()) {
      left.erase(running);
      Add({running, State::kFailed, outcome.seconds, Cat(Tail(text, 1500), outcome.ToString())});
    } else if (left.size() == batch.size()) {
      // Nothing ran at all: it would not the next time either.
      for (const std::string& name : batch) {
        Add({name, State::kFailed, 0, Cat(Tail(outcome.output, 1500), outcome.ToString())});
      }
      return;
    }
    std::lock_guard lock(mutex_);
    for (const std::string& name : left) waiting_.push_back({name});
  }

  void Add(TestResult result) {
    std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
  }

  const Settings& settings_;
  const std::string unit_;
  Clock::time_point end_;
  std::mutex mutex_;
  std::deque<std::vector<std::string>> waiting_;
  std::vector<TestResult> results_;
};

TestResult RunProgram(const Settings& settings, const std::string& name) {
  Result<Outcome> outcome =
      RunProcess({settings.programs + "/" + name}, EnvironmentOf(settings), kBatchSeconds);
  if (!outcome.ok()) return {name, State::kFailed, 0, outcome.status().ToString()};
  if (outcome->ok()) return {name, State::kPassed, outcome->seconds, ""};
  return {name, State::kFailed, outcome->seconds,
          Cat(Tail(outcome->output, 1500), outcome->ToString())};
}

}  // namespace

std::vector<TestResult> RunTests(const Settings& settings) {
  std::vector<TestResult> results;
  for (const char* name : kPrograms) {
    if (settings.filter.empty()) results.push_back(RunProgram(settings, name));
  }
  const std::string unit = settings.programs + "/kiln-unit";
  std::vector<std::string> list = {unit, "--gtest_list_tests"};
  if (!settings.filter.empty()) {
    list.push_back("--gtest_filter=" + settings.filter);
  } else {
    const auto& selection = settings.scale == Settings::Scale::kFull ? kProgramTests : kFewTests;
    list.insert(list.end(), selection.begin(), selection.end());
  }
  Result<Outcome> listing = RunProcess(list, {}, kBatchSeconds);
  if (!listing.ok() || !listing->ok()) {
    results.push_back(
        {"kiln-unit", State::kFailed, 0,
         listing.ok() ? Cat(listing->output, listing->ToString()) : listing.status().ToString()});
    return results;
  }
  std::vector<TestResult> more = Runs(settings, unit, NamesIn(listing->output)).Finish();
  std::sort(more.begin(), more.end(),
            [](const TestResult& a, const TestResult& b) { return a.name < b.name; });
  results.insert(results.end(), more.begin(), more.end());
  return results;
}

}  // namespace kiln::gpu_check
