/* What must be compiled, and cannot be.
 *
 * kiln_op_unique() finds the distinct elements of a vector. Their number is known during a run
 * only, so no compiled program has the op: a session runs it on the host. The program calls a graph
 * with this op. Marked by kiln_graph_set_must_compile(), the call fails, and the error names the
 * op; so does a kiln_function with must_compile. Without the mark the call runs:
 *
 *   must compile: cluster_0 must be compiled: 'call' (call): 'kiln.unique' in the ...
 *   must compile, as a function: 'kiln.unique' (kiln.unique) cannot be compiled: ...
 *   otherwise: 3 distinct numbers: 3 1 2
 *
 * It returns 0 if both errors name the op, and the numbers are right.
 *
 * Test:
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "must_compile: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

enum { COUNT = 5 };
static const int64_t kCount = COUNT;

/* The graph that is called: the distinct elements of its argument. */
static kiln_graph* distinct(kiln_context* context) {
  kiln_graph* graph;
  check(kiln_graph_create(context, "distinct", 8, &graph));
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &kCount, 1, "x", 1);
  /* A tuple: the elements, and two more vectors. */
  kiln_value elements = kiln_op_get_tuple_element(graph, kiln_op_unique(graph, x), 0);
  check(kiln_graph_set_results(graph, &elements, 1));
  return graph;
}

/* Prints the error; whether there is one, and it names the op. */
static int names_the_op(const char* what, kiln_error* error) {
  if (!error) return 0;
  const char* message = kiln_error_message(error, NULL);
  printf("%s: %s\n", what, message);
  const int named = strstr(message, "unique") != NULL;
  kiln_error_release(error);
  return named;
}

int main(void) {
  kiln_context* context;
  check(kiln_context_create(NULL, &context));
  kiln_device* cpu;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_graph *callee = distinct(context), *graph;
  check(kiln_graph_create(context, "caller", 6, &graph));
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &kCount, 1, "x", 1);
  kiln_value call = kiln_op_call(graph, &x, 1, callee);
  const float numbers[COUNT] = {3, 1, 3, 2, 1};
  kiln_buffer *input, *result = NULL;
  check(kiln_buffer_copy_host(cpu, KILN_F32, &kCount, 1, numbers, sizeof numbers, &input));

  check(kiln_graph_set_must_compile(graph, call, 1));
  kiln_session* session;
  check(kiln_session_create(graph, NULL, &session));
  int right = names_the_op(
      "must compile", kiln_session_run(session, NULL, &x, &input, 1, &call, &result, 1, NULL, 0));
  kiln_session_release(session);
  kiln_function_options options = KILN_FUNCTION_OPTIONS_INIT;
  options.must_compile = 1;
  kiln_function* function = NULL;
  right &= names_the_op("must compile, as a function",
                        kiln_function_create(callee, &options, &function));

  check(kiln_graph_set_must_compile(graph, call, 0));
  check(kiln_session_create(graph, NULL, &session));
  check(kiln_session_run(session, NULL, &x, &input, 1, &call, &result, 1, NULL, 0));
  kiln_shape shape = KILN_SHAPE_INIT;
  check(kiln_buffer_shape(result, &shape));
  float found[COUNT];
  check(kiln_buffer_copy_to_host(result, found, (size_t)shape.dims[0] * sizeof *found));
  printf("otherwise: %d distinct numbers:", (int)shape.dims[0]);
  for (int64_t i = 0; i < shape.dims[0]; ++i) printf(" %g", found[i]);
  printf("\n");
  right &= shape.dims[0] == 3 && found[0] == 3 && found[1] == 1 && found[2] == 2;

  kiln_buffer_release(result);
  kiln_buffer_release(input);
  kiln_session_release(session);
  kiln_graph_release(graph);
  kiln_graph_release(callee);
  kiln_context_release(context);
  return right ? 0 : 1;
}
