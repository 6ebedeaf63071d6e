/* What options allow and forbid products to round. */
#include <math.h>

#include "testing.h"

enum { kSize = 32 };
static const int64_t kDims[2] = {kSize, kSize};

static kiln_context* context;

/* Whether the machine's bf16 units are ones that Kiln uses. */
static int has_units(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
#else
  return 0;
#endif
}

/* An element of the product of two matrices, each of which has one value everywhere. */
static float product(kiln_dtype type, const void* x, const void* y, size_t width,
                     const kiln_compile_options* options) {
  static char values[kSize * kSize * 4];
  kiln_graph* g = make_graph(context, "product");
  kiln_value a = kiln_op_parameter(g, type, kDims, 2, "a", 1);
  kiln_value b = kiln_op_parameter(g, type, kDims, 2, "b", 1);
  kiln_value sums = kiln_op_convert(g, kiln_op_matmul(g, a, b), KILN_F32);
  OK(kiln_graph_set_results(g, &sums, 1));
  kiln_executable* e = NULL;
  float result = -1;
  kiln_buffer *arguments[2] = {NULL, NULL}, *made = NULL;
  for (int k = 0; k < 2; ++k) {
    for (size_t i = 0; i < kSize * kSize; ++i) memcpy(values + i * width, k ? y : x, width);
    OK(kiln_buffer_copy_host(find_device(context, "CPU"), type, kDims, 2, values,
                             kSize * kSize * width, &arguments[k]));
  }
  if (OK(kiln_graph_compile(g, options, &e)) &&
      OK(kiln_executable_run(e, NULL, arguments, 2, &made, 1))) {
    OK(kiln_buffer_copy_to_host(made, values, kSize * kSize * sizeof(float)));
    memcpy(&result, values, sizeof result);
  }
  kiln_buffer_release(made);
  for (int k = 0; k < 2; ++k) kiln_buffer_release(arguments[k]);
  kiln_executable_release(e);
  kiln_graph_release(g);
  return result;
}

int main(void) {
  context = make_context(1);
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  /* A factor that bf16 has not. */
  const float x = 1 + 1.0f / 1024, one = 1;
  CHECK(product(KILN_F32, &x, &one, sizeof x, &options) == kSize * x);
  options.allow_bf16 = 1;
  const float rounded = product(KILN_F32, &x, &one, sizeof x, &options);
  CHECK(rounded == (has_units() ? (float)kSize : kSize * x));
  options.allow_bf16 = 0;

  /* 2^-130 times 2^20. */
  const uint16_t subnormal = 1 << 3, large = (127 + 20) << 7;
  const float kept = ldexpf(kSize, -110);
  options.keep_subnormals = 1;
  CHECK(product(KILN_BF16, &subnormal, &large, sizeof large, &options) == kept);
  options.keep_subnormals = 0;
  const float flushed = product(KILN_BF16, &subnormal, &large, sizeof large, &options);
  CHECK(flushed == (has_units() ? 0 : kept));

  kiln_context_release(context);
  return test_result();
}
