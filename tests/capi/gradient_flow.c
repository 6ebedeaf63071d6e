/* Derivatives of loops and calls by the C ABI: values keep their ids, called graphs and custom
 * calls have derivatives of the user's, and those of the library's decompositions are right. */
#include <math.h>

#include "testing.h"

static kiln_context* context;

enum { kMost = 16 };

/* The graph's only result of up to kMost numbers of f64, at the argument x. */
static void values_at(const kiln_graph* graph, const char* device_name, const double* x,
                      const int64_t* dims, size_t rank, double* values, size_t count) {
  kiln_device* device = find_device(context, device_name);
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.device = device;
  options.verify = 1;
  kiln_executable* e = NULL;
  kiln_buffer *argument = NULL, *result = NULL;
  size_t size = sizeof(double);
  for (size_t d = 0; d < rank; ++d) size *= (size_t)dims[d];
  if (OK(kiln_graph_compile(graph, &options, &e)) &&
      OK(kiln_buffer_copy_host(device, KILN_F64, dims, rank, x, size, &argument)) &&
      OK(kiln_executable_run(e, NULL, &argument, 1, &result, 1))) {
    OK(kiln_buffer_copy_to_host(result, values, sizeof(double) * count));
  }
  kiln_buffer_release(result);
  kiln_buffer_release(argument);
  kiln_executable_release(e);
}

/* The scalar function's gradient by its parameter is that of differences. The graph is given back
 * with the gradient as its result. */
static void expect_gradient(kiln_graph* graph, const double* x, const int64_t* dims, size_t rank,
                            int line) {
  size_t count = 1;
  for (size_t d = 0; d < rank; ++d) count *= (size_t)dims[d];
  double differences[kMost], moved[kMost], gradient[kMost];
  for (size_t i = 0; i < count; ++i) {
    double ends[2] = {0, 0};
    for (int side = 0; side < 2; ++side) {
      memcpy(moved, x, sizeof(double) * count);
      moved[i] += side ? 1e-5 : -1e-5;
      values_at(graph, "REFERENCE", moved, dims, rank, &ends[side], 1);
    }
    differences[i] = (ends[1] - ends[0]) / 2e-5;
  }
  kiln_value by = kiln_graph_parameter(graph, 0), found = 0;
  if (!OK(kiln_graph_gradient(graph, kiln_graph_result(graph), &by, 1, NULL, &found))) return;
  OK(kiln_graph_set_results(graph, &found, 1));
  static const char* const kDevices[] = {"CPU", "REFERENCE"};
  for (int k = 0; k < 2; ++k) {
    values_at(graph, kDevices[k], x, dims, rank, gradient, count);
    for (size_t i = 0; i < count; ++i) {
      if (fabs(gradient[i] - differences[i]) <= 1e-7 * fmax(1, fabs(differences[i]))) continue;
      printf("line %d: on %s element %zu is %.9g; expected %.9g\n", line, kDevices[k], i,
             gradient[i], differences[i]);
      ++failed_checks;
    }
  }
}

static kiln_graph* graph_of(const char* text) {
  kiln_graph* graph = NULL;
  if (!OK(kiln_graph_from_hlo_text(context, text, strlen(text), &graph))) exit(1);
  return graph;
}

static size_t count_of(const kiln_graph* graph, const char* part) {
  kiln_text* text = NULL;
  if (!OK(kiln_graph_to_hlo_text(graph, &text))) return 0;
  size_t count = 0;
  for (const char* at = kiln_text_data(text, NULL); (at = strstr(at, part)); ++at) ++count;
  kiln_text_release(text);
  return count;
}

