// Mutated programs, compiled and run for the CPU and for the emulated GPU, held against the
// evaluator. Programs go by batches in processes of their own, so that a crash or hang names its
// program, which is then made small.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "compare.h"
#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "mutate.h"
#include "options.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/literal.h"
#include "tools/reduce/reduce.h"

namespace kiln::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
using testing::Execution;

constexpr size_t kMaxText = 60000;
constexpr uint64_t kBatch = 64;
constexpr unsigned kHangSeconds = 120;  // of one program; compiling has a deadline before that
constexpr int64_t kMaxGpuWork = 200'000;
constexpr std::chrono::seconds kCompileDeadline(20);
constexpr int kFinding = 42;

// What a process of a batch tells; it may end at any time.
struct Shared {
  uint64_t program;
  int64_t programs, modules, compiled, compared, ill_conditioned, late;
  int is_module;  // what `text` is: a module that was read, or text as it was made
  char problem[1 << 14];
  char text[1 << 20];
};
Shared* shared = nullptr;

void Tell(char* to, size_t size, std::string_view text) {
  const size_t n = std::min(size - 1, text.size());
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// --- Running a module.

bool MayFail(const Status& status) {
  switch (status.code()) {
    case Code::kUnimplemented:
    case Code::kResourceExhausted:
    case Code::kDeadlineExceeded:
    case Code::kNotFound:  // a custom call
      return true;
    default:
      return false;
  }
}

struct Way {
  const char* name;
  bool gpu, fuse;
};
constexpr Way kWays[] = {
    {"CPU", false, true}, {"CPU, op by op", false, false}, {"GPU", true, true}};

std::string RunOneWay(const Way& way, const ir::Module& module,
                      const std::vector<Literal>& arguments, const Literal* expected) {
  compiler::Options options;
  options.verify = true;
  options.fuse = way.fuse;
  options.interrupt = Interrupt(nullptr, Clock::now() + kCompileDeadline);
  target::Target target =
      way.gpu ? testing::SharedGpu(80).target() : target::HostCpuWithVectors(64);
  auto compiled = compiler::Compile(module.Clone(), target, options);
  if (!compiled.ok()) {
    shared->late += compiled.status().code() == Code::kDeadlineExceeded;
    // What the evaluator cannot do either may be refused for that reason.
    if (MayFail(compiled.status()) || (!expected && compiled.status().code() != Code::kInternal)) {
      return "";
    }
    return Cat(way.name, ": compiling: ", compiled.status().ToString());
  }
  ++shared->compiled;
  if (!expected) return "";
  auto artefact = std::make_shared<const program::Artefact>(*std::move(compiled));
  std::unique_ptr<runtime::LoadedExecutable> executable;
  if (way.gpu) {
    auto loaded = testing::LoadOnGpu(artefact);
    if (!loaded.ok()) return MayFail(loaded.status()) ? "" : loaded.status().ToString();
    executable = *std::move(loaded);
  } else {
    auto loaded = testing::LoadOnPool(artefact, testing::Pool());
    if (!loaded.ok()) return MayFail(loaded.status()) ? "" : loaded.status().ToString();
    executable = *std::move(loaded);
  }
  Execution run(*artefact);
  run.SetArguments(arguments);
  Status status = executable->Run(run.arguments(), run.results());
  if (!status.ok()) return Cat(way.name, ": running: ", status.ToString());
  ++shared->compared;
  bool ill_conditioned = false;
  std::string difference = Compare(module, arguments, *expected, run.Result(), &ill_conditioned);
  shared->ill_conditioned += ill_conditioned;
  if (difference.empty()) return "";
  return Cat(way.name, ": ", difference, "\n", artefact->program.ToString());
}

bool HasPlainArrays(const ir::Module& module) {
  int64_t bytes = 0;
  bool plain = true;
  auto look = [&](const Shape& shape) {
    ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
      plain &= leaf.is_array() && leaf.is_static();
      if (plain && leaf.is_array()) bytes += std::min<int64_t>(leaf.byte_size(), 1 << 30);
    });
  };
  for (const ir::Instruction* p : module.entry()->parameters()) look(p->shape());
  look(module.entry()->root()->shape());
  return plain && bytes < 64 << 20;
}

