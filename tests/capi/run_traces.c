/* Targets of runs, traces of single runs, and their sums by op and device. */
#include "sessions.h"

static kiln_buffer* const kNone = NULL;

static kiln_trace* make_trace(kiln_context* context) {
  kiln_trace* trace = NULL;
  OK(kiln_trace_create(context, &trace));
  return trace;
}

static kiln_run_metadata* sums_of(const kiln_trace* trace) {
  kiln_run_metadata* metadata = NULL;
  OK(kiln_trace_metadata(trace, &metadata));
  return metadata;
}

/* The row of an op, a device and a kind, NULL for any; its count is 0 if there is none. Several
 * rows are added up. */
static kiln_op_metadata row(const kiln_run_metadata* metadata, const char* op, const char* device,
                            const char* kind) {
  kiln_op_metadata sum = KILN_OP_METADATA_INIT;
  for (size_t i = 0; i < kiln_run_metadata_count(metadata); ++i) {
    kiln_op_metadata next = KILN_OP_METADATA_INIT;
    OK(kiln_run_metadata_get(metadata, i, &next));
    CHECK(strlen(next.op) == next.op_length && strlen(next.device) == next.device_length);
    CHECK(next.count > 0 && next.nanoseconds >= 0);
    if (op && strcmp(op, next.op) != 0) continue;
    if (device && strcmp(device, next.device) != 0) continue;
    if (kind && strcmp(kind, next.kind) != 0) continue;
    sum.count += next.count;
    sum.nanoseconds += next.nanoseconds;
    sum.bytes += next.bytes;
    sum.flops += next.flops;
  }
  return sum;
}

static kiln_value named(kiln_graph* g, const char* name, kiln_value value) {
  OK(kiln_graph_set_op_name(g, value, name, strlen(name)));
  return value;
}

/* x + x on CPU:0, its square on XLA_CPU:0, and the negated square on CPU:0 again. */
static void transfers_are_counted(kiln_context* context) {
  enum { N = 1000 };
  kiln_graph* g = make_graph(context, "cross");
  kiln_value x = f32_parameter(g, "x", N);
  kiln_value sum = named(g, "sum", kiln_op_add(g, x, x));
  OK(kiln_graph_push_device(g, "XLA_CPU:0", 9));
  kiln_value square = named(g, "square", kiln_op_multiply(g, sum, sum));
  OK(kiln_graph_pop_device(g));
  kiln_value negated = named(g, "negated", kiln_op_negate(g, square));
  OK(kiln_graph_status(g));
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  float* numbers = calloc(N, sizeof *numbers);
  for (int i = 0; i < N; ++i) numbers[i] = (float)i;
  kiln_buffer *fed = f32_buffer(find_device(context, "CPU:0"), numbers, N), *result = NULL;
  kiln_trace* trace = make_trace(context);
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.trace = trace;
  for (int run = 0; run < 3; ++run) {
    OK(kiln_session_run(session, &options, &x, &fed, 1, &negated, &result, 1, NULL, 0));
  }
  /* Runs without the trace are not in it. */
  OK(kiln_session_run(session, NULL, &x, &fed, 1, &negated, &result, 1, NULL, 0));
  for (int i = 0; i < N; ++i) numbers[i] = -4.0f * numbers[i] * numbers[i];
  float* got = malloc(N * sizeof *got);
  OK(kiln_buffer_copy_to_host(result, got, N * sizeof *got));
  CHECK(memcmp(got, numbers, N * sizeof *got) == 0);
  free(got);
  kiln_run_metadata* sums = sums_of(trace);
  CHECK(row(sums, NULL, NULL, "transfer").count == 6);
  kiln_op_metadata to = row(sums, "CPU:0 to XLA_CPU:0", "CPU:0", "transfer");
  kiln_op_metadata back = row(sums, "XLA_CPU:0 to CPU:0", "XLA_CPU:0", "transfer");
  CHECK(to.count == 3 && back.count == 3);
  CHECK(to.bytes == 3 * N * 4 && back.bytes == 3 * N * 4);
  kiln_op_metadata kernel = row(sums, "sum", "CPU:0", "kernel");
  CHECK(kernel.count == 3 && kernel.flops == 3 * N && kernel.bytes == 3 * 2 * N * 4);
  CHECK(row(sums, "square", "XLA_CPU:0", "kernel").count == 3);
  CHECK(row(sums, "negated", "CPU:0", "kernel").count == 3);
  kiln_op_metadata cluster = row(sums, "cluster_0", "XLA_CPU:0", "execute");
  CHECK(cluster.count == 3);
  CHECK(cluster.nanoseconds >= row(sums, "square", NULL, "kernel").nanoseconds);
  kiln_op_metadata beyond = KILN_OP_METADATA_INIT;
  FAILS(KILN_INVALID_ARGUMENT, "there is no row",
        kiln_run_metadata_get(sums, kiln_run_metadata_count(sums), &beyond));
  kiln_run_metadata_retain(sums);
  kiln_run_metadata_release(sums);
  kiln_run_metadata_release(sums);
  kiln_trace_release(trace);
  kiln_buffer_release(fed);
  kiln_buffer_release(result);
  kiln_session_release(session);
  kiln_graph_release(g);
  free(numbers);
}

