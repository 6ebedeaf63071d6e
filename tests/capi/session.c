/* Sessions: any value fed and fetched, one op at a time, and what they refuse. */
#include <stdint.h>

#include "testing.h"

/* Operands of a product that are converted as they are packed: their kernels are told apart by
 * their text, too. */
static void packed_with_a_prologue(kiln_context* context, kiln_device* cpu) {
  kiln_graph* g = make_graph(context, "narrow");
  const int64_t image[4] = {2, 8, 7, 2}, kernel[4] = {1, 1, 2, 2};
  enum { kElements = 2 * 8 * 7 * 2 };
  const unsigned char weights[4] = {0x38, 0x40, 0xb8, 0x30}; /* 1, 2, -1, 0.5 */
  kiln_value x = kiln_op_parameter(g, KILN_F8E4M3FN, image, 4, "x", 1);
  kiln_value w = kiln_op_constant(g, KILN_F8E4M3FN, kernel, 4, weights, sizeof weights);
  const int64_t one[2] = {1, 1};
  kiln_value y = kiln_op_convolution(g, x, w, one, NULL, NULL, NULL, NULL, NULL, NULL, 2,
                                     "b01f_01io->b01f", 15, 1, 1, 0);
  OK(kiln_graph_status(g));
  kiln_session* session = NULL;
  OK(kiln_session_create(g, NULL, &session));
  kiln_executable* e = compile_result(g, y, cpu);
  unsigned char values[kElements], by_op[kElements] = {0}, whole[kElements] = {0};
  /* Numbers from 1 to 3.75, of both signs. */
  for (int i = 0; i < kElements; ++i) {
    values[i] = (unsigned char)(0x38 + i % 16 + (i % 3 == 0 ? 0x80 : 0));
  }
  kiln_buffer *argument = NULL, *results[2] = {NULL};
  OK(kiln_buffer_copy_host(cpu, KILN_F8E4M3FN, image, 4, values, sizeof values, &argument));
  OK(kiln_session_run(session, NULL, &x, &argument, 1, &y, &results[0], 1, NULL, 0));
  OK(kiln_executable_run(e, NULL, &argument, 1, &results[1], 1));
  OK(kiln_buffer_copy_to_host(results[0], by_op, sizeof by_op));
  OK(kiln_buffer_copy_to_host(results[1], whole, sizeof whole));
  CHECK(memcmp(by_op, whole, sizeof whole) == 0);
  /* -1 * 1 + 1.125 * -1 and -1 * 2 + 1.125 * 0.5, rounded to three bits of mantissa. */
  CHECK(whole[0] == 0xc0 && whole[1] == 0xbc);
  kiln_buffer_release(argument);
  kiln_buffer_release(results[0]);
  kiln_buffer_release(results[1]);
  kiln_executable_release(e);
  kiln_session_release(session);
}

