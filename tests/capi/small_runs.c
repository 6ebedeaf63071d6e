/* Executions that are small are over when the call that asks for them returns, unless they have to
 * wait for others: then all is as if they had been queued. */
#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;

/* x + 1, of so many elements. */
static kiln_executable* plus_one(int64_t size) {
  kiln_graph* g = make_graph(context, "plus");
  kiln_value x = f32_parameter(g, "x", size);
  return compile_result(g, kiln_op_add(g, x, kiln_op_scalar(g, KILN_F32, 1)), cpu);
}

/* As long as `size` is large: a sum over products, of all pairs; its result is of `size` numbers.
 */
static kiln_executable* slow(int64_t size) {
  kiln_graph* g = make_graph(context, "slow");
  const int64_t square[] = {size, size}, first[] = {0};
  kiln_value x = f32_parameter(g, "x", size);
  kiln_value wide = kiln_op_broadcast(g, x, first, 1, square, 2);
  for (int i = 0; i < 4; ++i) wide = kiln_op_tanh(g, kiln_op_matmul(g, wide, wide));
  const int64_t dimension[] = {1};
  return compile_result(g, kiln_op_reduce_by(g, wide, dimension, 1, KILN_REDUCER_SUM), cpu);
}

static kiln_event* execute(kiln_executable* e, kiln_buffer* argument, kiln_buffer** result) {
  kiln_buffer* const* arguments = &argument;
  kiln_event* event = NULL;
  OK(kiln_executable_execute(e, NULL, &arguments, 1, &result, 1, 1, &event));
  return event;
}

typedef struct {
  int calls, destroyed, code;
} told;

static void on_ready(void* user_data, const kiln_error* error) {
  told* t = user_data;
  ++t->calls;
  t->code = kiln_error_code(error);
}
static void on_gone(void* user_data) { ++((told*)user_data)->destroyed; }

static kiln_error* fails(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  (void)call;
  return kiln_error_create(KILN_DATA_LOSS, "lost", 4);
}

static void at_once(void) {
  const float values[4] = {1, 2, 3, 4}, next[4] = {2, 3, 4, 5};
  kiln_executable* small = plus_one(4);
  kiln_buffer *x = f32_buffer(cpu, values, 4), *y = NULL;
  kiln_event* event = execute(small, x, &y);
  CHECK(kiln_event_is_ready(event));
  OK(kiln_event_wait(event, 0));
  told t = {0, 0, 7};
  OK(kiln_event_on_ready(event, on_ready, &t, on_gone));
  CHECK(t.calls == 1 && t.destroyed == 1 && t.code == KILN_OK);
  kiln_event_release(event);
  expect_f32(y, next, 4);
  /* Into the same buffer again, and with it donated. */
  event = execute(small, x, &y);
  CHECK(kiln_event_is_ready(event));
  kiln_event_release(event);
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  size_t zero = 0;
  options.donated = &zero;
  options.donated_count = 1;
  kiln_buffer *z = NULL, *const *arguments = &y, **results = &z;
  OK(kiln_executable_execute(small, &options, &arguments, 1, &results, 1, 1, &event));
  CHECK(kiln_event_is_ready(event));
  kiln_event_release(event);
  FAILS(KILN_FAILED_PRECONDITION, "has been donated",
        kiln_executable_execute(small, &options, &arguments, 1, &results, 1, 1, &event));
  kiln_buffer_release(z);
  kiln_buffer_release(y);

  /* What has been cancelled is the event's to tell, and that of what uses it. */
  int32_t cancel = 1;
  options = (kiln_execute_options)KILN_EXECUTE_OPTIONS_INIT;
  options.cancel = &cancel;
  y = NULL;
  arguments = &x;
  results = &y;
  OK(kiln_executable_execute(small, &options, &arguments, 1, &results, 1, 1, &event));
  FAILS(KILN_CANCELLED, "cancelled", kiln_event_wait(event, -1));
  t = (told){0, 0, 7};
  OK(kiln_event_on_ready(event, on_ready, &t, on_gone));
  CHECK(t.calls == 1 && t.destroyed == 1 && t.code == KILN_CANCELLED);
  kiln_event_release(event);
  z = NULL;
  event = execute(small, y, &z);
  FAILS(KILN_CANCELLED, "cancelled", kiln_event_wait(event, -1));
  kiln_event_release(event);
  float read[4];
  FAILS(KILN_CANCELLED, "cancelled", kiln_buffer_copy_to_host(z, read, sizeof read));
  /* Written again it has a value. */
  event = execute(small, x, &y);
  OK(kiln_event_wait(event, 0));
  kiln_event_release(event);
  expect_f32(y, next, 4);
  kiln_buffer_release(z);
  kiln_buffer_release(y);
  kiln_buffer_release(x);
  kiln_executable_release(small);
}

