/* Threads bind weights anew while others execute, synchronously and not: every result is of one
 * binding, and a later execution of a thread is of no earlier binding than its former one. */
#include <pthread.h>
#include <stdatomic.h>

#include "testing.h"

enum { kRunners = 3, kRounds = 150, kSize = 64 };

static kiln_context* context;
static kiln_device* device;
static kiln_executable* executable;
static atomic_int done, wrong;

static kiln_buffer* filled(float value) {
  static const int64_t kDims[] = {kSize, kSize};
  float values[kSize * kSize];
  for (int i = 0; i < kSize * kSize; ++i) values[i] = value;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, kDims, 2, values, sizeof values, &buffer));
  return buffer;
}

/* The packed factor is `value` everywhere, and the one read as it is, too. */
static void bind_both(float value) {
  const size_t both[] = {1, 2};
  kiln_buffer* buffers[] = {filled(value), filled(value)};
  OK(kiln_executable_bind(executable, both, buffers, 2));
  for (int i = 0; i < 2; ++i) kiln_buffer_release(buffers[i]);
}

static void* run(void* argument) {
  const int asynchronous = argument != NULL;
  kiln_buffer* x = filled(1);
  float last = 0, values[kSize * kSize];
  while (!done) {
    kiln_buffer* result = NULL;
    if (asynchronous) {
      kiln_buffer* const* arguments = &x;
      kiln_buffer** results = &result;
      kiln_event* event = NULL;
      OK(kiln_executable_execute(executable, NULL, &arguments, 1, &results, 1, 1, &event));
      OK(kiln_event_wait(event, -1));
      kiln_event_release(event);
    } else {
      OK(kiln_executable_run(executable, NULL, &x, 1, &result, 1));
    }
    OK(kiln_buffer_copy_to_host(result, values, sizeof values));
    kiln_buffer_release(result);
    /* kSize products of the packed factor, and one of the other. */
    const float of = values[0] / (kSize + 1);
    if (of < last) ++wrong;
    last = of;
    for (int i = 0; i < kSize * kSize; ++i) wrong += values[i] != of * (kSize + 1);
  }
  kiln_buffer_release(x);
  return NULL;
}

static void test(void) {
  const int64_t dims[] = {kSize, kSize};
  kiln_graph* g = make_graph(context, "sum");
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  kiln_value w = kiln_op_parameter(g, KILN_F32, dims, 2, "w", 1);
  kiln_value v = kiln_op_parameter(g, KILN_F32, dims, 2, "v", 1);
  const int64_t one = 1, zero = 0;
  kiln_value p = kiln_op_dot(g, x, w, NULL, 0, NULL, 0, &one, 1, &zero, 1, KILN_F32);
  kiln_value sum = kiln_op_add(g, p, kiln_op_multiply(g, x, v));
  OK(kiln_graph_set_results(g, &sum, 1));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.frozen_names = "w\nv";
  options.frozen_names_length = 3;
  OK(kiln_graph_compile(g, &options, &executable));
  kiln_graph_release(g);
  bind_both(1);
  done = 0;
  pthread_t runners[kRunners];
  for (int i = 0; i < kRunners; ++i) pthread_create(&runners[i], NULL, run, i ? &done : NULL);
  for (int round = 2; round < kRounds; ++round) bind_both((float)round);
  done = 1;
  for (int i = 0; i < kRunners; ++i) pthread_join(runners[i], NULL);
  /* The last one counts. */
  kiln_buffer *one_more = filled(1), *result = NULL;
  OK(kiln_executable_run(executable, NULL, &one_more, 1, &result, 1));
  float values[kSize * kSize];
  OK(kiln_buffer_copy_to_host(result, values, sizeof values));
  CHECK(values[5] == (kRounds - 1) * (kSize + 1));
  kiln_buffer_release(one_more);
  kiln_buffer_release(result);
  kiln_executable_release(executable);
}

int main(void) {
  context = make_context_with(2, tested_gpu());
  static const char* const kDevices[] = {"CPU:0", "GPU:0"};
  for (int d = 0; d < 2; ++d) {
    device = find_device(context, kDevices[d]);
    test();
  }
  CHECK(wrong == 0);
  kiln_context_release(context);
  return test_result();
}
