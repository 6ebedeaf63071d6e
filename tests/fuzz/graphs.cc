// Random programs through the checks of tests/random/check.h, for as long as one likes. A
// failure is made small and printed as HLO text.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"
#include "random/check.h"
#include "random/coverage.h"

namespace {

// What runs, for a signal handler: it says how to run that again.
char current[256];

extern "C" void OnCrash(int signal_number) {
  std::signal(signal_number, SIG_DFL);
  std::fprintf(stderr, "signal %d in %s\n", signal_number, current);
  std::raise(signal_number);
}

int Usage(const char* program) {
  std::printf(
      "usage: %s [--seconds S] [--count N] [--first SEED] [--only CHECK]... [--keep-going]\n"
      "       [--coverage]\n"
      "Runs the checks on the programs of one seed after the other, for S seconds or N seeds.\n",
      program);
  for (const auto& check : kiln::testing::RandomChecks()) {
    std::printf("  %-15s %.*s\n", std::string(check.name).c_str(),
                static_cast<int>(check.what.size()), check.what.data());
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  kiln::fuzz::Options options;
  bool show_coverage = false;
  std::vector<const kiln::testing::RandomCheck*> checks;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg != "--seed" && options.Take(argc, argv, i)) {
    } else if (arg == "--coverage") {
      show_coverage = true;
    } else if (i + 1 == argc) {
      return Usage(argv[0]);
    } else if (arg == "--only") {
      std::string_view name = argv[++i];
      for (const auto& check : kiln::testing::RandomChecks()) {
        if (check.name == name) checks.push_back(&check);
      }
      if (checks.empty() || checks.back()->name != name) return Usage(argv[0]);
    } else {
      return Usage(argv[0]);
    }
  }
  if (checks.empty()) {
    for (const auto& check : kiln::testing::RandomChecks()) checks.push_back(&check);
  }
  for (int signal_number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) {
    std::signal(signal_number, OnCrash);
  }
  kiln::testing::Coverage coverage;
  kiln::testing::RepeatCoverage repeats;
  uint64_t seed = options.first;
  int failures = 0;
  for (; options.GoesOn(seed, failures); ++seed) {
    for (const auto* check : checks) {
      std::snprintf(current, sizeof(current),
                    "seed %llu of '%.*s'; again: --only %.*s --first "
                    "%llu --count 1",
                    static_cast<unsigned long long>(seed), static_cast<int>(check->name.size()),
                    check->name.data(), static_cast<int>(check->name.size()), check->name.data(),
                    static_cast<unsigned long long>(seed));
      auto module = check->make(seed);
      kiln::testing::AddCoverage(*module, coverage);
      kiln::testing::AddRepeatCoverage(*module, repeats);
      std::string problem = check->run(*module, seed);
      if (problem.empty()) continue;
      ++failures;
      std::printf("%s\n", kiln::testing::Report(*check, seed, problem).c_str());
      std::fflush(stdout);
      if (!options.keep_going) break;
    }
  }
  std::printf("seeds %llu to %llu, %zu checks, %d failures\n",
              static_cast<unsigned long long>(options.first),
              static_cast<unsigned long long>(seed - 1), checks.size(), failures);
  if (show_coverage) {
    std::printf("%sop and type pairs that were not made: %zu\n",
                kiln::testing::CoverageTable(coverage).c_str(),
                kiln::testing::MissingFrom(coverage).size());
    std::printf("%srepeats of results that were not made: %zu\n",
                kiln::testing::CoverageTable(repeats).c_str(),
                kiln::testing::MissingFrom(repeats).size());
  }
  return failures ? 1 : 0;
}