/* x -> tanh(w x + 0.1 i) for i below 6, where w is in the state, and its square is the result. */
static const char kLoop[] =
    "HloModule loop\n"
    "condition {\n"
    "  p = (s32[], f64[2], f64[2,2]) parameter(0)\n"
    "  i = s32[] get-tuple-element(p), index=0\n"
    "  n = s32[] constant(6)\n"
    "  ROOT c = pred[] compare(i, n), direction=LT\n"
    "}\n"
    "body {\n"
    "  p = (s32[], f64[2], f64[2,2]) parameter(0)\n"
    "  i = s32[] get-tuple-element(p), index=0\n"
    "  x = f64[2] get-tuple-element(p), index=1\n"
    "  w = f64[2,2] get-tuple-element(p), index=2\n"
    "  d = f64[2] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  f = f64[] convert(i)\n"
    "  k = f64[] constant(0.1)\n"
    "  g = f64[] multiply(f, k)\n"
    "  b = f64[2] broadcast(g), dimensions={}\n"
    "  s = f64[2] add(d, b)\n"
    "  t = f64[2] tanh(s)\n"
    "  one = s32[] constant(1)\n"
    "  j = s32[] add(i, one)\n"
    "  ROOT r = (s32[], f64[2], f64[2,2]) tuple(j, t, w)\n"
    "}\n"
    "ENTRY e {\n"
    "  w = f64[2,2] parameter(0)\n"
    "  zero = s32[] constant(0)\n"
    "  x = f64[2] constant({0.5, -0.3})\n"
    "  start = (s32[], f64[2], f64[2,2]) tuple(zero, x, w)\n"
    "  l = (s32[], f64[2], f64[2,2]) while(start), condition=condition, body=body\n"
    "  y = f64[2] get-tuple-element(l), index=1\n"
    "  ROOT r = f64[] dot(y, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
    "}\n";

static void loops(void) {
  static const int64_t kDims[] = {2, 2};
  static const double kWeights[] = {0.7, -0.4, 1.1, 0.2};
  kiln_graph* graph = graph_of(kLoop);
  kiln_value loop = 0, state = 0;
  OK(kiln_graph_find_value(graph, "l", 1, &loop));
  OK(kiln_graph_find_value(graph, "start", 5, &state));
  expect_gradient(graph, kWeights, kDims, 2, __LINE__);
  /* One loop forward, one backward; the id is that of the loop's value. */
  CHECK(count_of(graph, " while(") == 2);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_graph_value_shape(graph, loop, &shape));
  kiln_value again = kiln_op_get_tuple_element(graph, loop, 1);
  kiln_value doubled = kiln_op_add(graph, again, again);
  CHECK(doubled != 0);
  OK(kiln_graph_set_results(graph, &doubled, 1));
  double values[2] = {0, 0}, expected[2] = {0.5, -0.3};
  values_at(graph, "CPU", kWeights, kDims, 2, values, 2);
  for (int i = 0; i < 6; ++i) {
    const double x = expected[0], y = expected[1];
    for (int d = 0; d < 2; ++d) {
      expected[d] = tanh(kWeights[2 * d] * x + kWeights[2 * d + 1] * y + 0.1 * i);
    }
  }
  for (int d = 0; d < 2; ++d) CHECK(fabs(values[d] - 2 * expected[d]) < 1e-12);
  /* The ops before are there still, once. */
  CHECK(kiln_op_get_tuple_element(graph, state, 0) != 0);
  OK(kiln_graph_status(graph));
  kiln_graph_release(graph);
}

static const int64_t kTwo = 2;

/* x sin(x) with the backward graph that says 10 x t. */
static kiln_graph* function_with_rule(int32_t has_rule) {
  kiln_graph* function = make_graph(context, "function");
  kiln_value x = kiln_op_parameter(function, KILN_F64, &kTwo, 1, "x", 1);
  kiln_value y = kiln_op_multiply(function, x, kiln_op_sine(function, x));
  OK(kiln_graph_set_results(function, &y, 1));
  if (!has_rule) return function;
  kiln_graph* backward = make_graph(context, "backward");
  kiln_value bx = kiln_op_parameter(backward, KILN_F64, &kTwo, 1, "x", 1);
  OK(kiln_graph_set_results(backward, &bx, 1));
  FAILS(KILN_INVALID_ARGUMENT, "expected (f64[2], f64[2], f64[2])",
        kiln_graph_set_gradient(function, backward));
  kiln_op_parameter(backward, KILN_F64, &kTwo, 1, "y", 1);
  kiln_value t = kiln_op_parameter(backward, KILN_F64, &kTwo, 1, "t", 1);
  FAILS(KILN_INVALID_ARGUMENT, "results of the shape f64[]",
        (OK(kiln_graph_set_results(backward, (kiln_value[]){kiln_op_scalar(backward, KILN_F64, 1)},
                                   1)),
         kiln_graph_set_gradient(function, backward)));
  kiln_value product = kiln_op_multiply(backward, bx, t);
  product = kiln_op_multiply(backward, product, kiln_op_scalar(backward, KILN_F64, 10));
  OK(kiln_graph_set_results(backward, &product, 1));
  OK(kiln_graph_set_gradient(function, backward));
  kiln_graph_release(backward);
  return function;
}

