/* Sessions: any value fed and fetched, one op at a time, and what they refuse. */
#include <stdint.h>

#include "testing.h"

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
  OK(kiln_session_prepare(session, inputs, 2, &product, 1, &info));
  CHECK(info.kernels == 2 && info.temporary_bytes >= 0 && info.compile_microseconds > 0);
  kiln_buffer* results[2] = {NULL};
  OK(kiln_session_run(session, NULL, inputs, buffers, 2, pair, results, 2));
  expect_f32(results[0], (const float[]){11, 22, 33}, 3);
  expect_f32(results[1], (const float[]){11, 44, 99}, 3);
  /* Into the caller's buffers, from a fed value; x is needed, y no longer. */
  kiln_value fed[2] = {sum, x};
  kiln_buffer* fed_buffers[2] = {buffers[1], buffers[0]};
  kiln_buffer* given = results[1];
  OK(kiln_session_run(session, NULL, fed, fed_buffers, 2, &product, &results[1], 1));
  CHECK(results[1] == given);
  expect_f32(given, (const float[]){10, 40, 90}, 3);
  /* What is fed can be fetched. */
  OK(kiln_session_run(session, NULL, fed, fed_buffers, 2, &sum, &results[0], 1));
  expect_f32(results[0], (const float[]){10, 20, 30}, 3);

  kiln_buffer* none = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "the parameter 'y', f32[3], is needed",
        kiln_session_run(session, NULL, &x, buffers, 1, &product, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "only arrays can be fetched",
        kiln_session_run(session, NULL, inputs, buffers, 2, &tuple, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "fetch 0",
        kiln_session_run(session, NULL, inputs, buffers, 2, &late, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "feed 0",
        kiln_session_run(session, NULL, &foreign, buffers, 1, &sum, &none, 1));
  kiln_value zero = 0, twice[2] = {sum, sum};
  FAILS(KILN_INVALID_ARGUMENT, "fetch 0",
        kiln_session_run(session, NULL, inputs, buffers, 2, &zero, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "fetched twice",
        kiln_session_prepare(session, inputs, 2, twice, 2, &info));
  FAILS(KILN_INVALID_ARGUMENT, "feeds is NULL",
        kiln_session_run(session, NULL, NULL, buffers, 2, &sum, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "fetches is NULL",
        kiln_session_prepare(session, inputs, 2, NULL, 2, &info));
  kiln_buffer* small[2] = {f32_buffer(cpu, (const float[]){1, 2}, 2), buffers[1]};
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 'x' is f32[2]; expected f32[3]",
        kiln_session_run(session, NULL, inputs, small, 2, &sum, &none, 1));
  kiln_buffer_release(small[0]);
  FAILS(KILN_INVALID_ARGUMENT, "shares memory",
        kiln_session_run(session, NULL, inputs, buffers, 2, &sum, &buffers[0], 1));
  CHECK(none == NULL);
  kiln_session_options options;
  kiln_session_options_init(&options, sizeof options);
  options.device = find_device(context, "REFERENCE:0");
  kiln_session* refused = NULL;
  FAILS(KILN_UNIMPLEMENTED, "REFERENCE:0", kiln_session_create(other, &options, &refused));
  FAILS(KILN_INVALID_ARGUMENT, "graph is NULL", kiln_session_create(NULL, NULL, &refused));
  CHECK(refused == NULL);

  kiln_session_release(session);
  kiln_graph_release(other);
  for (int i = 0; i < 2; ++i) {
    kiln_buffer_release(buffers[i]);
    kiln_buffer_release(results[i]);
  }
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
