/* Trains softmax regression on handwritten digits without libkiln: the training step in
 * digits_step.hlo is compiled ahead of time by kiln-aot, which kiln_add_program in CMakeLists.txt
 * calls. The program is linked with the step's object and libkiln_rt.a.
 *
 *   ahead_of_time [FOLDER [STEPS]]
 *
 * The folder has MNIST's four files, by default those in `digits` beside this file.
 *
 * Test:
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits_step.h"

#ifndef EXAMPLES
#define EXAMPLES "docs/examples" /* the folder of this file */
#endif

enum {
  BATCH = DIGITS_STEP_images_DIM0,
  PIXELS = DIGITS_STEP_images_DIM1,
  CLASSES = DIGITS_STEP_labels_DIM1,
  SIDE = 28,
};

/* The step's arrays: aligned as kiln_aot_run wants them. The weights and the bias are arguments and
 * results at once, so a step replaces them. */
static _Alignas(KILN_AOT_ALIGNMENT) float images[BATCH][PIXELS];
static _Alignas(KILN_AOT_ALIGNMENT) float labels[BATCH][CLASSES];
static _Alignas(KILN_AOT_ALIGNMENT) float weights[PIXELS][CLASSES];
static _Alignas(KILN_AOT_ALIGNMENT) float bias[CLASSES];
static _Alignas(KILN_AOT_ALIGNMENT) float loss[1];

/* And all other memory that it needs: nothing is allocated. */
static _Alignas(KILN_AOT_ALIGNMENT) char memory[DIGITS_STEP_MEMORY_BYTES];

static void fail(const char* what, const char* why) {
  fprintf(stderr, "ahead_of_time: %s: %s\n", what, why);
  exit(1);
}

/* Images with their digits, as in files of MNIST's form. */
typedef struct dataset {
  size_t count, rows, columns;
  uint8_t *pixels, *digits;
} dataset;

/* The bytes of a file behind its header of big-endian numbers, the first of which is skipped. */
static uint8_t* read_file(const char* folder, const char* name, size_t* sizes, int size_count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (!file) fail(path, "cannot be opened");
  size_t bytes = 1;
  for (int i = -1; i < size_count; ++i) {
    uint8_t number[4];
    if (fread(number, 1, 4, file) != 4) fail(path, "is too short");
    if (i < 0) continue;
    sizes[i] = (size_t)number[2] << 8 | number[3];
    if (number[0] || number[1]) fail(path, "has sizes beyond 65535");
    bytes *= sizes[i];
  }
  uint8_t* contents = malloc(bytes + 1);
  if (!contents || fread(contents, 1, bytes, file) != bytes) fail(path, "is too short");
  fclose(file);
  return contents;
}

static dataset read_dataset(const char* folder, const char* images_name, const char* labels_name) {
  dataset data;
  size_t sizes[3], labels_count;
  data.pixels = read_file(folder, images_name, sizes, 3);
  data.digits = read_file(folder, labels_name, &labels_count, 1);
  data.count = sizes[0];
  data.rows = sizes[1];
  data.columns = sizes[2];
  if (data.count == 0 || labels_count != data.count) fail(folder, "has no label for each image");
  return data;
}

/* An image of SIDE x SIDE pixels from 0 to 1, each of which is the nearest of the file's. */
static void put_image(const dataset* data, size_t number, float* image) {
  const uint8_t* pixels = data->pixels + number * data->rows * data->columns;
  for (size_t y = 0; y < SIDE; ++y) {
    const uint8_t* row = pixels + y * data->rows / SIDE * data->columns;
    for (size_t x = 0; x < SIDE; ++x) image[y * SIDE + x] = row[x * data->columns / SIDE] / 255.0f;
  }
}

static void put_batch(const dataset* data, size_t first) {
  memset(labels, 0, sizeof labels);
  for (size_t i = 0; i < BATCH; ++i) {
    const size_t number = (first + i) % data->count;
    put_image(data, number, images[i]);
    labels[i][data->digits[number] % CLASSES] = 1;
  }
}

/* The share of images whose digit has the largest sum. */
static double accuracy(const dataset* data) {
  size_t right = 0;
  for (size_t i = 0; i < data->count; ++i) {
    float image[PIXELS], sums[CLASSES];
    put_image(data, i, image);
    memcpy(sums, bias, sizeof sums);
    for (size_t p = 0; p < PIXELS; ++p) {
      for (int c = 0; c < CLASSES; ++c) sums[c] += image[p] * weights[p][c];
    }
    int best = 0;
    for (int c = 1; c < CLASSES; ++c) best = sums[c] > sums[best] ? c : best;
    right += best == data->digits[i];
  }
  return (double)right / (double)data->count;
}

static void release(dataset* data) {
  free(data->pixels);
  free(data->digits);
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : EXAMPLES "/digits";
  const int steps = argc > 2 ? atoi(argv[2]) : 1000;
  dataset training = read_dataset(folder, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  dataset test = read_dataset(folder, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");

  /* What does not fit does not compile. */
  DIGITS_STEP_images_ASSERT(images);
  DIGITS_STEP_weights_ASSERT(weights);
  kiln_aot_error error;
  kiln_aot_instance* step =
      kiln_aot_place(&digits_step_program, memory, sizeof memory, NULL, &error);
  if (!step) fail("placing the step", error.text);
  for (int i = 0; i < steps; ++i) {
    put_batch(&training, (size_t)i * BATCH);
    if (digits_step_run(step, images[0], labels[0], weights[0], bias, weights[0], bias, loss,
                        &error) != 0) {
      fail("a step", error.text);
    }
    if (i % 200 == 0) printf("step %4d: loss %.4f\n", i, loss[0]);
  }
  const double share = accuracy(&test);
  printf("%d steps: loss %.4f, %.1f%% of the test's digits are right\n", steps, loss[0],
         100 * share);
  release(&training);
  release(&test);
  return steps >= 1000 && share < 0.88;
}