static size_t count_of(const char* text, const char* part) {
  size_t count = 0;
  for (; (text = strstr(text, part)) != NULL; ++text) ++count;
  return count;
}

/* The number behind `key` in the event that begins at `event`. */
static double number_of(const char* event, const char* key) {
  const char* found = strstr(event, key);
  CHECK(found != NULL);
  return found ? strtod(found + strlen(key), NULL) : 0;
}

/* The recording of a context has devices as processes, and kernels inside their cluster. */
static void timelines_have_devices(kiln_context* context) {
  kiln_graph* g = make_graph(context, "lanes");
  kiln_value x = f32_parameter(g, "x", 64);
  kiln_value y = named(g, "hyperbolic", kiln_op_tanh(g, x));
  OK(kiln_graph_push_device(g, "XLA_CPU:0", 9));
  kiln_value z = named(g, "exponential", kiln_op_exponential(g, y));
  OK(kiln_graph_pop_device(g));
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  kiln_trace* trace = NULL;
  OK(kiln_trace_start(context, &trace));
  kiln_buffer *fed = f32_buffer(find_device(context, "CPU:0"), (float[64]){0}, 64), *result = NULL;
  OK(kiln_session_run(session, NULL, &x, &fed, 1, &z, &result, 1, NULL, 0));
  OK(kiln_trace_stop(trace));
  kiln_text* text = NULL;
  OK(kiln_trace_to_json(trace, &text));
  const char* json = kiln_text_data(text, NULL);
  CHECK(count_of(json, "\"process_name\"") == 3);
  CHECK(strstr(json, "\"args\": {\"name\": \"host\"}") != NULL);
  CHECK(strstr(json, "\"args\": {\"name\": \"CPU:0\"}") != NULL);
  CHECK(strstr(json, "\"args\": {\"name\": \"XLA_CPU:0\"}") != NULL);
  CHECK(strstr(json, "\"prepare lanes\"") && strstr(json, "\"find clusters\""));
  CHECK(strstr(json, "\"compile cluster_0\"") != NULL);
  const char* cluster = strstr(json, "{\"name\": \"cluster_0\", \"cat\": \"execute\"");
  const char* kernel = strstr(json, "\"cat\": \"kernel\"");
  while (kernel && number_of(kernel, "\"pid\": ") != number_of(cluster, "\"pid\": ")) {
    kernel = strstr(kernel + 1, "\"cat\": \"kernel\"");
  }
  CHECK(cluster && kernel && strstr(kernel, "exponential"));
  CHECK(number_of(cluster, "\"tid\": ") == number_of(kernel, "\"tid\": "));
  const double begin = number_of(cluster, "\"ts\": "),
               end = begin + number_of(cluster, "\"dur\": ");
  const double from = number_of(kernel, "\"ts\": "), to = from + number_of(kernel, "\"dur\": ");
  CHECK(begin <= from && to <= end);
  CHECK(count_of(json, "\"cat\": \"transfer\"") ==
        2); /* the feed from the host, and x to XLA_CPU */
  kiln_text_release(text);
  kiln_trace_release(trace);
  kiln_buffer_release(fed);
  kiln_buffer_release(result);
  kiln_session_release(session);
  kiln_graph_release(g);
}

