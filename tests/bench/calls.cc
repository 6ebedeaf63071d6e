// What a call through the C ABI costs beside the work, and the demo as a whole.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

// Ends the benchmarks on what cannot happen.
void Must(kiln_error* error) {
  if (!error) return;
  std::fprintf(stderr, "%s\n", kiln_error_message(error, nullptr));
  std::exit(1);
}

// 2x + 1 of four floats, into the caller's buffer.
KILN_BENCH(call) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = 1;
  kiln_context* context = nullptr;
  Must(kiln_context_create(&options, &context));
  kiln_graph* graph = nullptr;
  Must(kiln_graph_create(context, "tiny", 4, &graph));
  int64_t four = 4;
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &four, 1, "x", 1);
  kiln_value y = kiln_op_multiply(graph, x, kiln_op_scalar(graph, KILN_F32, 2));
  y = kiln_op_add(graph, y, kiln_op_scalar(graph, KILN_F32, 1));
  Must(kiln_graph_set_results(graph, &y, 1));
  kiln_executable* executable = nullptr;
  Must(kiln_graph_compile(graph, nullptr, &executable));
  kiln_buffer *argument = nullptr, *result = nullptr;
  kiln_device* device = kiln_context_device(context, 0);
  Must(kiln_buffer_create(device, KILN_F32, &four, 1, &argument));
  Must(kiln_buffer_create(device, KILN_F32, &four, 1, &result));
  Timing timing =
      Measure([&] { Must(kiln_executable_run(executable, nullptr, &argument, 1, &result, 1)); });
  report.Add("call.tiny_graph", timing.median * 1e6, "us", AtMost(1.0));
  // The same with an event, in a context that has a thread to queue it for.
  options.threads = 2;
  kiln_context* queueing = nullptr;
  Must(kiln_context_create(&options, &queueing));
  kiln_graph* copy = nullptr;
  kiln_text* text = nullptr;
  Must(kiln_graph_to_hlo_text(graph, &text));
  size_t length = 0;
  const char* characters = kiln_text_data(text, &length);
  Must(kiln_graph_from_hlo_text(queueing, characters, length, &copy));
  kiln_text_release(text);
  kiln_executable* queued = nullptr;
  Must(kiln_graph_compile(copy, nullptr, &queued));
  kiln_buffer *from = nullptr, *to = nullptr;
  kiln_device* other = kiln_context_device(queueing, 0);
  Must(kiln_buffer_create(other, KILN_F32, &four, 1, &from));
  Must(kiln_buffer_create(other, KILN_F32, &four, 1, &to));
  const double blocking =
      Measure([&] { Must(kiln_executable_run(queued, nullptr, &from, 1, &to, 1)); }).median;
  timing = Measure([&] {
    kiln_buffer* const* arguments = &from;
    kiln_buffer** results = &to;
    kiln_event* event = nullptr;
    Must(kiln_executable_execute(queued, nullptr, &arguments, 1, &results, 1, 1, &event));
    Must(kiln_event_wait(event, -1));
    kiln_event_release(event);
  });
  report.Add("call.tiny_event", timing.median * 1e6, "us");
  report.Add("call.tiny_event_over_run", (timing.median - blocking) * 1e6, "us", AtMost(1.0));
  kiln_buffer_release(from);
  kiln_buffer_release(to);
  kiln_executable_release(queued);
  kiln_graph_release(copy);
  kiln_context_release(queueing);
  kiln_session* session = nullptr;
  Must(kiln_session_create(graph, nullptr, &session));
  timing = Measure([&] {
    Must(kiln_session_run(session, nullptr, &x, &argument, 1, &y, &result, 1, nullptr, 0));
  });
  report.Add("call.tiny_session", timing.median * 1e6, "us");
  kiln_session_release(session);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(executable);
  kiln_graph_release(graph);
  kiln_context_release(context);
}

// The program of docs/examples, which stands beside this one, with two threads.
KILN_BENCH(demo) {
  namespace fs = std::filesystem;
  fs::path demo = fs::read_symlink("/proc/self/exe").parent_path() / "mnist_softmax";
  fs::path out = fs::temp_directory_path() / ("kiln-bench-demo-" + std::to_string(getpid()));
  std::string command = "'" + demo.string() + "' --data '" KILN_DIGITS "' --threads 2 --out '" +
                        out.string() + "' > /dev/null";
  if (std::system(command.c_str()) != 0) {
    report.Note("demo", "it failed: " + command);
  } else {
    nlohmann::json figures = nlohmann::json::parse(std::ifstream(out / "demo.json"));
    double op_by_op = figures["jit_off"]["step_us_median"];
    double compiled = figures["jit_on"]["step_us_median"];
    report.Add("demo.op_by_op_step", op_by_op / 1000, "ms", AtMost(0.36));
    report.Add("demo.compiled_step", compiled / 1000, "ms", AtMost(0.12));
    report.Add("demo.ratio", op_by_op / compiled, "");
  }
  std::error_code ignored;
  fs::remove_all(out, ignored);
}

}  // namespace
}  // namespace kiln::bench