// "" where all is well.
std::string RunModule(const ir::Module& module, uint64_t seed) {
  if (!HasPlainArrays(module)) return "";
  const std::vector<Literal> arguments = testing::RandomArguments(module, seed);
  int64_t work = 0;
  auto expected = interp::Evaluate(module, arguments, {.max_work = kMaxWork, .work_done = &work});
  const bool is_determined = IsDetermined(module);
  for (const Way& way : kWays) {
    const bool runs = expected.ok() && is_determined && (!way.gpu || work < kMaxGpuWork);
    std::string problem = RunOneWay(way, module, arguments, runs ? &*expected : nullptr);
    if (!problem.empty()) return problem;
  }
  return "";
}

// --- Making programs.

struct Seed {
  std::string name, text;
  bool is_hlo;
};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

// Each module of each file.
std::vector<Seed> ReadSeeds(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Seed> seeds;
  for (const auto& path : paths) {
    const bool is_hlo = path.extension() == ".hlo";
    if (!is_hlo && path.extension() != ".mlir") continue;
    const std::string text = ReadFile(path);
    for (const stablehlo::Chunk& chunk : stablehlo::SplitChunks(text)) {
      std::string module(chunk.text);
      if (is_hlo) {
        // Comments may speak of modules, too.
        const size_t from = module.starts_with("HloModule") ? 0 : module.find("\nHloModule");
        module = from == std::string::npos ? "HloModule m\n" + module : module.substr(from);
      }
      if (module.size() <= kMaxText) seeds.push_back({path.string(), std::move(module), is_hlo});
    }
  }
  return seeds;
}

std::unique_ptr<ir::Module> Read(const std::string& text, bool is_hlo) {
  if (is_hlo) {
    auto module = ir::ParseHloText(text);
    return module.ok() ? *std::move(module) : nullptr;
  }
  auto tree = stablehlo::ReadText(text);
  if (!tree.ok()) return nullptr;
  auto module =
      stablehlo::Import(**tree, {.interrupt = Interrupt(nullptr, Clock::now() + kCompileDeadline)});
  return module.ok() ? *std::move(module) : nullptr;
}

std::string RunProgram(const std::vector<Seed>& seeds, uint64_t seed, uint64_t number) {
  Mutator mutator(seed * 0x9e3779b97f4a7c15u + number);
  const Seed& from = seeds[mutator.Below(seeds.size())];
  std::string text = from.text;
  const bool as_text = mutator.Chance(40);
  if (as_text) {
    for (size_t k = 1 + mutator.Below(3); k > 0 && !text.empty(); --k) {
      text = mutator.Text(text, seeds[mutator.Below(seeds.size())].text, from.is_hlo);
    }
  }
  Tell(shared->problem, sizeof(shared->problem), Cat("made of ", from.name));
  Tell(shared->text, sizeof(shared->text), text);
  shared->is_module = 0;
  ++shared->programs;
  std::unique_ptr<ir::Module> module = Read(text, from.is_hlo);
  if (!module) return "";
  const Status valid = ir::Verify(*module);
  if (!valid.ok()) return Cat("the reader's module: ", valid.ToString());
  for (size_t k = as_text ? mutator.Below(2) : 1 + mutator.Below(4); k > 0; --k) {
    if (auto changed = mutator.Module(*module)) module = std::move(changed);
  }
  ++shared->modules;
  // Again from the text, so that it is what the text says.
  const std::string printed = ir::ToHloText(*module);
  if (printed.size() >= sizeof(shared->text)) return "";
  Tell(shared->text, sizeof(shared->text), printed);
  auto again = ir::ParseHloText(printed);
  if (!again.ok()) {
    // A name in text that text cannot say.
    if (again.status().code() == Code::kUnimplemented) return "";
    return Cat("what was printed is refused: ", again.status().ToString());
  }
  shared->is_module = 1;
  return RunModule(**again, number);
}

// --- Processes.

// What became of f in a process of its own: "" or what went wrong.
std::string InProcess(const std::function<std::string()>& f) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::string problem = f();
    if (problem.empty()) _exit(0);
    Tell(shared->problem, sizeof(shared->problem), problem);
    _exit(kFinding);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no process could be made";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFEXITED(status) && WEXITSTATUS(status) == kFinding) return shared->problem;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return Cat("it takes more than ", kHangSeconds, " s (", shared->problem, ")");
  }
  return Cat(
      WIFSIGNALED(status) ? Cat("signal ", WTERMSIG(status)) : Cat("exit ", WEXITSTATUS(status)),
      " (", shared->problem, ")");
}

