/* Element types beyond those of machines: buffers of them, and what the reference device makes of
 * them. */
#include <math.h>
#include <stdint.h>

#include "testing.h"

static kiln_context* context;
static kiln_device* reference;

static const struct {
  kiln_dtype dtype;
  const char* name;
  int32_t bits;   /* in memory */
  uint8_t one[8]; /* the first bytes of the number 1 */
} types[] = {
    {KILN_C64, "c64", 64, {0, 0, 0x80, 0x3f}},
    {KILN_C128, "c128", 128, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
    {KILN_S4, "s4", 8, {1}},
    {KILN_U4, "u4", 8, {1}},
    {KILN_S2, "s2", 8, {1}},
    {KILN_U2, "u2", 8, {1}},
    {KILN_F8E5M2, "f8e5m2", 8, {0x3c}},
    {KILN_F8E4M3FN, "f8e4m3fn", 8, {0x38}},
    {KILN_F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, {0x58}},
    {KILN_F8E5M2FNUZ, "f8e5m2fnuz", 8, {0x40}},
    {KILN_F8E4M3FNUZ, "f8e4m3fnuz", 8, {0x40}},
    {KILN_F8E4M3, "f8e4m3", 8, {0x38}},
    {KILN_F8E3M4, "f8e3m4", 8, {0x30}},
    {KILN_F8E8M0FNU, "f8e8m0fnu", 8, {0x7f}},
    {KILN_F6E2M3FN, "f6e2m3fn", 8, {0x08}},
    {KILN_F6E3M2FN, "f6e3m2fn", 8, {0x0c}},
    {KILN_F4E2M1FN, "f4e2m1fn", 8, {0x02}},
};

/* Copies in and out, converts to and from f32, and products. */
static void every_type(void) {
  const int64_t three = 3;
  const float ones[3] = {1, 1, 1};
  for (size_t t = 0; t < sizeof types / sizeof *types; ++t) {
    const kiln_dtype dtype = types[t].dtype;
    const size_t bytes = (size_t)types[t].bits / 8;
    CHECK(strcmp(kiln_dtype_name(dtype), types[t].name) == 0);
    CHECK(kiln_dtype_bits(dtype) == types[t].bits);
    kiln_graph* g = make_graph(context, "types");
    kiln_value x = f32_parameter(g, "x", 3);
    kiln_value y = kiln_op_parameter(g, dtype, &three, 1, "y", 1);
    kiln_value small = kiln_op_convert(g, x, dtype);
    kiln_value one = kiln_op_broadcast_like(g, kiln_op_scalar(g, dtype, 1), y, NULL, 0);
    kiln_value product = kiln_op_multiply(g, kiln_op_multiply(g, small, y), one);
    kiln_value results[2] = {product, kiln_op_convert(g, product, KILN_F32)};
    OK(kiln_graph_set_results(g, results, 2));
    kiln_compile_options options;
    kiln_compile_options_init(&options, sizeof options);
    options.device = reference;
    kiln_executable* executable = NULL;
    OK(kiln_graph_compile(g, &options, &executable));
    kiln_graph_release(g);
    uint8_t memory[48] = {0}, back[48] = {0};
    for (size_t i = 0; i < 3; ++i) memcpy(memory + i * bytes, types[t].one, bytes < 8 ? bytes : 8);
    kiln_buffer *arguments[2] = {f32_buffer(reference, ones, 3), NULL}, *made[2] = {NULL};
    OK(kiln_buffer_copy_host(reference, dtype, &three, 1, memory, 3 * bytes, &arguments[1]));
    kiln_shape shape = KILN_SHAPE_INIT;
    OK(kiln_buffer_shape(arguments[1], &shape));
    CHECK(shape.dtype == dtype && shape.byte_size == (int64_t)(3 * bytes));
    OK(kiln_executable_run(executable, NULL, arguments, 2, made, 2));
    OK(kiln_buffer_copy_to_host(made[0], back, 3 * bytes));
    CHECK(memcmp(back, memory, 3 * bytes) == 0);
    expect_f32(made[1], ones, 3);
    for (int i = 0; i < 2; ++i) {
      kiln_buffer_release(arguments[i]);
      kiln_buffer_release(made[i]);
    }
    kiln_executable_release(executable);
  }
}

static void complex_numbers(void) {
  const int64_t two = 2;
  const float z[4] = {3, 4, 0, -1};
  kiln_graph* g = make_graph(context, "complex");
  kiln_value x = kiln_op_parameter(g, KILN_C64, &two, 1, "z", 1);
  kiln_value pair = kiln_op_complex(g, kiln_op_imag(g, x), kiln_op_real(g, x));
  const int64_t axis = 0;
  kiln_value results[3] = {kiln_op_abs(g, x), kiln_op_multiply(g, x, pair),
                           kiln_op_reduce_by(g, x, &axis, 1, KILN_REDUCER_SUM)};
  OK(kiln_graph_set_results(g, results, 3));
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.device = reference;
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(g, &options, &executable));
  kiln_graph_release(g);
  kiln_buffer *argument = NULL, *made[3] = {NULL};
  OK(kiln_buffer_copy_host(reference, KILN_C64, &two, 1, z, sizeof z, &argument));
  OK(kiln_executable_run(executable, NULL, &argument, 1, made, 3));
  /* (3 + 4i)(4 + 3i) is 25i, and -i(-1 + 0i) is i. */
  const float sizes[2] = {5, 1}, products[4] = {0, 25, 0, 1}, sum[2] = {3, 3};
  expect_f32(made[0], sizes, 2);
  expect_f32(made[1], products, 4);
  expect_f32(made[2], sum, 2);
  for (int i = 0; i < 3; ++i) kiln_buffer_release(made[i]);
  kiln_buffer_release(argument);
  kiln_executable_release(executable);
}