/* Behind a long one that it takes its argument from, writes to, or has nothing to do with. */
static void in_order(void) {
  enum { SIZE = 400 };
  float values[SIZE];
  for (int i = 0; i < SIZE; ++i) values[i] = (float)(i % 7) / 8;
  kiln_executable *large = slow(SIZE), *small = plus_one(SIZE);
  kiln_buffer* x = f32_buffer(cpu, values, SIZE);
  float after_large[SIZE], found[SIZE];
  kiln_buffer* once = NULL;
  OK(kiln_executable_run(large, NULL, &x, 1, &once, 1));
  OK(kiln_buffer_copy_to_host(once, after_large, sizeof after_large));
  kiln_buffer_release(once);
  for (int round = 0; round < 5; ++round) {
    kiln_buffer *y = NULL, *z = NULL, *other = NULL;
    kiln_event* events[4];
    events[0] = execute(large, x, &y);
    events[1] = execute(small, y, &z);     /* reads what it makes */
    events[2] = execute(small, x, &other); /* queued behind it all the same */
    events[3] = execute(small, x, &y);     /* writes over its result, once that has been read */
    for (int i = 3; i >= 0; --i) {
      OK(kiln_event_wait(events[i], -1));
      kiln_event_release(events[i]);
    }
    OK(kiln_buffer_copy_to_host(z, found, sizeof found));
    int wrong = 0;
    for (int i = 0; i < SIZE; ++i) wrong += found[i] != after_large[i] + 1;
    CHECK(wrong == 0);
    OK(kiln_buffer_copy_to_host(y, found, sizeof found));
    for (int i = 0; i < SIZE; ++i) wrong += found[i] != values[i] + 1;
    CHECK(wrong == 0);
    kiln_buffer_release(y);
    kiln_buffer_release(z);
    kiln_buffer_release(other);
  }
  kiln_buffer_release(x);
  kiln_executable_release(large);
  kiln_executable_release(small);
}

/* Functions of the user's, and loops of which nobody knows the end, are queued as ever. */
static void not_small(void) {
  OK(kiln_context_register_call(context, "fails", 5, fails, NULL, NULL));
  const char* text =
      "HloModule m\nENTRY e { x = f32[4] parameter(0)\n"
      " ROOT c = f32[4] custom-call(x), custom_call_target=\"fails\" }";
  kiln_graph* g = NULL;
  kiln_executable* e = NULL;
  OK(kiln_graph_from_hlo_text(context, text, strlen(text), &g));
  OK(kiln_graph_compile(g, NULL, &e));
  kiln_graph_release(g);
  const float values[4] = {0};
  kiln_buffer *x = f32_buffer(cpu, values, 4), *y = NULL, *z = NULL;
  kiln_executable* small = plus_one(4);
  kiln_event* first = execute(e, x, &y);
  kiln_event* second = execute(small, y, &z);
  FAILS(KILN_DATA_LOSS, "lost", kiln_event_wait(second, -1));
  FAILS(KILN_DATA_LOSS, "lost", kiln_event_wait(first, -1));
  kiln_event_release(first);
  kiln_event_release(second);
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_buffer_release(z);
  kiln_executable_release(small);
  kiln_executable_release(e);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.callbacks_from_any_thread = 1;
  if (!OK(kiln_context_create(&options, &context))) return 1;
  cpu = find_device(context, "CPU:0");
  at_once();
  in_order();
  not_small();
  kiln_context_release(context);
  return test_result();
}