static kiln_value sum_of_product(kiln_graph* graph, kiln_value x, kiln_value y) {
  static const int64_t kZero = 0;
  return kiln_op_dot(graph, x, y, NULL, 0, NULL, 0, &kZero, 1, &kZero, 1, KILN_F64);
}

static void rules_of_functions(void) {
  static const double kX[] = {0.5, -2};
  for (int has_rule = 0; has_rule < 2; ++has_rule) {
    kiln_graph* function = function_with_rule(has_rule);
    kiln_graph* graph = make_graph(context, "caller");
    kiln_value x = kiln_op_parameter(graph, KILN_F64, &kTwo, 1, "x", 1);
    kiln_value y = kiln_op_call(graph, &x, 1, function);
    kiln_value value = sum_of_product(graph, y, y), gradient = 0;
    OK(kiln_graph_set_results(graph, &value, 1));
    double values[2] = {0, 0};
    values_at(graph, "CPU", kX, &kTwo, 1, values, 1);
    double f[2], expected[2];
    for (int d = 0; d < 2; ++d) {
      f[d] = kX[d] * sin(kX[d]);
      expected[d] = 2 * f[d] * (has_rule ? 10 * kX[d] : sin(kX[d]) + kX[d] * cos(kX[d]));
    }
    CHECK(fabs(values[0] - f[0] * f[0] - f[1] * f[1]) < 1e-12);
    OK(kiln_graph_gradient(graph, value, &x, 1, NULL, &gradient));
    OK(kiln_graph_set_results(graph, &gradient, 1));
    for (int device = 0; device < 2; ++device) {
      values_at(graph, device ? "REFERENCE" : "CPU", kX, &kTwo, 1, values, 2);
      for (int d = 0; d < 2; ++d) CHECK(fabs(values[d] - expected[d]) < 1e-12);
    }
    /* Without it the next calls have the derivative of the ops. */
    if (has_rule) {
      OK(kiln_graph_set_gradient(function, NULL));
      kiln_value z = kiln_op_call(graph, &x, 1, function);
      OK(kiln_graph_vjp(graph, &z, &x, 1, &x, 1, NULL, &gradient));
      OK(kiln_graph_set_results(graph, &gradient, 1));
      values_at(graph, "CPU", kX, &kTwo, 1, values, 2);
      for (int d = 0; d < 2; ++d) {
        CHECK(fabs(values[d] - kX[d] * (sin(kX[d]) + kX[d] * cos(kX[d]))) < 1e-12);
      }
    }
    kiln_graph_release(graph);
    kiln_graph_release(function);
  }
}

static void checkpoints(void) {
  static const double kX[] = {0.5, -2};
  kiln_graph* function = function_with_rule(0);
  kiln_graph* graph = make_graph(context, "caller");
  kiln_value x = kiln_op_parameter(graph, KILN_F64, &kTwo, 1, "x", 1);
  kiln_value y = kiln_op_call(graph, &x, 1, function);
  kiln_value value = sum_of_product(graph, y, y);
  OK(kiln_graph_set_results(graph, &value, 1));
  FAILS(KILN_INVALID_ARGUMENT, "expected a call", kiln_graph_set_checkpoint(graph, x, 1));
  FAILS(KILN_INVALID_ARGUMENT, "checkpoint is 2", kiln_graph_set_checkpoint(graph, y, 2));
  OK(kiln_graph_set_checkpoint(graph, y, 1));
  CHECK(count_of(graph, "kiln.gradient=\"checkpoint\"") == 1);
  OK(kiln_graph_set_checkpoint(graph, y, 0));
  CHECK(count_of(graph, "kiln.gradient") == 0);
  OK(kiln_graph_set_checkpoint(graph, y, 1));
  expect_gradient(graph, kX, &kTwo, 1, __LINE__);
  CHECK(count_of(graph, " opt-barrier(") == 1);
  kiln_graph_release(graph);
  kiln_graph_release(function);
}

