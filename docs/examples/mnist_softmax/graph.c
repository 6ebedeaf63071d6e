#include "mnist_softmax/graph.h"

#include <string.h>

#include "parts/common.h"
#include "parts/digits.h"

static const int64_t kRows[] = {0}, kColumns[] = {1}, kBoth[] = {0, 1};

/* Builder functions need no checks of their own: after an error they return 0, and the functions
 * that take the graph return the first error. The names appear in timelines and dumps. */
static kiln_value named(kiln_graph* g, const char* name, kiln_value value) {
  check(kiln_graph_set_op_name(g, value, name, strlen(name)), name);
  return value;
}

static kiln_value parameter(kiln_graph* g, const char* name, const int64_t* dims, size_t rank) {
  return kiln_op_parameter(g, KILN_F32, dims, rank, name, strlen(name));
}

static kiln_value matmul(kiln_graph* g, const char* name, kiln_value lhs, const int64_t* lhs_dim,
                         kiln_value rhs, const int64_t* rhs_dim) {
  return named(g, name, kiln_op_dot(g, lhs, rhs, NULL, 0, NULL, 0, lhs_dim, 1, rhs_dim, 1, 0));
}

static kiln_value reduce(kiln_graph* g, const char* name, kiln_reducer reducer, kiln_value value,
                         const int64_t* dims, size_t count) {
  return named(g, name, kiln_op_reduce_by(g, value, dims, count, reducer));
}

/* Broadcasts a value with one element per row, or per column, of `like`. */
static kiln_value repeat(kiln_graph* g, kiln_value value, kiln_value like, const int64_t* dim) {
  return kiln_op_broadcast_like(g, value, like, dim, 1);
}

static kiln_value scale(kiln_graph* g, const char* name, kiln_value value, double factor) {
  kiln_value scalar = kiln_op_scalar(g, KILN_F32, factor);
  kiln_value factors = kiln_op_broadcast_like(g, scalar, value, NULL, 0);
  return named(g, name, kiln_op_multiply(g, value, factors));
}

kiln_value softmax_logits(kiln_graph* g, int64_t count, kiln_value* feeds) {
  const int64_t images[] = {count, PIXELS}, labels[] = {count, CLASSES};
  const int64_t weights[] = {PIXELS, CLASSES}, bias[] = {CLASSES};
  feeds[IMAGES] = parameter(g, "images", images, 2);
  feeds[LABELS] = parameter(g, "labels", labels, 2);
  feeds[WEIGHTS] = parameter(g, "weights", weights, 2);
  feeds[BIAS] = parameter(g, "bias", bias, 1);
  kiln_value product = matmul(g, "forward/matmul", feeds[IMAGES], kColumns, feeds[WEIGHTS], kRows);
  kiln_value repeated = repeat(g, feeds[BIAS], product, kColumns);
  return named(g, "forward/logits", kiln_op_add(g, product, repeated));
}

kiln_graph* softmax_step(kiln_context* context, kiln_value* feeds, kiln_value* fetches) {
  static const char kName[] = "mnist_softmax";
  kiln_graph* g;
  check(kiln_graph_create(context, kName, strlen(kName), &g), "graph");

  /* The logarithm of softmax, from shifted logits of at most 0, so that exp cannot overflow. The
   * result is the same for any shift, so its gradient is that of a constant. */
  kiln_value logits = softmax_logits(g, BATCH, feeds);
  kiln_value max = reduce(g, "forward/max", KILN_REDUCER_MAX, logits, kColumns, 1);
  kiln_value maxima = repeat(g, kiln_op_stop_gradient(g, max), logits, kRows);
  kiln_value shifted = named(g, "forward/shift", kiln_op_subtract(g, logits, maxima));
  kiln_value exps = named(g, "forward/exp", kiln_op_exponential(g, shifted));
  kiln_value sum = reduce(g, "forward/sum", KILN_REDUCER_SUM, exps, kColumns, 1);
  kiln_value log = repeat(g, named(g, "forward/log", kiln_op_log(g, sum)), logits, kRows);
  kiln_value log_softmax = named(g, "forward/log_softmax", kiln_op_subtract(g, shifted, log));

  /* Cross entropy, the mean over the batch. */
  kiln_value hits = named(g, "loss/pick", kiln_op_multiply(g, feeds[LABELS], log_softmax));
  kiln_value total = reduce(g, "loss/sum", KILN_REDUCER_SUM, hits, kBoth, 2);
  fetches[LOSS] = scale(g, "loss/mean", total, -1.0 / BATCH);

  kiln_value gradients[2];
  check(kiln_graph_gradient(g, fetches[LOSS], feeds + WEIGHTS, 2, NULL, gradients), "gradient");
  kiln_value weights = named(g, "gradient/weights", gradients[0]);
  kiln_value bias = named(g, "gradient/bias", gradients[1]);

  weights = scale(g, "update/weights_rate", weights, SOFTMAX_RATE);
  bias = scale(g, "update/bias_rate", bias, SOFTMAX_RATE);
  fetches[NEW_WEIGHTS] = named(g, "update/weights", kiln_op_subtract(g, feeds[WEIGHTS], weights));
  fetches[NEW_BIAS] = named(g, "update/bias", kiln_op_subtract(g, feeds[BIAS], bias));
  check(kiln_graph_set_results(g, fetches, FETCHES), "graph");
  return g;
}

kiln_executable* softmax_accuracy(kiln_context* context, kiln_device* device, size_t count) {
  static const char kName[] = "accuracy";
  kiln_value feeds[FEEDS];
  kiln_graph* g;
  check(kiln_graph_create(context, kName, strlen(kName), &g), "graph");
  kiln_value logits = softmax_logits(g, (int64_t)count, feeds);
  kiln_value max = reduce(g, "max", KILN_REDUCER_MAX, logits, kColumns, 1);
  kiln_value right = kiln_op_multiply(g, logits, feeds[LABELS]);
  right = reduce(g, "right", KILN_REDUCER_SUM, right, kColumns, 1);
  kiln_value hit = kiln_op_convert(g, kiln_op_compare(g, right, max, KILN_EQ), KILN_F32);
  kiln_value hits = reduce(g, "hits", KILN_REDUCER_SUM, hit, kRows, 1);
  kiln_value share = scale(g, "share", hits, 1.0 / (double)count);
  check(kiln_graph_set_results(g, &share, 1), "graph");
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* executable;
  check(kiln_graph_compile(g, &options, &executable), "compile");
  kiln_graph_release(g);
  return executable;
}
