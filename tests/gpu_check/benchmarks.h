// What is measured. Each benchmark runs in a process of its own, which has the GPU for itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "clock.h"
#include "cublas.h"
#include "figure.h"
#include "library.h"

namespace kiln::gpu_check {

// The programs' folders, and how large everything is.
struct Settings {
  enum class Scale { kFull, kQuick, kEmulated };
  Scale scale = Scale::kFull;
  std::string programs, digits, out, cublas, filter;
  bool tests = true, benchmarks = true, check_targets = false;
  int jobs = 0;  // processes of tests at a time; 0: by the processors
  double bench_seconds = 270, test_seconds = 300;  // for all of them

  // Targets are those of full sizes: smaller ones are of the caches.
  bool has_targets() const { return scale == Scale::kFull; }
  bool emulated() const { return scale == Scale::kEmulated; }
};

// A process's context and GPU; the driver is null where the GPU is emulated.
struct Gpu {
  Context context;
  kiln_device *gpu = nullptr, *cpu = nullptr;
  std::unique_ptr<Driver> driver;
  const Settings* settings = nullptr;

  static Result<Gpu> Open(const Settings& settings);
  // Of either the GPU's events or the host's clock.
  Result<Times> Measure(const Program& program, const std::vector<Buffer>& arguments,
                        const Buffer& result) const;
};

struct Benchmark {
  std::string name;
  std::function<Status(const Gpu& gpu, std::vector<Figure>& figures)> run;
};

// All of them, in the order of the table.
std::vector<Benchmark> AllBenchmarks(const Settings& settings);
void AddMemoryBenchmarks(const Settings& settings, std::vector<Benchmark>& all);
void AddGemmBenchmarks(const Settings& settings, std::vector<Benchmark>& all);
void AddDemo(const Settings& settings, std::vector<Benchmark>& all);

// A program, its reference for CPU:0, and how much the results may differ.
struct Task {
  std::string text, reference;
  double low = -1, high = 1;  // of the arguments
  double allowed = 0;
  int64_t rows = 0;  // unless 0, the reference is of so many rows of the first argument alone
  bool allow_tf32 = false;
};

// Measures a peer on the arguments, tells it in the figure, and returns the peer's result; nothing
// where there is no peer.
using Peer = std::function<Result<std::optional<HostArray>>(const std::vector<Buffer>& arguments,
                                                            const Dims& result)>;

// Measures the program, holds its result against the reference's and tells both in the figure.
Status MeasureTask(const Gpu& gpu, const Task& task, Figure& figure, const Peer& peer = {});

// What so many bytes or operations make of the times.
void SetTimes(const Times& times, Figure& figure);

// What is held against a copy: after all benchmarks, in the parent.
inline constexpr std::string_view kCopy = "copy";
void CompareWithCopies(std::vector<Figure>& figures);

}  // namespace kiln::gpu_check
