/* Ops that run in sessions only: building them, the sizes of their results, and that they are not
 * compiled. */
#include <stdint.h>

#include "testing.h"

static kiln_context* context;

static kiln_value vector(kiln_graph* g, const char* name, kiln_dtype dtype, int64_t size) {
  return kiln_op_parameter(g, dtype, &size, 1, name, strlen(name));
}

static void expect_shape(kiln_graph* g, kiln_value value, kiln_dtype dtype, size_t rank,
                         const int64_t* dims) {
  kiln_shape shape = KILN_SHAPE_INIT;
  if (!OK(kiln_graph_value_shape(g, value, &shape))) return;
  CHECK(shape.dtype == dtype && shape.rank == rank);
  for (size_t d = 0; d < rank && d < shape.rank; ++d) CHECK(shape.dims[d] == dims[d]);
}

static void expect_text(kiln_graph* g, kiln_value result, const char* expected) {
  kiln_text* text = NULL;
  OK(kiln_graph_set_results(g, &result, 1));
  if (!OK(kiln_graph_to_hlo_text(g, &text))) return;
  if (!strstr(kiln_text_data(text, NULL), expected)) {
    printf("%s\nhas no\n%s\n", kiln_text_data(text, NULL), expected);
    ++failed_checks;
  }
  kiln_text_release(text);
}

static void expect_refusal(kiln_graph* g, kiln_value result, const char* message) {
  kiln_executable* executable = NULL;
  OK(kiln_graph_set_results(g, &result, 1));
  size_t devices = kiln_context_device_count(context);
  for (size_t k = 0; k < devices; ++k) {
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.device = kiln_context_device(context, k);
    FAILS(KILN_INVALID_ARGUMENT, message, kiln_graph_compile(g, &options, &executable));
  }
}

