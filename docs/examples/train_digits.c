/* Trains two networks to read handwritten digits, with the gradients of kiln/gradient.h and the
 * losses and optimisers of kiln/train.h: a multilayer perceptron (MLP), and a convolutional network
 * (CNN), which must read 97 % of the digits that it has not seen.
 *
 *   train_digits DIR (of MNIST's four files, or such as those in `digits` beside this file)
 *
 * Test: DIR/digits */
#include <stdio.h>

#include "parts/common.h"
#include "parts/digits.h"
#include "parts/loop.h"

enum { BATCH = 50, STEPS = 1200, PARAMETERS = 6, STATES = KILN_OPTIMIZER_STATE_MAX(6) };

typedef struct {
  const char* name;
  kiln_value (*logits)(kiln_graph* g, const kiln_value* p, kiln_value images, int64_t count);
  double accuracy;                  /* that it must reach */
  int64_t weights[3][4], biases[3]; /* sizes; of a matrix two */
} model;

/* Builder functions need no checks of their own: after an error they return 0, and the functions
 * that take the graph return the first error. */
static kiln_value relu(kiln_graph* g, kiln_value x) {
  return kiln_nn_maximum(g, x, kiln_op_scalar(g, KILN_F32, 0));
}

static kiln_value dense(kiln_graph* g, const kiln_value* p, kiln_value x) {
  return kiln_nn_add(g, kiln_op_matmul(g, x, p[0]), p[1]);
}

static kiln_value mlp(kiln_graph* g, const kiln_value* p, kiln_value images, int64_t count) {
  const int64_t rows[] = {count, PIXELS};
  kiln_value x = kiln_op_reshape(g, images, rows, 2);
  return dense(g, p + 4, relu(g, dense(g, p + 2, relu(g, dense(g, p, x)))));
}

/* A convolution that halves the sizes of images [count, rows, columns, features]. */
static kiln_value halve(kiln_graph* g, const kiln_value* p, kiln_value x, int64_t size) {
  const int64_t window[] = {size, size}, strides[] = {2, 2}, padding[] = {size / 2, size / 2};
  x = kiln_op_convolution(g, x, p[0], window, strides, NULL, NULL, padding, padding, NULL, 2,
                          "b01f_01io->b01f", 15, 1, 1, 0);
  return relu(g, kiln_nn_add(g, x, p[1]));
}

static kiln_value cnn(kiln_graph* g, const kiln_value* p, kiln_value images, int64_t count) {
  const int64_t rows[] = {count, 7 * 7 * 32};
  kiln_value x = halve(g, p + 2, halve(g, p, images, 5), 3);
  return dense(g, p + 4, kiln_op_reshape(g, x, rows, 2));
}

static const model kModels[] = {
    {"MLP", mlp, 0.9, {{PIXELS, 128}, {128, 64}, {64, CLASSES}}, {128, 64, CLASSES}},
    {"CNN", cnn, 0.97, {{5, 5, 1, 16}, {3, 3, 16, 32}, {7 * 7 * 32, CLASSES}}, {16, 32, CLASSES}}};

/* The first parameters: weights by He's rule, biases of 0. */
static void initial_parameters(const model* m, kiln_graph* g, kiln_value* p) {
  static const char* const kNames[] = {"w1", "b1", "w2", "b2", "w3", "b3"};
  const kiln_initializer_options he = {sizeof he, .kind = KILN_INITIALIZER_HE_NORMAL};
  for (int i = 0; i < PARAMETERS; i += 2) {
    const int64_t* sizes = m->weights[i / 2];
    p[i] = kiln_train_initialize(g, &he, KILN_F32, sizes, sizes[2] ? 4 : 2, kNames[i], 2);
    p[i + 1] = kiln_train_initialize(g, NULL, KILN_F32, &m->biases[i / 2], 1, kNames[i + 1], 2);
  }
}

/* Adds the parameters of a batch; returns the logits of its images. */
static kiln_value logits_of(const model* m, kiln_graph* g, const kiln_value* p, int64_t count,
                            kiln_value* labels) {
  const int64_t dims[] = {count, SIDE, SIDE, 1};
  kiln_value images = kiln_op_parameter(g, KILN_F32, dims, 4, "images", 6);
  *labels = kiln_op_parameter(g, KILN_S32, dims, 1, "labels", 6);
  return m->logits(g, p, images, count);
}

