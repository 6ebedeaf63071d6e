/* Values that are handed on again and again: what is kept for one must not grow with the number of
 * steps, and giving it back must not take a stack that does. */
#ifndef KILN_TESTS_CAPI_CHAINS_H_
#define KILN_TESTS_CAPI_CHAINS_H_

#include <malloc.h>

#include "testing.h"

/* What the process has of malloc's memory. Under sanitizers, which have a heap of their own, it is
 * always the same. */
static inline long long heap_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return (long long)info.uordblks + (long long)info.hblkhd;
}

/* x + 1, in the memory of x where that is donated. */
static inline kiln_executable* compile_step(kiln_context* context, kiln_device* device) {
  kiln_graph* g = make_graph(context, "step");
  kiln_value x = f32_parameter(g, "x", 4);
  return compile_in_place(g, kiln_op_add(g, x, kiln_op_scalar(g, KILN_F32, 1)), device);
}

/* Each step is made of the one before it by `step`, whose reference to that it takes. */
typedef kiln_buffer* (*chain_step)(void* user_data, kiln_buffer* state);

/* `steps` steps, from zeros on: nothing is kept of them. Each adds `added` to the elements; the
 * stand-in for a driver, which does not compute, adds 0. */
static inline void expect_constant_memory(const char* what, kiln_device* device, long steps,
                                          float added, chain_step step, void* user_data) {
  const float zeros[4] = {0};
  kiln_buffer* state = f32_buffer(device, zeros, 4);
  long long at_first = 0;
  for (long i = 0; i < steps && state; ++i) {
    if (i == steps / 4) at_first = heap_bytes();
    state = step(user_data, state);
  }
  if (!state) return;
  /* What malloc keeps for threads and what is being put off is not much. */
  const float value = added * (float)steps;
  const float expected[4] = {value, value, value, value};
  expect_f32(state, expected, 4);
  long long grown = heap_bytes() - at_first;
  if (grown > 16384) {
    printf("%s on %s: %lld bytes are kept of %ld steps\n", what, kiln_device_name(device, NULL),
           grown, steps - steps / 4);
    ++failed_checks;
  }
  kiln_buffer_release(state);
}

static inline kiln_buffer* run_step(void* executable, kiln_buffer* state) {
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donate_aliased = 1;
  kiln_buffer* next = NULL;
  OK(kiln_executable_run(executable, &options, &state, 1, &next, 1));
  kiln_buffer_release(state);
  return next;
}

/* Queued, and waited for now and then only. */
typedef struct {
  kiln_executable* executable;
  long count;
} queued_steps;

static inline kiln_buffer* queue_step(void* user_data, kiln_buffer* state) {
  queued_steps* queued = user_data;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donate_aliased = 1;
  kiln_buffer* next = NULL;
  kiln_buffer* const* arguments = &state;
  kiln_buffer** results = &next;
  kiln_event* event = NULL;
  OK(kiln_executable_execute(queued->executable, &options, &arguments, 1, &results, 1, 1, &event));
  kiln_buffer_release(state);
  if (++queued->count % 64 == 0) OK(kiln_event_wait(event, -1));
  kiln_event_release(event);
  return next;
}

static inline void expect_no_chains(kiln_context* context, const char* name, long steps,
                                    float added) {
  kiln_device* device = find_device(context, name);
  kiln_executable* executable = compile_step(context, device);
  if (!executable) return;
  expect_constant_memory("runs", device, steps, added, run_step, executable);
  queued_steps queued = {executable, 0};
  expect_constant_memory("queued runs", device, steps, added, queue_step, &queued);
  kiln_executable_release(executable);
}

#endif /* KILN_TESTS_CAPI_CHAINS_H_ */
