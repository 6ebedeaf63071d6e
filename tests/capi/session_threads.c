/* Eight threads in one session, with runs that are cancelled, before they begin or at any time, and
 * runs that fail: variables hold what the runs that succeeded have assigned, and nothing else.
 *
 *   session_threads [RUNS]   runs of each thread */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "testing.h"

enum { kThreads = 8, kElements = 4096 };

static kiln_context* context;
static kiln_device *cpu, *xla;
static kiln_session* session;
static kiln_value x_value, holds_value, checked_value, sum_value, pair_value;
static int runs = 150;
static int64_t succeeded[kThreads], strange[kThreads];
/* The flag of each thread's run, set by another thread at any time. */
static int32_t cancel_flags[kThreads];
static int32_t canceller_ends;

/* total += x on one device, twice += x on the other; a loop between; and an assertion. */
static void build(kiln_jit jit) {
  const int64_t size = kElements, zero = 0;
  kiln_graph* g = make_graph(context, "threads");
  x_value = f32_parameter(g, "x", kElements);
  holds_value = kiln_op_parameter(g, KILN_PRED, NULL, 0, "holds", 5);
  kiln_value y = x_value;
  for (int i = 0; i < 6; ++i) y = kiln_op_add(g, kiln_op_multiply(g, y, y), x_value);
  kiln_value step = kiln_op_select(g, kiln_op_compare(g, y, x_value, KILN_GE), x_value, x_value);
  kiln_value total = kiln_op_assign_add(g, step, "total", 5);
  OK(kiln_graph_push_device(g, "XLA_CPU:0", 9));
  kiln_value twin = kiln_op_assign(g, kiln_op_add(g, total, total), "twice", 5);
  OK(kiln_graph_pop_device(g));
  pair_value = kiln_op_variable(g, "twice", 5, KILN_F32, &size, 1);
  checked_value = kiln_op_assert(g, holds_value, twin, NULL, 0, "it does not hold", 16);
  sum_value = kiln_op_reduce_by(g, checked_value, &zero, 1, KILN_REDUCER_SUM);
  OK(kiln_graph_status(g));
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  OK(kiln_session_create(g, &options, &session));
  kiln_graph_release(g);
  float zeros[kElements] = {0};
  kiln_buffer* start = f32_buffer(cpu, zeros, kElements);
  OK(kiln_session_set_variable(session, "total", 5, start));
  OK(kiln_session_set_variable(session, "twice", 5, start));
  kiln_buffer_release(start);
}

static void* cancel_runs(void* argument) {
  (void)argument;
  unsigned state = 99;
  while (!__atomic_load_n(&canceller_ends, __ATOMIC_RELAXED)) {
    state = state * 1664525u + 1013904223u;
    __atomic_store_n(&cancel_flags[(state >> 16) % kThreads], 1, __ATOMIC_RELAXED);
    const struct timespec pause = {0, (long)((state >> 8) % 200000)};
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static void* work(void* argument) {
  const size_t t = (size_t)argument;
  float ones[kElements];
  for (int i = 0; i < kElements; ++i) ones[i] = 1;
  unsigned state = 12345u + (unsigned)t;
  kiln_buffer* x = f32_buffer(t % 2 ? cpu : xla, ones, kElements);
  for (int run = 0; run < runs; ++run) {
    state = state * 1664525u + 1013904223u;
    const unsigned kind = (state >> 16) % 8;
    unsigned char holds = kind != 0;
    const int32_t always = 1;
    __atomic_store_n(&cancel_flags[t], 0, __ATOMIC_RELAXED);
    kiln_buffer *flag = NULL, *sum = NULL;
    OK(kiln_buffer_copy_host(cpu, KILN_PRED, NULL, 0, &holds, 1, &flag));
    kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
    const int is_left_alone = kind >= 5;
    options.cancel = kind == 1 ? &always : is_left_alone ? NULL : &cancel_flags[t];
    const kiln_value feeds[2] = {x_value, holds_value};
    kiln_buffer* const buffers[2] = {x, flag};
    kiln_error* error =
        kiln_session_run(session, &options, feeds, buffers, 2, &sum_value, &sum, 1, NULL, 0);
    if (!error) {
      ++succeeded[t];
      if (!holds || kind == 1) ++strange[t];
      /* All elements are equal, and even. */
      float value = -1;
      OK(kiln_buffer_copy_to_host(sum, &value, sizeof value));
      const float each = value / kElements;
      if (each < 2 || each / 2 != (float)(int)(each / 2)) ++strange[t];
    } else {
      const kiln_code code = kiln_error_code(error);
      const int is_cancelled = code == KILN_CANCELLED && !is_left_alone;
      if (!is_cancelled && (holds || code != KILN_INVALID_ARGUMENT)) ++strange[t];
      if (sum) ++strange[t];
      kiln_error_release(error);
    }
    kiln_buffer_release(sum);
    kiln_buffer_release(flag);
    /* A run that only reads sees one state of the variable. */
    if (kind == 2) {
      kiln_buffer* pair = NULL;
      OK(kiln_session_run(session, NULL, NULL, NULL, 0, &pair_value, &pair, 1, NULL, 0));
      float seen[kElements];
      OK(kiln_buffer_copy_to_host(pair, seen, sizeof seen));
      for (int i = 1; i < kElements; ++i) strange[t] += seen[i] != seen[0];
      kiln_buffer_release(pair);
    }
  }
  kiln_buffer_release(x);
  return NULL;
}

static float first_of(const char* name) {
  kiln_buffer* value = NULL;
  float elements[kElements];
  OK(kiln_session_variable(session, name, strlen(name), &value));
  OK(kiln_buffer_copy_to_host(value, elements, sizeof elements));
  kiln_buffer_release(value);
  return elements[kElements - 1];
}

int main(int argc, char** argv) {
  if (argc > 1) runs = atoi(argv[1]);
  context = make_context(4);
  cpu = find_device(context, "CPU:0");
  xla = find_device(context, "XLA_CPU:0");
  const kiln_jit levels[] = {KILN_JIT_OFF, KILN_JIT_ON};
  for (int level = 0; level < 2; ++level) {
    build(levels[level]);
    pthread_t threads[kThreads], canceller;
    int64_t all = 0;
    canceller_ends = 0;
    CHECK(pthread_create(&canceller, NULL, cancel_runs, NULL) == 0);
    for (size_t t = 0; t < kThreads; ++t) {
      succeeded[t] = strange[t] = 0;
      CHECK(pthread_create(&threads[t], NULL, work, (void*)t) == 0);
    }
    for (size_t t = 0; t < kThreads; ++t) {
      CHECK(pthread_join(threads[t], NULL) == 0);
      CHECK(strange[t] == 0);
      all += succeeded[t];
    }
    __atomic_store_n(&canceller_ends, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(canceller, NULL) == 0);
    CHECK(all > kThreads * runs / 4 && all < kThreads * runs);
    CHECK(first_of("total") == (float)all);
    CHECK(first_of("twice") == 2 * (float)all);
    kiln_session_release(session);
  }
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
