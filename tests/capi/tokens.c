/* Tokens between executions: order, failure, and events and parts of buffers that the user is in
 * charge of. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "counter.h"
#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;
static atomic_int fails;

static kiln_error* speak(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  if (fails) return kiln_error_create(KILN_DATA_LOSS, "lost for words", 14);
  *(float*)call->results[0]->data = 1;
  return NULL;
}

/* (token, number) -> (token, number + what the function gives) */
static kiln_executable* speaker(void) {
  const char* text =
      "HloModule m\n"
      "ENTRY e {\n"
      "  t = token[] parameter(0)\n"
      "  x = f32[] parameter(1)\n"
      "  c = (f32[], token[]) custom-call(t), custom_call_target=\"speak\", "
      "custom_call_has_side_effect=true\n"
      "  y = f32[] get-tuple-element(c), index=0\n"
      "  u = token[] get-tuple-element(c), index=1\n"
      "  z = f32[] add(x, y)\n"
      "  ROOT r = (token[], f32[]) tuple(u, z)\n}\n";
  kiln_graph* g = NULL;
  kiln_executable* e = NULL;
  if (OK(kiln_graph_from_hlo_text(context, text, strlen(text), &g))) {
    OK(kiln_graph_compile(g, NULL, &e));
  }
  kiln_graph_release(g);
  return e;
}

static kiln_error* execute(kiln_executable* e, kiln_buffer* token, kiln_buffer* x,
                           kiln_buffer* results[2], kiln_event** event) {
  kiln_buffer* list[2] = {token, x};
  kiln_buffer* const* arguments = list;
  results[0] = results[1] = NULL;
  return kiln_executable_execute(e, NULL, &arguments, 2, &results, 2, 1, event);
}

static void chain(kiln_executable* e) {
  kiln_buffer *token = NULL, *x = NULL;
  const float zero = 0;
  OK(kiln_buffer_create(cpu, KILN_TOKEN, NULL, 0, &token));
  OK(kiln_buffer_copy_host(cpu, KILN_F32, NULL, 0, &zero, 4, &x));
  kiln_event *waited = NULL, *done = NULL;
  OK(kiln_event_create(context, &waited));
  OK(kiln_buffer_delay(token, waited)); /* nothing may begin before */
  for (int i = 0; i < 10; ++i) {
    kiln_buffer* results[2];
    kiln_event_release(done);
    OK(execute(e, token, x, results, &done));
    kiln_buffer_release(token);
    kiln_buffer_release(x);
    token = results[0];
    x = results[1];
  }
  FAILS(KILN_DEADLINE_EXCEEDED, "still", kiln_event_wait(done, 20 * 1000 * 1000));
  OK(kiln_event_set(waited, NULL));
  FAILS(KILN_FAILED_PRECONDITION, "has been set", kiln_event_set(waited, NULL));
  OK(kiln_event_wait(done, -1));
  expect_f32(x, (const float[]){10}, 1);
  kiln_event* ready = NULL;
  OK(kiln_buffer_ready(token, &ready));
  OK(kiln_event_wait(ready, 0));
  kiln_event_release(ready);
  FAILS(KILN_FAILED_PRECONDITION, "the library's", kiln_event_set(done, NULL));
  /* A failure goes on with the token. */
  kiln_buffer *failed[2], *after[2];
  kiln_event* other = NULL;
  fails = 1;
  OK(execute(e, token, x, failed, &other));
  FAILS(KILN_DATA_LOSS, "lost for words", kiln_event_wait(other, -1));
  fails = 0;
  kiln_event_release(other);
  OK(execute(e, failed[0], x, after, &other));
  FAILS(KILN_DATA_LOSS, "lost for words", kiln_event_wait(other, -1));
  float value = 0;
  FAILS(KILN_DATA_LOSS, "lost for words", kiln_buffer_copy_to_host(after[1], &value, 4));
  kiln_buffer* buffers[] = {token, x, failed[0], failed[1], after[0], after[1]};
  for (size_t i = 0; i < 6; ++i) kiln_buffer_release(buffers[i]);
  kiln_event* events[] = {waited, done, other};
  for (size_t i = 0; i < 3; ++i) kiln_event_release(events[i]);
}

