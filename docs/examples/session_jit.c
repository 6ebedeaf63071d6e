/* The same graph with the just-in-time compiler off and on, in one program.
 *
 * The graph is a polynomial and a tanh of a million numbers. A session without JIT runs each op as
 * a kernel of its own, and each kernel reads and writes the whole array; a session with KILN_JIT_ON
 * compiles the ops in a cluster, which is one kernel. For each session it prints the number of
 * kernels and the time of a run, then the place of each op:
 *
 *   JIT off: 7 kernels, 0.76 ms per run
 *   JIT on:  1 kernels, 0.44 ms per run
 *   'x' (parameter) outside clusters: it is an input
 *   'multiply' (multiply) in cluster_0 on CPU:0
 *   ...
 *
 * It returns 0 if both sessions compute the same numbers and the second one has fewer kernels.
 *
 * Test:
 */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kiln/kiln.h"

enum { COUNT = 1 << 20, RUNS = 20 };

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "session_jit: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* tanh(((x * x + x) * x + x) * x + x): six ops of arithmetic and one function. */
static kiln_value build(kiln_graph* graph, kiln_value x) {
  kiln_value y = x;
  for (int i = 0; i < 3; ++i) y = kiln_op_add(graph, kiln_op_multiply(graph, y, x), x);
  return kiln_op_tanh(graph, y);
}

/* Runs the graph in a session of this level, and returns its kernels. */
static int run(const char* level, kiln_graph* graph, kiln_jit jit, kiln_value x, kiln_buffer* input,
               kiln_value y, float* output) {
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  kiln_session* session;
  check(kiln_session_create(graph, &options, &session));
  /* A run with new feeds and fetches compiles; preparing it first keeps that out of the times. */
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  check(kiln_session_prepare(session, &x, 1, &y, 1, NULL, 0, &info));
  kiln_buffer* result = NULL; /* made by the first run, written anew by the others */
  check(kiln_session_run(session, NULL, &x, &input, 1, &y, &result, 1, NULL, 0));
  const double start = seconds();
  for (int i = 0; i < RUNS; ++i) {
    check(kiln_session_run(session, NULL, &x, &input, 1, &y, &result, 1, NULL, 0));
  }
  printf("JIT %s %d kernels, %.2f ms per run\n", level, (int)info.kernels,
         (seconds() - start) / RUNS * 1e3);
  check(kiln_buffer_copy_to_host(result, output, COUNT * sizeof *output));
  if (jit == KILN_JIT_ON) {
    kiln_text* text;
    check(kiln_session_explain(session, &x, 1, &y, 1, NULL, 0, &text));
    printf("%s", kiln_text_data(text, NULL));
    kiln_text_release(text);
  }
  kiln_buffer_release(result);
  kiln_session_release(session);
  return (int)info.kernels;
}

int main(void) {
  static float numbers[COUNT], one_by_one[COUNT], compiled[COUNT];
  for (int i = 0; i < COUNT; ++i) numbers[i] = (float)i / COUNT - 0.5f;
  kiln_context* context;
  check(kiln_context_create(NULL, &context));
  kiln_device* cpu;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_graph* graph;
  check(kiln_graph_create(context, "polynomial", 10, &graph));
  const int64_t size = COUNT;
  kiln_value x = kiln_op_parameter(graph, KILN_F32, &size, 1, "x", 1);
  kiln_value y = build(graph, x);
  kiln_buffer* input;
  check(kiln_buffer_copy_host(cpu, KILN_F32, &size, 1, numbers, sizeof numbers, &input));

  const int kernels = run("off:", graph, KILN_JIT_OFF, x, input, y, one_by_one);
  const int fused = run("on: ", graph, KILN_JIT_ON, x, input, y, compiled);
  float difference = 0;
  for (int i = 0; i < COUNT; ++i) {
    difference = fmaxf(difference, fabsf(one_by_one[i] - compiled[i]));
  }
  printf("largest difference: %g\n", difference);

  kiln_buffer_release(input);
  kiln_graph_release(graph);
  kiln_context_release(context);
  return difference <= 1e-6f && fused < kernels ? 0 : 1;
}
