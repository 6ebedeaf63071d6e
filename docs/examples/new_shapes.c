/* A function called with arguments of new shapes, and the programs that are compiled for them.
 *
 * The parameter of the graph is a matrix of n rows, where n is a symbol: a size given by each call.
 * A kiln_function makes a program for each new size, and keeps it. The program calls one function
 * with matrices of 3, 3, 5 and 3 rows, and prints what each call has compiled; then a lazy
 * function, which runs new sizes op by op at first, and compiles them at their second call:
 *
 *   eager: 3 rows: mean 2.5    1 compiled, 0 op by op, 1 kept
 *   eager: 3 rows: mean 2.5    1 compiled, 0 op by op, 1 kept
 *   eager: 5 rows: mean 4.5    2 compiled, 0 op by op, 2 kept
 *   eager: 3 rows: mean 2.5    2 compiled, 0 op by op, 2 kept
 *   lazy:  3 rows: mean 2.5    1 compiled, 0 op by op, 1 kept
 *   lazy:  5 rows: mean 4.5    1 compiled, 1 op by op, 2 kept
 *   lazy:  5 rows: mean 4.5    2 compiled, 1 op by op, 2 kept
 *
 * It returns 0 if the means and the numbers of compilations are right.
 *
 * Test:
 */
#include <stdio.h>
#include <stdlib.h>

#include "kiln/kiln.h"

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "new_shapes: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

/* The mean of a matrix with n rows of two numbers. */
static kiln_graph* build(kiln_context* context) {
  kiln_graph* graph;
  check(kiln_graph_create(context, "mean", 4, &graph));
  const int64_t dims[] = {kiln_graph_symbol(graph, "n", 1), 2}, both[] = {0, 1};
  kiln_value matrix = kiln_op_parameter(graph, KILN_F32, dims, 2, "matrix", 6);
  kiln_value sum = kiln_op_reduce_by(graph, matrix, both, 2, KILN_REDUCER_SUM);
  kiln_value one = kiln_op_scalar(graph, KILN_F32, 1);
  kiln_value ones = kiln_op_broadcast_like(graph, one, matrix, NULL, 0);
  kiln_value count = kiln_op_reduce_by(graph, ones, both, 2, KILN_REDUCER_SUM);
  kiln_value mean = kiln_op_divide(graph, sum, count);
  check(kiln_graph_set_results(graph, &mean, 1));
  return graph;
}

/* Calls the function with the numbers 0, 1, 2, ... in so many rows. Whether the mean is right, and
 * the function has then compiled, and run op by op, so often. */
static int call(const char* name, kiln_function* function, kiln_device* cpu, int64_t rows,
                int compiles, int fallbacks) {
  float numbers[2 * 8];
  for (int i = 0; i < 2 * rows; ++i) numbers[i] = (float)i;
  const int64_t dims[] = {rows, 2};
  kiln_buffer *argument, *result = NULL;
  check(kiln_buffer_copy_host(cpu, KILN_F32, dims, 2, numbers, (size_t)rows * 8, &argument));
  check(kiln_function_call(function, NULL, &argument, 1, &result, 1));
  float mean;
  check(kiln_buffer_copy_to_host(result, &mean, sizeof mean));
  kiln_function_info info = KILN_FUNCTION_INFO_INIT;
  check(kiln_function_statistics(function, &info));
  printf("%s %d rows: mean %-6g %d compiled, %d op by op, %d kept\n", name, (int)rows, mean,
         (int)info.compiles, (int)info.fallbacks, (int)info.programs);
  kiln_buffer_release(result);
  kiln_buffer_release(argument);
  return mean == (float)(2 * rows - 1) / 2 && info.compiles == compiles &&
         info.fallbacks == fallbacks;
}

int main(void) {
  kiln_context* context;
  check(kiln_context_create(NULL, &context));
  kiln_device* cpu;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_graph* graph = build(context);
  kiln_function *eager, *lazy;
  kiln_function_options options = KILN_FUNCTION_OPTIONS_INIT;
  options.must_compile = 1; /* the whole graph, for each size, or an error */
  check(kiln_function_create(graph, &options, &eager));
  int right = call("eager:", eager, cpu, 3, 1, 0);
  right &= call("eager:", eager, cpu, 3, 1, 0); /* the program is there */
  right &= call("eager:", eager, cpu, 5, 2, 0);
  right &= call("eager:", eager, cpu, 3, 2, 0);

  options.must_compile = 0;
  options.lazy = 1;
  check(kiln_function_create(graph, &options, &lazy));
  right &= call("lazy: ", lazy, cpu, 3, 1, 0); /* the first sizes of all are compiled at once */
  right &= call("lazy: ", lazy, cpu, 5, 1, 1);
  right &= call("lazy: ", lazy, cpu, 5, 2, 1);

  kiln_function_release(lazy);
  kiln_function_release(eager);
  kiln_graph_release(graph);
  kiln_context_release(context);
  return right ? 0 : 1;
}