/* An assignment, and an assertion without a result, as targets. */
static void targets_run(kiln_context* context, kiln_jit jit) {
  kiln_graph* g = make_graph(context, "targets");
  kiln_value x = f32_parameter(g, "x", 3);
  const int64_t dims[1] = {3};
  kiln_value now = kiln_op_variable(g, "v", 1, KILN_F32, dims, 1);
  kiln_value assigned = kiln_op_assign(g, kiln_op_add(g, x, x), "v", 1);
  kiln_value product = kiln_op_multiply(g, x, x);
  OK(kiln_graph_status(g));
  OK(kiln_graph_set_op_name(g, product, "outer/product", 13));
  kiln_session* session = session_with(g, jit);
  kiln_buffer* fed = f32_buffer(find_device(context, "CPU:0"), (const float[]){1, 2, 3}, 3);
  OK(kiln_session_prepare(session, &x, 1, NULL, 0, &assigned, 1, NULL));
  kiln_value found = 0;
  OK(kiln_session_find_value(session, "x", 1, &found));
  CHECK(found == x);
  OK(kiln_session_find_value(session, "outer/product:0", 15, &found));
  CHECK(found == product);
  FAILS(KILN_NOT_FOUND, "no value of the name 'y'",
        kiln_session_find_value(session, "y", 1, &found));
  OK(kiln_session_run(session, NULL, &x, &fed, 1, NULL, NULL, 0, &assigned, 1));
  kiln_buffer* result = NULL;
  OK(kiln_session_run(session, NULL, NULL, &kNone, 0, &now, &result, 1, NULL, 0));
  expect_f32(result, (const float[]){2, 4, 6}, 3);
  /* With a fetch beside it, twice, and a target that has no effect. */
  kiln_value twice[3] = {assigned, product, assigned};
  OK(kiln_session_run(session, NULL, &x, &fed, 1, &product, &result, 1, twice, 3));
  expect_f32(result, (const float[]){1, 4, 9}, 3);
  kiln_text* text = NULL;
  OK(kiln_session_explain(session, &x, 1, NULL, 0, &product, 1, &text));
  CHECK(count_of(kiln_text_data(text, NULL), "(multiply)") == 1);
  CHECK(count_of(kiln_text_data(text, NULL), "(add)") == 0);
  kiln_text_release(text);
  FAILS(KILN_INVALID_ARGUMENT, "the parameter 'x'",
        kiln_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &assigned, 1));
  FAILS(KILN_INVALID_ARGUMENT, "target 0: the value 77",
        kiln_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &(kiln_value){77}, 1));
  FAILS(KILN_INVALID_ARGUMENT, "targets is NULL",
        kiln_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 1));
  kiln_buffer_release(result);
  kiln_buffer_release(fed);
  kiln_session_release(session);
  kiln_graph_release(g);
}

/* Ops on a GPU that have no code run on the host: their operands come from the GPU, and their
 * results go back. */
