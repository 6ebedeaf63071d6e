/* Kernels on threads of the caller's: the same bits as on the library's own, from several callers
 * at once, with pools that keep to what they promise and with others. */
#include <pthread.h>
#include <stdatomic.h>

#include "testing.h"

enum { kThreads = 4, kSize = 320, kBatch = 8, kElements = kSize * kSize, kRuns = 20 };

typedef struct {
  int64_t tasks;
  void (*task)(void* context, int64_t number);
  void* context;
  atomic_int_fast64_t next;
} job;

/* What a pool does wrong. */
typedef enum { kNothing, kTooFew, kTooMany, kSameNumber } fault;

typedef struct {
  fault fault;
  atomic_int runs, calls, destroyed;
  atomic_int called_outside; /* runs on other threads */
} pool;

static _Thread_local int is_inside;

static void* work(void* argument) {
  job* j = argument;
  int64_t i;
  while ((i = atomic_fetch_add(&j->next, 1)) < j->tasks) j->task(j->context, i);
  return NULL;
}

static void run_tasks(void* user_data, int64_t tasks, void (*task)(void*, int64_t), void* context) {
  pool* p = user_data;
  ++p->runs;
  p->calls += (int)tasks;
  if (!is_inside) ++p->called_outside;
  if (p->fault == kTooFew) tasks /= 2;
  if (p->fault == kTooMany) tasks *= 2;
  if (p->fault == kSameNumber) {
    for (int64_t i = 0; i < tasks; ++i) task(context, 0);
    return;
  }
  job j = {tasks, task, context, 0};
  pthread_t threads[kThreads - 1];
  for (int i = 0; i < kThreads - 1; ++i) CHECK(pthread_create(&threads[i], NULL, work, &j) == 0);
  if (p->fault != kTooFew) work(&j);
  for (int i = 0; i < kThreads - 1; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void pool_ends(void* user_data) { ++((pool*)user_data)->destroyed; }

static kiln_context* make_context_on(pool* p, int32_t threads, int32_t anywhere) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  options.gpu = KILN_GPU_OFF;
  options.cache_bytes = KILN_CACHE_OFF;
  options.callbacks_from_any_thread = anywhere;
  options.run_tasks = p ? run_tasks : NULL;
  options.pool_user_data = p;
  options.pool_destroy = p ? pool_ends : NULL;
  kiln_context* context = NULL;
  OK(kiln_context_create(&options, &context));
  return context;
}

/* Generated kernels, and functions of the library: products, sums, and decompositions of a batch.
 */
static kiln_executable* make_program(kiln_context* context) {
  kiln_graph* g = make_graph(context, "program");
  const int64_t dims[] = {kSize, kSize}, batch[] = {kBatch, kSize, kSize}, last[] = {1, 2};
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  kiln_value y = kiln_op_tanh(g, kiln_op_matmul(g, x, x));
  kiln_value wide = kiln_op_broadcast(g, kiln_op_multiply(g, y, y), last, 2, batch, 3);
  const int64_t diagonal[] = {kSize, kSize}, none = 0;
  kiln_value rows = kiln_op_iota(g, 0, KILN_S32, diagonal, 2);
  kiln_value columns = kiln_op_iota(g, 1, KILN_S32, diagonal, 2);
  kiln_value large = kiln_op_convert(g, kiln_op_compare(g, rows, columns, KILN_EQ), KILN_F32);
  large = kiln_op_multiply(
      g, large, kiln_op_broadcast(g, kiln_op_scalar(g, KILN_F32, kSize), &none, 0, diagonal, 2));
  kiln_value symmetric = kiln_op_add(g, wide, kiln_op_broadcast(g, large, last, 2, batch, 3));
  kiln_value factor = kiln_op_cholesky(g, symmetric, 1);
  const int64_t first[] = {0};
  kiln_value sum = kiln_op_reduce_by(g, factor, first, 1, KILN_REDUCER_SUM);
  kiln_executable* e = compile_result(g, sum, kiln_context_device(context, 0));
  return e;
}

static kiln_buffer* make_argument(kiln_context* context) {
  static float values[kElements];
  for (int i = 0; i < kElements; ++i) values[i] = (float)(i % 97) / 970.0F;
  const int64_t dims[] = {kSize, kSize};
  kiln_buffer* x = NULL;
  OK(kiln_buffer_copy_host(kiln_context_device(context, 0), KILN_F32, dims, 2, values,
                           sizeof values, &x));
  return x;
}

static void run(kiln_executable* e, kiln_buffer* x, float* values) {
  kiln_buffer* y = NULL;
  is_inside = 1;
  OK(kiln_executable_run(e, NULL, &x, 1, &y, 1));
  is_inside = 0;
  OK(kiln_buffer_copy_to_host(y, values, kElements * sizeof *values));
  kiln_buffer_release(y);
}

static float expected[kElements];

static void expect_same(const float* values) {
  CHECK(memcmp(values, expected, sizeof expected) == 0);
}

static void one_caller(fault fault) {
  pool p = {.fault = fault};
  kiln_context* context = make_context_on(&p, kThreads, 0);
  kiln_executable* e = make_program(context);
  kiln_buffer* x = make_argument(context);
  static float values[kElements];
  for (int i = 0; i < kRuns; ++i) {
    memset(values, 0, sizeof values);
    run(e, x, values);
    expect_same(values);
  }
  CHECK(p.runs >= 2 * kRuns && p.calls > p.runs);
  CHECK(p.called_outside == 0);
  kiln_buffer_release(x);
  kiln_executable_release(e);
  CHECK(p.destroyed == 0);
  kiln_context_release(context);
  CHECK(p.destroyed == 1);
}

typedef struct {
  kiln_executable* executable;
  kiln_buffer* argument;
} task_of_caller;

static void* call_often(void* argument) {
  task_of_caller* t = argument;
  float* values = malloc(sizeof expected);
  for (int i = 0; i < kRuns; ++i) {
    run(t->executable, t->argument, values);
    expect_same(values);
  }
  free(values);
  return NULL;
}

static void several_callers(void) {
  pool p = {.fault = kNothing};
  kiln_context* context = make_context_on(&p, kThreads, 0);
  task_of_caller t = {make_program(context), make_argument(context)};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, call_often, &t) == 0);
  for (int i = 0; i < 3; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  kiln_buffer_release(t.argument);
  kiln_executable_release(t.executable);
  kiln_context_release(context);
  CHECK(p.destroyed == 1 && p.runs > 0);
}

