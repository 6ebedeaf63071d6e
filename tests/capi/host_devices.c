/* Several devices of one processor: their names and shares of the threads, the same bits from each,
 * work on all of them at the same time, copies between them, and mistakes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counter.h"
#include "testing.h"

enum { kRows = 96, kColumns = 80, kMost = 3 };
static const int64_t x_dims[2] = {kRows, kColumns}, w_dims[2] = {kColumns, kColumns};
static float x_data[kRows * kColumns], w_data[kColumns * kColumns];

static kiln_error* create(int32_t threads, int32_t devices, int32_t from_any_thread,
                          kiln_context** context) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  options.cpu_devices = devices;
  options.callbacks_from_any_thread = from_any_thread;
  options.gpu = KILN_GPU_OFF;
  return kiln_context_create(&options, context);
}

static kiln_context* make(int32_t threads, int32_t devices) {
  kiln_context* context = NULL;
  if (!OK(create(threads, devices, 0, &context))) exit(1);
  return context;
}

static kiln_device* cpu(kiln_context* context, int number) {
  char name[16];
  snprintf(name, sizeof name, "CPU:%d", number);
  return find_device(context, name);
}

/* --- Programs */

/* Row sums of tanh(x w). */
static kiln_executable* rows(kiln_context* context, kiln_device* device) {
  kiln_graph* g = make_graph(context, "rows");
  kiln_value x = kiln_op_parameter(g, KILN_F32, x_dims, 2, "x", 1);
  kiln_value w = kiln_op_parameter(g, KILN_F32, w_dims, 2, "w", 1);
  const int64_t one = 1;
  kiln_value y = kiln_op_tanh(g, kiln_op_matmul(g, x, w));
  return compile_result(g, kiln_op_reduce_by(g, y, &one, 1, KILN_REDUCER_SUM), device);
}

static kiln_buffer* matrix(kiln_device* device, const int64_t* dims, const float* data) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, dims, 2, data,
                           sizeof(float) * (size_t)(dims[0] * dims[1]), &buffer));
  return buffer;
}

static kiln_buffer* scalar(kiln_device* device, int64_t value) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_S64, NULL, 0, &value, 8, &buffer));
  return buffer;
}

static int64_t value_of(kiln_buffer* buffer) {
  int64_t value = -1;
  OK(kiln_buffer_copy_to_host(buffer, &value, 8));
  return value;
}

/* Without waiting, even where no event is wanted. */
static kiln_error* start(kiln_executable* e, const kiln_execute_options* options,
                         kiln_buffer* const* arguments, size_t count, kiln_buffer** result,
                         kiln_event** event) {
  kiln_event* unwanted = NULL;
  kiln_error* error = kiln_executable_execute(e, options, &arguments, count, &result, 1, 1,
                                              event ? event : &unwanted);
  kiln_event_release(unwanted);
  return error;
}

/* --- What a context has */

/* The devices are those, in that order, with such shares. */
static void expect_devices(kiln_context* context, size_t count, const char* const* names,
                           const int32_t* shares) {
  CHECK(kiln_context_device_count(context) == count);
  for (size_t i = 0; i < count; ++i) {
    kiln_device* device = kiln_context_device(context, i);
    CHECK(strcmp(kiln_device_name(device, NULL), names[i]) == 0);
    CHECK(kiln_device_threads(device) == shares[i]);
    CHECK(find_device(context, names[i]) == device);
  }
}

