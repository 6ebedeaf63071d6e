/* Compiling that is cancelled, or has a deadline. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "testing.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A sum for each of so many slices, all of different sizes: a kernel each. */
static kiln_graph* many_kernels(kiln_context* context, int count) {
  kiln_graph* g = make_graph(context, "many");
  const int64_t size = 100000;
  kiln_value x = kiln_op_parameter(g, KILN_F32, &size, 1, "x", 1);
  kiln_value total = kiln_op_scalar(g, KILN_F32, 0);
  for (int i = 0; i < count; ++i) {
    const int64_t start = i, limit = size - 2 * i, stride = 1;
    kiln_value piece = kiln_op_slice(g, x, &start, &limit, &stride, 1);
    const int64_t first = 0;
    piece = kiln_op_tanh(g, kiln_op_sine(g, piece));
    kiln_value sum = kiln_op_reduce_by(g, piece, &first, 1, KILN_REDUCER_SUM);
    total = kiln_op_add(g, total, sum);
  }
  OK(kiln_graph_set_results(g, &total, 1));
  return g;
}

static void options(kiln_context* context, kiln_device* device) {
  kiln_graph* g = many_kernels(context, 1);
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* e = NULL;
  int32_t cancel = 1;
  options.cancel = &cancel;
  FAILS(KILN_CANCELLED, "compiling 'many': cancelled", kiln_graph_compile(g, &options, &e));
  cancel = 0;
  options.timeout_ns = 1;
  FAILS(KILN_DEADLINE_EXCEEDED, "compiling 'many': the deadline",
        kiln_graph_compile(g, &options, &e));
  options.timeout_ns = -1;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_compile_options.timeout_ns is -1",
        kiln_graph_compile(g, &options, &e));
  CHECK(e == NULL);
  options.timeout_ns = INT64_MAX;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_executable_release(e);
  kiln_graph_release(g);
}

static void* set_soon(void* flag) {
  struct timespec pause = {0, 50000000};
  nanosleep(&pause, NULL);
  __atomic_store_n((int32_t*)flag, 1, __ATOMIC_RELAXED);
  return NULL;
}

/* What takes longer than that ends early, and a graph compiles after all. */
static void long_compile(kiln_context* context, kiln_device* device) {
  kiln_graph* g = many_kernels(context, 3000);
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* e = NULL;
  double start = seconds();
  options.timeout_ns = 50000000;
  FAILS(KILN_DEADLINE_EXCEEDED, "compiling 'many'", kiln_graph_compile(g, &options, &e));
  options.timeout_ns = 0;
  int32_t cancel = 0;
  options.cancel = &cancel;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, set_soon, &cancel) == 0);
  FAILS(KILN_CANCELLED, "compiling 'many'", kiln_graph_compile(g, &options, &e));
  pthread_join(thread, NULL);
  double took = seconds() - start;
  if (took > 5) printf("took %.2f s\n", took);
  CHECK(took <= 5);
  CHECK(e == NULL);
  kiln_graph_release(g);
}

int main(void) {
  kiln_context_options with_gpu = KILN_CONTEXT_OPTIONS_INIT;
  with_gpu.threads = 2;
  with_gpu.gpu = KILN_GPU_EMULATED;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&with_gpu, &context))) return 1;
  const char* names[] = {"CPU:0", "GPU:0", "REFERENCE:0"};
  for (int i = 0; i < 3; ++i) {
    kiln_device* device = find_device(context, names[i]);
    options(context, device);
    if (i < 2) long_compile(context, device);
  }
  kiln_context_release(context);
  return test_result();
}