static void bounds(void) {
  kiln_graph* g = make_graph(context, "bounds");
  const int64_t five = kiln_graph_bounded_size(g, 5);
  CHECK(five < INT64_MIN / 2 && five == kiln_graph_bounded_size(g, 5));
  CHECK(five != kiln_graph_bounded_size(g, 6));
  kiln_text* text = NULL;
  OK(kiln_graph_symbol_text(g, five, &text));
  CHECK(text && strcmp(kiln_text_data(text, NULL), "<=5") == 0);
  kiln_text_release(text);
  /* What is bounded is an array as any other. */
  const int64_t dims[] = {five, 3};
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  expect_shape(g, kiln_op_negate(g, x), KILN_F32, 2, dims);
  kiln_value two = kiln_op_scalar(g, KILN_F32, 2);
  expect_shape(g, kiln_op_multiply(g, x, two), KILN_F32, 2, dims);
  expect_shape(g, kiln_op_multiply(g, two, x), KILN_F32, 2, dims);
  expect_shape(g, kiln_op_iota_like(g, x, 0), KILN_F32, 2, dims);
  const int64_t one = 1;
  kiln_value row = kiln_op_broadcast(g, two, NULL, 0, &dims[1], 1);
  expect_shape(g, kiln_op_broadcast_like(g, row, x, &one, 1), KILN_F32, 2, dims);
  expect_shape(g, kiln_op_reshape_like(g, x, x), KILN_F32, 2, dims);
  OK(kiln_graph_status(g));
  kiln_graph_release(g);

  g = make_graph(context, "negative");
  CHECK(kiln_graph_bounded_size(g, -1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "the bound is -1", g);
  g = make_graph(context, "huge");
  CHECK(kiln_graph_bounded_size(g, INT64_C(1) << 40) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "expected less than 2^40", g);
  g = make_graph(context, "symbol");
  CHECK(kiln_graph_bounded_size(g, kiln_graph_symbol(g, "n", 1)) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "the bound is n", g);
  g = make_graph(context, "sum");
  CHECK(kiln_graph_symbol_sum(g, kiln_graph_bounded_size(g, 5), 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "<=5 is a bound", g);
  g = make_graph(context, "affine");
  CHECK(kiln_graph_symbol_affine(g, kiln_graph_bounded_size(g, 5), 2, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "<=5 is a bound", g);
  g = make_graph(context, "limit");
  const int64_t zero = 0, limit = kiln_graph_bounded_size(g, 2);
  CHECK(kiln_op_slice(g, vector(g, "x", KILN_F32, 4), &zero, &limit, NULL, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "slice has <=2, a bound, which is no size there", g);
}

static void sizes_of_values(void) {
  kiln_graph* g = make_graph(context, "sizes");
  kiln_value x = vector(g, "x", KILN_F32, 6);
  kiln_value unique = kiln_op_unique(g, x);
  const int64_t some = kiln_graph_bounded_size(g, 6), six = 6;
  kiln_value values = kiln_op_get_tuple_element(g, unique, 0);
  expect_shape(g, values, KILN_F32, 1, &some);
  expect_shape(g, kiln_op_get_tuple_element(g, unique, 1), KILN_S32, 1, &six);
  expect_shape(g, kiln_op_get_tuple_element(g, unique, 2), KILN_S32, 1, &some);
  const int64_t rows[] = {some, 1};
  kiln_value nonzero = kiln_op_nonzero(g, x);
  expect_shape(g, nonzero, KILN_S64, 2, rows);
  kiln_value masked = kiln_op_boolean_mask(g, x, vector(g, "m", KILN_PRED, 6));
  expect_shape(g, masked, KILN_F32, 1, &some);
  OK(kiln_graph_status(g));
  expect_refusal(g, kiln_op_negate(g, values),
                 "(kiln.unique) cannot be compiled: the size of its result depends on the values; "
                 "run it in a session");
  kiln_graph_release(g);

  /* One at a time, because the first one of a graph is named. */
  g = make_graph(context, "nonzero");
  expect_refusal(g, kiln_op_nonzero(g, vector(g, "x", KILN_S8, 3)), "(kiln.nonzero)");
  kiln_graph_release(g);
  g = make_graph(context, "mask");
  expect_refusal(g,
                 kiln_op_boolean_mask(g, vector(g, "x", KILN_C64, 3), vector(g, "m", KILN_PRED, 3)),
                 "(kiln.boolean-mask)");
  kiln_graph_release(g);
  g = make_graph(context, "other_mask");
  CHECK(kiln_op_boolean_mask(g, vector(g, "x", KILN_F32, 3), vector(g, "m", KILN_PRED, 4)) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "the mask must have the operand's first dimensions", g);
}

static void effects(void) {
  kiln_graph* g = make_graph(context, "print");
  kiln_value x = vector(g, "x", KILN_F32, 2), y = vector(g, "y", KILN_S32, 3);
  kiln_value printed = kiln_op_print(g, x, &y, 1, "y is ", 5);
  const int64_t two = 2;
  expect_shape(g, printed, KILN_F32, 1, &two);
  expect_text(g, kiln_op_print(g, printed, NULL, 0, NULL, 0),
              "custom_call_target=\"kiln.print\", custom_call_has_side_effect=true, "
              "backend_config=\"y is \"");
  expect_refusal(g, printed, "(kiln.print) cannot be compiled: it prints during the run");
  kiln_graph_release(g);

  g = make_graph(context, "assert");
  kiln_value pred = kiln_op_parameter(g, KILN_PRED, NULL, 0, "p", 1);
  x = vector(g, "x", KILN_F32, 2);
  kiln_value checked = kiln_op_assert(g, pred, x, &x, 1, "not good:", 9);
  expect_shape(g, checked, KILN_F32, 1, &two);
  expect_text(g, checked, "custom_call_target=\"kiln.assert\"");
  expect_refusal(g, checked, "(kiln.assert) cannot be compiled: it may fail the run");
  kiln_graph_release(g);
  g = make_graph(context, "no_pred");
  x = vector(g, "x", KILN_F32, 2);
  CHECK(kiln_op_assert(g, x, x, NULL, 0, NULL, 0) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "the first must be pred[]", g);
}

static void variables(void) {
  kiln_graph* g = make_graph(context, "variables");
  const int64_t two = 2;
  kiln_value w = kiln_op_variable(g, "net/w", 5, KILN_F32, &two, 1);
  kiln_value assigned = kiln_op_assign(g, kiln_op_negate(g, w), "net/w", 5);
  kiln_value added = kiln_op_assign_add(g, assigned, "net/w", 5);
  expect_shape(g, added, KILN_F32, 1, &two);
  expect_text(g, added,
              "custom_call_target=\"kiln.assign-add\", custom_call_has_side_effect=true, "
              "backend_config=\"net/w\"");
  expect_refusal(g, added,
                 "(kiln.variable) cannot be compiled: variables belong to a session; run it in a "
                 "session");
  kiln_graph_release(g);
  g = make_graph(context, "no_name");
  CHECK(kiln_op_variable(g, "", 0, KILN_F32, &two, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "variable is empty", g);
}

static void host_callbacks(void) {
  kiln_graph* g = make_graph(context, "callbacks");
  kiln_value x = vector(g, "x", KILN_F32, 2);
  const int64_t dims[] = {kiln_graph_bounded_size(g, 9), 2};
  kiln_shape some = KILN_SHAPE_INIT, scalar = KILN_SHAPE_INIT;
  some.dtype = KILN_F32;
  some.rank = 2;
  some.dims = dims;
  scalar.dtype = KILN_S32;
  const kiln_shape* results[] = {&some, &scalar};
  kiln_value one = kiln_op_host_callback(g, "look", 4, &x, 1, results, 1, 0);
  expect_shape(g, one, KILN_F32, 2, dims);
  kiln_value both = kiln_op_host_callback(g, "look", 4, NULL, 0, results, 2, 1);
  expect_shape(g, kiln_op_get_tuple_element(g, both, 0), KILN_F32, 2, dims);
  expect_shape(g, kiln_op_get_tuple_element(g, both, 1), KILN_S32, 0, NULL);
  expect_text(g, both,
              "(f32[<=9,2]{1,0}, s32[]) custom-call(), custom_call_target=\"kiln.host-callback\", "
              "backend_config=\"look\", custom_call_has_side_effect=true");
  expect_refusal(g, one,
                 "(kiln.host-callback) cannot be compiled: it calls a function on the host");
  kiln_graph_release(g);

  g = make_graph(context, "no_name");
  CHECK(kiln_op_host_callback(g, "", 0, NULL, 0, results, 0, 0) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "callback is empty", g);
  g = make_graph(context, "flag");
  CHECK(kiln_op_host_callback(g, "f", 1, NULL, 0, results, 0, 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "custom_call_has_side_effect is 2", g);
  g = make_graph(context, "null");
  CHECK(kiln_op_host_callback(g, "f", 1, NULL, 0, NULL, 1, 0) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "results is NULL", g);
}

/* An op inside of a region is found, and text that was printed is read again. */
static void regions_and_text(void) {
  kiln_graph* region = make_graph(context, "region");
  kiln_value p = vector(region, "p", KILN_F32, 2);
  kiln_value printed = kiln_op_print(region, p, NULL, 0, "inside ", 7);
  OK(kiln_graph_set_results(region, &printed, 1));
  kiln_graph* g = make_graph(context, "outer");
  kiln_value x = vector(g, "x", KILN_F32, 2);
  kiln_value called = kiln_op_call(g, &x, 1, region);
  expect_refusal(g, called, "(kiln.print) cannot be compiled");
  kiln_text* text = NULL;
  OK(kiln_graph_to_hlo_text(g, &text));
  size_t length = 0;
  const char* data = kiln_text_data(text, &length);
  kiln_graph* again = NULL;
  if (OK(kiln_graph_from_hlo_text(context, data, length, &again))) {
    kiln_text* second = NULL;
    OK(kiln_graph_to_hlo_text(again, &second));
    CHECK(strcmp(data, kiln_text_data(second, NULL)) == 0);
    kiln_text_release(second);
    kiln_executable* executable = NULL;
    FAILS(KILN_INVALID_ARGUMENT, "(kiln.print) cannot be compiled",
          kiln_graph_compile(again, NULL, &executable));
    kiln_graph_release(again);
  }
  kiln_text_release(text);
  kiln_graph_release(g);
  kiln_graph_release(region);
}

int main(void) {
  context = make_context_with(2, tested_gpu());
  bounds();
  sizes_of_values();
  effects();
  variables();
  host_callbacks();
  regions_and_text();
  kiln_context_release(context);
  return test_result();
}
