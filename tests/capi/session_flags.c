/* Flags of sessions: strict compilation, compilation on demand, and dumps of graphs. */
#include <dirent.h>
#include <unistd.h>

#include "sessions.h"

static char folder[] = "/tmp/kiln-session-flags-XXXXXX";

/* Up to two variables are set. */
static kiln_context* context_with(const char* kiln_flags, const char* variable, const char* value) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.gpu = KILN_GPU_OFF;
  options.log = keep_line;
  log_lines[0] = '\0';
  setenv("KILN_FLAGS", kiln_flags, 1);
  if (variable) setenv(variable, value, 1);
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  unsetenv("KILN_FLAGS");
  if (variable) unsetenv(variable);
  return context;
}

/* Files in a folder whose names hold the text; they are removed. */
static int take_files(const char* in, const char* part) {
  char path[1024];
  int found = 0;
  DIR* files = opendir(in);
  if (!files) return 0;
  for (struct dirent* file; (file = readdir(files));) {
    if (file->d_name[0] == '.' || !strstr(file->d_name, part)) continue;
    ++found;
    snprintf(path, sizeof path, "%s/%s", in, file->d_name);
    unlink(path);
  }
  closedir(files);
  return found;
}

/* Multiplications of complex numbers, in a scope to be compiled: x to the 16th. */
struct powers {
  kiln_graph* graph;
  kiln_value x, y;
};
static struct powers build_powers(kiln_context* context) {
  struct powers p = {.graph = make_graph(context, "powers")};
  const int64_t n = kiln_graph_symbol(p.graph, "n", 1);
  p.x = kiln_op_parameter(p.graph, KILN_C64, &n, 1, "x", 1);
  OK(kiln_graph_push_jit_scope(p.graph, 1));
  p.y = p.x;
  for (int i = 0; i < 4; ++i) p.y = kiln_op_multiply(p.graph, p.y, p.y);
  OK(kiln_graph_pop_jit_scope(p.graph));
  OK(kiln_graph_set_results(p.graph, &p.y, 1));
  return p;
}

static kiln_buffer* two_numbers(kiln_context* context) {
  const float parts[] = {0, 1, 0, 2}; /* i and 2i */
  const int64_t size = 2;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(find_device(context, "CPU:0"), KILN_C64, &size, 1, parts, sizeof parts,
                           &buffer));
  return buffer;
}

static void check_powers(kiln_buffer* result) {
  float parts[4] = {0};
  OK(kiln_buffer_copy_to_host(result, parts, sizeof parts));
  CHECK(parts[0] == 1 && parts[1] == 0 && parts[2] == 65536 && parts[3] == 0);
  kiln_buffer_release(result);
}

static void run_powers(kiln_session* session, struct powers p, kiln_buffer* x) {
  kiln_buffer* result = NULL;
  if (OK(kiln_session_run(session, NULL, &p.x, &x, 1, &p.y, &result, 1, NULL, 0)))
    check_powers(result);
}

/* A cluster that cannot be compiled, because a pass is disabled. */
static const char cannot[] = "--disabled_passes=expand-complex";

static void clusters_fall_back(kiln_context* context, const kiln_session_options* options) {
  struct powers p = build_powers(context);
  kiln_buffer* x = two_numbers(context);
  kiln_session* session = NULL;
  log_lines[0] = '\0';
  OK(kiln_session_create(p.graph, options, &session));
  run_powers(session, p, x);
  CHECK(strstr(log_lines, "runs op by op, as it cannot be compiled: "));
  kiln_session_release(session);
  kiln_buffer_release(x);
  kiln_graph_release(p.graph);
}

