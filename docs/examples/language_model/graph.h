/* The graph of a step: some tokens of a text, of which the caches have the preceding ones. */
#ifndef LANGUAGE_MODEL_GRAPH_H_
#define LANGUAGE_MODEL_GRAPH_H_

#include "weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of a step: these, then for each layer the caches of keys and of values, then the
 * weights in the order of their list, each followed by its scales if it has some. The results: the
 * logits, then the caches in the place of the arguments. */
enum {
  STEP_TOKENS,   /* s32[tokens] */
  STEP_POSITION, /* s32[]: the position of the first token in the text */
  STEP_LAST,     /* s32[]: the number of the token whose logits are wanted */
  STEP_CACHES
};
enum { STEP_LOGITS, STEP_NEW_CACHES };

/* A cache is f32[capacity, key_heads, head_size]. A step writes all of its tokens to the caches:
 * `position` + `tokens` must be at most `capacity`.
 *   dtype  of the matrices: KILN_F32, KILN_BF16 or KILN_S8 */
kiln_graph* step_graph(kiln_context* context, const model_config* config, const weight_list* list,
                       kiln_dtype dtype, int64_t tokens, int64_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_GRAPH_H_ */
