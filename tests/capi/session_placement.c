/* Sessions that place ops on devices and compile clusters of them. */
#include "sessions.h"

static kiln_buffer* run_one(kiln_session* session, kiln_value x, kiln_buffer* fed, kiln_value y) {
  kiln_buffer* result = NULL;
  OK(kiln_session_run(session, NULL, &x, &fed, 1, &y, &result, 1, NULL, 0));
  return result;
}

/* x + x, squared, on one device; then halved and negated on another one. */
struct two_devices {
  kiln_value x, sum, square, half, negated;
};
static struct two_devices build(kiln_graph* g, const char* other) {
  struct two_devices v;
  v.x = f32_parameter(g, "x", 3);
  v.sum = kiln_op_add(g, v.x, v.x);
  v.square = kiln_op_multiply(g, v.sum, v.sum);
  OK(kiln_graph_push_device(g, other, strlen(other)));
  v.half = kiln_op_multiply(g, v.square, kiln_op_scalar(g, KILN_F32, 0.5));
  v.negated = kiln_op_negate(g, v.half);
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_status(g));
  return v;
}

static void values_cross_devices(kiln_context* context) {
  kiln_graph* g = make_graph(context, "two");
  struct two_devices v = build(g, "/job:localhost/replica:0/task:0/device:XLA_CPU:0");
  kiln_value back = kiln_op_subtract(g, v.negated, v.sum);
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  kiln_buffer* fed = f32_buffer(find_device(context, "CPU:0"), (const float[]){1, 2, 3}, 3);
  kiln_value fetches[3] = {v.negated, back, v.square};
  kiln_buffer* results[3] = {NULL};
  OK(kiln_session_run(session, NULL, &v.x, &fed, 1, fetches, results, 3, NULL, 0));
  expect_f32(results[0], (const float[]){-2, -8, -18}, 3);
  expect_f32(results[1], (const float[]){-4, -12, -24}, 3);
  expect_f32(results[2], (const float[]){4, 16, 36}, 3);
  CHECK(kiln_buffer_device(results[0]) == find_device(context, "XLA_CPU:0"));
  CHECK(kiln_buffer_device(results[1]) == find_device(context, "CPU:0"));
  explains(session, v.x, back, "XLA_CPU:0");
  explains(session, v.x, back, "cluster_0");
  /* Into the caller's buffers, on the devices of the values; of others they are refused. */
  kiln_buffer* same[3] = {results[0], results[1], results[2]};
  OK(kiln_session_run(session, NULL, &v.x, &fed, 1, fetches, results, 3, NULL, 0));
  for (int i = 0; i < 3; ++i) CHECK(results[i] == same[i]);
  kiln_buffer* wrong = results[1];
  FAILS(KILN_INVALID_ARGUMENT, "is on CPU:0; expected XLA_CPU:0",
        kiln_session_run(session, NULL, &v.x, &fed, 1, &v.negated, &wrong, 1, NULL, 0));
  /* Fed on another device than where it is needed, and to a single unit. */
  kiln_buffer* elsewhere =
      f32_buffer(find_device(context, "XLA_CPU:0"), (const float[]){1, 0, 2}, 3);
  kiln_buffer* result = run_one(session, v.x, elsewhere, v.square);
  expect_f32(result, (const float[]){4, 0, 16}, 3);
  kiln_buffer_release(result);
  kiln_buffer* few = f32_buffer(find_device(context, "CPU:0"), (const float[]){1}, 1);
  FAILS(KILN_INVALID_ARGUMENT, "feed 0 'x' is f32[1]; expected f32[3]",
        kiln_session_run(session, NULL, &v.x, &few, 1, fetches, results, 3, NULL, 0));
  kiln_buffer_release(few);
  kiln_buffer_release(elsewhere);
  kiln_buffer_release(fed);
  for (int i = 0; i < 3; ++i) kiln_buffer_release(results[i]);
  kiln_session_release(session);
  kiln_graph_release(g);
}

/* The kernels of a run of a chain of eight ops. */
static int64_t kernels_of(kiln_context* context, kiln_jit jit, int scope, const char* text) {
  kiln_graph* g = make_graph(context, "chain");
  kiln_value x = f32_parameter(g, "x", 64), y = x;
  if (scope) OK(kiln_graph_push_jit_scope(g, scope > 0));
  for (int i = 0; i < 4; ++i) y = kiln_op_tanh(g, kiln_op_add(g, y, x));
  if (scope) OK(kiln_graph_pop_jit_scope(g));
  OK(kiln_graph_status(g));
  kiln_session* session = session_with(g, jit);
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  OK(kiln_session_prepare(session, &x, 1, &y, 1, NULL, 0, &info));
  explains(session, x, y, text);
  kiln_session_release(session);
  kiln_graph_release(g);
  return info.kernels;
}

static void clusters_are_compiled(kiln_context* context) {
  CHECK(kernels_of(context, KILN_JIT_ON, 0, "in cluster_0 on CPU:0") == 1);
  CHECK(kernels_of(context, KILN_JIT_DEFAULT, 1, "in cluster_0 on CPU:0") == 1);
  CHECK(kernels_of(context, KILN_JIT_DEFAULT, 0, "outside clusters") == 8);
  CHECK(kernels_of(context, KILN_JIT_OFF, 1, "outside clusters") == 8);
  CHECK(kernels_of(context, KILN_JIT_ON, -1, "outside clusters") == 8);
}

static void devices_that_are_not_there(kiln_context* context) {
  kiln_graph* g = make_graph(context, "missing");
  struct two_devices v = build(g, "XLA_CPU:7");
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  FAILS(KILN_INVALID_ARGUMENT, "is placed on XLA_CPU:7, and there is no such device",
        kiln_session_prepare(session, &v.x, 1, &v.negated, 1, NULL, 0, NULL));
  /* What is not needed is not placed. */
  OK(kiln_session_prepare(session, &v.x, 1, &v.square, 1, NULL, 0, NULL));
  kiln_session_release(session);
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.soft_placement = 1;
  OK(kiln_session_create(g, &options, &session));
  log_lines[0] = 0;
  kiln_buffer* fed = f32_buffer(find_device(context, "CPU:0"), (const float[]){1, 2, 3}, 3);
  kiln_buffer* result = run_one(session, v.x, fed, v.negated);
  CHECK(kiln_buffer_device(result) == find_device(context, "XLA_CPU:0"));
  CHECK(strstr(log_lines, "soft placement: ") && strstr(log_lines, "moved to XLA_CPU:0"));
  kiln_buffer_release(result);
  kiln_buffer_release(fed);
  kiln_session_release(session);
  kiln_graph_release(g);
}

static void options_out_of_range(kiln_context* context) {
  kiln_graph* g = make_graph(context, "options");
  f32_parameter(g, "x", 3);
  kiln_session* session = NULL;
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.min_cluster_size = -1;
  FAILS(KILN_INVALID_ARGUMENT, "min_cluster_size is -1",
        kiln_session_create(g, &options, &session));
  options = (kiln_session_options)KILN_SESSION_OPTIONS_INIT;
  options.soft_placement = 2;
  FAILS(KILN_INVALID_ARGUMENT, "soft_placement is 2", kiln_session_create(g, &options, &session));
  CHECK(session == NULL);
  kiln_graph_release(g);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.log = keep_line;
  options.log_level = KILN_LOG_INFO;
  options.callbacks_from_any_thread = 1;
  kiln_context* context = NULL;
  OK(kiln_context_create(&options, &context));
  values_cross_devices(context);
  clusters_are_compiled(context);
  devices_that_are_not_there(context);
  options_out_of_range(context);
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
