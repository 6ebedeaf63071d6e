/* Sessions of graphs with calls: the ops of called graphs run as if they were the graph's own, and
 * calls that must be compiled are compiled with all that they call. */
#include "sessions.h"

static kiln_context* context;
static kiln_device* cpu;

static void expect_run(kiln_session* session, kiln_value x, const float* fed, kiln_value y,
                       const float* expected, const char* device) {
  kiln_buffer *argument = f32_buffer(cpu, fed, 2), *result = NULL;
  if (OK(kiln_session_run(session, NULL, &x, &argument, 1, &y, &result, 1, NULL, 0))) {
    expect_f32(result, expected, 2);
    CHECK(kiln_buffer_device(result) == find_device(context, device));
  }
  kiln_buffer_release(result);
  kiln_buffer_release(argument);
}

/* -(x + x) on CPU:1, and its square, marked to be compiled. */
static kiln_graph* marked(void) {
  kiln_graph* g = make_graph(context, "marked");
  kiln_value x = f32_parameter(g, "x", 2);
  OK(kiln_graph_push_device(g, "CPU:1", 5));
  kiln_value results[2] = {kiln_op_negate(g, kiln_op_add(g, x, x)), 0};
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_push_jit_scope(g, 1));
  results[1] = kiln_op_multiply(g, results[0], results[0]);
  OK(kiln_graph_pop_jit_scope(g));
  OK(kiln_graph_set_results(g, results, 2));
  return g;
}

static void marks_in_bodies(void) {
  kiln_graph *callee = marked(), *g = make_graph(context, "caller");
  kiln_value x = f32_parameter(g, "x", 2);
  OK(kiln_graph_push_name_scope(g, "layer", 5));
  kiln_value call = kiln_op_call(g, &x, 1, callee);
  OK(kiln_graph_pop_name_scope(g));
  kiln_value negated = kiln_op_get_tuple_element(g, call, 0);
  kiln_value square = kiln_op_get_tuple_element(g, call, 1);
  OK(kiln_graph_push_device(g, "XLA_CPU:0", 9));
  kiln_value other = kiln_op_call(g, &square, 1, callee);
  OK(kiln_graph_pop_device(g));
  kiln_value last = kiln_op_get_tuple_element(g, other, 1);
  OK(kiln_graph_status(g));
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  expect_run(session, x, (const float[]){1, 2}, negated, (const float[]){-2, -4}, "CPU:1");
  expect_run(session, x, (const float[]){1, 2}, square, (const float[]){4, 16}, "CPU:0");
  expect_run(session, x, (const float[]){1, 2}, last, (const float[]){64, 1024}, "XLA_CPU:0");
  /* Fed instead of being computed. */
  expect_run(session, square, (const float[]){1, 2}, last, (const float[]){4, 16}, "XLA_CPU:0");
  explains(session, x, square, "'call_multiply' (multiply) in cluster_0 on CPU:0");
  explains(session, x, negated, "'call_negate' (negate) outside clusters");
  explains(session, x, last, "(multiply) in cluster_1 on XLA_CPU:0, which must be compiled");
  kiln_session_release(session);
  kiln_graph_release(g);
  kiln_graph_release(callee);
}

/* Prints the argument, and gives it back. */
static kiln_graph* printing(const char* text) {
  kiln_graph* g = make_graph(context, "printing");
  kiln_value x = f32_parameter(g, "x", 2);
  kiln_op_print(g, kiln_op_negate(g, x), NULL, 0, text, strlen(text));
  OK(kiln_graph_set_results(g, &x, 1));
  return g;
}

static void control_dependencies(void) {
  kiln_graph *first = printing("first"), *second = printing("second");
  kiln_graph* g = make_graph(context, "caller");
  kiln_value x = f32_parameter(g, "x", 2);
  kiln_value b = kiln_op_call(g, &x, 1, second), a = kiln_op_call(g, &x, 1, first);
  kiln_op_call(g, &x, 1, first); /* nobody needs it */
  kiln_value after = kiln_op_sign(g, x);
  OK(kiln_graph_add_control_dependency(g, a, b));
  OK(kiln_graph_add_control_dependency(g, b, after));
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  log_lines[0] = 0;
  expect_run(session, x, (const float[]){1, -2}, after, (const float[]){1, -1}, "CPU:0");
  const char *one = strstr(log_lines, "first"), *two = strstr(log_lines, "second");
  CHECK(one && two && one < two && !strstr(one + 1, "first"));
  log_lines[0] = 0;
  expect_run(session, x, (const float[]){1, -2}, a, (const float[]){1, -2}, "CPU:0");
  CHECK(strstr(log_lines, "first") && !strstr(log_lines, "second"));
  /* As a target. */
  log_lines[0] = 0;
  kiln_buffer* argument = f32_buffer(cpu, (const float[]){1, -2}, 2);
  OK(kiln_session_run(session, NULL, &x, &argument, 1, NULL, NULL, 0, &b, 1));
  CHECK(strstr(log_lines, "first") && strstr(log_lines, "second"));
  kiln_buffer_release(argument);
  kiln_session_release(session);
  kiln_graph_release(g);
  kiln_graph_release(first);
  kiln_graph_release(second);
}

