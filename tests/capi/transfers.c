/* Copies that go on behind the caller, in all directions, and queues of several devices: order,
 * dependencies across devices, failures, and buffers that are given back or donated early. */
#include <stdint.h>
#include <string.h>

#include "counter.h"
#include "testing.h"

enum { kElements = 100000 };

static float* numbers(float first) {
  float* data = malloc(kElements * sizeof(float));
  CHECK(data);
  for (int i = 0; i < kElements; ++i) data[i] = first + (float)i;
  return data;
}

static int is_times(const float* product, const float* data, float factor) {
  for (int i = 0; i < kElements; ++i) {
    if (product[i] != factor * data[i]) return 0;
  }
  return 1;
}

static const int64_t kDims[1] = {kElements};
static const size_t kBytes = kElements * sizeof(float);

static kiln_buffer* start_upload(kiln_device* device, const float* data, kiln_event** done) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host_async(device, KILN_F32, kDims, 1, data, kBytes, done, &buffer));
  return buffer;
}

static void finish(kiln_event* event) {
  OK(kiln_event_wait(event, -1));
  kiln_event_release(event);
}

/* x + x. */
static kiln_executable* doubling(kiln_context* context, kiln_device* device) {
  kiln_graph* g = make_graph(context, "doubling");
  kiln_value x = kiln_op_parameter(g, KILN_F32, kDims, 1, "x", 1);
  return compile_in_place(g, kiln_op_add(g, x, x), device);
}

static kiln_buffer* start(kiln_executable* e, const kiln_execute_options* options,
                          kiln_buffer* argument, kiln_event** event) {
  kiln_buffer* result = NULL;
  kiln_buffer* const* arguments = &argument;
  kiln_buffer** results = &result;
  OK(kiln_executable_execute(e, options, &arguments, 1, &results, 1, 1, event));
  return result;
}

/* Up, doubled, and down again, and nobody waits in between. */
static void there_and_back(kiln_context* context, const char* name) {
  kiln_device* device = find_device(context, name);
  kiln_executable* e = doubling(context, device);
  float* data = numbers(1);
  float* back = calloc(kElements, sizeof(float));
  float* doubled = calloc(kElements, sizeof(float));
  kiln_event *up = NULL, *run = NULL, *down[2] = {NULL, NULL};
  kiln_buffer* x = start_upload(device, data, &up);
  OK(kiln_buffer_copy_to_host_async(x, back, kBytes, &down[0]));
  /* The copy that is still to come has its elements from before the donation. */
  kiln_execute_options options;
  kiln_execute_options_init(&options, sizeof options);
  options.donate_aliased = 1;
  kiln_buffer* y = start(e, &options, x, &run);
  OK(kiln_buffer_copy_to_host_async(y, doubled, kBytes, &down[1]));
  kiln_event* none = NULL;
  FAILS(KILN_FAILED_PRECONDITION, "donated",
        kiln_buffer_copy_to_host_async(x, back, kBytes, &none));
  kiln_buffer* no_copy = NULL;
  FAILS(KILN_FAILED_PRECONDITION, "donated",
        kiln_buffer_copy_to_device_async(x, device, NULL, &no_copy));
  FAILS(KILN_INVALID_ARGUMENT, "bytes is 4", kiln_buffer_copy_to_host_async(y, back, 4, &none));
  FAILS(KILN_INVALID_ARGUMENT, "done is NULL",
        kiln_buffer_copy_to_host_async(y, back, kBytes, NULL));
  CHECK(!none && !no_copy);
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  finish(up);
  finish(run);
  finish(down[0]);
  finish(down[1]);
  CHECK(is_times(back, data, 1) && is_times(doubled, data, 2));
  free(data);
  free(back);
  free(doubled);
  kiln_executable_release(e);
}

/* From one device to the next one, with work on each. */
static void around(kiln_context* context) {
  const size_t count = kiln_context_device_count(context);
  float* data = numbers(3);
  float* back = calloc(kElements, sizeof(float));
  kiln_event* up = NULL;
  kiln_buffer* x = start_upload(kiln_context_device(context, 0), data, &up);
  finish(up);
  for (size_t i = 0; i < count; ++i) {
    kiln_device* device = kiln_context_device(context, i);
    kiln_executable* e = doubling(context, device);
    kiln_event* copied = NULL;
    kiln_buffer* here = NULL;
    OK(kiln_buffer_copy_to_device_async(x, device, i % 2 ? &copied : NULL, &here));
    CHECK(kiln_buffer_device(here) == device);
    kiln_buffer_release(x);
    kiln_event* run = NULL;
    x = start(e, NULL, here, &run);
    kiln_buffer_release(here);
    kiln_executable_release(e);
    if (copied) finish(copied);
    kiln_event_release(run);
  }
  kiln_event* down = NULL;
  OK(kiln_buffer_copy_to_host_async(x, back, kBytes, &down));
  kiln_buffer_release(x);
  finish(down);
  CHECK(is_times(back, data, (float)(1 << count)));
  free(data);
  free(back);
}

/* A device that is at work does not hold up another one; what needs its result waits for it, and
 * fails with it. */
