// Random calls of the whole C ABI. A number stands for a sequence of calls, which is made in a
// process of its own: so a crash, or a call that does not return, names its sequence, of which all
// calls are printed.
#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "calls/functions.h"
#include "calls/world.h"
#include "options.h"

// Memory that cannot be had is an error for AddressSanitizer, too, and not the end.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace kiln::fuzz {
namespace {

constexpr uint64_t kBatch = 4;  // sequences in a process
// A call must not take more processor time than that; and while it takes none at all it must return
// within some time, though others keep the processors busy.
constexpr double kMostSeconds = 180, kMostIdleSeconds = 60;

struct CallOptions : Options {
  size_t calls = 300, threads = 0;
  bool show_coverage = false, print = false;
};

// --- A sequence

void RunSequence(const CallOptions& options, uint64_t number) {
  const uint64_t seed = options.seed * 0x9e3779b97f4a7c15u + number;
  // One of eight has threads.
  const size_t threads = std::min(kMaxThreads, options.threads > 0 ? options.threads
                                               : number % 8 == 7   ? 3
                                                                   : 1);
  for (Log::Thread& thread : shared_log->threads) thread.length = 0;
  World first(seed, 0);
  first.Run(threads > 1 ? options.calls / 2 : options.calls);
  std::vector<std::unique_ptr<World>> others;
  for (size_t t = 1; t < threads; ++t) {
    others.push_back(std::make_unique<World>(seed + t * 0x632be59bd9b4e019u, t));
    others.back()->Share(first);
  }
  if (threads > 1) {
    std::vector<std::thread> running;
    for (auto& world : others) {
      running.emplace_back([&] {
        world->Run(options.calls / 2);
        world->ReleaseObjects();
      });
    }
    first.Run(options.calls / 2);
    for (std::thread& thread : running) thread.join();
  }
  std::vector<World*> worlds{&first};
  for (auto& world : others) worlds.push_back(world.get());
  first.ReleaseObjects();
  for (World* world : worlds) world->AwaitMemory();
  for (World* world : worlds) world->ReleaseContexts();
  for (World* world : worlds) world->CheckEnds();
}

// --- Its process

double ProcessorSeconds(pid_t process) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Waits for the end: "" or what went wrong.
std::string Watch(pid_t child) {
  uint64_t calls = shared_log->calls;
  double begun = 0, used = 0, idle_since = Now();
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
      if (WIFEXITED(status) && WEXITSTATUS(status) == kFinding) return shared_log->problem;
      return WIFSIGNALED(status) ? Cat("signal ", WTERMSIG(status))
                                 : Cat("exit ", WEXITSTATUS(status));
    }
    const double now_used = ProcessorSeconds(child);
    if (const uint64_t now = shared_log->calls; now != calls) {
      calls = now;
      begun = used = now_used;
      idle_since = Now();
    } else if (now_used > used + 0.01) {
      used = now_used;
      idle_since = Now();
    }
    const bool is_slow = now_used - begun > kMostSeconds;
    if (is_slow || Now() - idle_since > kMostIdleSeconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return is_slow ? Cat("a call takes more than ", static_cast<int>(kMostSeconds),
                           " s of processor time")
                     : "a call does not return";
    }
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
}

std::string InProcess(const CallOptions& options, uint64_t first, uint64_t end) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    for (uint64_t number = first; number < end && options.GoesOn(number, 0); ++number) {
      shared_log->sequence = number;
      RunSequence(options, number);
    }
    std::_Exit(0);
  }
  return child < 0 ? "no process could be made" : Watch(child);
}

void PrintCalls() {
  for (size_t t = 0; t < kMaxThreads; ++t) {
    const Log::Thread& thread = shared_log->threads[t];
    if (thread.length == 0) continue;
    std::printf("calls of thread %zu:\n%.*s", t, static_cast<int>(thread.length.load()),
                thread.text);
  }
}

// Tells what has been called; the number of functions that never were.
size_t Coverage(bool show) {
  size_t never = 0;
  for (size_t i = 0; i < Functions().size(); ++i) {
    const unsigned long long called = shared_log->called[i], succeeded = shared_log->succeeded[i];
    never += called == 0;
    if (show) {
      std::printf("%8llu calls, %8llu succeed  %s\n", called, succeeded,
                  Functions()[i].name.c_str());
    }
  }
  return never;
}

int Usage(const char* program) {
  std::printf(
      "usage: %s [--seconds S | --count N] [--first K] [--seed S] [--calls N] [--threads N]\n"
      "       [--coverage] [--print] [--keep-going]\n"
      "Makes sequences of N random calls of the C ABI, from number K on. --coverage tells how\n"
      "often each function was called, and fails where one never was; --print prints the calls of\n"
      "the last sequence.\n",
      program);
  return 2;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  using namespace kiln::fuzz;
  CallOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--coverage") {
      options.show_coverage = true;
    } else if (arg == "--print") {
      options.print = true;
    } else if (options.Take(argc, argv, i)) {
    } else if (arg == "--calls" && i + 1 < argc) {
      options.calls = std::strtoull(argv[++i], nullptr, 10);
    } else if (arg == "--threads" && i + 1 < argc) {
      options.threads = std::strtoull(argv[++i], nullptr, 10);
    } else {
      return Usage(argv[0]);
    }
  }
  void* memory =
      mmap(nullptr, sizeof(Log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || Functions().size() > kMaxFunctions) return 1;
  shared_log = new (memory) Log;
  const std::string folder =
      (std::filesystem::temp_directory_path() / "kiln-fuzz-calls-XXXXXX").string();
  if (folder.size() >= sizeof(shared_log->folder)) return 1;
  folder.copy(shared_log->folder, folder.size());
  if (!mkdtemp(shared_log->folder)) return 1;
  int findings = 0;
  uint64_t next = options.first;
  while (options.GoesOn(next, findings)) {
    uint64_t end = next + kBatch;
    if (options.count > 0) end = std::min(end, options.first + options.count);
    const std::string problem = InProcess(options, next, end);
    if (problem.empty()) {
      next = end;
      continue;
    }
    ++findings;
    const uint64_t number = shared_log->sequence;
    next = number + 1;
    shared_log->has_found = false;
    PrintCalls();
    std::printf("sequence %llu of seed %llu: %s\nagain: --seed %llu --first %llu --count 1\n",
                static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(options.seed), problem.c_str(),
                static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(number));
    std::fflush(stdout);
  }
  if (options.print) PrintCalls();
  std::error_code error;
  std::filesystem::remove_all(shared_log->folder, error);
  const size_t never = Coverage(options.show_coverage);
  std::printf(
      "%llu sequences, %llu calls of %zu functions (%zu never called), %llu compiled, %llu "
      "executed, %llu held against the evaluator (%llu differ as rounding may), %d findings\n",
      static_cast<unsigned long long>(next - options.first),
      static_cast<unsigned long long>(shared_log->calls.load()), Functions().size(), never,
      static_cast<unsigned long long>(shared_log->compiled.load()),
      static_cast<unsigned long long>(shared_log->executed.load()),
      static_cast<unsigned long long>(shared_log->compared.load()),
      static_cast<unsigned long long>(shared_log->ill_conditioned.load()), findings);
  return findings > 0 || (options.show_coverage && never > 0);
}
