/* Events and executions that go on behind the caller: order, failure, cancellation, callbacks, and
 * handles that are given back early. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "counter.h"
#include "testing.h"

static kiln_buffer* scalar_s64(kiln_device* device, int64_t value) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_S64, NULL, 0, &value, 8, &buffer));
  return buffer;
}

static int64_t value_of(kiln_buffer* buffer) {
  int64_t value = -1;
  OK(kiln_buffer_copy_to_host(buffer, &value, 8));
  return value;
}

static kiln_error* start(kiln_executable* e, const kiln_execute_options* options,
                         kiln_buffer* argument, kiln_buffer** result, kiln_event** event) {
  kiln_buffer* const* arguments = &argument;
  return kiln_executable_execute(e, options, &arguments, 1, &result, 1, 1, event);
}

static void chains(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_executable* e = counter(context, NULL);
  /* Each takes the one before it as its argument, and nobody waits in between. */
  kiln_buffer* buffers[6] = {scalar_s64(cpu, 300000)};
  kiln_event* events[5] = {NULL};
  for (int i = 0; i < 5; ++i) OK(start(e, NULL, buffers[i], &buffers[i + 1], &events[i]));
  for (int i = 0; i < 5; ++i) kiln_buffer_release(buffers[i]); /* still in use, by the queue */
  CHECK(value_of(buffers[5]) == 300000);
  for (int i = 0; i < 5; ++i) {
    CHECK(kiln_event_is_ready(events[i]));
    OK(kiln_event_wait(events[i], 0));
    kiln_event_release(events[i]);
  }
  kiln_event* ready = NULL;
  OK(kiln_buffer_ready(buffers[5], &ready));
  OK(kiln_event_wait(ready, 0));
  kiln_event_release(ready);
  /* A blocking run waits for its argument, and for other uses of its result. */
  kiln_buffer* argument = buffers[5];
  kiln_buffer *pending = NULL, *result = NULL;
  kiln_event* event = NULL;
  OK(start(e, NULL, argument, &pending, &event));
  OK(kiln_executable_run(e, NULL, &pending, 1, &result, 1));
  CHECK(kiln_event_is_ready(event) && value_of(result) == 300000);
  kiln_event_release(event);
  OK(start(e, NULL, argument, &pending, &event));
  OK(start(e, NULL, argument, &pending, NULL)); /* without events it returns at the end */
  CHECK(kiln_event_is_ready(event));
  kiln_event_release(event);
  kiln_buffer_release(argument);
  kiln_buffer_release(pending);
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

static void failures(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_executable* e = counter(context, NULL);
  kiln_buffer* endless = scalar_s64(cpu, INT64_MAX);
  kiln_buffer* few = scalar_s64(cpu, 3);
  kiln_execute_options options;
  kiln_execute_options_init(&options, sizeof options);
  int32_t cancel = 0;
  options.cancel = &cancel;
  kiln_buffer *poisoned = NULL, *next = NULL, *fine = NULL;
  kiln_event* events[3] = {NULL};
  if (kiln_context_threads(context) == 1) cancel = 1; /* it runs during the call */
  OK(start(e, &options, endless, &poisoned, &events[0]));
  OK(start(e, NULL, poisoned, &next, &events[1]));
  OK(start(e, NULL, few, &fine, &events[2]));
  if (!cancel) FAILS(KILN_DEADLINE_EXCEEDED, "going on", kiln_event_wait(events[0], 2000000));
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  FAILS(KILN_CANCELLED, "", kiln_event_wait(events[0], -1));
  FAILS(KILN_CANCELLED, "",
        kiln_event_wait(events[1], -1)); /* what it had for its argument failed */
  OK(kiln_event_wait(events[2], -1));
  CHECK(value_of(fine) == 3);
  int64_t value = -1;
  const void* data = NULL;
  kiln_buffer* copy = NULL;
  FAILS(KILN_CANCELLED, "", kiln_buffer_copy_to_host(poisoned, &value, 8));
  FAILS(KILN_CANCELLED, "", kiln_buffer_data(next, &data));
  FAILS(KILN_CANCELLED, "", kiln_buffer_copy_to_device(poisoned, cpu, &copy));
  FAILS(KILN_CANCELLED, "", kiln_executable_run(e, NULL, &poisoned, 1, &copy, 1));
  CHECK(value == -1 && !data && !copy);
  /* A run that succeeds heals it. */
  OK(kiln_executable_run(e, NULL, &few, 1, &poisoned, 1));
  CHECK(value_of(poisoned) == 3);
  OK(start(e, NULL, few, &next, NULL));
  CHECK(value_of(next) == 3);
  for (int i = 0; i < 3; ++i) kiln_event_release(events[i]);
  kiln_buffer_release(endless);
  kiln_buffer_release(few);
  kiln_buffer_release(poisoned);
  kiln_buffer_release(next);
  kiln_buffer_release(fine);
  kiln_executable_release(e);
}

