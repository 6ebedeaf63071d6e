/* Programs that together use all parts of the run time, in one binary; aarch64.py makes it for
 * another machine, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axpy.h"
#include "dice.h"
#include "digits_step.h"
#include "eigenvalues.h"
#include "factors.h"
#include "spectrum.h"
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

static void spectrum(kiln_aot_pool* pool) {
  static _Alignas(64) float wave[SPECTRUM_x_ELEMENTS], magnitudes[SPECTRUM_result_ELEMENTS];
  for (int i = 0; i < 64; ++i) wave[i] = cosf(2 * 3.14159265f * 5 * (float)i / 64);
  kiln_aot_instance* instance = instance_of(&spectrum_program, pool);
  EXPECT(spectrum_run(instance, wave, magnitudes, NULL) == 0);
  for (int i = 0; i < 33; ++i) EXPECT(fabsf(magnitudes[i] - (i == 5 ? 32 : 0)) < 1e-3f);
  kiln_aot_destroy(instance);
}

/* The factor of a matrix, and the solution of a system with it. */
static void factors(kiln_aot_pool* pool) {
  enum { N = FACTORS_x_DIM0 };
  static _Alignas(64) double x[N][N], factor[N][N], right[N][1], solution[N][1];
  for (int i = 0; i < N; ++i) {
    for (int k = 0; k < N; ++k) x[i][k] = i == k ? 2 * N : 1;
    right[i][0] = i;
  }
  kiln_aot_instance* instance = instance_of(&factors_program, pool);
  EXPECT(factors_run(instance, x[0], right[0], factor[0], solution[0], NULL) == 0);
  for (int i = 0; i < N; ++i) {
    double sum = 0;
    for (int k = 0; k <= i; ++k) sum += factor[i][k] * solution[k][0];
    EXPECT(fabs(sum - i) < 1e-9);
    for (int j = 0; j <= i; ++j) {
      double product = 0;
      for (int k = 0; k <= j; ++k) product += factor[i][k] * factor[j][k];
      EXPECT(fabs(product - x[i][j]) < 1e-9);
    }
  }
  kiln_aot_destroy(instance);
}

static void eigenvalues(kiln_aot_pool* pool) {
  static _Alignas(64) float x[4][4], vectors[4][4], values[4];
  static _Alignas(64) int32_t info[1];
  for (int i = 0; i < 4; ++i) x[i][i] = (float)(4 - i);
  kiln_aot_instance* instance = instance_of(&eigenvalues_program, pool);
  EXPECT(eigenvalues_run(instance, x[0], vectors[0], values, info, NULL) == 0);
  for (int i = 0; i < 4; ++i) EXPECT(fabsf(values[i] - (float)(i + 1)) < 1e-6f);
  kiln_aot_destroy(instance);
}

/* Random numbers go on from run to run. */
static void dice(kiln_aot_pool* pool) {
  static _Alignas(64) float first[DICE_result_ELEMENTS], second[DICE_result_ELEMENTS];
  kiln_aot_instance* instance = instance_of(&dice_program, pool);
  EXPECT(dice_run(instance, first, NULL) == 0 && dice_run(instance, second, NULL) == 0);
  EXPECT(memcmp(first, second, sizeof first) != 0);
  for (int i = 0; i < DICE_result_ELEMENTS; ++i) EXPECT(first[i] >= 0 && first[i] < 1);
  kiln_aot_destroy(instance);
}

/* Subnormal numbers are numbers, whatever the caller's environment; it has its own afterwards. */
static void environment(void) {
#if defined(__aarch64__)
  static const uint64_t flush = UINT64_C(1) << 24;
  uint64_t after = 0;
  __asm__ volatile("msr fpcr, %0" : : "r"(flush));
  static _Alignas(64) float x[1000], y[1000], z[1000], r[1000];
  x[0] = 1e-30f;
  y[0] = 1e-9f;
  kiln_aot_instance* instance = instance_of(&axpy_program, NULL);
  EXPECT(axpy_run(instance, x, y, z, r, NULL) == 0);
  kiln_aot_destroy(instance);
  __asm__ volatile("mrs %0, fpcr" : "=r"(after));
  __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
  EXPECT(after == flush && r[0] > 0);
#endif
}

int main(void) {
  kiln_aot_pool* pool = kiln_aot_pool_create(2);
  for (int i = 0; i < 2; ++i) {
    kiln_aot_pool* threads = i == 0 ? NULL : pool;
    axpy(threads);
    sums(threads);
    digits(threads);
    spectrum(threads);
    factors(threads);
    eigenvalues(threads);
    dice(threads);
  }
  environment();
  kiln_aot_pool_destroy(pool);
  return 0;
}
