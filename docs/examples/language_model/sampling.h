/* The choice of the next token. */
#ifndef LANGUAGE_MODEL_SAMPLING_H_
#define LANGUAGE_MODEL_SAMPLING_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A token by its logits: the largest one at temperature 0, otherwise at random by
 * softmax(logits / temperature). Only the fewest tokens that together have the probability `top_p`
 * are chosen from (Holtzman et al., arXiv:1904.09751); 1: all.
 *   random  the state of random_bits() */
int32_t sample_token(const float* logits, int64_t count, double temperature, double top_p,
                     uint64_t* random);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_SAMPLING_H_ */
