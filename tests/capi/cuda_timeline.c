/* Timelines by CUPTI, for which the stand-in (tests/support/cuda) stands in, too; in whatever call
 * of the driver or of CUPTI something fails. */
#include "standin.h"

static int run_recorded(kiln_context* context, const char** missing) {
  kiln_device* gpu = NULL;
  static const char* const parts[] = {"GPU:0 kernels", "GPU:0 copies", "\"timed_by\": \"records\"",
                                      "\"registers\": 40", "\"local_bytes\": 16"};
  kiln_error* error = kiln_context_find_device(context, "GPU:0", 5, &gpu);
  kiln_graph* g = make_graph(context, "doubled");
  kiln_value x = f32_parameter(g, "x", 3), sum = kiln_op_add(g, x, x);
  kiln_trace* trace = NULL;
  kiln_executable* e = NULL;
  kiln_buffer *argument = NULL, *result = NULL;
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = gpu;
  const float values[3] = {1, 2, 3};
  const int64_t dims[1] = {3};
  OK(kiln_graph_set_results(g, &sum, 1));
  OK(kiln_trace_start(context, &trace));
  if (!error) error = kiln_graph_compile(g, &options, &e);
  if (!error) {
    error = kiln_buffer_copy_host(gpu, KILN_F32, dims, 1, values, sizeof values, &argument);
  }
  for (int i = 0; i < 3 && !error; ++i) {
    error = kiln_executable_run(e, NULL, &argument, 1, &result, 1);
  }
  OK(kiln_trace_stop(trace));
  kiln_text* text = NULL;
  OK(kiln_trace_to_json(trace, &text));
  *missing = NULL;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (!strstr(kiln_text_data(text, NULL), parts[i])) *missing = parts[i];
  }
  kiln_text_release(text);
  kiln_trace_release(trace);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(e);
  kiln_graph_release(g);
  const int failed = error != NULL;
  kiln_error_release(error);
  return failed;
}

static kiln_context* open_context(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  return context;
}

int main(void) {
  open_standin();
  setenv("KILN_CUPTI_LIBRARY", getenv("KILN_CUDA_LIBRARY"), 1);
  const char* missing = NULL;
  long long calls = 0;
  int failed = 0, poorer = 0;
  for (long long n = 0; n <= calls; ++n) {
    standin.reset();
    standin.configure("real_time=1");
    kiln_context* context = open_context();
    standin.fail(NULL, n, n > 0, UNKNOWN);
    if (run_recorded(context, &missing)) {
      ++failed;
    } else if (missing) {
      ++poorer;
    }
    CHECK(n > 0 || (!failed && !missing));
    kiln_context_release(context);
    if (n == 0) calls = standin.count("calls");
    expect_nothing_left("a timeline", n);
    CHECK(standin.count("buffers") == 0);
    if (failed_checks > 20) break;
  }
  CHECK(failed > 10 && poorer > 0);
  standin.reset();
  return test_result();
}