static void several_queues(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_device* other = find_device(context, "XLA_CPU:0");
  kiln_executable* endless = counter(context, cpu);
  kiln_executable* quick = doubling(context, other);
  kiln_executable* next = counter(context, other);
  const int64_t most = INT64_MAX;
  kiln_buffer* limit = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_S64, NULL, 0, &most, 8, &limit));
  int32_t cancel = 0;
  kiln_execute_options options;
  kiln_execute_options_init(&options, sizeof options);
  options.cancel = &cancel;
  kiln_event *run = NULL, *copied = NULL, *after = NULL, *down = NULL;
  kiln_buffer* counted = start(endless, &options, limit, &run);
  kiln_buffer* there = NULL;
  OK(kiln_buffer_copy_to_device_async(counted, other, &copied, &there));
  CHECK(!kiln_event_is_ready(run) && !kiln_event_is_ready(copied));

  float* data = numbers(5);
  kiln_event *up = NULL, *doubled = NULL;
  kiln_buffer* x = start_upload(other, data, &up);
  kiln_buffer* y = start(quick, NULL, x, &doubled);
  finish(up);
  finish(doubled);
  CHECK(!kiln_event_is_ready(run));

  kiln_buffer* failed = start(next, NULL, there, &after);
  int64_t value = -1;
  OK(kiln_buffer_copy_to_host_async(failed, &value, 8, &down));
  FAILS(KILN_DEADLINE_EXCEEDED, "", kiln_event_wait(after, 1000000));
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  FAILS(KILN_CANCELLED, "", kiln_event_wait(run, -1));
  FAILS(KILN_CANCELLED, "", kiln_event_wait(copied, -1));
  FAILS(KILN_CANCELLED, "", kiln_event_wait(after, -1));
  FAILS(KILN_CANCELLED, "", kiln_event_wait(down, -1));
  CHECK(value == -1);
  kiln_event_release(run);
  kiln_event_release(copied);
  kiln_event_release(after);
  kiln_event_release(down);
  /* The failure is the value's until another one is written. */
  FAILS(KILN_CANCELLED, "", kiln_buffer_copy_to_host(there, &value, 8));
  kiln_buffer_release(limit);
  kiln_buffer_release(counted);
  kiln_buffer_release(there);
  kiln_buffer_release(failed);
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_executable_release(endless);
  kiln_executable_release(quick);
  kiln_executable_release(next);
  free(data);
}

/* To a device of another context, which may go first. */
static void between_contexts(kiln_context* context) {
  kiln_context* second = make_context(2);
  float* data = numbers(7);
  float* back = calloc(kElements, sizeof(float));
  kiln_event *up = NULL, *copied = NULL;
  kiln_buffer* x = start_upload(find_device(context, "CPU:0"), data, &up);
  kiln_buffer* there = NULL;
  OK(kiln_buffer_copy_to_device_async(x, find_device(second, "CPU:0"), &copied, &there));
  kiln_context_release(second);
  OK(kiln_buffer_copy_to_host(there, back, kBytes));
  CHECK(memcmp(back, data, kBytes) == 0);
  kiln_buffer_release(there);
  kiln_buffer_release(x);
  finish(up);
  finish(copied);
  free(data);
  free(back);
}

static void count(void* calls) { ++*(int*)calls; }

/* The last use of the user's memory ends on a thread of the library: its deleter is called by the
 * user's next call, which may be one that asks for the memory in use. */
static void asking_for_memory_calls_deleters(kiln_context* context) {
  enum { kElements = 1 << 18 };
  static float memory[kElements];
  kiln_device *cpu = find_device(context, "CPU:0"), *xla = find_device(context, "XLA_CPU:0");
  for (int by_device = 0; by_device < 2; ++by_device) {
    const int64_t size = kElements;
    int deleted = 0;
    kiln_buffer *own = NULL, *copy = NULL;
    OK(kiln_buffer_adopt_host(cpu, KILN_F32, &size, 1, memory, sizeof memory, count, &deleted,
                              &own));
    kiln_event* event = NULL;
    OK(kiln_buffer_copy_to_device_async(own, xla, &event, &copy));
    kiln_buffer_release(own);
    while (!kiln_event_is_ready(event)) continue;
    kiln_event_release(event);
    kiln_memory_info now = KILN_MEMORY_INFO_INIT;
    if (by_device) {
      OK(kiln_device_memory(cpu, &now));
    } else {
      OK(kiln_context_memory(context, &now));
    }
    CHECK(deleted == 1);
    kiln_buffer_release(copy);
  }
}

int main(void) {
  for (int threads = 1; threads <= 2; ++threads) {
    kiln_context* context = make_context_with(threads, tested_gpu());
    static const char* const devices[] = {"CPU:0", "XLA_CPU:0", "REFERENCE:0", "GPU:0",
                                          "XLA_GPU:0"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; ++i) {
      there_and_back(context, devices[i]);
    }
    around(context);
    if (threads > 1) several_queues(context);
    asking_for_memory_calls_deleters(context);
    between_contexts(context);
    kiln_context_release(context);
  }
  return test_result();
}
