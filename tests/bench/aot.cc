// Programs compiled ahead of time: a tiny one from its start to its result, and the digit demo's
// step beside libkiln's.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compiled.h"
#include "digits_step.h"
#include "harness.h"

extern char** environ;

namespace kiln::bench {
namespace {

// The path of a program beside this one.
std::string Beside(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

bool RunsToItsEnd(const std::string& path) {
  pid_t process;
  char* arguments[] = {const_cast<char*>(path.c_str()), nullptr};
  int status = 0;
  return posix_spawn(&process, path.c_str(), nullptr, nullptr, arguments, environ) == 0 &&
         waitpid(process, &status, 0) == process && status == 0;
}

KILN_BENCH(aot_tiny) {
  const std::string path = Beside("aot-tiny");
  if (!RunsToItsEnd(path)) {
    report.Note("aot_tiny", "it failed: " + path);
    return;
  }
  report.Add("aot.tiny_size", static_cast<double>(std::filesystem::file_size(path)) / 1000, "kB",
             AtMost(40));
  const double seconds = Measure([&] { RunsToItsEnd(path); }).median;
  report.Add("aot.tiny_start_to_result", seconds * 1e3, "ms", AtMost(2));
}

// The step on the arguments of a program in libkiln, and on its threads: two pools beside each
// other would be in each other's way.
class Step {
 public:
  explicit Step(Compiled& jit) : threads_{{jit.pool().threads(), 0, RunTasks}, &jit.pool()} {
    instance_ = kiln_aot_create(&digits_step_program, &threads_.pool, nullptr);
    for (int32_t i = 0; i < digits_step_program.argument_count; ++i) {
      arguments_.push_back(jit.argument(static_cast<size_t>(i)));
    }
    for (int32_t i = 0; i < digits_step_program.result_count; ++i) {
      results_.push_back(std::aligned_alloc(64, (BytesOf(i) + 63) / 64 * 64));
    }
  }
  ~Step() {
    kiln_aot_destroy(instance_);
    for (void* result : results_) std::free(result);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  bool Run() { return kiln_aot_run(instance_, arguments_.data(), results_.data(), nullptr) == 0; }
  bool HasBitsOf(const Compiled& jit) const {
    for (int32_t i = 0; i < digits_step_program.result_count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (std::memcmp(results_[at], jit.result(at), BytesOf(i)) != 0) return false;
    }
    return true;
  }

 private:
  struct Threads {
    kiln_aot_pool pool;  // the first member
    runtime::ThreadPool* threads;
  };
  static void RunTasks(kiln_aot_pool* pool, int64_t tasks, void (*work)(void*, int64_t),
                       void* context) {
    reinterpret_cast<Threads*>(pool)->threads->Run(tasks, work, context);
  }
  static size_t BytesOf(int32_t result) {
    return static_cast<size_t>(digits_step_program.results[result].byte_size);
  }

  Threads threads_;
  kiln_aot_instance* instance_ = nullptr;
  std::vector<const void*> arguments_;
  std::vector<void*> results_;
};

KILN_BENCH(aot_step) {
  std::ifstream file(KILN_DIGITS "/../digits_step.hlo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (int threads : {1, 2}) {
    Compiled jit(text, threads);
    if (!jit.ok()) {
      report.Note("aot_step", "it does not compile: " + jit.error());
      return;
    }
    Step step(jit);
    jit.Run();
    const bool same = step.Run() && step.HasBitsOf(jit);
    const std::string name = "aot.step_" + std::to_string(threads);
    report.Add(name + "_same_bits", same ? 1 : 0, "", AtLeast(1));
    report.Add(name + "_over_jit", PairedRatio([&] { step.Run(); }, [&] { jit.Run(); }, 2001), "",
               {.low = 0.98, .high = 1.02});
    report.Add(name, Measure([&] { step.Run(); }).median * 1e6, "us");
  }
}

}  // namespace
}  // namespace kiln::bench