/* What a reduction begins with. */
static void reducers(void) {
  const int64_t none = 0, axis = 0;
  static const struct {
    kiln_dtype dtype;
    kiln_reducer reducer;
    float expected;
  } rows[] = {{KILN_S4, KILN_REDUCER_MAX, -8},
              {KILN_S4, KILN_REDUCER_AND, -1},
              {KILN_U2, KILN_REDUCER_MIN, 3},
              {KILN_F8E4M3FN, KILN_REDUCER_MAX, -448},
              {KILN_F8E5M2, KILN_REDUCER_MIN, INFINITY},
              {KILN_F4E2M1FN, KILN_REDUCER_PRODUCT, 1},
              {KILN_C64, KILN_REDUCER_MAX, -INFINITY}};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
    kiln_graph* g = make_graph(context, "reduce");
    kiln_value x = kiln_op_parameter(g, rows[r].dtype, &none, 1, "x", 1);
    kiln_value folded = kiln_op_reduce_by(g, x, &axis, 1, rows[r].reducer);
    kiln_executable* executable =
        compile_result(g, kiln_op_convert(g, folded, KILN_F32), reference);
    kiln_buffer *argument = NULL, *made = NULL;
    OK(kiln_buffer_create(reference, rows[r].dtype, &none, 1, &argument));
    OK(kiln_executable_run(executable, NULL, &argument, 1, &made, 1));
    expect_f32(made, &rows[r].expected, 1);
    kiln_buffer_release(argument);
    kiln_buffer_release(made);
    kiln_executable_release(executable);
  }
  kiln_graph* g = make_graph(context, "no zero");
  kiln_value x = kiln_op_parameter(g, KILN_F8E8M0FNU, &none, 1, "x", 1);
  CHECK(kiln_op_reduce_by(g, x, &axis, 1, KILN_REDUCER_SUM) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f8e8m0fnu has no 0", g);
}

int main(void) {
  context = make_context(1);
  reference = find_device(context, "REFERENCE:0");
  every_type();
  complex_numbers();
  reducers();
  kiln_context_release(context);
  return test_result();
}
