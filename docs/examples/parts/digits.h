/* Handwritten digits, from files of MNIST's form. */
#ifndef PARTS_DIGITS_H_
#define PARTS_DIGITS_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10 };

typedef struct {
  size_t count, rows, columns;
  unsigned char* images; /* count x rows x columns grey levels */
  unsigned char* labels; /* count numbers from 0 to 9 */
} digits;

/* Reads `part` ("train" or "t10k") of a folder in MNIST's form: the two files of its name,
 * unpacked. A mistake in them ends the program. Released with free_digits(). */
digits read_digits(const char* folder, const char* part);
void free_digits(digits all);

/* The image of a digit as SIDE x SIDE pixels from 0 to 1, resampled bilinearly if it is of another
 * size.
 *   random  unless NULL, the state of random_bits(): turns, stretches and shifts the digit a little
 */
void digit_pixels(const digits* all, size_t number, uint64_t* random, float* pixels);

/* Images, f32[count,28,28,1], and labels, s32[count], of digits on a device. The caller releases
 * both. random  NULL: the first digits. Otherwise the state of random_bits(): any digits, each
 * turned, stretched and shifted as by digit_pixels() */
void digit_buffers(kiln_device* device, const digits* all, size_t count, uint64_t* random,
                   kiln_buffer* buffers[2]);

#ifdef __cplusplus
}
#endif

#endif /* PARTS_DIGITS_H_ */