/* Everything is given back while the work goes on; the last call waits for it. */
static void early_release(int32_t threads) {
  kiln_context* context = make_context(threads);
  kiln_executable* e = counter(context, NULL);
  kiln_buffer* n = scalar_s64(find_device(context, "CPU:0"), 2000000);
  kiln_buffer* result = NULL;
  kiln_event* event = NULL;
  kiln_context_release(context);
  OK(start(e, NULL, n, &result, &event));
  kiln_executable_release(e);
  kiln_buffer_release(n);
  kiln_buffer_release(result);
  kiln_event_release(event);
}

static pthread_t user_thread;
static int called_elsewhere, deletions;
static void note_deletion(void* memory) {
  if (!pthread_equal(pthread_self(), user_thread)) ++called_elsewhere;
  ++deletions;
  free(memory);
}

/* The queue's thread drops the last reference: the deleter waits for a call of the user's. */
static void deferred_deleters(void) {
  user_thread = pthread_self();
  kiln_context* context = make_context(2);
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_executable* e = counter(context, NULL);
  for (int i = 0; i < 20; ++i) {
    int64_t* memory = aligned_alloc(KILN_ALIGNMENT, KILN_ALIGNMENT);
    *memory = 20000;
    kiln_buffer *n = NULL, *result = NULL;
    kiln_event* event = NULL;
    OK(kiln_buffer_adopt_host(cpu, KILN_S64, NULL, 0, memory, 8, note_deletion, memory, &n));
    OK(start(e, NULL, n, &result, &event));
    kiln_buffer_release(n);
    OK(kiln_event_wait(event, -1));
    kiln_event_release(event);
    kiln_buffer_release(result);
  }
  kiln_executable_release(e);
  kiln_context_release(context);
  CHECK(deletions == 20 && called_elsewhere == 0);
}

struct note {
  atomic_int called, destroyed, failed;
};
static void on_ready(void* user_data, const kiln_error* error) {
  struct note* note = user_data;
  if (error) atomic_fetch_add(&note->failed, 1);
  atomic_fetch_add(&note->called, 1);
}
static void on_destroy(void* user_data) {
  atomic_fetch_add(&((struct note*)user_data)->destroyed, 1);
}

static void callbacks(void) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = 2;
  options.callbacks_from_any_thread = 1;
  kiln_context* context = NULL;
  OK(kiln_context_create(&options, &context));
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_executable* e = counter(context, NULL);
  kiln_buffer* n = scalar_s64(cpu, 3000000);
  kiln_buffer* result = NULL;
  kiln_event* event = NULL;
  struct note note = {0};
  OK(start(e, NULL, n, &result, &event));
  OK(kiln_event_on_ready(event, on_ready, &note, on_destroy));
  OK(kiln_event_on_ready(event, on_ready, &note, NULL));
  OK(kiln_event_wait(event, -1));
  OK(kiln_event_on_ready(event, on_ready, &note, on_destroy)); /* at once */
  FAILS(KILN_INVALID_ARGUMENT, "callback is NULL", kiln_event_on_ready(event, NULL, NULL, NULL));
  kiln_event_release(event);
  kiln_buffer_release(n);
  kiln_buffer_release(result);
  kiln_executable_release(e);
  kiln_context_release(context); /* waits for the queue's thread */
  CHECK(atomic_load(&note.called) == 3 && atomic_load(&note.destroyed) == 2);
  CHECK(atomic_load(&note.failed) == 0);

  context = make_context(2);
  kiln_buffer* buffer = scalar_s64(find_device(context, "CPU:0"), 1);
  OK(kiln_buffer_ready(buffer, &event));
  FAILS(KILN_FAILED_PRECONDITION, "callbacks_from_any_thread",
        kiln_event_on_ready(event, on_ready, &note, on_destroy));
  kiln_event_release(event);
  kiln_buffer_release(buffer);
  kiln_context_release(context);
  CHECK(atomic_load(&note.called) == 3);
  FAILS(KILN_INVALID_ARGUMENT, "event is NULL", kiln_event_wait(NULL, 0));
}

