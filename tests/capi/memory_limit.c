/* A limit of a program's temporaries: results are computed again where they are read late. */
#include <math.h>

#include "testing.h"

enum { kRows = 256, kWidth = 128, kLayers = 24, kParameters = kLayers + 1 };
static const int64_t kWeights[2] = {kWidth, kWidth}, kBatch[2] = {kRows, kWidth};

static kiln_context* context;
static kiln_value first_length; /* the graph's first result */

/* The mean of a deep perceptron's result, and the squared lengths of its gradients by the input and
 * each of the weights. */
static kiln_graph* perceptron(void) {
  kiln_graph* g = make_graph(context, "perceptron");
  kiln_value parameters[kParameters], gradients[kParameters], results[kParameters + 1];
  kiln_value x = parameters[0] = kiln_op_parameter(g, KILN_F32, kBatch, 2, "x", 1);
  for (int k = 1; k < kParameters; ++k) {
    char name[16];
    const int length = snprintf(name, sizeof name, "w%d", k);
    parameters[k] = kiln_op_parameter(g, KILN_F32, kWeights, 2, name, (size_t)length);
    x = kiln_op_tanh(g, kiln_op_matmul(g, x, parameters[k]));
  }
  const int64_t all[2] = {0, 1};
  results[kParameters] = kiln_nn_mean(g, kiln_op_multiply(g, x, x), all, 2, 0);
  OK(kiln_graph_gradient(g, results[kParameters], parameters, kParameters, NULL, gradients));
  for (int k = 0; k < kParameters; ++k) {
    kiln_value squares = kiln_op_multiply(g, gradients[k], gradients[k]);
    results[k] = kiln_op_reduce_by(g, squares, all, 2, KILN_REDUCER_SUM);
  }
  OK(kiln_graph_set_results(g, results, kParameters + 1));
  first_length = results[0];
  return g;
}

static kiln_buffer* argument(kiln_device* device, int k) {
  static float values[kRows * kWidth];
  for (int i = 0; i < kRows * kWidth; ++i) {
    values[i] = 0.3f * (float)((i * 7919 + k * 104729) % 1000 - 500) / 500;
  }
  const int64_t* dims = k == 0 ? kBatch : kWeights;
  kiln_buffer* made = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, dims, 2, values,
                           sizeof(float) * (size_t)(dims[0] * dims[1]), &made));
  return made;
}

/* The program's temporaries, and its results. */
static int64_t temporaries(const kiln_graph* g, kiln_device* device, int64_t limit,
                           float results[kParameters + 1]) {
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.verify = 1;
  options.memory_limit_bytes = limit;
  kiln_executable* e = NULL;
  if (!OK(kiln_graph_compile(g, &options, &e))) return -1;
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  OK(kiln_executable_info(e, &info));
  kiln_buffer *arguments[kParameters] = {NULL}, *made[kParameters + 1] = {NULL};
  for (int k = 0; k < kParameters; ++k) arguments[k] = argument(device, k);
  OK(kiln_executable_run(e, NULL, arguments, kParameters, made, kParameters + 1));
  for (int k = 0; k <= kParameters; ++k) {
    OK(kiln_buffer_copy_to_host(made[k], &results[k], sizeof(float)));
    kiln_buffer_release(made[k]);
  }
  for (int k = 0; k < kParameters; ++k) kiln_buffer_release(arguments[k]);
  kiln_executable_release(e);
  return info.temporary_bytes;
}

static void limits(const kiln_graph* g, const char* name) {
  kiln_device* device = find_device(context, name);
  float expected[kParameters + 1], got[kParameters + 1];
  const int64_t free = temporaries(g, device, 0, expected);
  /* The layers' results are kept. */
  CHECK(free > kLayers / 2 * kRows * kWidth * (int64_t)sizeof(float));
  CHECK(expected[kParameters] > 1e-4f && expected[kParameters] < 1 && expected[0] > 0);
  /* A program that fits is as without a limit. */
  CHECK(temporaries(g, device, free, got) == free);
  CHECK(memcmp(expected, got, sizeof got) == 0);
  for (int part = 5; part >= 4; --part) {
    const int64_t limit = free * part / 8;
    const int64_t bytes = temporaries(g, device, limit, got);
    CHECK(bytes > 0 && bytes <= limit);
    for (int k = 0; k <= kParameters; ++k) {
      if (fabsf(got[k] - expected[k]) <= 1e-4f * fabsf(expected[k])) continue;
      printf("%s, a part of %d/8: result %d is %g; expected %g\n", name, part, k, (double)got[k],
             (double)expected[k]);
      ++failed_checks;
    }
  }
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.memory_limit_bytes = 1000;
  kiln_executable* e = NULL;
  FAILS(KILN_RESOURCE_EXHAUSTED, "bytes or more, and their limit is 1000: at '",
        kiln_graph_compile(g, &options, &e));
  FAILS(KILN_RESOURCE_EXHAUSTED, "the temporaries of 'perceptron' take ",
        kiln_graph_compile(g, &options, &e));
  /* Nothing is computed again without the pass. */
  options.memory_limit_bytes = free / 2;
  options.disabled_passes = "rematerialisation";
  options.disabled_passes_length = strlen(options.disabled_passes);
  FAILS(KILN_RESOURCE_EXHAUSTED, "bytes or more", kiln_graph_compile(g, &options, &e));
  options.memory_limit_bytes = -1;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_compile_options.memory_limit_bytes is -1",
        kiln_graph_compile(g, &options, &e));
  CHECK(e == NULL);
}

/* The limit holds for each cluster. */
static void sessions(kiln_graph* g) {
  kiln_device* device = find_device(context, "CPU");
  float expected[kParameters + 1], got = 0;
  const int64_t free = temporaries(g, device, 0, expected);
  kiln_value feeds[kParameters];
  kiln_buffer* arguments[kParameters];
  for (int k = 0; k < kParameters; ++k) {
    feeds[k] = kiln_graph_parameter(g, (size_t)k);
    arguments[k] = argument(device, k);
  }
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = KILN_JIT_ON;
  options.strict = 1;
  kiln_session* session = NULL;
  options.memory_limit_bytes = -1;
  FAILS(KILN_INVALID_ARGUMENT, "memory_limit_bytes is -1",
        kiln_session_create(g, &options, &session));
  const int64_t limits[2] = {1000, free * 5 / 8};
  for (int k = 0; k < 2; ++k) {
    options.memory_limit_bytes = limits[k];
    if (!OK(kiln_session_create(g, &options, &session))) break;
    kiln_buffer* result = NULL;
    kiln_error* error = kiln_session_run(session, NULL, feeds, arguments, kParameters,
                                         &first_length, &result, 1, NULL, 0);
    if (k == 0) {
      FAILS(KILN_RESOURCE_EXHAUSTED, "and their limit is 1000: at '", error);
    } else if (OK(error) && OK(kiln_buffer_copy_to_host(result, &got, sizeof got))) {
      CHECK(fabsf(got - expected[0]) <= 1e-4f * expected[0]);
    }
    kiln_buffer_release(result);
    kiln_session_release(session);
  }
  for (int k = 0; k < kParameters; ++k) kiln_buffer_release(arguments[k]);
}

int main(void) {
  context = make_context_with(2, tested_gpu());
  kiln_graph* g = perceptron();
  limits(g, "CPU");
  limits(g, "GPU");
  sessions(g);
  kiln_graph_release(g);
  kiln_context_release(context);
  return test_result();
}
