/* A training loop with variables: arrays of a session that outlive its runs.
 *
 * The model is a line, y = slope * x + offset, fitted to five points by gradient descent. Its two
 * parameters are variables: each run reads them, and assigns them at its end, so that the program
 * feeds the points only. After 100 steps the program saves the variables to a file (in the
 * safetensors format), and goes on. A second session restores them from there, and repeats the same
 * steps:
 *
 *   step 1: loss 33
 *   step 100: loss 5.8723e-05
 *   saved to variables.safetensors
 *   step 200: loss 1.37017e-07, y = 2.00022 x + 0.99938
 *   restored, step 200: loss 1.37017e-07, y = 2.00022 x + 0.99938
 *
 * It returns 0 if the line is found, and both sessions end with the same bits.
 *
 *   variables [FILE]
 *
 * Test: OUT.safetensors
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

enum { POINTS = 5, STEPS = 100 };
static const int64_t kPoints = POINTS, kAll = 0;

static void check(kiln_error* error) {
  if (!error) return;
  fprintf(stderr, "variables: %s\n", kiln_error_message(error, NULL));
  exit(1);
}

static kiln_value broadcast(kiln_graph* graph, kiln_value scalar, kiln_value like) {
  return kiln_op_broadcast_like(graph, scalar, like, NULL, 0);
}

/* sum(values) * factor */
static kiln_value scaled_sum(kiln_graph* graph, kiln_value values, double factor) {
  kiln_value sum = kiln_op_reduce_by(graph, values, &kAll, 1, KILN_REDUCER_SUM);
  return kiln_op_multiply(graph, sum, kiln_op_scalar(graph, KILN_F32, factor));
}

/* One step of training, of the feeds x and y. Fetches the loss and both assignments: a run does
 * what its fetches need. */
static kiln_graph* build(kiln_context* context, kiln_value* feeds, kiln_value* fetches) {
  const double rate = 0.05;
  kiln_graph* graph;
  check(kiln_graph_create(context, "line", 4, &graph));
  kiln_value x = feeds[0] = kiln_op_parameter(graph, KILN_F32, &kPoints, 1, "x", 1);
  kiln_value y = feeds[1] = kiln_op_parameter(graph, KILN_F32, &kPoints, 1, "y", 1);
  kiln_value slope = kiln_op_variable(graph, "slope", 5, KILN_F32, NULL, 0);
  kiln_value offset = kiln_op_variable(graph, "offset", 6, KILN_F32, NULL, 0);
  kiln_value scaled = kiln_op_multiply(graph, broadcast(graph, slope, x), x);
  kiln_value line = kiln_op_add(graph, scaled, broadcast(graph, offset, x));
  kiln_value error = kiln_op_subtract(graph, line, y);
  fetches[0] = scaled_sum(graph, kiln_op_multiply(graph, error, error), 1.0 / POINTS);
  /* The gradient of the loss by the slope is the mean of 2 * error * x. */
  kiln_value by_slope = scaled_sum(graph, kiln_op_multiply(graph, error, x), -2 * rate / POINTS);
  kiln_value by_offset = scaled_sum(graph, error, -2 * rate / POINTS);
  fetches[1] = kiln_op_assign_add(graph, by_slope, "slope", 5);
  fetches[2] = kiln_op_assign_add(graph, by_offset, "offset", 6);
  check(kiln_graph_status(graph));
  return graph;
}

/* Runs so many steps, and returns the last loss. */
static float train(kiln_session* session, int steps, const kiln_value* feeds,
                   kiln_buffer* const* points, const kiln_value* fetches) {
  kiln_buffer* fetched[] = {NULL, NULL, NULL};
  for (int i = 0; i < steps; ++i) {
    check(kiln_session_run(session, NULL, feeds, points, 2, fetches, fetched, 3, NULL, 0));
  }
  float loss;
  check(kiln_buffer_copy_to_host(fetched[0], &loss, sizeof loss));
  for (int i = 0; i < 3; ++i) kiln_buffer_release(fetched[i]);
  return loss;
}

static float value_of(kiln_session* session, const char* name) {
  kiln_buffer* buffer;
  float value;
  check(kiln_session_variable(session, name, strlen(name), &buffer));
  check(kiln_buffer_copy_to_host(buffer, &value, sizeof value));
  kiln_buffer_release(buffer);
  return value;
}

static void set_to_zero(kiln_session* session, kiln_device* cpu, const char* name) {
  kiln_buffer* zero;
  check(kiln_buffer_create(cpu, KILN_F32, NULL, 0, &zero));
  check(kiln_session_set_variable(session, name, strlen(name), zero));
  kiln_buffer_release(zero);
}

int main(int count, char** arguments) {
  const char* path = count > 1 ? arguments[1] : "variables.safetensors";
  kiln_context* context;
  check(kiln_context_create(NULL, &context));
  kiln_device* cpu;
  check(kiln_context_find_device(context, "CPU:0", 5, &cpu));
  kiln_value feeds[2], fetches[3];
  kiln_graph* graph = build(context, feeds, fetches);
  const float x[POINTS] = {0, 1, 2, 3, 4}, y[POINTS] = {1, 3, 5, 7, 9};
  kiln_buffer* points[2];
  check(kiln_buffer_copy_host(cpu, KILN_F32, &kPoints, 1, x, sizeof x, &points[0]));
  check(kiln_buffer_copy_host(cpu, KILN_F32, &kPoints, 1, y, sizeof y, &points[1]));

  float slopes[2], offsets[2];
  for (int i = 0; i < 2; ++i) {
    kiln_session* session;
    check(kiln_session_create(graph, NULL, &session));
    if (i == 0) {
      set_to_zero(session, cpu, "slope");
      set_to_zero(session, cpu, "offset");
      printf("step 1: loss %g\n", train(session, 1, feeds, points, fetches));
      printf("step %d: loss %g\n", STEPS, train(session, STEPS - 1, feeds, points, fetches));
      check(kiln_session_save(session, path, strlen(path)));
      printf("saved to %s\n", path);
    } else {
      check(kiln_session_restore(session, path, strlen(path)));
      printf("restored, ");
    }
    const float loss = train(session, STEPS, feeds, points, fetches);
    slopes[i] = value_of(session, "slope");
    offsets[i] = value_of(session, "offset");
    printf("step %d: loss %g, y = %g x + %g\n", 2 * STEPS, loss, slopes[i], offsets[i]);
    kiln_session_release(session);
  }
  kiln_buffer_release(points[0]);
  kiln_buffer_release(points[1]);
  kiln_graph_release(graph);
  kiln_context_release(context);
  const int is_found = fabsf(slopes[0] - 2) < 1e-2f && fabsf(offsets[0] - 1) < 1e-2f;
  return is_found && slopes[0] == slopes[1] && offsets[0] == offsets[1] ? 0 : 1;
}
