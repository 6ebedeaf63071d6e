/* The graphs of softmax regression on digits. */
#ifndef MNIST_SOFTMAX_GRAPH_H_
#define MNIST_SOFTMAX_GRAPH_H_

#include <stddef.h>

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTMAX_RATE 0.1 /* of learning */
enum { BATCH = 100 };
enum { IMAGES, LABELS, WEIGHTS, BIAS, FEEDS };
enum { NEW_WEIGHTS, NEW_BIAS, LOSS, FETCHES };

/* Adds parameters for `count` images to a graph, FEEDS of them: images and labels, f32[count,784]
 * and f32[count,10], with a 1 for the digit, weights and bias. Returns images x weights + bias. */
kiln_value softmax_logits(kiln_graph* g, int64_t count, kiln_value* feeds);

/* One step of training: the loss of a batch, its gradient, and the parameters after a step against
 * the gradient. `fetches` receives FETCHES results. The caller releases the graph. */
kiln_graph* softmax_step(kiln_context* context, kiln_value* feeds, kiln_value* fetches);

/* A program of the arguments FEEDS: the share of `count` images whose logit is largest for the
 * right digit. The caller releases it. */
kiln_executable* softmax_accuracy(kiln_context* context, kiln_device* device, size_t count);

#ifdef __cplusplus
}
#endif

#endif /* MNIST_SOFTMAX_GRAPH_H_ */
