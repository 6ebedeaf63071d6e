/* What the tests of the C ABI are written with. A check that fails prints and is counted; main ends
 * with `return test_result();`. */
#ifndef KILN_TESTS_CAPI_TESTING_H_
#define KILN_TESTS_CAPI_TESTING_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

static int failed_checks = 0;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failed_checks;                                               \
    }                                                                \
  } while (0)

/* The call succeeds. */
#define OK(call) expect_ok(call, __FILE__, __LINE__, #call)
/* The call fails with the code, and its message holds the text. */
#define FAILS(code, text, call) expect_error(call, code, text, __FILE__, __LINE__, #call)
/* A builder function has met a mistake: the graph tells, and is given back. */
#define BUILD_FAILS(code, text, graph)           \
  do {                                           \
    FAILS(code, text, kiln_graph_status(graph)); \
    kiln_graph_release(graph);                   \
  } while (0)

static inline int expect_ok(kiln_error* error, const char* file, int line, const char* call) {
  if (!error) return 1;
  printf("%s:%d: %s: %s: %s\n", file, line, call, kiln_code_name(kiln_error_code(error)),
         kiln_error_message(error, NULL));
  kiln_error_release(error);
  ++failed_checks;
  return 0;
}

static inline void expect_error(kiln_error* error, kiln_code code, const char* text,
                                const char* file, int line, const char* call) {
  if (!error) {
    printf("%s:%d: %s: no error; expected %s\n", file, line, call, kiln_code_name(code));
    ++failed_checks;
    return;
  }
  size_t length = 0;
  const char* message = kiln_error_message(error, &length);
  if (kiln_error_code(error) != code || !strstr(message, text) || strlen(message) != length) {
    printf("%s:%d: %s: got %s: %s\n  expected %s: ...%s...\n", file, line, call,
           kiln_code_name(kiln_error_code(error)), message, kiln_code_name(code), text);
    ++failed_checks;
  }
  kiln_error_release(error);
}

static inline int test_result(void) {
  if (failed_checks) printf("%d checks failed\n", failed_checks);
  return failed_checks ? 1 : 0;
}

/* Tests of GPUs use an emulated one, or the CUDA driver's where KILN_TEST_DEVICE is CUDA. */
static inline int is_test_of_cuda(void) {
  const char* device = getenv("KILN_TEST_DEVICE");
  return device && strcmp(device, "CUDA") == 0;
}

static inline kiln_gpu_mode tested_gpu(void) {
  return is_test_of_cuda() ? KILN_GPU_AUTO : KILN_GPU_EMULATED;
}

static inline kiln_context* make_context_with(int32_t threads, kiln_gpu_mode gpu) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = threads;
  options.gpu = gpu;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  return context;
}

static inline kiln_context* make_context(int32_t threads) {
  kiln_context_options defaults = KILN_CONTEXT_OPTIONS_INIT;
  return make_context_with(threads, defaults.gpu);
}

static inline kiln_device* find_device(kiln_context* context, const char* name) {
  kiln_device* device = NULL;
  OK(kiln_context_find_device(context, name, strlen(name), &device));
  return device;
}

static inline kiln_graph* make_graph(kiln_context* context, const char* name) {
  kiln_graph* graph = NULL;
  OK(kiln_graph_create(context, name, strlen(name), &graph));
  return graph;
}

static inline kiln_value f32_parameter(kiln_graph* graph, const char* name, int64_t size) {
  return kiln_op_parameter(graph, KILN_F32, &size, 1, name, strlen(name));
}

static inline kiln_executable* compile_with_aliases(kiln_graph* graph, kiln_value value,
                                                    kiln_device* device, const kiln_alias* aliases,
                                                    size_t alias_count) {
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.device = device;
  options.aliases = aliases;
  options.alias_count = alias_count;
  kiln_executable* executable = NULL;
  if (OK(kiln_graph_set_results(graph, &value, 1))) {
    OK(kiln_graph_compile(graph, &options, &executable));
  }
  kiln_graph_release(graph);
  return executable;
}

/* The only result of the graph is `value`; the graph is given back. */
static inline kiln_executable* compile_result(kiln_graph* graph, kiln_value value,
                                              kiln_device* device) {
  return compile_with_aliases(graph, value, device, NULL, 0);
}

/* The same; in the memory of argument 0 where that is donated. */
static inline kiln_executable* compile_in_place(kiln_graph* graph, kiln_value value,
                                                kiln_device* device) {
  const kiln_alias alias = {.result = 0, .argument = 0};
  return compile_with_aliases(graph, value, device, &alias, 1);
}

static inline kiln_buffer* f32_buffer(kiln_device* device, const float* values, int64_t size) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, &size, 1, values, sizeof(float) * (size_t)size,
                           &buffer));
  return buffer;
}

/* The elements of a buffer are those. */
static inline void expect_f32(kiln_buffer* buffer, const float* expected, size_t size) {
  float values[64];
  if (!OK(kiln_buffer_copy_to_host(buffer, values, sizeof(float) * size))) return;
  for (size_t i = 0; i < size; ++i) {
    if (values[i] != expected[i]) {
      printf("element %zu is %g; expected %g\n", i, (double)values[i], (double)expected[i]);
      ++failed_checks;
    }
  }
}

#endif /* KILN_TESTS_CAPI_TESTING_H_ */
