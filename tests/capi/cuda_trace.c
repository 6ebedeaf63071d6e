/* Timelines of a GPU whose driver is the stand-in (tests/support/cuda): a bar is as long as the GPU
 * says, which is a millisecond for each piece of work up to the event behind the kernel. */
#include "standin.h"

enum { SIZE = 16, KERNELS = 2 };

/* The sum of all, by which each element is divided. */
static kiln_error* compile_on(kiln_device* device, kiln_context* context, kiln_executable** e) {
  const int64_t size = SIZE, all = 0;
  kiln_graph* g = make_graph(context, "shares");
  kiln_value x = kiln_op_parameter(g, KILN_F32, &size, 1, "x", 1);
  kiln_value sum = kiln_op_reduce_by(g, x, &all, 1, KILN_REDUCER_SUM);
  kiln_value shares = kiln_op_divide(g, x, kiln_op_broadcast_like(g, sum, x, NULL, 0));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  /* Two kernels, whatever becomes of fusion. */
  options.disabled_passes = "row-fusion";
  options.disabled_passes_length = strlen(options.disabled_passes);
  kiln_error* error = kiln_graph_set_results(g, &shares, 1);
  if (!error) error = kiln_graph_compile(g, &options, e);
  kiln_graph_release(g);
  return error;
}

static kiln_error* run_traced(kiln_executable* e, kiln_buffer* argument, kiln_context* context,
                              kiln_text** json) {
  kiln_trace* trace = NULL;
  kiln_buffer* result = NULL;
  kiln_error* error = kiln_trace_start(context, &trace);
  if (!error) error = kiln_executable_run(e, NULL, &argument, 1, &result, 1);
  if (!error) error = kiln_trace_stop(trace);
  if (!error) error = kiln_trace_to_json(trace, json);
  kiln_buffer_release(result);
  kiln_trace_release(trace);
  return error;
}

static kiln_error* everything(kiln_context* context, kiln_text** json) {
  const float values[SIZE] = {1};
  const int64_t size = SIZE;
  kiln_device* device = NULL;
  kiln_buffer* argument = NULL;
  kiln_executable* e = NULL;
  kiln_error* error = kiln_context_find_device(context, "GPU:0", 5, &device);
  if (!error) error = compile_on(device, context, &e);
  if (!error) {
    error = kiln_buffer_copy_host(device, KILN_F32, &size, 1, values, sizeof values, &argument);
  }
  if (!error) error = run_traced(e, argument, context, json);
  kiln_buffer_release(argument);
  kiln_executable_release(e);
  return error;
}

/* How many bars of kernels there are, and how many of them are so long. */
static void count_kernels(const char* json, const char* duration, int* kernels, int* long_ones) {
  *kernels = *long_ones = 0;
  for (const char* at = json; (at = strstr(at, "\"cat\": \"kernel\"")); ++at) {
    /* From the beginning of the event to its end. */
    const char *from = at, *to = strchr(at, '\n');
    while (from > json && from[-1] != '\n') --from;
    ++*kernels;
    const char* found = strstr(from, duration);
    if (found && to && found < to) ++*long_ones;
  }
}

static void durations(const char* settings) {
  standin.reset();
  standin.configure(settings);
  kiln_context* context = make_context(2);
  kiln_text* json = NULL;
  if (OK(everything(context, &json))) {
    int kernels, long_ones;
    count_kernels(kiln_text_data(json, NULL), "\"dur\": 2000.000", &kernels, &long_ones);
    if (kernels != KERNELS || long_ones != KERNELS) {
      printf("%s: %d kernels, %d of 2 ms\n%s\n", settings, kernels, long_ones,
             kiln_text_data(json, NULL));
      ++failed_checks;
    }
  }
  kiln_text_release(json);
  kiln_context_release(context);
  expect_nothing_left(settings, 0);
}

/* A call of the driver that fails is an error of the run, and leaves nothing behind. */
static void each_call_fails(void) {
  long long failures = 0;
  for (long long n = 1;; ++n) {
    standin.reset();
    standin.configure("deferred=1");
    standin.fail(NULL, n, 1, INVALID_VALUE);
    kiln_context* context = make_context(2);
    kiln_text* json = NULL;
    kiln_error* error = everything(context, &json);
    const long long calls = standin.count("calls");
    failures += error != NULL;
    kiln_error_release(error);
    kiln_text_release(json);
    kiln_context_release(context);
    standin.fail(NULL, 0, 0, 0);
    expect_nothing_left("traced", n);
    if (calls < n || failed_checks > 20) break;
  }
  CHECK(failures > 10);
}

int main(void) {
  open_standin();
  durations("deferred=0");
  durations("deferred=1");
  each_call_fails();
  return test_result();
}
