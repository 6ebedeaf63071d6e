// The programs in HLO text of $KILN_WORKLOADS_DIR/hlo, on made-up arguments.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "harness.h"
#include "ir/sample.h"
#include "ir/text.h"
#include "kiln/kiln.h"
#include "tensor/leaves.h"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

// In the order of their names.
std::vector<fs::path> Files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".hlo") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// A program with its arguments. Results are in the memory of the last run's; those aliased with
// an argument take its memory, and are the argument of the next run, as the state of a training is.
class Workload {
 public:
  // `values`: the parameters'.
  Workload(const Context& context, kiln_executable* executable, const std::vector<Literal>& values)
      : executable_(executable), results_(kiln_executable_result_count(executable)) {
    for (const Literal& value : values) AddArguments(context, value);
    for (size_t r = 0; r < results_.size(); ++r) {
      int64_t argument = -1;
      Must(kiln_executable_result_alias(executable, r, &argument));
      if (argument >= 0) carried_.push_back({r, static_cast<size_t>(argument)});
    }
    options_.donate_aliased = 1;
  }
  ~Workload() {
    for (kiln_buffer* argument : arguments_) kiln_buffer_release(argument);
    for (kiln_buffer* result : results_) kiln_buffer_release(result);
  }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  void operator()() {
    Must(kiln_executable_run(executable_, &options_, arguments_.data(), arguments_.size(),
                             results_.data(), results_.size()));
    for (const auto& [result, argument] : carried_) {
      kiln_buffer_release(arguments_[argument]);
      arguments_[argument] = std::exchange(results_[result], nullptr);
    }
  }

 private:
  void AddArguments(const Context& context, const Literal& value) {
    for (const Literal& element : value.elements()) AddArguments(context, element);
    if (!value.shape().is_array()) return;
    const std::vector<int64_t> dims = value.shape().dims();
    kiln_buffer* buffer = nullptr;
    Must(kiln_buffer_copy_host(context.cpu(), static_cast<kiln_dtype>(value.shape().type()),
                               dims.data(), dims.size(), value.data(),
                               static_cast<size_t>(value.byte_size()), &buffer));
    arguments_.push_back(buffer);
  }

  kiln_executable* const executable_;
  kiln_execute_options options_ = KILN_EXECUTE_OPTIONS_INIT;
  std::vector<kiln_buffer*> arguments_, results_;
  std::vector<std::pair<size_t, size_t>> carried_;
};

// Adds a program's figures; what it cannot do becomes a note.
void Run(Report& report, const std::string& name, const std::string& text, int32_t threads) {
  const auto module = ir::ParseHloText(text);
  if (!module.ok()) return report.Note(name, module.status().ToString());
  Context context(threads);
  kiln_graph* graph = nullptr;
  kiln_executable* executable = nullptr;
  Must(kiln_graph_from_hlo_text(context.get(), text.data(), text.size(), &graph));
  const double start = Now();
  kiln_error* error = kiln_graph_compile(graph, nullptr, &executable);
  const double seconds = Now() - start;
  kiln_graph_release(graph);
  if (error) {
    report.Note(name, kiln_error_message(error, nullptr));
    return kiln_error_release(error);
  }
  {
    Workload workload(context, executable, ir::SampleArguments(**module, 0));
    report.Add(name, Measure([&] { workload(); }).median * 1e3, "ms");
  }
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  Must(kiln_executable_info(executable, &info));
  report.Add(name + ".compile", seconds * 1e3, "ms");
  report.Add(name + ".temporaries", static_cast<double>(info.temporary_bytes) / 1e3, "kB");
  report.Add(name + ".kernels", static_cast<double>(info.kernels), "");
  kiln_executable_release(executable);
}

KILN_BENCH(workloads) {
  const char* folder = std::getenv("KILN_WORKLOADS_DIR");
  if (!folder || !*folder) return report.Note("workloads", "KILN_WORKLOADS_DIR is not set");
  const std::vector<fs::path> files = Files(fs::path(folder) / "hlo");
  if (files.empty()) report.Note("workloads", Cat(folder, "/hlo has no programs"));
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (int32_t threads : {1, 2}) {
      Run(report, Cat("workloads.", path.stem().string(), ".threads", threads), text, threads);
    }
  }
}

}  // namespace
}  // namespace kiln::bench
