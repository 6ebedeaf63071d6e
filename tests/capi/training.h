/* Some steps of training a small softmax regression, for tests of devices: a graph whose results
 * take the place of its donated parameters. What fails returns its error. */
#ifndef KILN_TESTS_CAPI_TRAINING_H_
#define KILN_TESTS_CAPI_TRAINING_H_

#include "testing.h"

enum { BATCH = 24, PIXELS = 20, CLASSES = 5, STEPS = 3 };
enum { IMAGES, LABELS, WEIGHTS, BIAS, FEEDS };
enum { NEW_WEIGHTS, NEW_BIAS, LOSS, FETCHES };

static const int64_t kImages[] = {BATCH, PIXELS}, kLabels[] = {BATCH, CLASSES},
                     kWeights[] = {PIXELS, CLASSES}, kBias[] = {CLASSES};
static const int64_t kRows[] = {0}, kColumns[] = {1}, kBoth[] = {0, 1};

/* Returns the error from the function where a call fails. */
#define TRY(call)                            \
  do {                                       \
    kiln_error* try_error = (call);          \
    if (try_error != NULL) return try_error; \
  } while (0)

static inline kiln_value repeat_along(kiln_graph* g, kiln_value value, kiln_value like,
                                      const int64_t* dimension) {
  return kiln_op_broadcast_like(g, value, like, dimension, 1);
}

static inline kiln_value scaled(kiln_graph* g, kiln_value value, double factor) {
  kiln_value scalar = kiln_op_scalar(g, KILN_F32, factor);
  return kiln_op_multiply(g, value, kiln_op_broadcast_like(g, scalar, value, NULL, 0));
}

static inline kiln_value product_of(kiln_graph* g, kiln_value lhs, const int64_t* lhs_dimension,
                                    kiln_value rhs, const int64_t* rhs_dimension) {
  return kiln_op_dot(g, lhs, rhs, NULL, 0, NULL, 0, lhs_dimension, 1, rhs_dimension, 1, 0);
}

/* The graph of one step: the loss of a batch, and the parameters after a step down its gradient. */
static inline kiln_graph* training_graph(kiln_context* context) {
  kiln_graph* g = make_graph(context, "training");
  kiln_value images = kiln_op_parameter(g, KILN_F32, kImages, 2, "images", 6);
  kiln_value labels = kiln_op_parameter(g, KILN_F32, kLabels, 2, "labels", 6);
  kiln_value weights = kiln_op_parameter(g, KILN_F32, kWeights, 2, "weights", 7);
  kiln_value bias = kiln_op_parameter(g, KILN_F32, kBias, 1, "bias", 4);
  kiln_value product = product_of(g, images, kColumns, weights, kRows);
  kiln_value logits = kiln_op_add(g, product, repeat_along(g, bias, product, kColumns));
  kiln_value maxima = kiln_op_reduce_by(g, logits, kColumns, 1, KILN_REDUCER_MAX);
  kiln_value shifted = kiln_op_subtract(g, logits, repeat_along(g, maxima, logits, kRows));
  kiln_value exps = kiln_op_exponential(g, shifted);
  kiln_value sums = kiln_op_reduce_by(g, exps, kColumns, 1, KILN_REDUCER_SUM);
  kiln_value logs = repeat_along(g, kiln_op_log(g, sums), logits, kRows);
  kiln_value hits = kiln_op_multiply(g, labels, kiln_op_subtract(g, shifted, logs));
  kiln_value total = kiln_op_reduce_by(g, hits, kBoth, 2, KILN_REDUCER_SUM);
  kiln_value softmax = kiln_op_divide(g, exps, repeat_along(g, sums, logits, kRows));
  kiln_value slope = scaled(g, kiln_op_subtract(g, softmax, labels), 1.0 / BATCH);
  kiln_value by_weights = product_of(g, images, kRows, slope, kRows);
  kiln_value by_bias = kiln_op_reduce_by(g, slope, kRows, 1, KILN_REDUCER_SUM);
  kiln_value results[FETCHES];
  results[NEW_WEIGHTS] = kiln_op_subtract(g, weights, scaled(g, by_weights, 0.5));
  results[NEW_BIAS] = kiln_op_subtract(g, bias, scaled(g, by_bias, 0.5));
  results[LOSS] = scaled(g, total, -1.0 / BATCH);
  OK(kiln_graph_set_results(g, results, FETCHES));
  return g;
}