int main(void) {
  kiln_context* context = make_context(2);
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_graph* g = make_graph(context, "steps");
  kiln_value x = f32_parameter(g, "x", 3), y = f32_parameter(g, "y", 3);
  kiln_value sum = kiln_op_add(g, x, y);
  kiln_value product = kiln_op_multiply(g, sum, x);
  kiln_value pair[2] = {sum, product};
  kiln_value tuple = kiln_op_tuple(g, pair, 2);
  kiln_session* session = NULL;
  OK(kiln_session_create(g, NULL, &session)); /* no results are needed */
  kiln_value late = kiln_op_negate(g, sum);
  kiln_graph* other = make_graph(context, "other");
  kiln_value foreign = f32_parameter(other, "x", 3);
  kiln_graph_release(g);

  kiln_value inputs[2] = {x, y};
  kiln_buffer* buffers[2] = {f32_buffer(cpu, (const float[]){1, 2, 3}, 3),
                             f32_buffer(cpu, (const float[]){10, 20, 30}, 3)};
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  OK(kiln_session_prepare(session, inputs, 2, &product, 1, NULL, 0, &info));
  CHECK(info.kernels == 2 && info.temporary_bytes >= 0 && info.compile_microseconds > 0);
  kiln_buffer* results[2] = {NULL};
  OK(kiln_session_run(session, NULL, inputs, buffers, 2, pair, results, 2, NULL, 0));
  expect_f32(results[0], (const float[]){11, 22, 33}, 3);
  expect_f32(results[1], (const float[]){11, 44, 99}, 3);
  /* Into the caller's buffers, from a fed value; x is needed, y no longer. */
  kiln_value fed[2] = {sum, x};
  kiln_buffer* fed_buffers[2] = {buffers[1], buffers[0]};
  kiln_buffer* given = results[1];
  OK(kiln_session_run(session, NULL, fed, fed_buffers, 2, &product, &results[1], 1, NULL, 0));
  CHECK(results[1] == given);
  expect_f32(given, (const float[]){10, 40, 90}, 3);
  /* What is fed can be fetched. */
  OK(kiln_session_run(session, NULL, fed, fed_buffers, 2, &sum, &results[0], 1, NULL, 0));
  expect_f32(results[0], (const float[]){10, 20, 30}, 3);

  kiln_buffer* none = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "the parameter 'y', f32[3], is needed",
        kiln_session_run(session, NULL, &x, buffers, 1, &product, &none, 1, NULL, 0));
  FAILS(KILN_INVALID_ARGUMENT, "only arrays can be fetched",
        kiln_session_run(session, NULL, inputs, buffers, 2, &tuple, &none, 1, NULL, 0));
  FAILS(KILN_INVALID_ARGUMENT, "fetch 0",
        kiln_session_run(session, NULL, inputs, buffers, 2, &late, &none, 1, NULL, 0));
  FAILS(KILN_INVALID_ARGUMENT, "feed 0",
        kiln_session_run(session, NULL, &foreign, buffers, 1, &sum, &none, 1, NULL, 0));
  kiln_value zero = 0, twice[2] = {sum, sum};
  FAILS(KILN_INVALID_ARGUMENT, "fetch 0",
        kiln_session_run(session, NULL, inputs, buffers, 2, &zero, &none, 1, NULL, 0));
  FAILS(KILN_INVALID_ARGUMENT, "fetched twice",
        kiln_session_prepare(session, inputs, 2, twice, 2, NULL, 0, &info));
  FAILS(KILN_INVALID_ARGUMENT, "feeds is NULL",
        kiln_session_run(session, NULL, NULL, buffers, 2, &sum, &none, 1, NULL, 0));
  FAILS(KILN_INVALID_ARGUMENT, "fetches is NULL",
        kiln_session_prepare(session, inputs, 2, NULL, 2, NULL, 0, &info));
  kiln_buffer* small[2] = {f32_buffer(cpu, (const float[]){1, 2}, 2), buffers[1]};
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 'x' is f32[2]; expected f32[3]",
        kiln_session_run(session, NULL, inputs, small, 2, &sum, &none, 1, NULL, 0));
  kiln_buffer_release(small[0]);
  FAILS(KILN_INVALID_ARGUMENT, "shares memory",
        kiln_session_run(session, NULL, inputs, buffers, 2, &sum, &buffers[0], 1, NULL, 0));
  CHECK(none == NULL);
  kiln_session_options options;
  kiln_session_options_init(&options, sizeof options);
  kiln_session* refused = NULL;
  options.jit = 7;
  FAILS(KILN_INVALID_ARGUMENT, "jit is 7", kiln_session_create(other, &options, &refused));
  FAILS(KILN_INVALID_ARGUMENT, "graph is NULL", kiln_session_create(NULL, NULL, &refused));
  CHECK(refused == NULL);

  kiln_session_release(session);
  kiln_graph_release(other);
  for (int i = 0; i < 2; ++i) {
    kiln_buffer_release(buffers[i]);
    kiln_buffer_release(results[i]);
  }
  packed_with_a_prologue(context, cpu);
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
