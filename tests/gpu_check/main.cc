// gpu-check: runs the tests and the benchmarks on the machine's GPU, and writes what it found as
// gpu-check.json and gpu-check.txt.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/strings.h"
#include "benchmarks.h"
#include "process.h"
#include "suites.h"

namespace kiln::gpu_check {
namespace {

constexpr double kBenchmarkSeconds = 120;
enum Exit { kGood = 0, kFailed = 1, kNoGpu = 2, kUsage = 64 };

constexpr char kUsageText[] =
    "usage: gpu-check [--out FOLDER] [--quick] [--emulate] [--tests-only | --bench-only]\n"
    "                 [--filter REGEX] [--test-filter PATTERN] [--cublas FILE] [--jobs N]\n"
    "                 [--bench-seconds N] [--test-seconds N] [--check]\n"
    "  --out FOLDER   where gpu-check.json, gpu-check.txt and the demo's files go; here without\n"
    "  --quick        small sizes and few tests\n"
    "  --emulate      the same, smaller still, on the emulated GPU, timed by the host\n"
    "  --filter       which benchmarks run; --test-filter, in GoogleTest's words, which tests\n"
    "  --cublas FILE  libcublas.so, where the loader does not find it\n"
    "  --jobs N       tests that run at a time: as many as there are processors without it\n"
    "  --bench-seconds, --test-seconds  how long all of them may take: 270 and 300 without these\n"
    "  --check        exit code 1 where a target is missed, too\n"
    "Exit codes: 0 all ran and was right, 1 something failed, 2 there is no GPU.\n";

struct Options {
  Settings settings;
  std::regex benchmarks{""};
  // Of a process that runs one benchmark: which, and the file for its figures.
  std::string one, figures;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<Options> ReadOptions(int argc, char** argv) {
  Options o;
  Settings& s = o.settings;
  s.out = ".";
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    auto value = [&]() -> Result<std::string> {
      if (i + 1 == argc) return InvalidArgument(arg, " wants a value");
      return std::string(argv[++i]);
    };
    auto number = [&]() -> Result<int> {
      KILN_ASSIGN_OR_RETURN(std::string text, value());
      int n = std::atoi(text.c_str());
      if (n <= 0) return InvalidArgument(arg, " ", text, ": expected a number above 0");
      return n;
    };
    if (arg == "--out") {
      KILN_ASSIGN_OR_RETURN(s.out, value());
    } else if (arg == "--quick") {
      if (!s.emulated()) s.scale = Settings::Scale::kQuick;
    } else if (arg == "--emulate") {
      s.scale = Settings::Scale::kEmulated;
    } else if (arg == "--tests-only") {
      s.benchmarks = false;
    } else if (arg == "--bench-only") {
      s.tests = false;
    } else if (arg == "--filter") {
      KILN_ASSIGN_OR_RETURN(std::string text, value());
      try {
        o.benchmarks = std::regex(text);
      } catch (const std::regex_error&) {
        return InvalidArgument("--filter ", text, ": no regular expression");
      }
    } else if (arg == "--test-filter") {
      KILN_ASSIGN_OR_RETURN(s.filter, value());
    } else if (arg == "--cublas") {
      KILN_ASSIGN_OR_RETURN(s.cublas, value());
    } else if (arg == "--jobs") {
      KILN_ASSIGN_OR_RETURN(s.jobs, number());
    } else if (arg == "--bench-seconds") {
      KILN_ASSIGN_OR_RETURN(s.bench_seconds, number());
    } else if (arg == "--test-seconds") {
      KILN_ASSIGN_OR_RETURN(s.test_seconds, number());
    } else if (arg == "--check") {
      s.check_targets = true;
    } else if (arg == "--one") {
      KILN_ASSIGN_OR_RETURN(o.one, value());
    } else if (arg == "--figures") {
      KILN_ASSIGN_OR_RETURN(o.figures, value());
    } else {
      return InvalidArgument(arg, ": unknown");
    }
  }
  if (!s.tests && !s.benchmarks) return InvalidArgument("nothing is left to do");
  return o;
}

std::string Date() {
  char text[64];
  std::time_t now = std::time(nullptr);
  std::tm utc;
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "gpu-check: cannot write %s\n", path.c_str());
  return file.good();
}

// Numbers that are not finite have no place in JSON: they are left out before.
std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A benchmark in this process, which is one of its own.
int RunOne(const Options& options) {
  std::vector<Figure> figures;
  Status status = InvalidArgument("there is no benchmark ", options.one);
  for (const Benchmark& benchmark : AllBenchmarks(options.settings)) {
    if (benchmark.name != options.one) continue;
    Result<Gpu> gpu = Gpu::Open(options.settings);
    status = gpu.ok() ? benchmark.run(*gpu, figures) : gpu.status();
  }
  if (!status.ok()) {
    if (figures.empty()) figures.emplace_back().name = options.one;
    figures.back().error = status.ToString();
  }
  Json json = Json::array();
  for (const Figure& f : figures) json.push_back(ToJson(f));
  return Write(options.figures, JsonText(json)) ? kGood : kFailed;
}

std::vector<Figure> RunInProcess(const Options& options, const std::string& program,
                                 const std::string& name, double seconds) {
  const Settings& s = options.settings;
  const std::string file = Cat(s.out, "/gpu-check.", name, ".part");
  std::vector<std::string> arguments = {program, "--one", name, "--figures", file, "--out", s.out};
  if (s.scale == Settings::Scale::kQuick) arguments.push_back("--quick");
  if (s.emulated()) arguments.push_back("--emulate");
  if (!s.cublas.empty()) arguments.insert(arguments.end(), {"--cublas", s.cublas});
  std::vector<Figure> figures;
  Result<Outcome> outcome = seconds > 1
                                ? RunProcess(arguments, {}, std::min(seconds, kBenchmarkSeconds))
                                : Unavailable("not run: the time for benchmarks was over");
  std::ifstream written(file);
  Json json = Json::parse(written, nullptr, /*allow_exceptions=*/false);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (outcome.ok() && outcome->ok() && json.is_array()) {
    for (const Json& f : json) figures.push_back(FigureFromJson(f));
    return figures;
  }
  Figure& f = figures.emplace_back();
  f.name = name;
  f.error = outcome.ok() ? Cat(outcome->ToString(), "\n", Tail(outcome->output, 1500))
                         : outcome.status().ToString();
  return figures;
}

bool WriteReport(const Settings& settings, const Report& report) {
  bool json = Write(settings.out + "/gpu-check.json", JsonText(report.ToJson()));
  return Write(settings.out + "/gpu-check.txt", report.Table()) && json;
}

// What stands at the head of the report; an error where there is no GPU.
Status Describe(const Settings& settings, Report& report) {
  KILN_ASSIGN_OR_RETURN(Gpu gpu, Gpu::Open(settings));
  Json& machine = report.machine;
  machine["device"] = kiln_device_description(gpu.gpu, nullptr);
  if (gpu.driver) {
    machine["gpu"] = gpu.driver->device_name();
    machine["architecture"] = Cat("sm_", gpu.driver->architecture());
    const int version = gpu.driver->version();
    machine["driver"] = Cat("CUDA ", version / 1000, ".", version % 1000 / 10);
    machine["memory_bytes"] = gpu.driver->memory_bytes();
  }
  machine["processor"] = kiln_device_description(gpu.cpu, nullptr);
  machine["library"] = kiln_version_string();
  machine["date"] = Date();
  machine["clock"] = gpu.driver ? "events on the GPU" : "the host's";
  machine["sizes"] = settings.scale == Settings::Scale::kFull    ? "full"
                     : settings.scale == Settings::Scale::kQuick ? "quick"
                                                                 : "emulated";
  return OkStatus();
}

int Main(int argc, char** argv) {
  Result<Options> read = ReadOptions(argc, argv);
  if (!read.ok()) {
    std::fprintf(stderr, "gpu-check: %s\n%s", std::string(read.status().message()).c_str(),
                 kUsageText);
    return kUsage;
  }
  Options& options = *read;
  Settings& s = options.settings;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  s.programs = self.parent_path();
  s.digits = self.parent_path().parent_path() / "digits";
  if (!options.one.empty()) return RunOne(options);

  const double start = Now();
  std::filesystem::create_directories(s.out, error);
  Report report;
  if (Status status = Describe(s, report); !status.ok()) {
    std::fprintf(stderr, "gpu-check: no GPU: %s\n", std::string(status.message()).c_str());
    return kNoGpu;
  }
  if (!WriteReport(s, report)) return kFailed;
  if (s.benchmarks) {
    for (const Benchmark& benchmark : AllBenchmarks(s)) {
      if (!std::regex_search(benchmark.name, options.benchmarks)) continue;
      std::printf("%s\n", benchmark.name.c_str());
      std::fflush(stdout);
      for (Figure& f :
           RunInProcess(options, self, benchmark.name, start + s.bench_seconds - Now())) {
        report.figures.push_back(std::move(f));
      }
      CompareWithCopies(report.figures);
      WriteReport(s, report);
    }
  }
  if (s.tests) {
    std::printf("tests\n");
    std::fflush(stdout);
    report.tests = RunTests(s);
  }
  report.machine["seconds"] = static_cast<int64_t>(Now() - start);
  const bool written = WriteReport(s, report);
  std::printf("\n%s", report.Table().c_str());
  if (!written || report.failed()) return kFailed;
  return s.check_targets && report.missed() > 0 ? kFailed : kGood;
}

}  // namespace
}  // namespace kiln::gpu_check

int main(int argc, char** argv) {
  // What is measured beside cuBLAS is not to be cuBLAS.
  setenv("KILN_GPU_LIBRARY", "never", 0);
  return kiln::gpu_check::Main(argc, argv);
}
