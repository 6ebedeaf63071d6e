/* Clusters compiled in the background: the first calls run op by op, later ones the compiled
 * program, with the same values; and a function may go while it is being compiled. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <time.h>

#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;

/* x + x * x, some times, of any number of elements. */
static kiln_graph* build(void) {
  kiln_graph* g = make_graph(context, "rows");
  const int64_t n = kiln_graph_symbol(g, "n", 1);
  kiln_value x = kiln_op_parameter(g, KILN_F32, &n, 1, "x", 1), y = x;
  for (int i = 0; i < 4; ++i) y = kiln_op_add(g, x, kiln_op_multiply(g, y, y));
  OK(kiln_graph_set_results(g, &y, 1));
  return g;
}

static void call(kiln_function* function, int64_t size) {
  float numbers[8], expected[8];
  for (int64_t i = 0; i < size; ++i) {
    numbers[i] = (float)(i % 2);
    expected[i] = numbers[i];
    for (int k = 0; k < 4; ++k) expected[i] = numbers[i] + expected[i] * expected[i];
  }
  kiln_buffer *argument = f32_buffer(cpu, numbers, size), *result = NULL;
  OK(kiln_function_call(function, NULL, &argument, 1, &result, 1));
  expect_f32(result, expected, (size_t)size);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
}

static kiln_function_info info_of(kiln_function* function) {
  kiln_function_info info = KILN_FUNCTION_INFO_INIT;
  OK(kiln_function_statistics(function, &info));
  return info;
}

static kiln_function* make(void) {
  kiln_graph* g = build();
  kiln_function_options options = KILN_FUNCTION_OPTIONS_INIT;
  options.asynchronous_compilation = 1;
  kiln_function* function = NULL;
  OK(kiln_function_create(g, &options, &function));
  kiln_graph_release(g);
  return function;
}

static void in_the_end_it_is_compiled(void) {
  kiln_function* function = make();
  for (int64_t size = 1; size <= 3; ++size) {
    const int64_t before = info_of(function).fallbacks;
    call(function, size);
    CHECK(info_of(function).fallbacks == before + 1);
    /* Until a call is no fallback. */
    int64_t fallbacks = before + 1;
    for (int tries = 0; tries < 20000; ++tries) {
      call(function, size);
      const int64_t now = info_of(function).fallbacks;
      if (now == fallbacks) break;
      fallbacks = now;
      const struct timespec pause = {0, 1000000};
      nanosleep(&pause, NULL);
    }
    const int64_t settled = info_of(function).fallbacks;
    for (int i = 0; i < 5; ++i) call(function, size);
    CHECK(info_of(function).fallbacks == settled);
  }
  CHECK(info_of(function).compiles == 3);
  kiln_function_release(function);
}

int main(void) {
  context = make_context(2);
  cpu = find_device(context, "CPU:0");
  in_the_end_it_is_compiled();
  for (int i = 0; i < 20; ++i) {
    kiln_function* function = make();
    for (int64_t size = 1; size <= 8; ++size) call(function, size);
    kiln_function_release(function);
  }
  kiln_graph* g = build();
  kiln_function_options options = KILN_FUNCTION_OPTIONS_INIT;
  options.must_compile = options.asynchronous_compilation = 1;
  kiln_function* none = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "asynchronous_compilation",
        kiln_function_create(g, &options, &none));
  kiln_graph_release(g);
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);

  /* Without a thread for it, the call compiles. */
  context = make_context(1);
  cpu = find_device(context, "CPU:0");
  kiln_function* function = make();
  call(function, 2);
  CHECK(info_of(function).fallbacks == 0 && info_of(function).compiles == 1);
  kiln_function_release(function);
  kiln_context_release(context);
  return test_result();
}
