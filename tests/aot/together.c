/* Several programs in one binary, each with an instance; one in memory of the caller's, whose runs
 * allocate nothing; and the stack that a run takes. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axpy.h"
#include "digits_step.h"
#include "scale.h"
#include "spectrum.h"
#include "sums.h"

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

/* The linker gives calls of malloc here (-Wl,--wrap=malloc). */
static int allocations;
void* __real_malloc(size_t bytes);
void* __wrap_malloc(size_t bytes) {
  ++allocations;
  return __real_malloc(bytes);
}

static _Alignas(64) float x[AXPY_x_ELEMENTS], y[AXPY_y_ELEMENTS], z[AXPY_z_ELEMENTS], r[1000];
static _Alignas(64) char memory[AXPY_MEMORY_BYTES];

static void axpy_in_place(void) {
  kiln_aot_error error;
  allocations = 0;
  memset(memory, 0xff, sizeof memory);
  kiln_aot_instance* instance = kiln_aot_place(&axpy_program, memory, sizeof memory, NULL, &error);
  EXPECT(instance);
  for (int i = 0; i < 1000; ++i) {
    x[i] = (float)i;
    y[i] = 2;
    z[i] = 1;
  }
  EXPECT(axpy_run(instance, x, y, z, r, &error) == 0);
  EXPECT(allocations == 0);
  for (int i = 0; i < 1000; ++i) EXPECT(r[i] == 2 * (float)i + 1);
}

static void spectrum_on_threads(void) {
  static _Alignas(64) float wave[SPECTRUM_x_ELEMENTS], magnitudes[SPECTRUM_result_ELEMENTS];
  SPECTRUM_x_ASSERT(wave);
  for (int i = 0; i < 64; ++i) wave[i] = cosf(2 * 3.14159265f * 5 * (float)i / 64);
  kiln_aot_error error;
  kiln_aot_pool* pool = kiln_aot_pool_create(3);
  EXPECT(pool && pool->threads == 3);
  kiln_aot_pool* pools[] = {NULL, pool};
  for (int i = 0; i < 2; ++i) {
    kiln_aot_instance* instance = kiln_aot_create(&spectrum_program, pools[i], &error);
    EXPECT(instance);
    EXPECT(spectrum_run(instance, wave, magnitudes, &error) == 0);
    EXPECT(fabsf(magnitudes[5] - 32) < 1e-3f && fabsf(magnitudes[6]) < 1e-3f);
    kiln_aot_destroy(instance);
  }
  kiln_aot_pool_destroy(pool);
}

/* The caller's own threads: here tasks run backwards, one after the other. */
static int own_runs;
static void run_backwards(kiln_aot_pool* pool, int64_t tasks, void (*work)(void*, int64_t),
                          void* context) {
  EXPECT(tasks > 1 && tasks <= pool->threads);
  ++own_runs;
  while (tasks > 0) work(context, --tasks);
}

static void pools(void) {
  kiln_aot_error error;
  kiln_aot_pool own = {4, 0, run_backwards};
  kiln_aot_instance* instance = kiln_aot_create(&sums_program, &own, &error);
  EXPECT(instance);
  static _Alignas(64) float rows[SUMS_x_DIM0][SUMS_x_DIM1], sums[SUMS_result_ELEMENTS];
  for (int i = 0; i < SUMS_x_DIM0; ++i) {
    for (int k = 0; k < SUMS_x_DIM1; ++k) rows[i][k] = (float)(i % 5);
  }
  EXPECT(sums_run(instance, rows[0], sums, &error) == 0);
  EXPECT(own_runs > 0);
  for (int i = 0; i < SUMS_x_DIM0; ++i) EXPECT(sums[i] == (float)(i % 5 * SUMS_x_DIM1));
  kiln_aot_destroy(instance);
  kiln_aot_pool* pool = kiln_aot_pool_create(0);
  EXPECT(pool && pool->threads >= 1);
  kiln_aot_pool_destroy(pool);
  kiln_aot_pool_destroy(NULL);
  kiln_aot_destroy(NULL);
}

/* How much of a stack a thread takes that runs the program, or does nothing. */
enum { PAINT = 0x5a, SPARE = 64 << 10 };
static void* run_step(void* instance) {
  static _Alignas(64) float images[DIGITS_STEP_images_ELEMENTS],
      labels[DIGITS_STEP_labels_ELEMENTS];
  static _Alignas(64) float weights[DIGITS_STEP_weights_ELEMENTS], bias[DIGITS_STEP_bias_ELEMENTS];
  static _Alignas(64) float loss[1];
  if (!instance) return NULL;
  EXPECT(digits_step_run(instance, images, labels, weights, bias, weights, bias, loss, NULL) == 0);
  return NULL;
}
static size_t stack_taken(kiln_aot_instance* instance) {
  const size_t bytes = (DIGITS_STEP_STACK_BYTES + SPARE + 4095) / 4096 * 4096;
  unsigned char* stack = aligned_alloc(4096, bytes);
  EXPECT(stack);
  memset(stack, PAINT, bytes);
  pthread_attr_t attributes;
  pthread_t thread;
  EXPECT(pthread_attr_init(&attributes) == 0);
  EXPECT(pthread_attr_setstack(&attributes, stack, bytes) == 0);
  EXPECT(pthread_create(&thread, &attributes, run_step, instance) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  pthread_attr_destroy(&attributes);
  size_t untouched = 0;
  while (stack[untouched] == PAINT) ++untouched;
  free(stack);
  return bytes - untouched;
}

static void stack(void) {
  kiln_aot_instance* instance = kiln_aot_create(&digits_step_program, NULL, NULL);
  EXPECT(instance);
  const size_t idle = stack_taken(NULL), running = stack_taken(instance);
  printf("stack: %zu bytes of %d\n", running - idle, DIGITS_STEP_STACK_BYTES);
  EXPECT(running > idle && running - idle <= DIGITS_STEP_STACK_BYTES);
  kiln_aot_destroy(instance);
}

static void description(void) {
  EXPECT(scale_program.version == KILN_AOT_VERSION && scale_program.threads == 2);
  EXPECT(strcmp(scale_program.name, "scale") == 0);
  EXPECT(scale_program.argument_count == 2 && scale_program.result_count == 2);
  EXPECT(scale_program.arguments[0].rank == 1 && scale_program.arguments[0].dims[0] == 4);
  EXPECT(scale_program.arguments[1].rank == 0 && scale_program.arguments[1].byte_size == 8);
  EXPECT(scale_program.results[0].alias == -1 && scale_program.code_count == 3);
  EXPECT(scale_program.memory_bytes == SCALE_MEMORY_BYTES);
}

int main(void) {
  axpy_in_place();
  spectrum_on_threads();
  pools();
  stack();
  description();
  return 0;
}
