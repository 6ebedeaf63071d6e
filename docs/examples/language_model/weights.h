/* The weights of a model: their names and shapes as in Hugging Face's files, and their loading. */
#ifndef LANGUAGE_MODEL_WEIGHTS_H_
#define LANGUAGE_MODEL_WEIGHTS_H_

#include "config.h"
#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array of a model. The matrices, which a step reads from end to end, may be held in a narrow
 * type, bf16, or s8 with an f32 factor for each output channel, and are out by in then: a product
 * reads the weights of an output one after the other. */
typedef struct {
  char name[96];
  int64_t dims[2];
  size_t rank;
  int channel; /* the dimension of a matrix's output channels; -1: always f32 */
} weight_spec;

typedef struct {
  weight_spec* specs;
  size_t count;
} weight_list;

/* The arrays of a model, in the order of the programs' parameters; free() its `specs`. */
weight_list list_weights(const model_config* config);

/* The number of an array's elements. */
size_t weight_elements(const weight_spec* spec);

/* The number of an array; a name that is not there ends the program. */
size_t find_weight(const weight_list* list, const char* name);

/* An array on a device. */
typedef struct {
  kiln_buffer* values;
  kiln_buffer* scales; /* f32[channels] for s8, otherwise NULL: a weight is value times scale */
} model_weight;

/* Reads the arrays from FOLDER/model.safetensors, or from the files that
 * FOLDER/model.safetensors.index.json names. An array that already has the type is used where it
 * is mapped; others are converted, and bf16 of GPT-2 is transposed.
 *   dtype  KILN_F32, KILN_BF16 or KILN_S8, of the matrices */
model_weight* load_weights(const weight_list* list, const char* folder, kiln_dtype dtype,
                           kiln_context* context, kiln_device* device);

/* Makes an array from its numbers as in the file, in row-major order. */
model_weight make_weight(const weight_spec* spec, const float* numbers, kiln_dtype dtype,
                         kiln_device* device);

/* Writes f32 arrays, one for each of the list, to FOLDER/model.safetensors. */
void save_weights(const weight_list* list, kiln_buffer* const* arrays, const char* folder);

void release_weights(model_weight* weights, size_t count);

/* The bytes of a weight that a step reads: all of a matrix, a row of other arrays. */
double bytes_read(const weight_spec* spec, const model_weight* weight);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_WEIGHTS_H_ */
