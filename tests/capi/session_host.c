/* Sessions with ops for the host, whose results have sizes known at run time only, and variables.
 */
#include <stdint.h>
#include <unistd.h>

#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;
static char log_lines[4096];

static void keep_line(void* user_data, kiln_log_level level, const char* message, size_t length) {
  (void)user_data;
  (void)level;
  const size_t used = strlen(log_lines);
  if (used + length + 2 > sizeof log_lines) return;
  memcpy(log_lines + used, message, length);
  memcpy(log_lines + used + length, "\n", 2);
}

static kiln_session* make_session(kiln_graph* graph, kiln_jit jit) {
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  options.min_cluster_size = 2;
  kiln_session* session = NULL;
  OK(kiln_session_create(graph, &options, &session));
  return session;
}

static void expect_f32_of(kiln_buffer* buffer, const float* expected, int64_t size) {
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_buffer_shape(buffer, &shape));
  CHECK(shape.rank == 1 && shape.dims[0] == size);
  if (shape.rank == 1 && shape.dims[0] == size) expect_f32(buffer, expected, (size_t)size);
}

/* The distinct values, doubled and one more: what follows is compiled for the sizes that come. */
static void sizes_of_the_run(kiln_jit jit, const char* device) {
  kiln_graph* g = make_graph(context, "distinct");
  kiln_value x = f32_parameter(g, "x", 6);
  if (device) OK(kiln_graph_push_device(g, device, strlen(device)));
  kiln_value unique = kiln_op_unique(g, x);
  kiln_value values = kiln_op_get_tuple_element(g, unique, 0);
  if (device) OK(kiln_graph_pop_device(g));
  kiln_value doubled = kiln_op_add(g, values, values);
  kiln_value more = kiln_op_add(g, doubled, kiln_op_scalar(g, KILN_F32, 1));
  OK(kiln_graph_status(g));
  kiln_session* session = make_session(g, jit);
  const struct {
    float fed[6];
    int64_t size;
    float expected[6];
  } runs[] = {{{1, 1, 2, 1, 2, 3}, 3, {3, 5, 7}},
              {{4, 4, 4, 4, 4, 4}, 1, {9}},
              {{1, 2, 3, 4, 5, 6}, 6, {3, 5, 7, 9, 11, 13}},
              {{3, 3, 2, 2, 1, 1}, 3, {7, 5, 3}}};
  for (size_t r = 0; r < sizeof runs / sizeof runs[0]; ++r) {
    kiln_buffer* fed = f32_buffer(cpu, runs[r].fed, 6);
    kiln_buffer* result = NULL;
    OK(kiln_session_run(session, NULL, &x, &fed, 1, &more, &result, 1, NULL, 0));
    expect_f32_of(result, runs[r].expected, runs[r].size);
    kiln_buffer_release(result);
    kiln_buffer_release(fed);
  }
  kiln_session_release(session);
  kiln_graph_release(g);
}

/* A graph with such an op is not compiled as a whole, and says why. */
static void must_compile(void) {
  kiln_graph* g = make_graph(context, "must");
  kiln_value x = f32_parameter(g, "x", 4);
  kiln_value rows = kiln_op_nonzero(g, x);
  OK(kiln_graph_set_results(g, &rows, 1));
  kiln_function_options options = KILN_FUNCTION_OPTIONS_INIT;
  options.must_compile = 1;
  kiln_function* function = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "(kiln.nonzero) cannot be compiled: the size of its result",
        kiln_function_create(g, &options, &function));
  CHECK(function == NULL);
  OK(kiln_function_create(g, NULL, &function));
  kiln_buffer* fed = f32_buffer(cpu, (const float[]){0, 2, 0, -1}, 4);
  kiln_buffer* result = NULL;
  OK(kiln_function_call(function, NULL, &fed, 1, &result, 1));
  int64_t found[2] = {-1, -1};
  OK(kiln_buffer_copy_to_host(result, found, sizeof found));
  CHECK(found[0] == 1 && found[1] == 3);
  kiln_buffer_release(result);
  kiln_buffer_release(fed);
  kiln_function_release(function);
  kiln_graph_release(g);

  g = make_graph(context, "placed");
  x = f32_parameter(g, "x", 4);
  OK(kiln_graph_push_device(g, "XLA_CPU:0", 9));
  rows = kiln_op_nonzero(g, x);
  OK(kiln_graph_pop_device(g));
  kiln_session* session = make_session(g, KILN_JIT_DEFAULT);
  FAILS(KILN_INVALID_ARGUMENT, "is placed on XLA_CPU:0, where all ops are compiled",
        kiln_session_prepare(session, &x, 1, &rows, 1, NULL, 0, NULL));
  kiln_session_release(session);
  kiln_graph_release(g);
}

