/* Parts of a graph that are compiled: scopes of the just-in-time compiler.
 *
 * The session has the default level, which compiles only what the program marks. The graph is two
 * layers, each made in a jit scope, and a sum outside of both. Ops of one scope become a cluster;
 * ops of different scopes are never compiled together. In the second scope one op is marked as not
 * to be compiled, so it runs by itself, between two clusters. The program prints the place of each
 * op:
 *
 *   'x' (parameter) outside clusters: it is an input
 *   'multiply' (multiply) in cluster_0 on CPU:0
 *   'tanh' (tanh) in cluster_0 on CPU:0
 *   'add' (add) in cluster_0 on CPU:0
 *   'multiply.1' (multiply) in cluster_1 on CPU:0
 *   'tanh.1' (tanh) outside clusters: marked not to compile
 *   'add.1' (add) in cluster_2 on CPU:0
 *   'add.2' (add) outside clusters: not marked to compile, and the JIT compiles marked ops only
 *
 * It returns 0 if the result is right and each op is in the cluster where it belongs.
 *
 * Test:
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "jit_scope: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

static double layer_of(double x) { return tanh(x * x) + x; }

/* The same in a jit scope, and in a scope of names, which appear in explanations and dumps. */
static kiln_value layer(kiln_graph* graph, const char* name, kiln_value x) {
  check(kiln_graph_push_name_scope(graph, name, strlen(name)));
  check(kiln_graph_push_jit_scope(graph, 1));
  kiln_value square = kiln_op_multiply(graph, x, x);
  kiln_value y = kiln_op_add(graph, kiln_op_tanh(graph, square), x);
  check(kiln_graph_pop_jit_scope(graph));
  check(kiln_graph_pop_name_scope(graph));
  return y;
}

/* Whether the op with this name is explained with these words. */
static int is_told(kiln_graph* graph, const char* op_name, const char* explanation,
                   const char* words) {
  kiln_value value;
  check(kiln_graph_find_value(graph, op_name, strlen(op_name), &value));
  char start[64];
  snprintf(start, sizeof start, "'%s' ", kiln_graph_value_name(graph, value, NULL));
  const char* line = strstr(explanation, start);
  const char* found = line ? strstr(line, words) : NULL;
  if (found && found < line + strcspn(line, "\n")) return 1;
  fprintf(stderr, "jit_scope: %s should be told with '%s'\n", op_name, words);
  return 0;
}

int main(void) {
  kiln_context* context;
  check(kiln_context_create(NULL, &context));
  kiln_device* cpu;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_graph* graph;
  check(kiln_graph_create(context, "layers", 6, &graph));
  const int64_t size = 4;
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &size, 1, "x", 1);
  kiln_value y = layer(graph, "first", x);
  kiln_value z = layer(graph, "second", y);
  /* A mark of a single op goes before its scope's. */
  kiln_value unmarked;
  check(kiln_graph_find_value(graph, "second/tanh", 11, &unmarked));
  check(kiln_graph_set_jit(graph, unmarked, KILN_JIT_OFF));
  check(kiln_graph_push_name_scope(graph, "sum", 3));
  kiln_value sum = kiln_op_add(graph, y, z);
  check(kiln_graph_pop_name_scope(graph));

  kiln_session* session;
  check(kiln_session_create(graph, NULL, &session));
  kiln_text* text;
  check(kiln_session_explain(session, &x, 1, &sum, 1, NULL, 0, &text));
  const char* explanation = kiln_text_data(text, NULL);
  printf("%s", explanation);
  int right = is_told(graph, "first/multiply", explanation, "in cluster_0") &
              is_told(graph, "first/add", explanation, "in cluster_0") &
              is_told(graph, "second/multiply", explanation, "in cluster_1") &
              is_told(graph, "second/tanh", explanation, "outside clusters") &
              is_told(graph, "second/add", explanation, "in cluster_2") &
              is_told(graph, "sum/add", explanation, "outside clusters");
  kiln_text_release(text);

  const float numbers[] = {-1, 0, 0.5f, 2};
  kiln_buffer *input, *result = NULL;
  check(kiln_buffer_copy_host(cpu, KILN_F32, &size, 1, numbers, sizeof numbers, &input));
  check(kiln_session_run(session, NULL, &x, &input, 1, &sum, &result, 1, NULL, 0));
  float sums[4];
  check(kiln_buffer_copy_to_host(result, sums, sizeof sums));
  for (int i = 0; i < 4; ++i) {
    const double first = layer_of(numbers[i]), second = layer_of(first);
    printf("%g -> %g\n", numbers[i], sums[i]);
    if (fabs(sums[i] - (first + second)) > 1e-5) right = 0;
  }
  kiln_buffer_release(result);
  kiln_buffer_release(input);
  kiln_session_release(session);
  kiln_graph_release(graph);
  kiln_context_release(context);
  return right ? 0 : 1;
}