// The kind of a problem: what must stay as a module is made smaller.
std::string KindOf(const std::string& problem) {
  return problem.substr(0, std::min(problem.find_first_of(":("), problem.size()));
}

std::string Smallest(const std::string& text, uint64_t number, const std::string& problem) {
  auto module = ir::ParseHloText(text);
  if (!module.ok()) return text;
  auto fails = [&](const ir::Module& candidate) {
    std::string found = InProcess([&] {
      alarm(kHangSeconds);
      return RunModule(candidate, number);
    });
    return !found.empty() && KindOf(found) == KindOf(problem);
  };
  if (problem.starts_with("it takes") || !fails(**module)) return text;
  return ir::ToHloText(*tools::Reduce(**module, fails, {.max_tries = 300}));
}

int Usage(const char* program) {
  std::printf(
      "usage: %s [--seconds S | --count N] [--first K] [--seed S] [--corpus DIR]... [--corpora]\n"
      "       [--keep-going] [--out DIR] [FILE.hlo]...\n"
      "Mutates programs of the folders (--corpora: of those that KILN_CONFORMANCE_DIR and\n"
      "KILN_WORKLOADS_DIR name, too), from number K on. With files: runs these.\n",
      program);
  return 2;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  using namespace kiln::fuzz;
  Options options;
  std::string out = ".";
  std::vector<std::string> folders{KILN_FUZZ_CORPUS, KILN_FUZZ_PASSES}, files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.rfind("--", 0) != 0) {
      files.emplace_back(arg);
    } else if (options.Take(argc, argv, i)) {
    } else if (arg == "--corpora") {
      for (const char* name : {"KILN_CONFORMANCE_DIR", "KILN_WORKLOADS_DIR"}) {
        if (const char* folder = std::getenv(name)) folders.emplace_back(folder);
      }
    } else if (i + 1 == argc) {
      return Usage(argv[0]);
    } else if (arg == "--corpus") {
      folders.emplace_back(argv[++i]);
    } else if (arg == "--out") {
      out = argv[++i];
    } else {
      return Usage(argv[0]);
    }
  }
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  shared = static_cast<Shared*>(memory);
  int findings = 0;
  for (const std::string& file : files) {
    auto module = kiln::ir::ParseHloText(ReadFile(file));
    std::string problem = module.ok() ? InProcess([&] { return RunModule(**module, options.seed); })
                                      : module.status().ToString();
    const bool is_compared = module.ok() && IsDetermined(**module);
    std::printf("%s: %s\n", file.c_str(),
                !problem.empty() ? problem.c_str()
                : is_compared    ? "right"
                                 : "not determined");
    findings += !problem.empty();
  }
  if (!files.empty()) return findings > 0;
  const std::vector<Seed> seeds = ReadSeeds(folders);
  if (seeds.empty()) return std::printf("no seeds\n"), 1;
  uint64_t next = options.first;
  while (options.GoesOn(next, findings)) {
    uint64_t end = next + kBatch;
    if (options.count > 0) end = std::min(end, options.first + options.count);
    std::string problem = InProcess([&]() -> std::string {
      for (uint64_t number = next; number < end && options.GoesOn(number, 0); ++number) {
        shared->program = number;
        alarm(kHangSeconds);
        std::string found = RunProgram(seeds, options.seed, number);
        if (!found.empty()) return found;
      }
      return "";
    });
    if (problem.empty()) {
      next = end;
      continue;
    }
    ++findings;
    const uint64_t number = shared->program;
    next = number + 1;
    std::string text = shared->text;
    if (shared->is_module) text = Smallest(text, number, problem);
    const std::string path = kiln::Cat(out, "/fuzz-program-", static_cast<int64_t>(options.seed),
                                       "-", static_cast<int64_t>(number), ".txt");
    std::ofstream(path) << text;
    std::printf("program %llu of seed %llu, in %s: %s\n", static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(options.seed), path.c_str(), problem.c_str());
    std::fflush(stdout);
  }
  std::printf(
      "%lld programs of %zu seeds, %lld modules, %lld compiled, %lld held against the evaluator "
      "(%lld differ as rounding may), %lld past the deadline, %d findings\n",
      static_cast<long long>(shared->programs), seeds.size(),
      static_cast<long long>(shared->modules), static_cast<long long>(shared->compiled),
      static_cast<long long>(shared->compared), static_cast<long long>(shared->ill_conditioned),
      static_cast<long long>(shared->late), findings);
  return findings > 0;
}
