/* fork() while other threads are at work, on the disk cache too: the child is told that what its
 * parent made is not there, gives it back, and does all of it anew. Nothing hangs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

enum { SIZE = 160, RUNS = 24 };
static const int64_t kDims[] = {SIZE, SIZE};

static kiln_graph* products(kiln_context* context) {
  kiln_graph* g = make_graph(context, "products");
  kiln_value x = kiln_op_parameter(g, KILN_F32, kDims, 2, "x", 1), y = x;
  for (int i = 0; i < 4; ++i) y = kiln_op_tanh(g, kiln_op_matmul(g, y, x));
  OK(kiln_graph_set_results(g, &y, 1));
  return g;
}

typedef struct {
  kiln_context* context;
  kiln_device* cpu;
  kiln_graph* graph;
  kiln_executable* executable;
  kiln_session* session;
  kiln_trace* trace;
  kiln_buffer* x;
  kiln_buffer* results[RUNS];
  kiln_event* events[RUNS];
} work;

static kiln_error* queue(work* w, int i) {
  kiln_buffer* const* arguments = &w->x;
  kiln_buffer** results = &w->results[i];
  return kiln_executable_execute(w->executable, NULL, &arguments, 1, &results, 1, 1, &w->events[i]);
}

static void begin(work* w) {
  memset(w, 0, sizeof *w);
  w->context = make_context(3);
  w->cpu = find_device(w->context, "CPU:0");
  w->graph = products(w->context);
  OK(kiln_graph_compile(w->graph, NULL, &w->executable));
  OK(kiln_session_create(w->graph, NULL, &w->session));
  OK(kiln_trace_start(w->context, &w->trace));
  OK(kiln_buffer_create(w->cpu, KILN_F32, kDims, 2, &w->x));
  for (int i = 0; i < RUNS; ++i) OK(queue(w, i));
}

static void end(work* w) {
  for (int i = 0; i < RUNS; ++i) {
    kiln_event_release(w->events[i]);
    kiln_buffer_release(w->results[i]);
  }
  kiln_buffer_release(w->x);
  kiln_trace_release(w->trace);
  kiln_session_release(w->session);
  kiln_executable_release(w->executable);
  kiln_graph_release(w->graph);
  kiln_context_release(w->context);
}

static void expect_nothing_there(work* w) {
  const kiln_code code = KILN_FAILED_PRECONDITION;
  const char* text = "was made before fork()";
  kiln_executable* executable = NULL;
  kiln_graph* graph = NULL;
  kiln_session* session = NULL;
  kiln_buffer* buffer = NULL;
  kiln_event* event = NULL;
  kiln_trace* trace = NULL;
  kiln_device* device = NULL;
  const void* data = NULL;
  kiln_value value = kiln_graph_result(w->graph);
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  kiln_cache_info cache = KILN_CACHE_INFO_INIT;
  float values[4];
  FAILS(code, text, kiln_executable_run(w->executable, NULL, &w->x, 1, &buffer, 1));
  FAILS(code, text, queue(w, 0));
  FAILS(code, text, kiln_event_wait(w->events[RUNS - 1], -1));
  FAILS(code, text, kiln_event_wait(w->events[0], 0));
  CHECK(kiln_event_is_ready(w->events[RUNS - 1]) == 1);
  FAILS(code, text, kiln_graph_compile(w->graph, NULL, &executable));
  FAILS(code, text, kiln_graph_create(w->context, "g", 1, &graph));
  FAILS(code, text, kiln_graph_status(w->graph));
  CHECK(kiln_op_tanh(w->graph, value) == 0);
  FAILS(code, text, kiln_session_create(w->graph, NULL, &session));
  FAILS(code, text, kiln_session_run(w->session, NULL, NULL, NULL, 0, &value, &buffer, 1, NULL, 0));
  FAILS(code, text, kiln_buffer_create(w->cpu, KILN_F32, kDims, 2, &buffer));
  FAILS(code, text, kiln_buffer_copy_host(w->cpu, KILN_F32, kDims, 0, values, 4, &buffer));
  FAILS(code, text, kiln_buffer_copy_to_host(w->results[0], values, sizeof values));
  FAILS(code, text, kiln_buffer_data(w->results[RUNS - 1], &data));
  FAILS(code, text, kiln_buffer_ready(w->results[RUNS - 1], &event));
  FAILS(code, text, kiln_trace_stop(w->trace));
  FAILS(code, text, kiln_trace_start(w->context, &trace));
  FAILS(code, text, kiln_context_memory(w->context, &memory));
  FAILS(code, text, kiln_context_cache(w->context, &cache));
  FAILS(code, text, kiln_context_find_device(w->context, "CPU:0", 5, &device));
}

/* A program of its own for each number. */
static void compile_number(kiln_context* context, float number) {
  kiln_graph* graph = make_graph(context, "number");
  kiln_value x = f32_parameter(graph, "x", 8);
  kiln_value c = kiln_op_constant(graph, KILN_F32, NULL, 0, &number, sizeof number);
  const int64_t size = 8;
  x = kiln_op_add(graph, x, kiln_op_broadcast(graph, c, NULL, 0, &size, 1));
  kiln_executable_release(compile_result(graph, x, kiln_context_device(context, 0)));
}

static void work_anew(void) {
  work w;
  begin(&w);
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(w.executable, NULL, &w.x, 1, &result, 1));
  kiln_buffer_release(result);
  for (int i = 0; i < RUNS; ++i) OK(kiln_event_wait(w.events[i], -1));
  /* It finds what the parent has kept, and keeps a program of its own: nobody holds the lock. */
  kiln_cache_info cache = KILN_CACHE_INFO_INIT;
  compile_number(w.context, -(float)getpid());
  OK(kiln_context_cache(w.context, &cache));
  CHECK(cache.hits > 0 && cache.written == 1 && cache.failed == 0);
  end(&w);
}

static work shared;
static atomic_int stop;

static void* run_on(void* user_data) {
  (void)user_data;
  while (!atomic_load(&stop)) {
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(shared.executable, NULL, &shared.x, 1, &result, 1));
    kiln_buffer_release(result);
  }
  return NULL;
}

static void* compile_on(void* user_data) {
  (void)user_data;
  for (int i = 0; !atomic_load(&stop); ++i) {
    kiln_executable* executable = NULL;
    compile_number(shared.context, (float)i);
    OK(kiln_graph_compile(shared.graph, NULL, &executable));
    kiln_executable_release(executable);
  }
  return NULL;
}

int main(void) {
  char folder[] = "/tmp/kiln-fork-XXXXXX", command[64];
  CHECK(mkdtemp(folder) != NULL);
  setenv("KILN_CACHE", folder, 1);
  begin(&shared);
  pthread_t threads[2];
  CHECK(pthread_create(&threads[0], NULL, run_on, NULL) == 0);
  CHECK(pthread_create(&threads[1], NULL, compile_on, NULL) == 0);
  enum { CHILDREN = 9 };
  for (int i = 0; i < CHILDREN; ++i) {
    usleep(2000 * (useconds_t)i);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      failed_checks = 0;
      expect_nothing_there(&shared);
      /* One gives nothing back. */
      if (i % 3 != 1) end(&shared);
      work_anew();
      if (i % 3 == 2) quick_exit(failed_checks != 0);
      exit(failed_checks != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0) {
      printf("child %d ended with %x\n", i, (unsigned)status);
      ++failed_checks;
    }
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < RUNS; ++i) OK(kiln_event_wait(shared.events[i], -1));
  OK(kiln_trace_stop(shared.trace));
  end(&shared);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  CHECK(system(command) == 0);
  return test_result();
}
