/* Training of small models: the loss, its gradient and Adam's update as one graph. */
#ifndef LANGUAGE_MODEL_TRAINING_H_
#define LANGUAGE_MODEL_TRAINING_H_

#include "weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a graph of training computes from the weights, in the order of their list, and
 * s32[batch, length + 1] tokens: each token but the last of a row is to predict the next one. */
typedef enum {
  TRAINING_LOGITS,   /* [batch * length, vocabulary] */
  TRAINING_GRADIENT, /* the loss, and its gradient by each of the weights */
  TRAINING_STEP      /* the loss, and weights and moments after a step of Adam. The parameters are
                        followed by the first and the second moments, and by the rate, f32[] */
} training_results;

/*   dtype  of weights and computation: KILN_F32, or KILN_F64 to check a gradient */
kiln_graph* training_graph(kiln_context* context, const model_config* config,
                           const weight_list* list, kiln_dtype dtype, int64_t batch, int64_t length,
                           training_results results);

/* A model in training. */
typedef struct {
  model_config config;
  weight_list list;
  int64_t batch, length; /* rows of a step, and the tokens to predict in each */
  kiln_device* device;
  kiln_executable* step;
  kiln_buffer** state; /* weights, first moments, second moments */
  int64_t steps;       /* so far */
} training;

/* Begins with random weights. */
training make_training(const model_config* config, int64_t batch, int64_t length, uint64_t seed,
                       kiln_context* context, kiln_device* device);
void release_training(training* t);

/* One step of Adam on int32_t[batch][length + 1] tokens; returns the loss before it: the mean of
 * -log(probability) in nats. */
float train_step(training* t, const int32_t* tokens, double rate);

/* Trains on pieces of a text, from random places, with a rate that rises in the first steps and
 * falls to a tenth. Each token of the text is a byte. Returns the mean loss of the last tenth of
 * the steps. `progress`, unless NULL, is called after each step. */
float train_on_text(training* t, const char* text, size_t size, int64_t steps, double rate,
                    uint64_t seed, void (*progress)(int64_t step, float loss));

/* A small model of bytes, with 4 heads; in a Llama they share 2 heads of keys and values.
 *   width  a multiple of 16 */
model_config small_config(architecture_kind architecture, int64_t width, int64_t layers,
                          int64_t positions);

/* Random numbers for the arrays of a model that is to be trained. */
void initial_weight(const weight_spec* spec, const model_config* config, uint64_t* random,
                    float* numbers);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_TRAINING_H_ */
