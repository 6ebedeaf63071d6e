/* Ops on several devices, and values that cross between them.
 *
 * Ops run on the session's device, CPU:0, unless they are made inside kiln_graph_push_device().
 * Here one op is on XLA_CPU:0, the same processor as a separate device that compiles all it gets,
 * and one on XLA_GPU:0, if there is a GPU. The session copies each value to the device that needs
 * it. For each fetch the program prints the device where it was made, and its numbers:
 *
 *   square on CPU:0: 1 4 9
 *   negated on XLA_CPU:0: -1 -4 -9
 *   sum on XLA_GPU:0: 0 0 0
 *   result on CPU:0: 1 2 3
 *
 * Then it asks for a device that does not exist: an error, unless the session has soft placement,
 * which moves the op and tells the log.
 *
 *   placement [--emulate]      --emulate: with a GPU that is emulated on the processor
 *
 * Test: --emulate
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "placement: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

static void on_device(kiln_graph* graph, const char* name) {
  check(kiln_graph_push_device(graph, name, strlen(name)));
}

/* Prints a fetch; whether it is on the device, and has these numbers. */
static int is_right(const char* name, kiln_buffer* buffer, const char* device,
                    const float* wanted) {
  float numbers[3];
  check(kiln_buffer_copy_to_host(buffer, numbers, sizeof numbers)); /* from any device */
  const char* found = kiln_device_name(kiln_buffer_device(buffer), NULL);
  printf("%s on %s: %g %g %g\n", name, found, numbers[0], numbers[1], numbers[2]);
  return strcmp(found, device) == 0 && memcmp(numbers, wanted, sizeof numbers) == 0;
}

/* An op on a missing device: refused, and moved by soft placement. */
static int try_missing_device(kiln_graph* graph, kiln_value x, kiln_buffer* input) {
  on_device(graph, "XLA_CPU:7");
  kiln_value moved = kiln_op_abs(graph, x);
  check(kiln_graph_pop_device(graph));
  kiln_session* session;
  kiln_buffer* result = NULL;
  check(kiln_session_create(graph, NULL, &session));
  kiln_error* error = kiln_session_run(session, NULL, &x, &input, 1, &moved, &result, 1, NULL, 0);
  if (!error) return 0;
  printf("refused: %s\n", kiln_error_message(error, NULL));
  kiln_error_release(error);
  kiln_session_release(session);

  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.soft_placement = 1;
  check(kiln_session_create(graph, &options, &session));
  check(kiln_session_run(session, NULL, &x, &input, 1, &moved, &result, 1, NULL, 0));
  const int right = is_right("moved", result, "XLA_CPU:0", (const float[]){1, 2, 3});
  kiln_buffer_release(result);
  kiln_session_release(session);
  return right;
}

int main(int count, char** arguments) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.log_level = KILN_LOG_INFO; /* soft placement is an information */
  if (count > 1 && strcmp(arguments[1], "--emulate") == 0) options.gpu = KILN_GPU_EMULATED;
  kiln_context* context;
  check(kiln_context_create(&options, &context));
  kiln_device *cpu, *gpu = NULL;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_error* missing = kiln_context_find_device(context, "XLA_GPU:0", 9, &gpu);
  if (missing) printf("no GPU: %s\n", kiln_context_device_notes(context, NULL));
  kiln_error_release(missing);
  const char* third = gpu ? "XLA_GPU:0" : "CPU:0";

  kiln_graph* graph;
  check(kiln_graph_create(context, "devices", 7, &graph));
  const int64_t size = 3;
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &size, 1, "x", 1);
  kiln_value square = kiln_op_multiply(graph, x, x);
  on_device(graph, "XLA_CPU:0");
  kiln_value negated = kiln_op_negate(graph, square);
  check(kiln_graph_pop_device(graph));
  on_device(graph, third);
  kiln_value sum = kiln_op_add(graph, square, negated);
  check(kiln_graph_pop_device(graph));
  kiln_value result = kiln_op_add(graph, sum, x);

  kiln_session* session;
  check(kiln_session_create(graph, NULL, &session));
  kiln_buffer* input;
  check(kiln_buffer_copy_host(cpu, KILN_F32, &size, 1, (const float[]){1, 2, 3}, 12, &input));
  const kiln_value fetches[] = {square, negated, sum, result};
  kiln_buffer* fetched[] = {NULL, NULL, NULL, NULL};
  check(kiln_session_run(session, NULL, &x, &input, 1, fetches, fetched, 4, NULL, 0));
  int right = is_right("square", fetched[0], "CPU:0", (const float[]){1, 4, 9}) &
              is_right("negated", fetched[1], "XLA_CPU:0", (const float[]){-1, -4, -9}) &
              is_right("sum", fetched[2], third, (const float[]){0, 0, 0}) &
              is_right("result", fetched[3], "CPU:0", (const float[]){1, 2, 3});
  right &= try_missing_device(graph, x, input);

  for (int i = 0; i < 4; ++i) kiln_buffer_release(fetched[i]);
  kiln_buffer_release(input);
  kiln_session_release(session);
  kiln_graph_release(graph);
  kiln_context_release(context);
  return right ? 0 : 1;
}
