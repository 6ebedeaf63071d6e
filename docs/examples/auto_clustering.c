/* A program that says nothing of just-in-time compilation, switched by its environment.
 *
 * Nothing below mentions the JIT: the session has default options, and no op is marked. As it
 * is, the ops run one by one:
 *
 *   $ auto_clustering
 *   'multiply' (multiply) outside clusters: not marked to compile, and the JIT ...
 *   ...
 *   6 kernels, result 20.25
 *
 * Users who cannot change the program give it TensorFlow's flags, and it clusters:
 *
 *   $ TF_XLA_FLAGS="--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit" auto_clustering
 *   'multiply' (multiply) in cluster_0 on CPU:0
 *   ...
 *   1 kernels, result 20.25
 *
 * KILN_FLAGS="--auto_jit=2 --cpu_global_jit" does the same. With --self-test it starts itself with
 * both environments, and returns 0 if the ops were clustered by the second one only.
 *
 * Test: --self-test
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "auto_clustering: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

/* The sum of x * x * (x + 1) - x over four numbers. */
static int run_program(void) {
  kiln_context* context;
  check(kiln_context_create(NULL, &context)); /* reads the flags of the environment */
  kiln_device* cpu;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_graph* graph;
  check(kiln_graph_create(context, "sum", 3, &graph));
  const int64_t size = 4, all = 0;
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &size, 1, "x", 1);
  kiln_value one = kiln_op_broadcast_like(graph, kiln_op_scalar(graph, KILN_F32, 1), x, NULL, 0);
  kiln_value square = kiln_op_multiply(graph, x, x);
  kiln_value product = kiln_op_multiply(graph, square, kiln_op_add(graph, x, one));
  kiln_value difference = kiln_op_subtract(graph, product, x);
  kiln_value sum = kiln_op_reduce_by(graph, difference, &all, 1, KILN_REDUCER_SUM);

  kiln_session* session;
  check(kiln_session_create(graph, NULL, &session));
  kiln_text* text;
  check(kiln_session_explain(session, &x, 1, &sum, 1, NULL, 0, &text));
  printf("%s", kiln_text_data(text, NULL));
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  check(kiln_session_prepare(session, &x, 1, &sum, 1, NULL, 0, &info));
  const float numbers[] = {0, 0.5f, 1, 2.5f};
  kiln_buffer *input, *result = NULL;
  check(kiln_buffer_copy_host(cpu, KILN_F32, &size, 1, numbers, sizeof numbers, &input));
  check(kiln_session_run(session, NULL, &x, &input, 1, &sum, &result, 1, NULL, 0));
  float total;
  check(kiln_buffer_copy_to_host(result, &total, sizeof total));
  printf("%d kernels, result %g\n", (int)info.kernels, total);

  kiln_text_release(text);
  kiln_buffer_release(result);
  kiln_buffer_release(input);
  kiln_session_release(session);
  kiln_graph_release(graph);
  kiln_context_release(context);
  return fabsf(total - 20.25f) < 1e-5f ? 0 : 1;
}

/* Runs this program in the present environment. Returns whether it clustered ops, or -1 if it
 * failed. */
static int clusters(const char* program) {
  char command[4096], line[512];
  snprintf(command, sizeof command, "'%s'", program);
  fflush(stdout);
  FILE* output = popen(command, "r");
  if (!output) return -1;
  int found = 0;
  while (fgets(line, sizeof line, output)) {
    fputs(line, stdout);
    if (strstr(line, "in cluster_")) found = 1;
  }
  return pclose(output) == 0 ? found : -1;
}

int main(int count, char** arguments) {
  if (count < 2 || strcmp(arguments[1], "--self-test") != 0) return run_program();
  unsetenv("KILN_FLAGS");
  unsetenv("TF_XLA_FLAGS");
  const int without = clusters(arguments[0]);
  setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit", 1);
  const int with = clusters(arguments[0]);
  return without == 0 && with == 1 ? 0 : 1;
}