/* A buffer made in parts, whose readers wait for the last one. */
static void parts(kiln_device* device) {
  const int64_t size = 1000;
  float values[1000], read[1000] = {0};
  for (int i = 0; i < 1000; ++i) values[i] = (float)i;
  kiln_graph* g = make_graph(context, "doubled");
  kiln_value p = f32_parameter(g, "p", size);
  kiln_executable* doubled = compile_result(g, kiln_op_add(g, p, p), device);
  kiln_buffer *x = NULL, *y = NULL;
  kiln_event *whole = NULL, *done = NULL;
  OK(kiln_buffer_create(device, KILN_F32, &size, 1, &x));
  OK(kiln_event_create(context, &whole));
  OK(kiln_buffer_delay(x, whole));
  kiln_buffer *const *arguments = &x, **results = &y;
  OK(kiln_executable_execute(doubled, NULL, &arguments, 1, &results, 1, 1, &done));
  for (size_t at = 0; at < sizeof values; at += 1000) {
    kiln_event* copied = NULL;
    OK(kiln_buffer_write_part(x, at, (const char*)values + at, 1000, &copied));
    CHECK(!kiln_event_is_ready(done));
    OK(kiln_event_wait(copied, -1));
    kiln_event_release(copied);
  }
  OK(kiln_event_set(whole, NULL));
  OK(kiln_event_wait(done, -1));
  kiln_event* copied = NULL;
  OK(kiln_buffer_read_part(y, 400, read, 40, &copied));
  OK(kiln_event_wait(copied, -1));
  for (int i = 0; i < 11; ++i) CHECK(read[i] == (i < 10 ? 2.0f * (float)(100 + i) : 0));
  kiln_event_release(copied);
  FAILS(KILN_OUT_OF_RANGE, "4000", kiln_buffer_read_part(y, 3996, read, 5, &copied));
  FAILS(KILN_OUT_OF_RANGE, "4000", kiln_buffer_write_part(y, (size_t)-1, values, 1, &copied));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_buffer_write_part(y, 0, NULL, 1, &copied));
  /* A failure instead of a value. */
  kiln_event* broken = NULL;
  OK(kiln_event_create(context, &broken));
  OK(kiln_buffer_delay(y, broken));
  OK(kiln_buffer_delay(y, broken));
  kiln_error* failure = kiln_error_create(KILN_ABORTED, "given up", 8);
  OK(kiln_event_set(broken, failure));
  kiln_error_release(failure);
  FAILS(KILN_ABORTED, "given up", kiln_buffer_copy_to_host(y, read, sizeof read));
  kiln_event_release(broken);
  kiln_event_release(whole);
  kiln_event_release(done);
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_executable_release(doubled);
}

/* An address is there before its value is, and a copy of a value that is there does not wait for
 * executions before it. */
static void addresses(void) {
  const int64_t count = 1000, endless = INT64_MAX;
  kiln_executable* e = counter(context, NULL);
  kiln_buffer *n = NULL, *y = NULL, *z = NULL;
  kiln_event *begin = NULL, *done = NULL, *copied = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_S64, NULL, 0, &count, 8, &n));
  OK(kiln_event_create(context, &begin));
  OK(kiln_buffer_delay(n, begin));
  kiln_buffer *const *arguments = &n, **results = &y;
  OK(kiln_executable_execute(e, NULL, &arguments, 1, &results, 1, 1, &done));
  const void *early = NULL, *late = NULL;
  OK(kiln_buffer_address(y, &early));
  CHECK(early && !kiln_event_is_ready(done));
  OK(kiln_event_set(begin, NULL));
  OK(kiln_buffer_data(y, &late));
  CHECK(early == late && *(const int64_t*)late == count);
  kiln_buffer_release(n);
  kiln_event_release(done);
  /* The copy is asked for last, and made before the second endless execution. */
  int32_t cancel = 0, stop = 0;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT, other = KILN_EXECUTE_OPTIONS_INIT;
  options.cancel = &cancel;
  other.cancel = &stop;
  OK(kiln_buffer_copy_host(cpu, KILN_S64, NULL, 0, &endless, 8, &n));
  kiln_event* second = NULL;
  kiln_buffer *w = NULL, **last = &w;
  results = &z;
  OK(kiln_executable_execute(e, &options, &arguments, 1, &results, 1, 1, &done));
  OK(kiln_executable_execute(e, &other, &arguments, 1, &last, 1, 1, &second));
  int64_t read = 0;
  OK(kiln_buffer_copy_to_host_async(y, &read, 8, &copied));
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  OK(kiln_event_wait(copied, -1));
  CHECK(read == count && !kiln_event_is_ready(second));
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  FAILS(KILN_CANCELLED, "cancelled", kiln_event_wait(second, -1));
  kiln_event* events[] = {begin, done, copied, second};
  for (size_t i = 0; i < 4; ++i) kiln_event_release(events[i]);
  kiln_buffer* buffers[] = {n, y, z, w};
  for (size_t i = 0; i < 4; ++i) kiln_buffer_release(buffers[i]);
  kiln_executable_release(e);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.callbacks_from_any_thread = 1;
  options.gpu = tested_gpu();
  if (!OK(kiln_context_create(&options, &context))) return 1;
  cpu = find_device(context, "CPU:0");
  OK(kiln_context_register_call(context, "speak", 5, speak, NULL, NULL));
  kiln_executable* e = speaker();
  chain(e);
  kiln_executable_release(e);
  for (size_t d = 0; d < kiln_context_device_count(context); ++d) {
    parts(kiln_context_device(context, d));
  }
  addresses();
  kiln_context_release(context);
  return test_result();
}
