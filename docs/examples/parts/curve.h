/* What a training shows: a progress bar, and the curve of its losses as a table and a picture. */
#ifndef PARTS_CURVE_H_
#define PARTS_CURVE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* On a terminal draws a bar over the line, with figures behind it: name [####    ] 50/100 figures.
 * The last step wipes it. */
void show_progress(const char* name, size_t done, size_t steps, const char* figures);

/* Where a training on text began, and where it will end. */
typedef struct {
  double start; /* now_in_seconds() at step `first` */
  size_t first, last;
  size_t tokens; /* of a step */
} progress;

/* show_progress() with the loss of the last step, tokens per second, and the estimated time to the
 * end; without a terminal, and after the last step, a line of them, for each tenth of the steps. */
void show_tokens(const progress* p, size_t step, float loss);

/* Writes FOLDER/loss.csv, with a line "step,loss" for each step, from 1, and FOLDER/loss.svg. */
void write_curve(const char* folder, const float* losses, size_t count);

/* Reads the losses of the first `count` steps from FOLDER/loss.csv, with the same bits. */
void read_curve(const char* folder, float* losses, size_t count);

#ifdef __cplusplus
}
#endif

#endif /* PARTS_CURVE_H_ */
