/* A model on a device: weights, the two programs, and the caches of one text. */
#ifndef LANGUAGE_MODEL_MODEL_H_
#define LANGUAGE_MODEL_MODEL_H_

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens of a step of the prefill; the last one of a prompt is padded. */
enum { PREFILL_TOKENS = 64 };

typedef struct {
  model_config config;
  weight_list list;
  model_weight* weights;
  kiln_context* context;
  kiln_device* device;
  kiln_executable *prefill, *decode;
  int programs_loaded;     /* of the two, from files */
  kiln_buffer** arguments; /* the weights as arguments of a program; borrowed */
  size_t argument_count;
  kiln_buffer** caches; /* keys and values of each layer */
  kiln_buffer* logits_buffer;
  float* logits;    /* of the next token, in the host's memory */
  int64_t capacity; /* tokens that the caches have room for */
  int64_t length;   /* tokens in the caches */
} language_model;

/* Makes a model of weights, which it takes over. They are frozen arguments of the decode, where
 * kernels read them as they are, and arguments of each step of the prefill: packed for its many
 * rows they would be in memory twice.
 *   dtype     of the matrices: KILN_F32, KILN_BF16 or KILN_S8
 *   capacity  the most tokens of a text; rounded up to whole steps of the prefill
 *   programs  a folder in which the compiled programs are kept for the next start; NULL: none */
language_model make_model(const model_config* config, model_weight* weights, kiln_dtype dtype,
                          int64_t capacity, kiln_context* context, kiln_device* device,
                          const char* programs);
void release_model(language_model* model);

/* Forgets the text. */
void reset_model(language_model* model);

/* Appends tokens to the text, in steps of PREFILL_TOKENS or one at a time; `logits` are those of
 * the token that follows the last one. */
void prefill(language_model* model, const int32_t* tokens, int64_t count);
void decode(language_model* model, int32_t token);

/* The bytes of weights and caches that a step of decode reads. */
double bytes_per_token(const language_model* model);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_MODEL_H_ */