static void ops_of_a_gpu_on_the_host(void) {
  kiln_context* context = make_context_with(2, tested_gpu());
  kiln_graph* g = make_graph(context, "host_ops");
  kiln_value x = f32_parameter(g, "x", 6);
  OK(kiln_graph_push_device(g, "GPU:0", 5));
  kiln_value negated = kiln_op_negate(g, x);
  kiln_value rows = named(g, "rows", kiln_op_nonzero(g, negated));
  kiln_value sum = kiln_op_add(g, rows, rows);
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_status(g));
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_buffer *fed = f32_buffer(gpu, (const float[]){0, 1, 0, 2, 3, 0}, 6), *result = NULL;
  kiln_trace* trace = make_trace(context);
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.trace = trace;
  OK(kiln_session_run(session, &options, &x, &fed, 1, &sum, &result, 1, NULL, 0));
  CHECK(kiln_buffer_device(result) == gpu);
  int64_t positions[3] = {0};
  OK(kiln_buffer_copy_to_host(result, positions, sizeof positions));
  CHECK(positions[0] == 2 && positions[1] == 6 && positions[2] == 8);
  kiln_run_metadata* sums = sums_of(trace);
  kiln_op_metadata there = row(sums, "GPU:0 to host", "GPU:0", "transfer");
  kiln_op_metadata back = row(sums, "host to GPU:0", "GPU:0", "transfer");
  CHECK(there.count == 1 && there.bytes == 6 * 4);
  CHECK(back.count == 1 && back.bytes == (int64_t)sizeof positions);
  CHECK(row(sums, NULL, NULL, "transfer").count == 2);
  CHECK(row(sums, "rows", "GPU:0", "host").count == 1);
  kiln_run_metadata_release(sums);
  kiln_trace_release(trace);
  kiln_buffer_release(fed);
  kiln_buffer_release(result);
  kiln_session_release(session);
  kiln_graph_release(g);
  kiln_context_release(context);
}

static void traces_are_of_their_context(kiln_context* context) {
  kiln_context* other = NULL;
  OK(kiln_context_create(NULL, &other));
  kiln_trace* foreign = make_trace(other);
  kiln_graph* g = make_graph(context, "foreign");
  kiln_value x = f32_parameter(g, "x", 3);
  kiln_value negated = kiln_op_negate(g, x);
  OK(kiln_graph_set_results(g, &negated, 1));
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, NULL, &e));
  kiln_buffer *fed = f32_buffer(find_device(context, "CPU:0"), (const float[]){1, 2, 3}, 3),
              *result = NULL;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.trace = foreign;
  FAILS(KILN_INVALID_ARGUMENT, "trace is of another context",
        kiln_executable_run(e, &options, &fed, 1, &result, 1));
  /* Of executables, and while the context records, too. */
  kiln_trace *own = make_trace(context), *whole = NULL;
  options.trace = own;
  OK(kiln_trace_start(context, &whole));
  OK(kiln_executable_run(e, &options, &fed, 1, &result, 1));
  OK(kiln_executable_run(e, NULL, &fed, 1, &result, 1));
  OK(kiln_trace_stop(whole));
  kiln_run_metadata *of_own = sums_of(own), *of_whole = sums_of(whole);
  CHECK(row(of_own, NULL, "CPU:0", "kernel").count == 1);
  CHECK(row(of_whole, NULL, "CPU:0", "kernel").count == 1);
  CHECK(row(of_own, "foreign", "CPU:0", "execute").count == 1);
  CHECK(kiln_run_metadata_count(NULL) == 0);
  kiln_run_metadata_release(of_own);
  kiln_run_metadata_release(of_whole);
  kiln_trace_release(own);
  kiln_trace_release(whole);
  kiln_buffer_release(fed);
  kiln_buffer_release(result);
  kiln_executable_release(e);
  kiln_graph_release(g);
  kiln_trace_release(foreign);
  kiln_context_release(other);
}

int main(void) {
  kiln_context* context = make_context(2);
  transfers_are_counted(context);
  timelines_have_devices(context);
  targets_run(context, KILN_JIT_OFF);
  targets_run(context, KILN_JIT_ON);
  ops_of_a_gpu_on_the_host();
  traces_are_of_their_context(context);
  kiln_context_release(context);
  return test_result();
}
