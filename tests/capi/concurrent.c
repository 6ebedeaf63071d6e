/* Eight threads on one executable and one session, each with its own buffers; and the same bits
 * from any number of threads. */
#include <pthread.h>
#include <stdint.h>

#include "testing.h"

enum { kThreads = 8, kRuns = 60, kRows = 96, kColumns = 80 };

static kiln_context* context;
static kiln_device* cpu;
static kiln_executable* executable;
static kiln_session* session;
static kiln_value x_value, w_value, result_value;
static float inputs[kThreads][kRows * kColumns], weights[kColumns * kColumns];
static float expected[kThreads][kRows];
static const int64_t x_dims[2] = {kRows, kColumns}, w_dims[2] = {kColumns, kColumns};
static const int64_t rows = kRows;

static kiln_buffer* matrix(const int64_t* dims, const float* data) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_F32, dims, 2, data,
                           sizeof(float) * (size_t)(dims[0] * dims[1]), &buffer));
  return buffer;
}

/* Row sums of tanh(x w). */
static void build(void) {
  kiln_graph* g = make_graph(context, "rows");
  x_value = kiln_op_parameter(g, KILN_F32, x_dims, 2, "x", 1);
  w_value = kiln_op_parameter(g, KILN_F32, w_dims, 2, "w", 1);
  int64_t one = 1, zero = 0;
  kiln_value y =
      kiln_op_tanh(g, kiln_op_dot(g, x_value, w_value, NULL, 0, NULL, 0, &one, 1, &zero, 1, 0));
  result_value = kiln_op_reduce_by(g, y, &one, 1, KILN_REDUCER_SUM);
  OK(kiln_graph_set_results(g, &result_value, 1));
  OK(kiln_graph_compile(g, NULL, &executable));
  OK(kiln_session_create(g, NULL, &session));
  kiln_graph_release(g);
}

static void* work(void* argument) {
  size_t t = (size_t)argument;
  kiln_buffer* args[2] = {matrix(x_dims, inputs[t]), matrix(w_dims, weights)};
  kiln_value feeds[2] = {x_value, w_value};
  kiln_buffer *result = NULL, *fetched = NULL;
  size_t wrong = 0;
  for (int run = 0; run < kRuns; ++run) {
    float values[kRows];
    OK(kiln_executable_run(executable, NULL, args, 2, &result, 1));
    OK(kiln_buffer_copy_to_host(result, values, sizeof values));
    if (memcmp(values, expected[t], sizeof values) != 0) ++wrong;
    if (run % 10 == 0) {
      OK(kiln_session_run(session, NULL, feeds, args, 2, &result_value, &fetched, 1, NULL, 0));
      OK(kiln_buffer_copy_to_host(fetched, values, sizeof values));
      for (int i = 0; i < kRows; ++i) {
        float difference = values[i] - expected[t][i];
        if (difference > 1e-4f || difference < -1e-4f) ++wrong;
      }
    }
    if (run % 7 == 0) {
      /* Behind the back of the thread, in between. */
      kiln_buffer* const* lists[1] = {args};
      kiln_buffer* later = NULL;
      kiln_buffer** results[1] = {&later};
      kiln_event* event = NULL;
      OK(kiln_executable_execute(executable, NULL, lists, 2, results, 1, 1, &event));
      OK(kiln_buffer_copy_to_host(later, values, sizeof values));
      if (memcmp(values, expected[t], sizeof values) != 0) ++wrong;
      kiln_event_release(event);
      kiln_buffer_release(later);
    }
  }
  kiln_buffer_release(args[0]);
  kiln_buffer_release(args[1]);
  kiln_buffer_release(result);
  kiln_buffer_release(fetched);
  return (void*)wrong;
}

int main(void) {
  context = make_context(2);
  cpu = kiln_context_device(context, 0);
  uint32_t random = 1;
  for (int i = 0; i < kColumns * kColumns; ++i) {
    random = random * 1664525 + 1013904223;
    weights[i] = (float)(random >> 8) / 16777216.0f - 0.5f;
  }
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kRows * kColumns; ++i) {
      random = random * 1664525 + 1013904223;
      inputs[t][i] = (float)(random >> 8) / 16777216.0f - 0.5f;
    }
  }
  build();
  /* The same bits, whether one thread runs it or two. */
  kiln_execute_options options;
  kiln_execute_options_init(&options, sizeof options);
  for (int t = 0; t < kThreads; ++t) {
    kiln_buffer* args[2] = {matrix(x_dims, inputs[t]), matrix(w_dims, weights)};
    kiln_buffer* result = NULL;
    OK(kiln_buffer_create(cpu, KILN_F32, &rows, 1, &result));
    options.threads = 1;
    OK(kiln_executable_run(executable, &options, args, 2, &result, 1));
    OK(kiln_buffer_copy_to_host(result, expected[t], sizeof expected[t]));
    float again[kRows];
    options.threads = 2;
    OK(kiln_executable_run(executable, &options, args, 2, &result, 1));
    OK(kiln_buffer_copy_to_host(result, again, sizeof again));
    CHECK(memcmp(again, expected[t], sizeof again) == 0);
    kiln_buffer_release(args[0]);
    kiln_buffer_release(args[1]);
    kiln_buffer_release(result);
  }
  pthread_t threads[kThreads];
  for (size_t t = 0; t < kThreads; ++t)
    CHECK(pthread_create(&threads[t], NULL, work, (void*)t) == 0);
  for (size_t t = 0; t < kThreads; ++t) {
    void* wrong = NULL;
    CHECK(pthread_join(threads[t], &wrong) == 0);
    CHECK(wrong == NULL);
  }
  kiln_session_release(session);
  kiln_executable_release(executable);
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
