/* Functions of the user's that ask for work on the device that runs them, and wait for it; work of
 * others that goes on meanwhile; and the order of what has effects. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "counter.h"
#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;
static kiln_executable *doubled, *longer;
static atomic_int calls, running;
/* What a call waits for, and what it is told before that. */
static kiln_event* awaited;
static atomic_int is_inside, may_go_on;

static void nap(int milliseconds) {
  const struct timespec time = {0, milliseconds * 1000000L};
  nanosleep(&time, NULL);
}

static kiln_event* start(kiln_executable* e, kiln_buffer* argument, kiln_buffer** result,
                         int donate) {
  const size_t first = 0;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = &first;
  options.donated_count = donate ? 1 : 0;
  kiln_buffer* const* arguments = &argument;
  kiln_event* event = NULL;
  OK(kiln_executable_execute(e, &options, &arguments, 1, &result, 1, 1, &event));
  return event;
}

static void await(kiln_event* event) {
  OK(kiln_event_wait(event, 20LL * 1000 * 1000 * 1000));
  kiln_event_release(event);
}

/* A program of its own, and copies each way. */
static void* work(void* user_data) {
  (void)user_data;
  const int64_t three = 3, count = 2000;
  const float values[3] = {1, 2, 3};
  float read[3] = {0};
  kiln_buffer *x = NULL, *y = NULL, *n = NULL, *counted = NULL;
  kiln_event* event = NULL;
  OK(kiln_buffer_copy_host_async(cpu, KILN_F32, &three, 1, values, sizeof values, &event, &x));
  await(event);
  await(start(doubled, x, &y, 0));
  OK(kiln_buffer_copy_to_host_async(y, read, sizeof read, &event));
  await(event);
  CHECK(read[0] == 2 && read[1] == 4 && read[2] == 6);
  OK(kiln_buffer_copy_host(cpu, KILN_S64, NULL, 0, &count, 8, &n));
  await(start(longer, n, &counted, 0));
  int64_t back = 0;
  OK(kiln_buffer_copy_to_host(counted, &back, 8));
  CHECK(back == count);
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_buffer_release(n);
  kiln_buffer_release(counted);
  return NULL;
}

/* x -> x + 1, after the work of `user_data`. */
static kiln_error* call(void* user_data, const kiln_custom_call* call) {
  CHECK(atomic_fetch_add(&running, 1) == 0); /* they keep their order */
  ++calls;
  if (user_data) ((void (*)(void))user_data)();
  const float* x = call->operands[0]->data;
  float* y = call->results[0]->data;
  for (int i = 0; i < 3; ++i) y[i] = x[i] + 1;
  --running;
  return NULL;
}

static void work_here(void) { work(NULL); }

static void work_elsewhere(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
  pthread_join(thread, NULL);
}

static void wait_for_others(void) {
  is_inside = 1;
  while (!may_go_on) nap(1);
  if (awaited) OK(kiln_event_wait(awaited, 20LL * 1000 * 1000 * 1000));
}

static void just_be_slow(void) { nap(2); }

/* x * call(x): the argument is read once more after the call. */
static kiln_executable* program(const char* target, void (*function)(void)) {
  OK(kiln_context_register_call(context, target, strlen(target), call, (void*)function, NULL));
  kiln_graph* g = make_graph(context, target);
  kiln_value x = f32_parameter(g, "x", 3);
  const int64_t three = 3;
  kiln_shape shape = KILN_SHAPE_INIT;
  shape.dtype = KILN_F32;
  shape.rank = 1;
  shape.dims = &three;
  const kiln_shape* results = &shape;
  kiln_value y = kiln_op_custom_call(g, target, strlen(target), &x, 1, &results, 1, NULL);
  return compile_result(g, kiln_op_multiply(g, x, y), cpu);
}

static void inner_work(kiln_executable* e) {
  const int before = calls;
  kiln_buffer *x = f32_buffer(cpu, (const float[]){1, 2, 3}, 3), *y[4] = {NULL};
  kiln_event* events[4];
  for (int i = 0; i < 4; ++i) events[i] = start(e, i == 0 ? x : y[i - 1], &y[i], 0);
  for (int i = 0; i < 4; ++i) await(events[i]);
  expect_f32(y[0], (const float[]){2, 6, 12}, 3);
  expect_f32(y[1], (const float[]){6, 42, 156}, 3);
  CHECK(calls == before + 4);
  for (int i = 0; i < 4; ++i) kiln_buffer_release(y[i]);
  kiln_buffer_release(x);
  kiln_executable_release(e);
}

/* While a call waits: work that others ask for later runs, unless it needs the call's program. */
static void outer_work(kiln_executable* e) {
  kiln_alias alias = {.result = 0, .argument = 0};
  kiln_graph* g = make_graph(context, "in place");
  kiln_value p = f32_parameter(g, "p", 3);
  kiln_executable* in_place = compile_with_aliases(g, kiln_op_negate(g, p), cpu, &alias, 1);
  kiln_buffer *x = f32_buffer(cpu, (const float[]){1, 2, 3}, 3), *y = NULL, *z = NULL, *w = NULL;
  kiln_event* first = start(e, x, &y, 0);
  while (!is_inside) nap(1);
  kiln_event* user = start(doubled, y, &z, 0);   /* needs the call's result */
  kiln_event* donor = start(in_place, x, &w, 1); /* overwrites what it still reads */
  const int64_t count = 3000;
  kiln_buffer *n = NULL, *counted = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_S64, NULL, 0, &count, 8, &n));
  awaited = start(longer, n, &counted, 0); /* free to run, and the call waits for it */
  kiln_event* copied = NULL;
  int64_t back = 0;
  OK(kiln_buffer_copy_to_host_async(counted, &back, 8, &copied));
  await(copied);
  CHECK(back == count && kiln_event_is_ready(awaited));
  CHECK(!kiln_event_is_ready(first) && !kiln_event_is_ready(user) && !kiln_event_is_ready(donor));
  may_go_on = 1;
  await(first);
  await(user);
  await(donor);
  expect_f32(y, (const float[]){2, 6, 12}, 3);
  expect_f32(z, (const float[]){4, 12, 24}, 3);
  expect_f32(w, (const float[]){-1, -2, -3}, 3);
  kiln_event_release(awaited);
  kiln_buffer* all[] = {x, y, z, w, n, counted};
  for (size_t i = 0; i < 6; ++i) kiln_buffer_release(all[i]);
  kiln_executable_release(e);
  kiln_executable_release(in_place);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.callbacks_from_any_thread = 1;
  if (!OK(kiln_context_create(&options, &context))) return 1;
  cpu = find_device(context, "CPU:0");
  longer = counter(context, NULL);
  kiln_graph* g = make_graph(context, "doubled");
  kiln_value x = f32_parameter(g, "x", 3);
  doubled = compile_result(g, kiln_op_add(g, x, x), cpu);
  inner_work(program("slow", just_be_slow));
  inner_work(program("here", work_here));
  inner_work(program("elsewhere", work_elsewhere));
  outer_work(program("waits", wait_for_others));
  kiln_executable_release(doubled);
  kiln_executable_release(longer);
  kiln_context_release(context);
  return test_result();
}