typedef struct Rule {
  int built;
  int destroyed;
  int mistake; /* 1: an error, 2: a gradient of another shape */
} Rule;

static void destroy_rule(void* user_data) { ++((Rule*)user_data)->destroyed; }

/* cube(x) = x^3: 3 x^2 t */
static kiln_error* cube_gradient(void* user_data, kiln_graph* backward,
                                 const kiln_gradient_call* call) {
  Rule* rule = user_data;
  ++rule->built;
  CHECK(call->struct_size >= sizeof(kiln_gradient_call));
  CHECK(call->target_length == 4 && strncmp(call->target, "cube", 4) == 0);
  CHECK(strcmp(call->backend_config, "how") == 0 && call->backend_config_length == 3);
  CHECK(call->operand_count == 1 && call->result_count == 1 && call->gradients[0] == 0);
  if (rule->mistake == 1) return kiln_error_create(KILN_ABORTED, "not today", 9);
  if (rule->mistake == 2) {
    call->gradients[0] = kiln_op_scalar(backward, KILN_F64, 1);
    return NULL;
  }
  kiln_value square = kiln_op_multiply(backward, call->operands[0], call->operands[0]);
  kiln_value factor = kiln_op_multiply(backward, square, kiln_op_scalar(backward, KILN_F64, 3));
  call->gradients[0] = kiln_op_multiply(backward, factor, call->cotangents[0]);
  return NULL;
}

static kiln_error* cube(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  for (int64_t i = 0; i < call->operands[0]->dims[0]; ++i) {
    const double x = ((const double*)call->operands[0]->data)[i];
    ((double*)call->results[0]->data)[i] = x * x * x;
  }
  return NULL;
}

static void rules_of_custom_calls(void) {
  static const double kX[] = {0.5, -2};
  Rule rule = {0, 0, 0};
  kiln_context* shared = context;
  context = make_context(1);
  OK(kiln_context_register_call(context, "cube", 4, cube, NULL, NULL));
  FAILS(KILN_INVALID_ARGUMENT, "marker",
        kiln_context_register_gradient(context, "Sharding", 8, cube_gradient, &rule, destroy_rule));
  OK(kiln_context_register_gradient(context, "cube", 4, cube_gradient, &rule, destroy_rule));
  FAILS(KILN_ALREADY_EXISTS, "cube",
        kiln_context_register_gradient(context, "cube", 4, cube_gradient, &rule, destroy_rule));
  CHECK(rule.destroyed == 0);
  kiln_graph* graph = graph_of(
      "HloModule m\n"
      "function {\n"
      "  x = f64[2] parameter(0)\n"
      "  c = f64[2] custom-call(x), custom_call_target=\"cube\", backend_config=\"how\"\n"
      "  ROOT m = f64[2] multiply(c, x)\n"
      "}\n"
      "ENTRY e {\n"
      "  x = f64[2] parameter(0)\n"
      "  c = f64[2] call(x), to_apply=function\n"
      "  ROOT r = f64[] dot(c, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
      "}\n");
  kiln_value x = kiln_graph_parameter(graph, 0), value = kiln_graph_result(graph), found[2];
  rule.mistake = 1;
  FAILS(KILN_ABORTED, "not today", kiln_graph_gradient(graph, value, &x, 1, NULL, found));
  rule.mistake = 2;
  FAILS(KILN_INVALID_ARGUMENT, "f64[]", kiln_graph_gradient(graph, value, &x, 1, NULL, found));
  rule.mistake = 0;
  rule.built = 0;
  OK(kiln_graph_jvp(graph, &value, 1, &x, &x, 1, NULL, found));
  CHECK(rule.built == 1);
  OK(kiln_graph_gradient(graph, value, &x, 1, NULL, &found[1]));
  found[1] = sum_of_product(graph, found[1], x);
  /* (x^4)^2, so that x times its derivative is 8 of it */
  const double expected = 8 * (pow(kX[0], 8) + pow(kX[1], 8));
  for (int k = 0; k < 2; ++k) {
    double got = 0;
    OK(kiln_graph_set_results(graph, &found[k], 1));
    values_at(graph, k ? "REFERENCE" : "CPU", kX, &kTwo, 1, &got, 1);
    CHECK(fabs(got - expected) < 1e-9 * expected);
  }
  kiln_graph_release(graph);
  kiln_context_release(context);
  context = shared;
  CHECK(rule.destroyed == 1);
}