/* One step of AdamW, with a rate that falls along a cosine. */
static training_loop make_loop(const model* m, kiln_context* context) {
  kiln_graph *initial = new_graph(context, "initial"), *g = new_graph(context, "step");
  kiln_value values[PARAMETERS + STATES + 1], *state = values + PARAMETERS, gradients[PARAMETERS],
                                              labels;
  kiln_optimizer_options adamw;
  kiln_optimizer_options_init(&adamw, sizeof adamw, KILN_OPTIMIZER_ADAMW);
  initial_parameters(m, initial, values);
  size_t states;
  check(kiln_train_state(initial, &adamw, values, PARAMETERS, state, STATES, &states), "state");
  const size_t count = PARAMETERS + states;
  check(kiln_graph_set_results(initial, values, count), "initial");
  check(kiln_train_parameters(g, initial, values, count, values), "parameters");
  kiln_value logits = logits_of(m, g, values, BATCH, &labels);
  kiln_value loss = kiln_train_softmax_cross_entropy(g, logits, labels, 0, KILN_REDUCTION_MEAN);
  check(kiln_graph_gradient(g, loss, values, PARAMETERS, NULL, gradients), "gradient");
  kiln_schedule_options schedule = KILN_SCHEDULE_OPTIONS_INIT;
  schedule.kind = KILN_SCHEDULE_COSINE;
  schedule.peak = 3e-3;
  schedule.steps = STEPS;
  kiln_value rate = kiln_train_schedule(g, &schedule, state[0]); /* the number of updates */
  check(kiln_train_update(g, &adamw, rate, 0, values, gradients, PARAMETERS, state, states, values,
                          state),
        "update");
  values[count] = loss;
  check(kiln_graph_set_results(g, values, count + 1), "step");
  return start_loop(kiln_context_device(context, 0), initial, g, count);
}

/* The share of digits whose logit is the largest one. */
static kiln_graph* accuracy_graph(const model* m, kiln_context* context, int64_t count) {
  kiln_graph *initial = new_graph(context, "initial"), *g = new_graph(context, "accuracy");
  kiln_value p[PARAMETERS], labels;
  initial_parameters(m, initial, p);
  check(kiln_train_parameters(g, initial, p, PARAMETERS, p), "parameters");
  kiln_graph_release(initial);
  const int64_t classes[] = {1};
  kiln_value x = logits_of(m, g, p, count, &labels);
  kiln_value digit = kiln_nn_argmax(g, x, classes, 1, 0, KILN_S32);
  kiln_value hits = kiln_op_convert(g, kiln_op_compare(g, digit, labels, KILN_EQ), KILN_F32);
  kiln_value share = kiln_nn_mean(g, hits, NULL, 0, 0);
  check(kiln_graph_set_results(g, &share, 1), "accuracy");
  return g;
}

static void train(const model* m, kiln_context* context, const digits* all, const digits* unseen) {
  training_loop loop = make_loop(m, context);
  kiln_buffer* batch[2];
  uint64_t random = 1;
  float loss;
  for (int step = 1; step <= STEPS; ++step) {
    digit_buffers(loop.device, all, BATCH, &random, batch);
    run_loop(&loop, batch, 2, &loss, 1);
    if (step % 300 == 0) printf("%s: step %4d, loss %.4f\n", m->name, step, (double)loss);
  }
  digit_buffers(loop.device, unseen, unseen->count, NULL, batch);
  kiln_graph* test = accuracy_graph(m, context, (int64_t)unseen->count);
  const double accuracy = (double)evaluate_loop(&loop, test, PARAMETERS, batch, 2);
  printf("%s: test accuracy %.4f\n", m->name, accuracy);
  if (accuracy < m->accuracy) fail("%s: the test accuracy is below %g", m->name, m->accuracy);
  end_loop(&loop);
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: train_digits DIR");
  digits all = read_digits(argv[1], "train"), unseen = read_digits(argv[1], "t10k");
  kiln_context* context;
  check(kiln_context_create(NULL, &context), "context");
  for (int i = 0; i < 2; ++i) train(&kModels[i], context, &all, &unseen);
  kiln_context_release(context);
  free_digits(all);
  free_digits(unseen);
  return 0;
}
