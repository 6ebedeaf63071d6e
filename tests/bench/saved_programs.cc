// Saved programs: one of BERT's size, whose weights are arguments, and one with large constants.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "encoder_text.h"
#include "harness.h"
#include "kiln/kiln.h"
#include "machine.h"
#include "program/container.h"

namespace kiln::bench {
namespace {

// A saved program, whose file goes with it.
class SavedFile {
 public:
  explicit SavedFile(const kiln_executable* executable) {
    const int descriptor = mkstemp(path_.data());
    if (descriptor >= 0) close(descriptor);
    Must(kiln_executable_save(executable, path_.data(), path_.size()));
  }
  ~SavedFile() { std::remove(path_.c_str()); }
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  kiln_executable* Load(kiln_device* device) const {
    kiln_executable* loaded = nullptr;
    Must(kiln_executable_load_file(device, path_.data(), path_.size(), &loaded));
    return loaded;
  }

 private:
  std::string path_ = "/tmp/kiln-bench-XXXXXX";
};

void Run(kiln_executable* executable, const std::vector<kiln_buffer*>& arguments) {
  kiln_buffer* result = nullptr;
  Must(kiln_executable_run(executable, nullptr, arguments.data(), arguments.size(), &result, 1));
  kiln_buffer_release(result);
}

KILN_BENCH(saved_encoder) {
  const Encoder encoder;
  for (int32_t threads : {1, 2}) {
    const Context context(threads);
    const EncoderArguments arguments(encoder, context);
    kiln_graph* graph = nullptr;
    Must(kiln_graph_from_stablehlo(context.get(), encoder.text().data(), encoder.text().size(),
                                   nullptr, &graph));
    kiln_executable* compiled = nullptr;
    const double compile = Measure([&] {
                             kiln_executable_release(compiled);
                             Must(kiln_graph_compile(graph, nullptr, &compiled));
                           }).median;
    const SavedFile file(compiled);
    const double load = Measure([&] { kiln_executable_release(file.Load(context.cpu())); }).median;
    // With the release, which a program does once, at its end.
    const double ratio = PairedRatio(
        [&] {
          kiln_executable* loaded = file.Load(context.cpu());
          Run(loaded, arguments.buffers());
          kiln_executable_release(loaded);
        },
        [&] { Run(compiled, arguments.buffers()); }, 21);
    const std::string name = Cat("saved.encoder.threads", threads);
    report.Add(name + ".compile", compile * 1e3, "ms");
    report.Add(name + ".load", load * 1e3, "ms", AtMost(10));
    report.Add(name + ".load_of_compile", load / compile, "", AtMost(0.05));
    report.Add(name + ".load_and_run_of_run", ratio, "", AtMost(1.3));
    kiln_executable_release(compiled);
    kiln_graph_release(graph);
  }
}

// The sum over what is mapped is most of the time of a load: 256 MiB of constants.
KILN_BENCH(saved_constants) {
  constexpr int64_t kWidth = 8192, kBytes = kWidth * kWidth * 4;
  const Context context(1);
  kiln_graph* graph = nullptr;
  kiln_executable* compiled = nullptr;
  const int64_t dims[] = {kWidth, kWidth / 4};
  Must(kiln_graph_create(context.get(), "constants", 9, &graph));
  kiln_value x = kiln_op_parameter(graph, KILN_F32, dims, 2, "x", 1);
  for (int i = 0; i < 4; ++i) {
    std::vector<float> numbers(kWidth * kWidth / 4);
    for (size_t at = 0; at < numbers.size(); ++at) numbers[at] = static_cast<float>(at % 1000) + i;
    x = kiln_op_add(graph, kiln_op_tanh(graph, x),
                    kiln_op_constant(graph, KILN_F32, dims, 2, numbers.data(), kBytes / 4));
  }
  Must(kiln_graph_set_results(graph, &x, 1));
  Must(kiln_graph_compile(graph, nullptr, &compiled));
  kiln_graph_release(graph);
  const SavedFile file(compiled);
  kiln_executable_release(compiled);
  const double load = Measure([&] { kiln_executable_release(file.Load(context.cpu())); }).median;
  const std::vector<float> numbers(kBytes / 4, 1.5f);
  const double sum = Measure([&] {
                       program::Checksum checksum;
                       checksum.Update({reinterpret_cast<const char*>(numbers.data()), kBytes});
                       Keep(checksum.Finish());
                     }).median;
  const std::span<const float> array(numbers);
  report.Add("saved.constants.load", kBytes / load / 1e9, "GB/s");
  report.Add("saved.constants.checksum", kBytes / sum / 1e9, "GB/s");
  report.Add("saved.constants.checksum_of_read", ReadSeconds({&array, 1}, 1) / sum, "",
             AtLeast(0.6));
}

}  // namespace
}  // namespace kiln::bench