static void clusters_must_compile(kiln_context* context, const kiln_session_options* options) {
  struct powers p = build_powers(context);
  kiln_buffer *x = two_numbers(context), *result = NULL;
  kiln_session* session = NULL;
  log_lines[0] = '\0';
  OK(kiln_session_create(p.graph, options, &session));
  FAILS(KILN_UNIMPLEMENTED, "multiply",
        kiln_session_run(session, NULL, &p.x, &x, 1, &p.y, &result, 1, NULL, 0));
  CHECK(result == NULL);
  CHECK(!strstr(log_lines, "op by op"));
  kiln_session_release(session);
  kiln_buffer_release(x);
  kiln_graph_release(p.graph);
}

static void strict_sessions(void) {
  kiln_context* context = context_with(cannot, NULL, NULL);
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  clusters_fall_back(context, NULL);
  options.strict = 1;
  clusters_must_compile(context, &options);
  struct powers p = build_powers(context);
  kiln_session* session = NULL;
  options.lazy = 1;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_session_options.strict is 1, and so is lazy",
        kiln_session_create(p.graph, &options, &session));
  options.lazy = 0;
  options.asynchronous_compilation = 1;
  FAILS(KILN_INVALID_ARGUMENT, "strict is 1, and so is asynchronous_compilation",
        kiln_session_create(p.graph, &options, &session));
  options.strict = 2;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_session_options.strict is 2",
        kiln_session_create(p.graph, &options, &session));
  kiln_graph_release(p.graph);
  kiln_context_release(context);
}

/* The flag makes sessions and functions strict that ask for nothing else. */
static void flag_of_lazy_compilation(void) {
  kiln_context* context = context_with(
      cannot, "TF_XLA_FLAGS", "--tf_xla_enable_lazy_compilation=false --tf_xla_async_compilation");
  CHECK(log_lines[0] == '\0');
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  clusters_must_compile(context, NULL);
  options.lazy = 1;
  clusters_fall_back(context, &options);
  struct powers p = build_powers(context);
  kiln_buffer *x = two_numbers(context), *result = NULL;
  kiln_function_options function_options = KILN_FUNCTION_OPTIONS_INIT;
  kiln_function* function = NULL;
  OK(kiln_function_create(p.graph, NULL, &function));
  FAILS(KILN_UNIMPLEMENTED, "multiply", kiln_function_call(function, NULL, &x, 1, &result, 1));
  kiln_function_release(function);
  function_options.lazy = 1;
  OK(kiln_function_create(p.graph, &function_options, &function));
  if (OK(kiln_function_call(function, NULL, &x, 1, &result, 1))) check_powers(result);
  kiln_function_release(function);
  kiln_buffer_release(x);
  kiln_graph_release(p.graph);
  kiln_context_release(context);
}

/* Whether the explanation of a run has the text. */
static int is_explained(kiln_session* session, kiln_value feed, kiln_value fetch,
                        const char* text) {
  kiln_text* explanation = NULL;
  OK(kiln_session_explain(session, &feed, 1, &fetch, 1, NULL, 0, &explanation));
  const int has = strstr(kiln_text_data(explanation, NULL), text) != NULL;
  kiln_text_release(explanation);
  return has;
}

/* The kernels of four ops on XLA_CPU, the last two of them in a scope to be compiled. */
static int64_t kernels_on_xla(kiln_context* context, int clusters) {
  kiln_graph* g = make_graph(context, "four");
  kiln_value x = f32_parameter(g, "x", 2), y[4];
  OK(kiln_graph_push_device(g, "XLA_CPU:0", 9));
  y[0] = kiln_op_add(g, x, x);
  y[1] = kiln_op_multiply(g, y[0], x);
  OK(kiln_graph_push_jit_scope(g, 1));
  y[2] = kiln_op_subtract(g, y[1], x);
  y[3] = kiln_op_multiply(g, y[2], y[1]);
  OK(kiln_graph_pop_jit_scope(g));
  OK(kiln_graph_pop_device(g));
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = KILN_JIT_DEFAULT;
  kiln_session* session = NULL;
  OK(kiln_session_create(g, &options, &session));
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  OK(kiln_session_prepare(session, &x, 1, &y[3], 1, NULL, 0, &info));
  char last[32], none[32];
  snprintf(last, sizeof last, "in cluster_%d on XLA_CPU:0", clusters - 1);
  snprintf(none, sizeof none, "in cluster_%d on", clusters);
  CHECK(is_explained(session, x, y[3], last) && !is_explained(session, x, y[3], none));
  CHECK(!is_explained(session, x, y[3], "'multiply.1' (multiply) outside"));
  kiln_buffer* fed = f32_buffer(find_device(context, "CPU:0"), (const float[]){1, 3}, 2);
  kiln_buffer* result = NULL;
  OK(kiln_session_run(session, NULL, &x, &fed, 1, &y[3], &result, 1, NULL, 0));
  expect_f32(result, (const float[]){2, 270}, 2);
  kiln_buffer_release(result);
  kiln_buffer_release(fed);
  kiln_session_release(session);
  kiln_graph_release(g);
  return info.kernels;
}