static void shares(void) {
  kiln_context* context = make(5, 2);
  const char* const two[] = {"CPU:0", "CPU:1", "XLA_CPU:0", "XLA_CPU:1", "REFERENCE:0"};
  expect_devices(context, 5, two, (const int32_t[]){3, 2, 3, 2, 3});
  CHECK(kiln_context_threads(context) == 5);
  CHECK(kiln_device_threads(NULL) == 0);
  CHECK(strstr(kiln_device_description(cpu(context, 0), NULL), ", 3 of 5 threads"));
  CHECK(
      strstr(kiln_device_description(find_device(context, "XLA_CPU:1"), NULL), ", 2 of 5 threads"));
  CHECK(strcmp(kiln_context_device_notes(context, NULL), "") == 0);
  CHECK(find_device(context, "CPU") == cpu(context, 0));
  CHECK(find_device(context, "cpu:1") == cpu(context, 1));
  CHECK(find_device(context, "/job:localhost/replica:0/task:0/device:XLA_CPU:1") ==
        kiln_context_device(context, 3));
  kiln_device* none = NULL;
  FAILS(KILN_NOT_FOUND, "'CPU:2'; there are CPU:0, CPU:1, XLA_CPU:0, XLA_CPU:1, REFERENCE:0",
        kiln_context_find_device(context, "CPU:2", 5, &none));
  /* The memory is the host's, and one. */
  kiln_buffer* buffer = matrix(cpu(context, 1), x_dims, x_data);
  kiln_memory_info all = KILN_MEMORY_INFO_INIT, first = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &all));
  OK(kiln_device_memory(cpu(context, 0), &first));
  CHECK(all.live_bytes >= (int64_t)sizeof x_data && first.live_bytes == all.live_bytes);
  kiln_buffer_release(buffer);
  kiln_context_release(context);

  /* At least one each, and no thread where none is allowed. */
  const char* const three[] = {"CPU:0",     "CPU:1",     "CPU:2",      "XLA_CPU:0",
                               "XLA_CPU:1", "XLA_CPU:2", "REFERENCE:0"};
  for (int32_t threads = 1; threads <= 3; ++threads) {
    context = make(threads, 3);
    expect_devices(context, 7, three, (const int32_t[]){1, 1, 1, 1, 1, 1, 1});
    CHECK(kiln_context_threads(context) == threads);
    kiln_context_release(context);
  }

  /* One is the default. */
  const char* const one[] = {"CPU:0", "XLA_CPU:0", "REFERENCE:0"};
  for (int32_t devices = 0; devices <= 1; ++devices) {
    context = make(4, devices);
    expect_devices(context, 3, one, (const int32_t[]){4, 4, 4});
    CHECK(!strstr(kiln_device_description(cpu(context, 0), NULL), " threads"));
    kiln_context_release(context);
  }
  context = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "cpu_devices is -1", create(2, -1, 0, &context));
  FAILS(KILN_INVALID_ARGUMENT, "cpu_devices is 1025", create(2, 1025, 0, &context));
  CHECK(!context);
}

static void environment(void) {
  kiln_context* context = NULL;
  setenv("KILN_CPU_DEVICES", "2", 1);
  context = make(4, 0);
  CHECK(kiln_device_threads(cpu(context, 1)) == 2);
  kiln_context_release(context);
  context = make(4, 1); /* the option goes first */
  CHECK(kiln_context_device_count(context) == 3);
  kiln_context_release(context);
  const char* const wrong[] = {"0", "-2", "two", "2x", "1025", "99999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    setenv("KILN_CPU_DEVICES", wrong[i], 1);
    FAILS(KILN_INVALID_ARGUMENT, "KILN_CPU_DEVICES", create(4, 0, 0, &context));
  }
  unsetenv("KILN_CPU_DEVICES");
}

/* The number of the process's threads whose names begin so. */
static int threads_named(const char* beginning) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  struct dirent* entry;
  while ((entry = readdir(tasks))) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;
    if (fgets(name, sizeof name, file) && strncmp(name, beginning, strlen(beginning)) == 0) ++count;
    fclose(file);
  }
  closedir(tasks);
  return count;
}

/* Threads name themselves as they begin. */
static void expect_threads(const char* beginning, int count) {
  struct timespec pause = {0, 1000000};
  for (int i = 0; i < 5000 && threads_named(beginning) != count; ++i) nanosleep(&pause, NULL);
  CHECK(threads_named(beginning) == count);
}

