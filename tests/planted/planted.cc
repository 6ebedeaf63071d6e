// Whether random programs find the mistakes that bugs.py plants, one at a time, each in a process
// of its own: a crash is a finding, too.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "random/check.h"

namespace kiln::testing {
int planted_bug = 0;
}

namespace {

struct Bug {
  const char* what;
  const char* file;
};
constexpr Bug kBugs[] = {
#include "bugs.inc"
};

constexpr int kNotFound = 0, kFound = 42;
// For one program: a mistake may make a loop endless.
constexpr unsigned kSeconds = 60;

// Runs the checks until one fails; in a process of its own. Says what it does on the pipe.
int Search(uint64_t seeds, std::string_view only, int pipe) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    for (const auto& check : kiln::testing::RandomChecks()) {
      if (!only.empty() && check.name != only) continue;
      char text[64] = {};
      std::snprintf(text, sizeof(text), "%.*s, seed %llu", static_cast<int>(check.name.size()),
                    check.name.data(), static_cast<unsigned long long>(seed));
      alarm(kSeconds);
      if (write(pipe, text, sizeof(text)) != sizeof(text)) return kNotFound;
      if (check.run(*check.make(seed), seed).empty()) continue;
      return kFound;
    }
  }
  return kNotFound;
}

bool Finds(int number, uint64_t seeds, std::string_view only) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    kiln::testing::planted_bug = number;
    _exit(Search(seeds, only, ends[1]));
  }
  close(ends[1]);
  char text[64] = {}, last[64] = {};
  while (read(ends[0], text, sizeof(text)) == sizeof(text)) std::memcpy(last, text, sizeof(last));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  bool crashed = WIFSIGNALED(status);
  bool found = crashed || (WIFEXITED(status) && WEXITSTATUS(status) == kFound);
  const Bug& bug = kBugs[number - 1];
  std::printf("%2d  %-9s  %-24s  %s (%s)\n", number,
              !found    ? "NOT FOUND"
              : crashed ? (WTERMSIG(status) == SIGALRM ? "hangs" : "crashes")
                        : "found",
              last, bug.what, bug.file);
  return found;
}

}  // namespace

// usage: kiln-planted [--seeds N] [--bug K] [--only CHECK]
int main(int argc, char** argv) {
  uint64_t seeds = 100;
  int only = 0;
  std::string_view check;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--seeds") seeds = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::string_view(argv[i]) == "--only") check = argv[i + 1];
    if (std::string_view(argv[i]) == "--bug") only = std::atoi(argv[i + 1]);
  }
  constexpr int kCount = static_cast<int>(sizeof(kBugs) / sizeof(kBugs[0]));
  int missed = 0;
  for (int number = 1; number <= kCount; ++number) {
    if (only == 0 || only == number) missed += !Finds(number, seeds, check);
  }
  if (only == 0) {
    std::printf("%d of %d planted mistakes found within %llu seeds\n", kCount - missed, kCount,
                static_cast<unsigned long long>(seeds));
  }
  return missed ? 1 : 0;
}
