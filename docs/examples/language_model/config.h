/* The sizes of a model, read from a config.json of Hugging Face's form. */
#ifndef LANGUAGE_MODEL_CONFIG_H_
#define LANGUAGE_MODEL_CONFIG_H_

#include <stdint.h>

#include "json.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { GPT2, LLAMA } architecture_kind;

typedef struct {
  architecture_kind architecture;
  int64_t vocabulary; /* number of tokens */
  int64_t width;      /* of a token's vector */
  int64_t layers;
  int64_t heads;     /* of queries */
  int64_t key_heads; /* of keys and values; divides `heads` */
  int64_t head_size;
  int64_t inner;     /* width of the perceptron */
  int64_t positions; /* the most tokens of a text */
  double epsilon;    /* of the normalisations */
  double rope_theta; /* Llama: base of the rotations' wavelengths */
  /* Llama 3.1: wavelengths beyond `rope_positions` / `rope_low` are `rope_factor` times as long,
   * those below `rope_positions` / `rope_high` as they were. A factor of 0: all are. */
  double rope_factor, rope_low, rope_high, rope_positions;
  int tied;        /* whether the output matrix is the embedding */
  int64_t begin;   /* the token that a text begins with, -1 for none */
  int64_t ends[4]; /* tokens that end a text */
  int end_count;
} model_config;

/* Reads FOLDER/config.json. A model of another architecture ends the program. */
model_config read_config(const char* folder);

/* Llama's rotations: the angle from one position to the next of pair `i` of head_size / 2. */
double rope_frequency(const model_config* config, int64_t i);

/* Writes FOLDER/config.json, without a change of wavelengths. */
void write_config(const model_config* config, const char* folder);

/* Reads a file of JSON, NULL if there is none. A mistake in it ends the program. The caller frees
 * the value, and then `*text`. */
json_value* read_json(const char* path, char** text);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_CONFIG_H_ */