static void threads_of_devices(void) {
  kiln_context* context = make(5, 2);
  expect_threads("kiln CPU:0 work", 2); /* and the thread that begins the work */
  expect_threads("kiln CPU:1 work", 1);
  expect_threads("kiln", 3);
  kiln_context_release(context);
  context = make(1, 3);
  expect_threads("kiln", 0);
  kiln_context_release(context);
}

/* --- Executions */

static void expect_rows(kiln_buffer* result, const float* expected) {
  float values[kRows];
  OK(kiln_buffer_copy_to_host(result, values, sizeof values));
  CHECK(memcmp(values, expected, sizeof values) == 0);
}

/* Queues the program on all devices at once: each gives the bits of one thread of CPU:0. */
static void same_bits(kiln_context* context, int devices) {
  enum { kRuns = 20 };
  kiln_executable* e[kMost];
  kiln_buffer *args[kMost][2], *results[kMost][kRuns] = {{NULL}};
  kiln_event* events[kMost][kRuns];
  for (int d = 0; d < devices; ++d) {
    e[d] = rows(context, cpu(context, d));
    args[d][0] = matrix(cpu(context, d), x_dims, x_data);
    args[d][1] = matrix(cpu(context, d), w_dims, w_data);
  }
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.threads = 1;
  kiln_buffer* alone = NULL;
  float expected[kRows];
  OK(kiln_executable_run(e[0], &options, args[0], 2, &alone, 1));
  OK(kiln_buffer_copy_to_host(alone, expected, sizeof expected));
  kiln_buffer_release(alone);
  for (int run = 0; run < kRuns; ++run) {
    for (int d = 0; d < devices; ++d) {
      options.threads = run % 4 == 3 ? 1000 : run % 4; /* beyond the share: the share */
      OK(start(e[d], &options, args[d], 2, &results[d][run], &events[d][run]));
    }
  }
  for (int d = 0; d < devices; ++d) {
    for (int run = 0; run < kRuns; ++run) {
      OK(kiln_event_wait(events[d][run], -1));
      expect_rows(results[d][run], expected);
      CHECK(kiln_buffer_device(results[d][run]) == cpu(context, d));
      kiln_event_release(events[d][run]);
      kiln_buffer_release(results[d][run]);
    }
    kiln_buffer_release(args[d][0]);
    kiln_buffer_release(args[d][1]);
    kiln_executable_release(e[d]);
  }
}