/* A graph that calls another one. */
static kiln_graph* calling(const kiln_graph* callee, int32_t must_compile, kiln_value* x,
                           kiln_value* call) {
  kiln_graph* g = make_graph(context, "calling");
  *x = f32_parameter(g, "x", 2);
  *call = kiln_op_call(g, x, 1, callee);
  OK(kiln_graph_set_must_compile(g, *call, must_compile));
  OK(kiln_graph_set_results(g, call, 1));
  return g;
}

static void must_compile(void) {
  kiln_graph* checked = make_graph(context, "checked");
  kiln_value x = f32_parameter(checked, "x", 2), call;
  const int64_t start = 0, limit = 1;
  kiln_value first =
      kiln_op_reshape(checked, kiln_op_slice(checked, x, &start, &limit, NULL, 1), NULL, 0);
  kiln_value holds = kiln_op_compare(checked, first, kiln_op_scalar(checked, KILN_F32, 0), KILN_GT);
  kiln_value result = kiln_op_assert(checked, holds, kiln_op_negate(checked, x), NULL, 0, "bad", 3);
  OK(kiln_graph_set_results(checked, &result, 1));
  for (int outer = 0; outer < 2; ++outer) {
    for (int inner = 0; inner < 2; ++inner) {
      kiln_graph* middle = calling(checked, inner, &x, &call);
      kiln_graph* g = calling(middle, outer, &x, &call);
      kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
      kiln_buffer *bad = f32_buffer(cpu, (const float[]){-1, 2}, 2), *none = NULL;
      if (outer || inner) {
        FAILS(KILN_INVALID_ARGUMENT, "'kiln.assert' in the computation",
              kiln_session_run(session, NULL, &x, &bad, 1, &call, &none, 1, NULL, 0));
        FAILS(KILN_INVALID_ARGUMENT, "it may fail the run",
              kiln_session_prepare(session, &x, 1, &call, 1, NULL, 0, NULL));
      } else {
        expect_run(session, x, (const float[]){1, 2}, call, (const float[]){-1, -2}, "CPU:0");
        FAILS(KILN_INVALID_ARGUMENT, "bad",
              kiln_session_run(session, NULL, &x, &bad, 1, &call, &none, 1, NULL, 0));
      }
      kiln_buffer_release(bad);
      kiln_session_release(session);
      kiln_graph_release(g);
      kiln_graph_release(middle);
    }
  }
  kiln_graph_release(checked);

  /* What can be compiled is one cluster, wherever its ops are marked to run. */
  kiln_graph *callee = marked(), *middle = make_graph(context, "middle");
  x = f32_parameter(middle, "x", 2);
  call = kiln_op_call(middle, &x, 1, callee);
  result = kiln_op_subtract(middle, kiln_op_get_tuple_element(middle, call, 0),
                            kiln_op_get_tuple_element(middle, call, 1));
  OK(kiln_graph_set_results(middle, &result, 1));
  kiln_graph* g = calling(middle, 1, &x, &call);
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  explains(session, x, call, "(call) in cluster_0 on CPU:0, which must be compiled\n");
  expect_run(session, x, (const float[]){1, 2}, call, (const float[]){-6, -20}, "CPU:0");
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  OK(kiln_session_prepare(session, &x, 1, &call, 1, NULL, 0, &info));
  CHECK(info.kernels == 1);
  kiln_session_release(session);
  kiln_graph_release(g);
  kiln_graph_release(middle);
  kiln_graph_release(callee);
}

static void variables(void) {
  kiln_graph* counting = make_graph(context, "counting");
  kiln_value x = f32_parameter(counting, "x", 2);
  kiln_value sum = kiln_op_assign_add(counting, x, "sum", 3);
  OK(kiln_graph_set_results(counting, &sum, 1));
  kiln_graph* g = make_graph(context, "caller");
  x = f32_parameter(g, "x", 2);
  kiln_value once = kiln_op_call(g, &x, 1, counting), twice = kiln_op_call(g, &once, 1, counting);
  kiln_session* session = session_with(g, KILN_JIT_DEFAULT);
  CHECK(kiln_session_variable_count(session) == 1);
  kiln_buffer* start = f32_buffer(cpu, (const float[]){10, 20}, 2);
  OK(kiln_session_set_variable(session, "sum", 3, start));
  expect_run(session, x, (const float[]){1, 2}, twice, (const float[]){22, 44}, "CPU:0");
  expect_run(session, x, (const float[]){1, 0}, once, (const float[]){23, 44}, "CPU:0");
  kiln_buffer_release(start);
  kiln_session_release(session);
  kiln_graph_release(g);
  kiln_graph_release(counting);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.cpu_devices = 2;
  options.log = keep_line;
  options.log_level = KILN_LOG_INFO;
  options.callbacks_from_any_thread = 1;
  OK(kiln_context_create(&options, &context));
  cpu = find_device(context, "CPU:0");
  marks_in_bodies();
  control_dependencies();
  must_compile();
  variables();
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