static void compilation_on_demand(void) {
  kiln_context* context = context_with("", NULL, NULL);
  CHECK(kernels_on_xla(context, 1) == 1);
  kiln_context_release(context);
  context = context_with("--enable_xla_devices", "TF_XLA_FLAGS", "--tf_xla_compile_on_demand");
  CHECK(log_lines[0] == '\0');
  CHECK(kernels_on_xla(context, 3) == 3);
  kiln_context_release(context);
}

/* Plans a run of a graph of that name. */
static void plan(kiln_context* context, const char* name) {
  kiln_graph* g = make_graph(context, name);
  kiln_value x = f32_parameter(g, "x", 2), y = kiln_op_add(g, x, x);
  kiln_session* session = NULL;
  OK(kiln_session_create(g, NULL, &session));
  OK(kiln_session_prepare(session, &x, 1, &y, 1, NULL, 0, NULL));
  OK(kiln_session_prepare(session, &x, 1, &y, 1, NULL, 0, NULL)); /* planned already */
  kiln_session_release(session);
  kiln_graph_release(g);
}

static void check_dumps(const char* in, const char* name) {
  const char* const stages[] = {"before_placement", "after_placement", "after_clustering"};
  char part[128];
  for (int i = 0; i < 3; ++i) {
    snprintf(part, sizeof part, ".%s.%s.txt", name, stages[i]);
    CHECK(take_files(in, part) == 1);
    snprintf(part, sizeof part, ".%s.%s.dot", name, stages[i]);
    CHECK(take_files(in, part) == 1);
  }
  CHECK(take_files(in, name) == 0);
}

static void dumps(void) {
  char name[64];
  snprintf(name, sizeof name, "dumped_%d", (int)getpid());
  kiln_context* context = context_with("", NULL, NULL);
  plan(context, name);
  CHECK(take_files("/tmp", name) == 0);
  kiln_context_release(context);
  context = context_with("", "TF_DUMP_GRAPH_PREFIX", folder);
  plan(context, name);
  check_dumps(folder, name);
  kiln_context_release(context);
  context = context_with("--clustering_debug", "TF_DUMP_GRAPH_PREFIX", folder);
  plan(context, name);
  check_dumps(folder, name);
  kiln_context_release(context);
  context = context_with("", "TF_XLA_FLAGS", "--tf_xla_clustering_debug");
  CHECK(log_lines[0] == '\0');
  plan(context, name);
  check_dumps("/tmp", name);
  kiln_context_release(context);
}

int main(void) {
  const char* variables[] = {"KILN_FLAGS", "XLA_FLAGS", "TF_XLA_FLAGS", "TF_DUMP_GRAPH_PREFIX"};
  for (int i = 0; i < 4; ++i) unsetenv(variables[i]);
  CHECK(mkdtemp(folder) != NULL);
  strict_sessions();
  flag_of_lazy_compilation();
  compilation_on_demand();
  dumps();
  rmdir(folder);
  return test_result();
}
