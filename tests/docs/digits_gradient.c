/* usage: digits_gradient_test DIGITS
 *
 * The gradient of the demo, docs/examples/mnist_softmax.c, by kiln_graph_gradient() against the one
 * by the chain rule on paper: of the mean cross entropy of softmax(logits) by the logits it is
 * (softmax - labels) / BATCH. Both train from the same values on the same digits, and their losses
 * must agree to 1e-5 of their size at every step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mnist_softmax/graph.h"
#include "parts/common.h"
#include "parts/digits.h"

enum { STEPS = 300 };
static const double kMaxDifference = 1e-5; /* relative */
static const int64_t kRows[] = {0}, kColumns[] = {1}, kBoth[] = {0, 1};

static kiln_value scale(kiln_graph* g, kiln_value value, double factor) {
  return kiln_nn_multiply(g, value, kiln_op_scalar(g, KILN_F32, factor));
}

/* The graph of softmax_step(), with the gradient by hand. */
static kiln_graph* step_by_hand(kiln_context* context) {
  kiln_graph* g;
  kiln_value feeds[FEEDS], fetches[FETCHES];
  check(kiln_graph_create(context, "by_hand", 7, &g), "graph");
  kiln_value logits = softmax_logits(g, BATCH, feeds);
  kiln_value max = kiln_op_reduce_by(g, logits, kColumns, 1, KILN_REDUCER_MAX);
  kiln_value maxima = kiln_op_broadcast_like(g, max, logits, kRows, 1);
  kiln_value shifted = kiln_op_subtract(g, logits, maxima);
  kiln_value exps = kiln_op_exponential(g, shifted);
  kiln_value sum = kiln_op_reduce_by(g, exps, kColumns, 1, KILN_REDUCER_SUM);
  kiln_value log = kiln_op_broadcast_like(g, kiln_op_log(g, sum), logits, kRows, 1);
  kiln_value hits = kiln_op_multiply(g, feeds[LABELS], kiln_op_subtract(g, shifted, log));
  kiln_value total = kiln_op_reduce_by(g, hits, kBoth, 2, KILN_REDUCER_SUM);
  fetches[LOSS] = scale(g, total, -1.0 / BATCH);

  kiln_value sums = kiln_op_broadcast_like(g, sum, logits, kRows, 1);
  kiln_value softmax = kiln_op_divide(g, exps, sums);
  kiln_value slope = scale(g, kiln_op_subtract(g, softmax, feeds[LABELS]), 1.0 / BATCH);
  kiln_value weights =
      kiln_op_dot(g, feeds[IMAGES], slope, NULL, 0, NULL, 0, kRows, 1, kRows, 1, 0);
  kiln_value bias = kiln_op_reduce_by(g, slope, kRows, 1, KILN_REDUCER_SUM);
  fetches[NEW_WEIGHTS] = kiln_op_subtract(g, feeds[WEIGHTS], scale(g, weights, SOFTMAX_RATE));
  fetches[NEW_BIAS] = kiln_op_subtract(g, feeds[BIAS], scale(g, bias, SOFTMAX_RATE));
  check(kiln_graph_set_results(g, fetches, FETCHES), "graph");
  return g;
}

/* Trains on batches of the digits in order, and writes the loss of each step. */
static void train(kiln_graph* graph, kiln_device* device, const digits* all, float* losses) {
  const int64_t images[] = {BATCH, PIXELS}, labels[] = {BATCH, CLASSES};
  const int64_t weights[] = {PIXELS, CLASSES};
  kiln_executable* step;
  check(kiln_graph_compile(graph, NULL, &step), "compile");
  kiln_graph_release(graph);
  kiln_buffer* feeds[FEEDS];
  check(kiln_buffer_create(device, KILN_F32, weights, 2, &feeds[WEIGHTS]), "weights");
  check(kiln_buffer_create(device, KILN_F32, weights + 1, 1, &feeds[BIAS]), "bias");
  float *pixels = allocate(BATCH * PIXELS, sizeof(float)), *ones;
  for (size_t i = 0; i < STEPS; ++i) {
    ones = allocate(BATCH * CLASSES, sizeof(float));
    for (size_t k = 0; k < BATCH; ++k) {
      const size_t number = (i * BATCH + k) % all->count;
      digit_pixels(all, number, NULL, pixels + k * PIXELS);
      ones[k * CLASSES + all->labels[number]] = 1;
    }
    feeds[IMAGES] = f32_buffer(device, images, 2, pixels);
    feeds[LABELS] = f32_buffer(device, labels, 2, ones);
    free(ones);
    kiln_buffer* results[FETCHES] = {NULL};
    check(kiln_executable_run(step, NULL, feeds, FEEDS, results, FETCHES), "step");
    check(kiln_buffer_copy_to_host(results[LOSS], &losses[i], sizeof(float)), "loss");
    kiln_buffer_release(results[LOSS]);
    for (int k = 0; k < FEEDS; ++k) kiln_buffer_release(feeds[k]);
    feeds[WEIGHTS] = results[NEW_WEIGHTS];
    feeds[BIAS] = results[NEW_BIAS];
  }
  kiln_buffer_release(feeds[WEIGHTS]);
  kiln_buffer_release(feeds[BIAS]);
  kiln_executable_release(step);
  free(pixels);
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: digits_gradient_test DIGITS");
  kiln_context* context;
  kiln_device* device = open_device("CPU:0", 2, &context);
  digits all = read_digits(argv[1], "train");
  kiln_value feeds[FEEDS], fetches[FETCHES];
  static float losses[2][STEPS];
  train(softmax_step(context, feeds, fetches), device, &all, losses[0]);
  train(step_by_hand(context), device, &all, losses[1]);
  double largest = 0;
  for (int i = 0; i < STEPS; ++i) {
    const double ours = (double)losses[0][i], by_hand = (double)losses[1][i];
    const double difference = fabs(ours - by_hand) / by_hand;
    if (!(difference <= kMaxDifference)) fail("step %d: %.9g, by hand %.9g", i, ours, by_hand);
    largest = fmax(largest, difference);
  }
  if (!(losses[0][STEPS - 1] < 0.5F * losses[0][0])) fail("the losses do not fall");
  printf("losses from %.4f to %.4f differ by at most %.1e\n", (double)losses[0][0],
         (double)losses[0][STEPS - 1], largest);
  free_digits(all);
  kiln_context_release(context);
  return 0;
}