static void prints_and_assertions(void) {
  kiln_graph* g = make_graph(context, "checks");
  kiln_value x = f32_parameter(g, "x", 2), limit = kiln_op_parameter(g, KILN_PRED, NULL, 0, "p", 1);
  kiln_value printed = kiln_op_print(g, x, NULL, 0, "x is ", 5);
  kiln_value checked =
      kiln_op_assert(g, limit, kiln_op_negate(g, printed), &x, 1, "too large:", 10);
  OK(kiln_graph_status(g));
  kiln_session* session = make_session(g, KILN_JIT_ON);
  kiln_buffer* feeds[2] = {f32_buffer(cpu, (const float[]){1, 2}, 2), NULL};
  const kiln_value fed[2] = {x, limit};
  for (unsigned char holds = 0; holds < 2; ++holds) {
    OK(kiln_buffer_copy_host(cpu, KILN_PRED, NULL, 0, &holds, 1, &feeds[1]));
    kiln_buffer* result = NULL;
    log_lines[0] = 0;
    if (holds) {
      OK(kiln_session_run(session, NULL, fed, feeds, 2, &checked, &result, 1, NULL, 0));
      expect_f32(result, (const float[]){-1, -2}, 2);
      kiln_buffer_release(result);
    } else {
      FAILS(KILN_INVALID_ARGUMENT, "too large:",
            kiln_session_run(session, NULL, fed, feeds, 2, &checked, &result, 1, NULL, 0));
      CHECK(result == NULL);
    }
    CHECK(strstr(log_lines, "x is ") != NULL);
    kiln_buffer_release(feeds[1]);
  }
  kiln_buffer_release(feeds[0]);
  kiln_session_release(session);
  kiln_graph_release(g);
}

static float value_of(kiln_session* session, const char* name) {
  kiln_buffer* value = NULL;
  float number = -1;
  OK(kiln_session_variable(session, name, strlen(name), &value));
  OK(kiln_buffer_copy_to_host(value, &number, sizeof number));
  kiln_buffer_release(value);
  return number;
}

/* total += x, count += 1, and the old mean. */
struct running {
  kiln_graph* graph;
  kiln_value x, holds, before, total, count, guarded;
};
static struct running running_sum(void) {
  struct running r;
  r.graph = make_graph(context, "running");
  r.x = kiln_op_parameter(r.graph, KILN_F32, NULL, 0, "x", 1);
  r.holds = kiln_op_parameter(r.graph, KILN_PRED, NULL, 0, "holds", 5);
  r.before = kiln_op_variable(r.graph, "total", 5, KILN_F32, NULL, 0);
  r.total = kiln_op_assign_add(r.graph, r.x, "total", 5);
  r.count = kiln_op_assign_add(r.graph, kiln_op_scalar(r.graph, KILN_F32, 1), "count", 5);
  r.guarded = kiln_op_assert(r.graph, r.holds, r.total, NULL, 0, "no", 2);
  OK(kiln_graph_status(r.graph));
  return r;
}

static kiln_buffer* scalar(float value) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_F32, NULL, 0, &value, sizeof value, &buffer));
  return buffer;
}

static void set(kiln_session* session, const char* name, float value) {
  kiln_buffer* buffer = scalar(value);
  OK(kiln_session_set_variable(session, name, strlen(name), buffer));
  kiln_buffer_release(buffer);
}