/* Asynchronous executions run on the caller's thread, unless callbacks may come from any. */
static void asynchronous(int32_t anywhere) {
  pool p = {.fault = kNothing};
  kiln_context* context = make_context_on(&p, kThreads, anywhere);
  kiln_executable* e = make_program(context);
  kiln_buffer *x = make_argument(context), *y = NULL, **results = &y, *const *arguments = &x;
  kiln_event* event = NULL;
  is_inside = 1;
  OK(kiln_executable_execute(e, NULL, &arguments, 1, &results, 1, 1, &event));
  OK(kiln_event_wait(event, -1));
  is_inside = 0;
  static float values[kElements];
  OK(kiln_buffer_copy_to_host(y, values, sizeof values));
  expect_same(values);
  CHECK(p.runs > 0);
  if (!anywhere) CHECK(p.called_outside == 0);
  kiln_event_release(event);
  kiln_buffer_release(y);
  kiln_buffer_release(x);
  kiln_executable_release(e);
  kiln_context_release(context);
}

/* With one thread nothing is shared. */
static void one_thread(void) {
  pool p = {.fault = kNothing};
  kiln_context* context = make_context_on(&p, 1, 0);
  kiln_executable* e = make_program(context);
  kiln_buffer* x = make_argument(context);
  static float values[kElements];
  run(e, x, values);
  expect_same(values);
  CHECK(p.runs == 0);
  kiln_buffer_release(x);
  kiln_executable_release(e);
  kiln_context_release(context);
}

int main(void) {
  kiln_context* context = make_context_on(NULL, kThreads, 0);
  kiln_executable* e = make_program(context);
  kiln_buffer* x = make_argument(context);
  run(e, x, expected);
  CHECK(expected[kElements - 1] > 0);
  kiln_buffer_release(x);
  kiln_executable_release(e);
  kiln_context_release(context);
  for (fault f = kNothing; f <= kSameNumber; ++f) one_caller(f);
  several_callers();
  asynchronous(0);
  asynchronous(1);
  one_thread();
  return test_result();
}
