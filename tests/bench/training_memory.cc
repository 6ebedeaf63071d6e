// The memory of a training step of a transformer of 12 layers: what a limit costs in time, and the
// batch that it allows.
#include <cstring>
#include <string>
#include <vector>

#include "c_abi.h"
#include "encoder_text.h"
#include "harness.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

constexpr double kMegabyte = 1e6;

// The encoder's gradients by the mean of its squared result, and gradient descent on all arguments
// in their own memory.
class Step {
 public:
  Step(const Context& context, int64_t batch) : context_(context), encoder_(batch) {
    Must(kiln_graph_from_stablehlo(context.get(), encoder_.text().data(), encoder_.text().size(),
                                   nullptr, &graph_));
    std::vector<kiln_value> arguments;
    for (size_t i = 0; i < encoder_.dims().size(); ++i) {
      arguments.push_back(kiln_graph_parameter(graph_, i));
      aliases_.push_back({.result = i, .argument = i, .must = 1, .reserved = 0});
    }
    const kiln_value y = kiln_graph_result(graph_);
    const int64_t all[] = {0, 1};
    const kiln_value loss =
        kiln_nn_mean(graph_, kiln_op_multiply(graph_, y, y), all, std::size(all), 0);
    std::vector<kiln_value> gradients(arguments.size());
    Must(kiln_graph_gradient(graph_, loss, arguments.data(), arguments.size(), nullptr,
                             gradients.data()));
    const kiln_value rate = kiln_op_scalar(graph_, KILN_F32, 1e-3);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const kiln_value change = kiln_nn_multiply(graph_, gradients[i], rate);
      arguments[i] = kiln_op_subtract(graph_, arguments[i], change);
    }
    arguments.push_back(loss);
    Must(kiln_graph_set_results(graph_, arguments.data(), arguments.size()));
  }
  ~Step() { kiln_graph_release(graph_); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Null where the temporaries do not fit.
  kiln_executable* Compile(int64_t memory_limit_bytes, const char* disabled_passes = "") const {
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.aliases = aliases_.data();
    options.alias_count = aliases_.size();
    options.memory_limit_bytes = memory_limit_bytes;
    options.disabled_passes = disabled_passes;
    options.disabled_passes_length = std::strlen(disabled_passes);
    kiln_executable* executable = nullptr;
    kiln_error* error = kiln_graph_compile(graph_, &options, &executable);
    if (error && kiln_error_code(error) == KILN_RESOURCE_EXHAUSTED) {
      kiln_error_release(error);
      return nullptr;
    }
    Must(error);
    return executable;
  }

  std::vector<kiln_buffer*> Arguments() const {
    std::vector<kiln_buffer*> arguments;
    for (const std::vector<int64_t>& dims : encoder_.dims()) {
      arguments.push_back(context_.NewArray(dims));
    }
    return arguments;
  }

 private:
  const Context& context_;
  const Encoder encoder_;
  kiln_graph* graph_ = nullptr;
  std::vector<kiln_alias> aliases_;
};

int64_t TemporariesOf(const kiln_executable* executable) {
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  Must(kiln_executable_info(executable, &info));
  return info.temporary_bytes;
}

// A step with the arguments' memory.
void Run(kiln_executable* executable, std::vector<kiln_buffer*>& arguments) {
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donate_aliased = 1;
  std::vector<kiln_buffer*> results(arguments.size() + 1);
  Must(kiln_executable_run(executable, &options, arguments.data(), arguments.size(), results.data(),
                           results.size()));
  for (kiln_buffer* argument : arguments) kiln_buffer_release(argument);
  kiln_buffer_release(results.back());
  results.pop_back();
  arguments = std::move(results);
}

KILN_BENCH(training_memory) {
  const Context context(2);
  int64_t kept = 0;
  {
    const Step step(context, 1);
    kiln_executable* without = step.Compile(0, "rematerialisation");
    kiln_executable* usual = step.Compile(0);
    kept = TemporariesOf(without);
    const int64_t bytes = TemporariesOf(usual);
    report.Add("training_memory.kept", static_cast<double>(kept) / kMegabyte, "MB");
    report.Add("training_memory.temporaries", static_cast<double>(bytes) / kMegabyte, "MB");
    kiln_executable* half = step.Compile(bytes / 2);
    std::vector<kiln_buffer*> arguments = step.Arguments();
    const double ratio =
        half ? PairedRatio([&] { Run(half, arguments); }, [&] { Run(usual, arguments); }, 11) : 0;
    report.Add("training_memory.half.fits", half ? 1 : 0, "", AtLeast(1));
    report.Add("training_memory.half.time_of_the_step", ratio, "", AtMost(1.35));
    for (kiln_buffer* argument : arguments) kiln_buffer_release(argument);
    for (kiln_executable* e : {without, usual, half}) kiln_executable_release(e);
  }
  // The largest batch in the memory of one text.
  int64_t batch = 1;
  for (bool fits = true; fits && batch < 16; batch += fits ? 1 : 0) {
    kiln_executable* executable = Step(context, batch + 1).Compile(kept);
    fits = executable != nullptr;
    kiln_executable_release(executable);
  }
  report.Add("training_memory.batch_in_the_memory_of_one", static_cast<double>(batch), "",
             AtLeast(3));
}

}  // namespace
}  // namespace kiln::bench