static void variables(kiln_jit jit) {
  struct running r = running_sum();
  kiln_session* session = make_session(r.graph, jit);
  CHECK(kiln_session_variable_count(session) == 2);
  CHECK(strcmp(kiln_session_variable_name(session, 0, NULL), "count") == 0);
  CHECK(kiln_session_variable_name(session, 2, NULL) == NULL);
  kiln_buffer *x = scalar(5), *result = NULL, *results[3] = {NULL};
  const kiln_value fetches[3] = {r.before, r.total, r.count};
  FAILS(KILN_FAILED_PRECONDITION, "has no value yet",
        kiln_session_run(session, NULL, &r.x, &x, 1, &r.total, &result, 1, NULL, 0));
  FAILS(KILN_NOT_FOUND, "no variable 'other'", kiln_session_set_variable(session, "other", 5, x));
  set(session, "total", 1);
  set(session, "count", 0);
  OK(kiln_session_run(session, NULL, &r.x, &x, 1, fetches, results, 3, NULL, 0));
  expect_f32(results[0], (const float[]){1}, 1);
  expect_f32(results[1], (const float[]){6}, 1);
  expect_f32(results[2], (const float[]){1}, 1);
  CHECK(value_of(session, "total") == 6 && value_of(session, "count") == 1);
  /* Only what is fetched is assigned. */
  OK(kiln_session_run(session, NULL, &r.x, &x, 1, &r.total, &result, 1, NULL, 0));
  expect_f32(result, (const float[]){11}, 1);
  CHECK(value_of(session, "total") == 11 && value_of(session, "count") == 1);
  kiln_buffer_release(result);
  result = NULL;
  /* A value that was handed out stays as it was, and cannot be written. */
  kiln_buffer* kept = NULL;
  OK(kiln_session_variable(session, "total", 5, &kept));
  OK(kiln_session_run(session, NULL, &r.x, &x, 1, &r.total, &result, 1, NULL, 0));
  expect_f32(kept, (const float[]){11}, 1);
  kiln_buffer* given = kept;
  FAILS(KILN_INVALID_ARGUMENT, "read-only",
        kiln_session_run(session, NULL, &r.x, &x, 1, &r.count, &given, 1, NULL, 0));
  kiln_buffer_release(kept);
  /* A run that fails assigns nothing. */
  unsigned char no = 0;
  kiln_buffer* feeds[2] = {x, NULL};
  OK(kiln_buffer_copy_host(cpu, KILN_PRED, NULL, 0, &no, 1, &feeds[1]));
  const kiln_value fed[2] = {r.x, r.holds};
  kiln_buffer* none = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "no",
        kiln_session_run(session, NULL, fed, feeds, 2, &r.guarded, &none, 1, NULL, 0));
  CHECK(value_of(session, "total") == 16);
  /* Saved, changed, restored; and by another session. */
  char path[64];
  snprintf(path, sizeof path, "/tmp/kiln-variables-%ld.safetensors", (long)getpid());
  OK(kiln_session_save(session, path, strlen(path)));
  set(session, "total", -3);
  OK(kiln_session_restore(session, path, strlen(path)));
  CHECK(value_of(session, "total") == 16 && value_of(session, "count") == 1);
  kiln_session* other = make_session(r.graph, jit);
  OK(kiln_session_restore(other, path, strlen(path)));
  CHECK(value_of(other, "total") == 16);
  kiln_session_release(other);
  kiln_graph* g = make_graph(context, "shapes");
  const int64_t two = 2;
  kiln_op_variable(g, "total", 5, KILN_F32, &two, 1);
  kiln_op_variable(g, "missing", 7, KILN_F32, &two, 1);
  OK(kiln_graph_status(g));
  other = make_session(g, jit);
  FAILS(KILN_INVALID_ARGUMENT, "'missing' is missing; 'total' is f32[]; expected f32[2]",
        kiln_session_restore(other, path, strlen(path)));
  kiln_session_release(other);
  kiln_graph_release(g);
  CHECK(remove(path) == 0);
  kiln_buffer_release(feeds[1]);
  kiln_buffer_release(x);
  kiln_buffer_release(result);
  for (int i = 0; i < 3; ++i) kiln_buffer_release(results[i]);
  kiln_session_release(session);
  kiln_graph_release(r.graph);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.log = keep_line;
  options.callbacks_from_any_thread = 1;
  OK(kiln_context_create(&options, &context));
  cpu = find_device(context, "CPU:0");
  const kiln_jit levels[] = {KILN_JIT_OFF, KILN_JIT_ON};
  for (int i = 0; i < 2; ++i) {
    sizes_of_the_run(levels[i], NULL);
    variables(levels[i]);
  }
  must_compile();
  prints_and_assertions();
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