static inline kiln_error* compile_training(kiln_context* context, kiln_device* device,
                                           kiln_executable** executable) {
  kiln_graph* graph = training_graph(context);
  const kiln_alias aliases[] = {{.result = NEW_WEIGHTS, .argument = WEIGHTS},
                                {.result = NEW_BIAS, .argument = BIAS}};
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.aliases = aliases;
  options.alias_count = 2;
  kiln_error* error = kiln_graph_compile(graph, &options, executable);
  kiln_graph_release(graph);
  return error;
}

/* What training ends with, on the host. */
typedef struct {
  float weights[PIXELS * CLASSES], bias[CLASSES], losses[STEPS];
} trained;

/* A training that is going on; all NULL at first. */
typedef struct {
  kiln_buffer* feeds[FEEDS];
  kiln_buffer* losses[STEPS];
  kiln_event* events[STEPS];
} training;

static inline void end_training(training* t) {
  for (int i = 0; i < FEEDS; ++i) kiln_buffer_release(t->feeds[i]);
  for (int i = 0; i < STEPS; ++i) {
    kiln_buffer_release(t->losses[i]);
    kiln_event_release(t->events[i]);
  }
}

static inline kiln_error* copy_in(kiln_device* device, training* t) {
  float images[BATCH * PIXELS], labels[BATCH * CLASSES] = {0}, weights[PIXELS * CLASSES];
  uint32_t state = 12345;
  for (int i = 0; i < BATCH * PIXELS; ++i) {
    state = state * 1664525u + 1013904223u;
    images[i] = (float)(state >> 20) / 4096;
  }
  for (int i = 0; i < BATCH; ++i) labels[i * CLASSES + i * 7 % CLASSES] = 1;
  for (int i = 0; i < PIXELS * CLASSES; ++i) weights[i] = (float)(i % 13 - 6) / 32;
  TRY(kiln_buffer_copy_host(device, KILN_F32, kImages, 2, images, sizeof images,
                            &t->feeds[IMAGES]));
  TRY(kiln_buffer_copy_host(device, KILN_F32, kLabels, 2, labels, sizeof labels,
                            &t->feeds[LABELS]));
  TRY(kiln_buffer_copy_host(device, KILN_F32, kWeights, 2, weights, sizeof weights,
                            &t->feeds[WEIGHTS]));
  return kiln_buffer_create(device, KILN_F32, kBias, 1, &t->feeds[BIAS]);
}

/* One step; the event says when it has ended where `events` has a place for it. */
static inline kiln_error* train_step(kiln_executable* executable, training* t, int step,
                                     int asynchronous) {
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donate_aliased = 1;
  kiln_buffer* results[FETCHES] = {NULL, NULL, NULL};
  if (asynchronous) {
    kiln_buffer* const* arguments = t->feeds;
    kiln_buffer** places = results;
    TRY(kiln_executable_execute(executable, &options, &arguments, FEEDS, &places, FETCHES, 1,
                                &t->events[step]));
  } else {
    TRY(kiln_executable_run(executable, &options, t->feeds, FEEDS, results, FETCHES));
  }
  kiln_buffer_release(t->feeds[WEIGHTS]);
  kiln_buffer_release(t->feeds[BIAS]);
  t->feeds[WEIGHTS] = results[NEW_WEIGHTS];
  t->feeds[BIAS] = results[NEW_BIAS];
  t->losses[step] = results[LOSS];
  return NULL;
}

static inline kiln_error* copy_out(const training* t, trained* result) {
  for (int i = 0; i < STEPS; ++i) {
    if (t->events[i]) TRY(kiln_event_wait(t->events[i], -1));
  }
  for (int i = 0; i < STEPS; ++i) {
    TRY(kiln_buffer_copy_to_host(t->losses[i], &result->losses[i], sizeof(float)));
  }
  TRY(kiln_buffer_copy_to_host(t->feeds[WEIGHTS], result->weights, sizeof result->weights));
  return kiln_buffer_copy_to_host(t->feeds[BIAS], result->bias, sizeof result->bias);
}

/* From the start: arguments are copied in, results out. */
static inline kiln_error* train(kiln_device* device, kiln_executable* executable, int asynchronous,
                                trained* result) {
  training t;
  memset(&t, 0, sizeof t);
  kiln_error* error = copy_in(device, &t);
  for (int i = 0; i < STEPS && !error; ++i) error = train_step(executable, &t, i, asynchronous);
  if (!error) error = copy_out(&t, result);
  end_training(&t);
  return error;
}

#endif /* KILN_TESTS_CAPI_TRAINING_H_ */