/* A queue holds the memory of the results that have been computed, and not of those to come. */
static void queued_results(kiln_context* context) {
  enum { kRuns = 12 };
  const int64_t dims[1] = {4 << 20}, bytes = 4 * dims[0];
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_executable* counting = counter(context, NULL);
  kiln_graph* g = make_graph(context, "filled");
  kiln_value x = kiln_op_parameter(g, KILN_F32, NULL, 0, "x", 1);
  kiln_executable* filled = compile_result(g, kiln_op_broadcast(g, x, NULL, 0, dims, 1), NULL);
  const float number = 3;
  kiln_buffer* argument = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_F32, NULL, 0, &number, 4, &argument));
  kiln_buffer *endless = scalar_s64(cpu, INT64_MAX), *result = NULL;
  kiln_execute_options options;
  kiln_execute_options_init(&options, sizeof options);
  int32_t cancel = 0, never = 1;
  options.cancel = &cancel;
  kiln_event *blocked = NULL, *last = NULL;
  if (kiln_context_threads(context) == 1) cancel = 1; /* it runs during the call */
  OK(start(counting, &options, endless, &result, &blocked));
  kiln_buffer_release(result);
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, after = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &before));
  for (int i = 0; i < kRuns; ++i) {
    result = NULL;
    kiln_event_release(last);
    OK(start(filled, NULL, argument, &result, &last));
    if (i + 1 < kRuns) kiln_buffer_release(result);
  }
  OK(kiln_context_memory(context, &after));
  CHECK(after.live_bytes - before.live_bytes < 2 * bytes);
  const void *early = NULL, *data = NULL;
  OK(kiln_buffer_address(result, &early));
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  OK(kiln_event_wait(last, -1));
  OK(kiln_context_memory(context, &after));
  CHECK(after.peak_bytes - before.live_bytes < 3 * bytes);
  OK(kiln_buffer_data(result, &data));
  CHECK(data && data == early && ((const float*)data)[dims[0] - 1] == 3);
  kiln_buffer_release(result);
  result = NULL;
  kiln_event_release(last);
  kiln_event_release(blocked);
  /* The result of a run that never began can be written by another, or from the host. */
  options.cancel = &never;
  OK(start(filled, &options, argument, &result, &last));
  FAILS(KILN_CANCELLED, "", kiln_event_wait(last, -1));
  kiln_event_release(last);
  FAILS(KILN_CANCELLED, "", kiln_buffer_data(result, &data));
  kiln_buffer* given = result;
  OK(start(filled, NULL, argument, &given, &last));
  OK(kiln_event_wait(last, -1));
  kiln_event_release(last);
  OK(kiln_buffer_data(result, &data));
  CHECK(((const float*)data)[1] == 3);
  kiln_buffer_release(result);
  kiln_buffer_release(argument);
  kiln_buffer_release(endless);
  kiln_executable_release(counting);
  kiln_executable_release(filled);
}

int main(void) {
  for (int32_t threads = 1; threads <= 3; ++threads) {
    kiln_context* context = make_context(threads);
    chains(context);
    failures(context);
    queued_results(context);
    kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
    OK(kiln_context_memory(context, &memory));
    CHECK(memory.live_bytes == 0);
    kiln_context_release(context);
    for (int i = 0; i < 10; ++i) early_release(threads);
  }
  deferred_deleters();
  callbacks();
  return test_result();
}