static void decompositions(void) {
  static const double kX[] = {2, 0.3, -1, 0.5, 1.7, 0.4, -0.2, 3, 0.9, 1.1, -0.6, 0.8};
  static const char kLu[] =
      "HloModule lu\n"
      "ENTRY e {\n"
      "  a = f64[%d,%d] parameter(0)\n"
      "  c = (f64[%d,%d], s32[3], s32[%d], s32[]) custom-call(a), "
      "custom_call_target=\"lapack.getrf\"\n"
      "  f = f64[%d,%d] get-tuple-element(c), index=0\n"
      "  s = f64[%d,%d] sine(f)\n"
      "  ROOT r = f64[] dot(s, f), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}\n"
      "}\n";
  static const int64_t kSizes[][2] = {{3, 3}, {4, 3}, {3, 4}};
  for (int k = 0; k < 3; ++k) {
    char text[1000];
    const int m = (int)kSizes[k][0], n = (int)kSizes[k][1];
    snprintf(text, sizeof text, kLu, m, n, m, n, m, m, n, m, n);
    kiln_graph* graph = graph_of(text);
    expect_gradient(graph, kX, kSizes[k], 2, __LINE__);
    kiln_graph_release(graph);
  }
  /* The upper triangle of the first result, and the product of the reflections. */
  static const char kQr[] =
      "HloModule qr\n"
      "ENTRY e {\n"
      "  a = f64[4,3] parameter(0)\n"
      "  c = (f64[4,3], f64[3]) custom-call(a), custom_call_target=\"lapack.geqrf\"\n"
      "  f = f64[4,3] get-tuple-element(c), index=0\n"
      "  t = f64[3] get-tuple-element(c), index=1\n"
      "  q = f64[4,3] custom-call(f, t), custom_call_target=\"lapack.orgqr\"\n"
      "  row = s32[4,3] iota(), iota_dimension=0\n"
      "  column = s32[4,3] iota(), iota_dimension=1\n"
      "  upper = pred[4,3] compare(row, column), direction=LE\n"
      "  zero = f64[] constant(0)\n"
      "  zeros = f64[4,3] broadcast(zero), dimensions={}\n"
      "  r = f64[4,3] select(upper, f, zeros)\n"
      "  s = f64[4,3] sine(r)\n"
      "  e = f64[4,3] exponential(q)\n"
      "  ROOT d = f64[] dot(s, e), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}\n"
      "}\n";
  static const int64_t kTall[] = {4, 3};
  kiln_graph* graph = graph_of(kQr);
  expect_gradient(graph, kX, kTall, 2, __LINE__);
  kiln_graph_release(graph);
  static const char kEigen[] =
      "HloModule m\n"
      "ENTRY e {\n"
      "  a = f64[3,3] parameter(0)\n"
      "  c = (f64[3,3], f64[3], s32[]) custom-call(a), custom_call_target=\"lapack.syevd\"\n"
      "  w = f64[3] get-tuple-element(c), index=1\n"
      "  ROOT d = f64[] dot(w, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
      "}\n";
  graph = graph_of(kEigen);
  kiln_value by = kiln_graph_parameter(graph, 0), found = 0;
  FAILS(KILN_UNIMPLEMENTED, "lapack.syevd",
        kiln_graph_gradient(graph, kiln_graph_result(graph), &by, 1, NULL, &found));
  kiln_graph_release(graph);
}

int main(void) {
  context = make_context(2);
  loops();
  rules_of_functions();
  checkpoints();
  rules_of_custom_calls();
  decompositions();
  kiln_context_release(context);
  return test_result();
}