/* A buffer belongs to one device, although the memory is the same. */
static void wrong_devices(kiln_context* context) {
  kiln_executable* e = counter(context, cpu(context, 1));
  CHECK(kiln_executable_device(e) == cpu(context, 1));
  kiln_buffer* of_first = scalar(cpu(context, 0), 3);
  kiln_buffer* of_xla = scalar(find_device(context, "XLA_CPU:1"), 3);
  kiln_buffer* own = scalar(cpu(context, 1), 3);
  kiln_buffer *none = NULL, *result = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 'n' is on CPU:0; expected CPU:1",
        kiln_executable_run(e, NULL, &of_first, 1, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 'n' is on XLA_CPU:1; expected CPU:1",
        kiln_executable_run(e, NULL, &of_xla, 1, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "result 0 is on CPU:0; expected CPU:1",
        kiln_executable_run(e, NULL, &own, 1, &of_first, 1));
  OK(kiln_executable_run(e, NULL, &own, 1, &result, 1));
  CHECK(value_of(result) == 3 && !none);
  kiln_buffer_release(of_first);
  kiln_buffer_release(of_xla);
  kiln_buffer_release(own);
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

/* From device to device and back, with a run on each, and nobody waits in between. */
static void copies(kiln_context* context, int devices) {
  enum { kHops = 12 };
  kiln_executable* e[kMost];
  for (int d = 0; d < devices; ++d) e[d] = counter(context, cpu(context, d));
  kiln_buffer* value = scalar(cpu(context, 0), 100000);
  kiln_event* copied[kHops];
  for (int hop = 0; hop < kHops; ++hop) {
    kiln_buffer *counted = NULL, *moved = NULL;
    OK(start(e[hop % devices], NULL, &value, 1, &counted, NULL));
    kiln_device* next = cpu(context, (hop + 1) % devices);
    OK(kiln_buffer_copy_to_device_async(counted, next, &copied[hop], &moved));
    CHECK(kiln_buffer_device(moved) == next);
    kiln_buffer_release(value);
    kiln_buffer_release(counted);
    value = moved;
  }
  CHECK(value_of(value) == 100000);
  for (int hop = 0; hop < kHops; ++hop) {
    OK(kiln_event_wait(copied[hop], -1));
    kiln_event_release(copied[hop]);
  }
  /* A copy is an array of its own: another value of the source leaves it as it is. */
  const void *from = NULL, *to = NULL;
  kiln_buffer *moved = NULL, *few = scalar(cpu(context, 0), 7);
  OK(kiln_buffer_copy_to_device(value, cpu(context, 1), &moved));
  OK(kiln_buffer_data(value, &from));
  OK(kiln_buffer_data(moved, &to));
  CHECK(from != to);
  OK(kiln_executable_run(e[0], NULL, &few, 1, &value, 1));
  CHECK(value_of(value) == 7 && value_of(moved) == 100000);
  kiln_buffer_release(few);
  kiln_buffer_release(moved);
  kiln_buffer_release(value);
  for (int d = 0; d < devices; ++d) kiln_executable_release(e[d]);
}

/* Endless work on one device leaves the other alone. Its end is the failure of what takes its
 * result, on any device. */
static void cancels(kiln_context* context) {
  kiln_executable *first = counter(context, cpu(context, 0)),
                  *second = counter(context, cpu(context, 1));
  kiln_buffer *endless = scalar(cpu(context, 0), INT64_MAX), *few = scalar(cpu(context, 1), 50000);
  kiln_buffer *never = NULL, *moved = NULL, *after = NULL, *fine = NULL;
  kiln_event *running = NULL, *copying = NULL, *following = NULL;
  const int is_queued = kiln_context_threads(context) > 1;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  int32_t cancel = !is_queued;
  options.cancel = &cancel;
  OK(start(first, &options, &endless, 1, &never, &running));
  OK(start(second, NULL, &few, 1, &fine, NULL));
  CHECK(value_of(fine) == 50000);
  CHECK(kiln_event_is_ready(running) == !is_queued);
  OK(kiln_buffer_copy_to_device_async(never, cpu(context, 1), &copying, &moved));
  OK(start(second, NULL, &moved, 1, &after, &following));
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  FAILS(KILN_CANCELLED, "cancelled", kiln_event_wait(running, -1));
  FAILS(KILN_CANCELLED, "cancelled", kiln_event_wait(copying, -1));
  FAILS(KILN_CANCELLED, "cancelled", kiln_event_wait(following, -1));
  kiln_event_release(running);
  kiln_event_release(copying);
  kiln_event_release(following);
  kiln_buffer* all[] = {endless, few, never, moved, after, fine};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) kiln_buffer_release(all[i]);
  kiln_executable_release(first);
  kiln_executable_release(second);
}

/* Everything is given back while all devices work; the last call waits. */
static void early_release(int32_t threads, int devices) {
  kiln_context* context = make(threads, devices);
  kiln_event* events[kMost];
  for (int d = 0; d < devices; ++d) {
    kiln_executable* e = counter(context, cpu(context, d));
    kiln_buffer *n = scalar(cpu(context, d), 1000000), *result = NULL, *moved = NULL;
    OK(start(e, NULL, &n, 1, &result, &events[d]));
    OK(kiln_buffer_copy_to_device_async(result, cpu(context, (d + 1) % devices), NULL, &moved));
    kiln_executable_release(e);
    kiln_buffer_release(n);
    kiln_buffer_release(result);
    kiln_buffer_release(moved);
  }
  kiln_context_release(context);
  for (int d = 0; d < devices; ++d) kiln_event_release(events[d]);
}

/* --- At the same time */

struct meeting {
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  int arrived, met;
};

/* Waits for as many calls as there are devices: they are made at the same time. */
static kiln_error* meet(void* user_data, const kiln_custom_call* call) {
  struct meeting* meeting = user_data;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  pthread_mutex_lock(&meeting->mutex);
  ++meeting->arrived;
  pthread_cond_broadcast(&meeting->wake);
  while (meeting->arrived < kMost &&
         pthread_cond_timedwait(&meeting->wake, &meeting->mutex, &until) == 0) {
  }
  if (meeting->arrived == kMost) ++meeting->met;
  pthread_mutex_unlock(&meeting->mutex);
  *(int64_t*)call->results[0]->data = 1;
  return NULL;
}

static int ready_callbacks;
static void on_ready(void* user_data, const kiln_error* error) {
  (void)user_data;
  if (!error) __atomic_add_fetch(&ready_callbacks, 1, __ATOMIC_RELAXED);
}

static void meetings(void) {
  kiln_context* context = NULL;
  OK(create(kMost, kMost, 1, &context));
  struct meeting meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
  OK(kiln_context_register_call(context, "meet", 4, meet, &meeting, NULL));
  kiln_trace* trace = NULL;
  OK(kiln_trace_start(context, &trace));
  kiln_event* events[kMost];
  for (int d = 0; d < kMost; ++d) {
    kiln_graph* g = make_graph(context, "meeting");
    kiln_value n = kiln_op_parameter(g, KILN_S64, NULL, 0, "n", 1);
    kiln_shape shape = {.struct_size = sizeof shape, .dtype = KILN_S64};
    const kiln_shape* result_shape = &shape;
    kiln_value call = kiln_op_custom_call(g, "meet", 4, &n, 1, &result_shape, 1, NULL);
    kiln_executable* e = compile_result(g, call, cpu(context, d));
    kiln_buffer *argument = scalar(cpu(context, d), 0), *result = NULL;
    OK(start(e, NULL, &argument, 1, &result, &events[d]));
    OK(kiln_event_on_ready(events[d], on_ready, NULL, NULL));
    kiln_buffer_release(argument);
    kiln_buffer_release(result);
    kiln_executable_release(e);
  }
  for (int d = 0; d < kMost; ++d) {
    OK(kiln_event_wait(events[d], -1));
    kiln_event_release(events[d]);
  }
  CHECK(meeting.met == kMost);
  OK(kiln_trace_stop(trace));
  kiln_text* json = NULL;
  OK(kiln_trace_to_json(trace, &json));
  for (int d = 0; d < kMost; ++d) {
    char lane[32], device[32];
    snprintf(lane, sizeof lane, "\"kiln CPU:%d queue %d\"", d, d);
    snprintf(device, sizeof device, "\"args\": {\"name\": \"CPU:%d\"}", d);
    CHECK(strstr(kiln_text_data(json, NULL), lane));
    CHECK(strstr(kiln_text_data(json, NULL), device));
  }
  kiln_text_release(json);
  kiln_trace_release(trace);
  kiln_context_release(context);
  CHECK(ready_callbacks == kMost);
}

/* --- From several threads */

enum { kThreads = 6, kRounds = 40 };
static kiln_context* shared;
static kiln_executable* shared_rows[kMost];
static float shared_expected[kRows];

static void* work(void* argument) {
  size_t wrong = 0, t = (size_t)argument;
  for (int round = 0; round < kRounds; ++round) {
    const int here = (int)(t + (size_t)round) % kMost, there = (here + 1 + round % 2) % kMost;
    kiln_buffer* first[2] = {matrix(cpu(shared, here), x_dims, x_data),
                             matrix(cpu(shared, here), w_dims, w_data)};
    kiln_buffer *second[2], *results[2] = {NULL, NULL};
    float values[kRows];
    OK(start(shared_rows[here], NULL, first, 2, &results[0], NULL));
    for (int i = 0; i < 2; ++i)
      OK(kiln_buffer_copy_to_device_async(first[i], cpu(shared, there), NULL, &second[i]));
    if (round % 3 == 0) {
      OK(kiln_executable_run(shared_rows[there], NULL, second, 2, &results[1], 1));
    } else {
      OK(start(shared_rows[there], NULL, second, 2, &results[1], NULL));
    }
    for (int i = 0; i < 2; ++i) {
      OK(kiln_buffer_copy_to_host(results[i], values, sizeof values));
      if (memcmp(values, shared_expected, sizeof values) != 0) ++wrong;
      kiln_buffer_release(first[i]);
      kiln_buffer_release(second[i]);
      kiln_buffer_release(results[i]);
    }
  }
  return (void*)wrong;
}

static void stress(void) {
  shared = make(5, kMost);
  for (int d = 0; d < kMost; ++d) shared_rows[d] = rows(shared, cpu(shared, d));
  kiln_buffer* args[2] = {matrix(cpu(shared, 0), x_dims, x_data),
                          matrix(cpu(shared, 0), w_dims, w_data)};
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(shared_rows[0], NULL, args, 2, &result, 1));
  OK(kiln_buffer_copy_to_host(result, shared_expected, sizeof shared_expected));
  kiln_buffer_release(args[0]);
  kiln_buffer_release(args[1]);
  kiln_buffer_release(result);
  pthread_t threads[kThreads];
  for (size_t t = 0; t < kThreads; ++t)
    CHECK(pthread_create(&threads[t], NULL, work, (void*)t) == 0);
  for (size_t t = 0; t < kThreads; ++t) {
    void* wrong = NULL;
    CHECK(pthread_join(threads[t], &wrong) == 0);
    CHECK(wrong == NULL);
  }
  for (int d = 0; d < kMost; ++d) kiln_executable_release(shared_rows[d]);
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(shared, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(shared);
}

/* A child of fork() has its own devices, and none of its parent's. */
static void forked(void) {
  kiln_context* context = make(4, 2);
  kiln_executable* e = counter(context, cpu(context, 1));
  kiln_buffer *n = scalar(cpu(context, 1), 1000000), *result = NULL;
  OK(start(e, NULL, &n, 1, &result, NULL));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    kiln_device* device = NULL;
    kiln_buffer* none = NULL;
    FAILS(KILN_FAILED_PRECONDITION, "fork", kiln_context_find_device(context, "CPU:1", 5, &device));
    FAILS(KILN_FAILED_PRECONDITION, "fork", kiln_executable_run(e, NULL, &n, 1, &none, 1));
    kiln_context* own = make(4, 2);
    same_bits(own, 2);
    kiln_context_release(own);
    fflush(stdout);
    _exit(failed_checks ? 1 : 0);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(value_of(result) == 1000000);
  kiln_buffer_release(n);
  kiln_buffer_release(result);
  kiln_executable_release(e);
  kiln_context_release(context);
}

int main(void) {
  unsetenv("KILN_CPU_DEVICES");
  uint32_t random = 1;
  for (int i = 0; i < kRows * kColumns; ++i) {
    random = random * 1664525 + 1013904223;
    x_data[i] = (float)(random >> 8) / 16777216.0f - 0.5f;
    if (i < kColumns * kColumns) w_data[i] = x_data[i] * 2;
  }
  threads_of_devices(); /* first: of other contexts there is no thread yet */
  shares();
  environment();
  const int32_t cases[][2] = {{1, 2}, {2, 2}, {2, 3}, {5, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    kiln_context* context = make(cases[i][0], cases[i][1]);
    same_bits(context, cases[i][1]);
    wrong_devices(context);
    copies(context, cases[i][1]);
    cancels(context);
    kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
    OK(kiln_context_memory(context, &memory));
    CHECK(memory.live_bytes == 0);
    kiln_context_release(context);
    for (int k = 0; k < 5; ++k) early_release(cases[i][0], cases[i][1]);
  }
  meetings();
  stress();
  forked();
  return test_result();
}
