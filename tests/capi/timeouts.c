/* Executions with a time limit: endless ones end with DEADLINE_EXCEEDED, wherever they run. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "testing.h"

enum { kLimitMs = 40, kMostMs = 5000 };

static kiln_context* context;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Counts without an end. */
static const char kEndless[] =
    "HloModule endless\n"
    "condition {\n  c = s32[] parameter(0)\n  zero = s32[] constant(0)\n"
    "  ROOT go = pred[] compare(c, zero), direction=NE\n}\n"
    "body {\n  b = s32[] parameter(0)\n  two = s32[] constant(2)\n"
    "  ROOT next = s32[] add(b, two)\n}\n"
    "ENTRY e {\n  x = s32[] parameter(0)\n  ROOT w = s32[] while(x), condition=condition, "
    "body=body\n}\n";

static kiln_buffer* one(kiln_device* device) {
  const int32_t value = 1;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_S32, NULL, 0, &value, sizeof value, &buffer));
  return buffer;
}

static void check(const char* device_name) {
  kiln_device* device = find_device(context, device_name);
  kiln_graph* g = NULL;
  OK(kiln_graph_from_hlo_text(context, kEndless, sizeof kEndless - 1, &g));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(g, &options, &executable));
  kiln_buffer* argument = one(device);
  kiln_execute_options execute = KILN_EXECUTE_OPTIONS_INIT;
  execute.timeout_ns = kLimitMs * INT64_C(1000000);
  kiln_buffer* result = NULL;

  int64_t start = now_ms();
  FAILS(KILN_DEADLINE_EXCEEDED, "time limit",
        kiln_executable_run(executable, &execute, &argument, 1, &result, 1));
  CHECK(now_ms() - start >= kLimitMs && now_ms() - start < kMostMs);
  CHECK(result == NULL);

  /* The caller's flag is another end. */
  int32_t cancel = 1;
  execute.cancel = &cancel;
  FAILS(KILN_CANCELLED, "cancelled",
        kiln_executable_run(executable, &execute, &argument, 1, &result, 1));
  execute.cancel = NULL;

  /* In a queue: a failure of the event, and of those that use the result. */
  kiln_buffer* const* arguments[] = {&argument};
  kiln_buffer** results[] = {&result};
  kiln_event* event = NULL;
  OK(kiln_executable_execute(executable, &execute, arguments, 1, results, 1, 1, &event));
  FAILS(KILN_DEADLINE_EXCEEDED, "time limit", kiln_event_wait(event, -1));
  kiln_event_release(event);
  int32_t value = 0;
  FAILS(KILN_DEADLINE_EXCEEDED, "time limit", kiln_buffer_copy_to_host(result, &value, 4));
  kiln_buffer_release(result);
  result = NULL;

  kiln_session* session = NULL;
  kiln_session_options session_options = KILN_SESSION_OPTIONS_INIT;
  session_options.device = device;
  OK(kiln_session_create(g, &session_options, &session));
  const kiln_value fed = kiln_graph_parameter(g, 0), fetched = kiln_graph_result(g);
  FAILS(KILN_DEADLINE_EXCEEDED, "time limit",
        kiln_session_run(session, &execute, &fed, &argument, 1, &fetched, &result, 1, NULL, 0));
  CHECK(result == NULL);
  kiln_session_release(session);

  execute.timeout_ns = -1;
  FAILS(KILN_INVALID_ARGUMENT, "timeout_ns is -1",
        kiln_executable_run(executable, &execute, &argument, 1, &result, 1));
  kiln_buffer_release(argument);
  kiln_executable_release(executable);
  kiln_graph_release(g);
}

/* A run of `waiting`, an endless one that assigns a variable. */
struct waiting {
  kiln_session* session;
  kiln_value fed, assigned;
  kiln_buffer* argument;
  int32_t cancel;
};

static void* run_without_end(void* argument) {
  struct waiting* w = argument;
  kiln_execute_options execute = KILN_EXECUTE_OPTIONS_INIT;
  execute.cancel = &w->cancel;
  FAILS(KILN_CANCELLED, "cancelled",
        kiln_session_run(w->session, &execute, &w->fed, &w->argument, 1, NULL, NULL, 0,
                         &w->assigned, 1));
  return NULL;
}

/* Runs that assign the variable wait for the first one, and no longer than their own limits. */
static void while_waiting_for_variables(void) {
  kiln_device* device = find_device(context, "CPU:0");
  kiln_graph* g = NULL;
  OK(kiln_graph_from_hlo_text(context, kEndless, sizeof kEndless - 1, &g));
  struct waiting w = {.fed = kiln_graph_parameter(g, 0), .argument = one(device)};
  w.assigned = kiln_op_assign(g, kiln_graph_result(g), "v", 1);
  OK(kiln_graph_status(g));
  OK(kiln_session_create(g, NULL, &w.session));
  OK(kiln_session_prepare(w.session, &w.fed, 1, NULL, 0, &w.assigned, 1, NULL));
  pthread_t first;
  CHECK(pthread_create(&first, NULL, run_without_end, &w) == 0);
  const struct timespec pause = {0, 50 * 1000000};
  nanosleep(&pause, NULL);
  kiln_execute_options execute = KILN_EXECUTE_OPTIONS_INIT;
  execute.timeout_ns = kLimitMs * INT64_C(1000000);
  int64_t start = now_ms();
  FAILS(
      KILN_DEADLINE_EXCEEDED, "time limit",
      kiln_session_run(w.session, &execute, &w.fed, &w.argument, 1, NULL, NULL, 0, &w.assigned, 1));
  CHECK(now_ms() - start < kMostMs);
  __atomic_store_n(&w.cancel, 1, __ATOMIC_RELAXED);
  CHECK(pthread_join(first, NULL) == 0);
  kiln_session_release(w.session);
  kiln_buffer_release(w.argument);
  kiln_graph_release(g);
}

/* Limits that are far away change nothing. */
static void in_time(void) {
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_graph* g = make_graph(context, "quick");
  kiln_value x = f32_parameter(g, "x", 3);
  kiln_executable* executable = compile_result(g, kiln_op_negate(g, x), cpu);
  kiln_buffer* argument = f32_buffer(cpu, (const float[]){1, 2, 3}, 3);
  kiln_execute_options execute = KILN_EXECUTE_OPTIONS_INIT;
  execute.timeout_ns = INT64_C(60000000000);
  for (int i = 0; i < 1000; ++i) {
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(executable, &execute, &argument, 1, &result, 1));
    if (i == 0) expect_f32(result, (const float[]){-1, -2, -3}, 3);
    kiln_buffer_release(result);
  }
  kiln_buffer_release(argument);
  kiln_executable_release(executable);
}

int main(void) {
  context = make_context(2);
  check("CPU:0");
  check("XLA_CPU:0");
  check("REFERENCE:0");
  while_waiting_for_variables();
  in_time();
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
