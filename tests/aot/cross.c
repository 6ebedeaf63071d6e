/* What aarch64.py compiles for another machine and runs there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axpy.h"
#include "digits_step.h"
#include "sums.h"

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static kiln_aot_instance* instance_of(const kiln_aot_program* program, kiln_aot_pool* pool) {
  kiln_aot_error error;
  kiln_aot_instance* instance = kiln_aot_create(program, pool, &error);
  if (!instance) {
    fprintf(stderr, "%s\n", error.text);
    exit(1);
  }
  return instance;
}

static void axpy(kiln_aot_pool* pool) {
  static _Alignas(64) float x[1000], y[1000], z[1000], r[1000];
  for (int i = 0; i < 1000; ++i) {
    x[i] = (float)i;
    y[i] = 2;
    z[i] = 1;
  }
  kiln_aot_instance* instance = instance_of(&axpy_program, pool);
  EXPECT(axpy_run(instance, x, y, z, r, NULL) == 0);
  for (int i = 0; i < 1000; ++i) EXPECT(r[i] == 2 * (float)i + 1);
  kiln_aot_destroy(instance);
}

static void sums(kiln_aot_pool* pool) {
  static _Alignas(64) float x[SUMS_x_ELEMENTS], r[SUMS_result_ELEMENTS];
  for (int i = 0; i < SUMS_x_ELEMENTS; ++i) x[i] = (float)(i / SUMS_x_DIM1 % 7);
  kiln_aot_instance* instance = instance_of(&sums_program, pool);
  EXPECT(sums_run(instance, x, r, NULL) == 0);
  for (int i = 0; i < SUMS_x_DIM0; ++i) EXPECT(r[i] == (float)(i % 7 * SUMS_x_DIM1));
  kiln_aot_destroy(instance);
}

/* Ten kinds of images, told by their brightest pixel. */
static void digits(kiln_aot_pool* pool) {
  static _Alignas(64) float images[100][784], labels[100][10], weights[7840], bias[10], loss[1];
  memset(weights, 0, sizeof weights);
  memset(bias, 0, sizeof bias);
  for (int i = 0; i < 100; ++i) {
    images[i][i % 10 * 70 + 3] = 1;
    labels[i][i % 10] = 1;
  }
  kiln_aot_instance* instance = instance_of(&digits_step_program, pool);
  for (int step = 0; step < 200; ++step) {
    EXPECT(digits_step_run(instance, images[0], labels[0], weights, bias, weights, bias, loss,
                           NULL) == 0);
    if (step == 0) EXPECT(fabsf(loss[0] - logf(10)) < 1e-5f);
  }
  EXPECT(loss[0] < 1.9f);
  kiln_aot_destroy(instance);
}

int main(void) {
  kiln_aot_pool* pool = kiln_aot_pool_create(2);
  for (int i = 0; i < 2; ++i) {
    axpy(i == 0 ? NULL : pool);
    sums(i == 0 ? NULL : pool);
    digits(i == 0 ? NULL : pool);
  }
  kiln_aot_pool_destroy(pool);
  return 0;
}
