/* Regions: reducers, loops and branches that take their values one by one or as a tuple; symbols;
 * and results that are tuples. Compiled code and the evaluator both run them. */
#include <stdint.h>

#include "testing.h"

static kiln_context* context;
static const char* const device_names[2] = {"CPU:0", "REFERENCE:0"};

/* Compiles for a device and runs on float vectors; results are checked against `expected`, which
 * lists them one after the other. */
static void run(kiln_graph* graph, const char* device_name, const float* const* arguments,
                const int64_t* sizes, size_t argument_count, const float* const* expected,
                const size_t* result_sizes, size_t result_count) {
  kiln_device* device = find_device(context, device_name);
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.device = device;
  options.verify = 1;
  kiln_executable* e = NULL;
  if (!OK(kiln_graph_compile(graph, &options, &e))) return;
  kiln_buffer *args[4] = {NULL}, *results[4] = {NULL};
  for (size_t i = 0; i < argument_count; ++i) args[i] = f32_buffer(device, arguments[i], sizes[i]);
  CHECK(kiln_executable_result_count(e) == result_count);
  OK(kiln_executable_run(e, NULL, args, argument_count, results, result_count));
  for (size_t i = 0; i < result_count; ++i) {
    if (results[i]) expect_f32(results[i], expected[i], result_sizes[i]);
    kiln_buffer_release(results[i]);
  }
  for (size_t i = 0; i < argument_count; ++i) kiln_buffer_release(args[i]);
  kiln_executable_release(e);
}

static kiln_value scalar_parameter(kiln_graph* g, kiln_dtype dtype, const char* name) {
  return kiln_op_parameter(g, dtype, NULL, 0, name, strlen(name));
}

/* The largest element and where it is: a reducer of two operands. */
static void argmax(void) {
  kiln_graph* larger = make_graph(context, "larger");
  kiln_value a = scalar_parameter(larger, KILN_F32, "a");
  kiln_value i = scalar_parameter(larger, KILN_F32, "i");
  kiln_value b = scalar_parameter(larger, KILN_F32, "b");
  kiln_value j = scalar_parameter(larger, KILN_F32, "j");
  kiln_value first = kiln_op_compare(larger, a, b, KILN_GE);
  kiln_value best[2] = {kiln_op_select(larger, first, a, b), kiln_op_select(larger, first, i, j)};
  OK(kiln_graph_set_results(larger, best, 2));

  kiln_graph* g = make_graph(context, "argmax");
  int64_t size = 5, axis = 0;
  kiln_value x = f32_parameter(g, "x", size);
  kiln_value operands[2] = {x, kiln_op_iota(g, 0, KILN_F32, &size, 1)};
  kiln_value inits[2] = {kiln_op_scalar(g, KILN_F32, -1e30), kiln_op_scalar(g, KILN_F32, -1)};
  kiln_value both = kiln_op_reduce(g, operands, 2, inits, 2, &axis, 1, larger);
  kiln_graph_release(larger); /* it has been copied */
  OK(kiln_graph_set_results(g, &both, 1));
  OK(kiln_graph_status(g));
  const float values[5] = {3, 9, -2, 8, 9}, *arguments[1] = {values};
  const float largest = 9, *expected[2] = {&largest, (const float[]){1}};
  for (int d = 0; d < 2; ++d) {
    run(g, device_names[d], arguments, &size, 1, expected, (const size_t[]){1, 1}, 2);
  }
  kiln_graph_release(g);
}

/* x doubled n times, with regions that take two values, or one tuple. */
static kiln_graph* part(const char* name, int as_tuple, kiln_value outer[2], kiln_graph* other,
                        kiln_value state, kiln_value values[2]) {
  kiln_graph* g = make_graph(context, name);
  if (as_tuple) {
    kiln_value tuple = kiln_op_parameter_like(g, other, state, "state", 5);
    values[0] = kiln_op_get_tuple_element(g, tuple, 0);
    values[1] = kiln_op_get_tuple_element(g, tuple, 1);
  } else {
    values[0] = kiln_op_parameter_like(g, other, outer[0], "i", 1);
    values[1] = kiln_op_parameter_like(g, other, outer[1], "x", 1);
  }
  return g;
}

static void loops(void) {
  for (int as_tuple = 0; as_tuple < 2; ++as_tuple) {
    kiln_graph* g = make_graph(context, "doubling");
    int64_t three = 3;
    kiln_value outer[2] = {kiln_op_scalar(g, KILN_S32, 0), f32_parameter(g, "x", three)};
    kiln_value state = kiln_op_tuple(g, outer, 2), values[2];
    kiln_graph* condition = part("condition", as_tuple, outer, g, state, values);
    kiln_value more =
        kiln_op_compare(condition, values[0], kiln_op_scalar(condition, KILN_S32, 4), KILN_LT);
    OK(kiln_graph_set_results(condition, &more, 1));
    kiln_graph* body = part("body", as_tuple, outer, g, state, values);
    kiln_value next[2] = {
        kiln_op_add(body, values[0], kiln_op_scalar(body, KILN_S32, 1)),
        kiln_op_add(body, values[1], values[1]),
    };
    OK(kiln_graph_set_results(body, next, 2));
    kiln_value loop = kiln_op_while(g, state, condition, body);
    OK(kiln_graph_status(g));
    kiln_value result = kiln_op_get_tuple_element(g, loop, 1);
    OK(kiln_graph_set_results(g, &result, 1));
    const float values_in[3] = {1, -2, 0.5f}, *arguments[1] = {values_in};
    const float values_out[3] = {16, -32, 8}, *expected[1] = {values_out};
    for (int d = 0; d < 2; ++d) {
      run(g, device_names[d], arguments, &three, 1, expected, (const size_t[]){3}, 1);
    }
    /* What is printed can be read. */
    kiln_text* text = NULL;
    OK(kiln_graph_to_hlo_text(g, &text));
    kiln_graph* again = NULL;
    size_t length = 0;
    const char* hlo = kiln_text_data(text, &length);
    OK(kiln_graph_from_hlo_text(context, hlo, length, &again));
    CHECK(kiln_graph_parameter_count(again) == 1 && kiln_graph_result(again) != 0);
    run(again, device_names[0], arguments, &three, 1, expected, (const size_t[]){3}, 1);
    kiln_text_release(text);
    kiln_graph_release(again);
    kiln_graph_release(condition);
    kiln_graph_release(body);
    kiln_graph_release(g);
  }
}

/* A loop over one array, which is its own state. */
static void single_state(void) {
  kiln_graph* condition = make_graph(context, "small");
  kiln_value x = scalar_parameter(condition, KILN_F32, "x");
  kiln_value small =
      kiln_op_compare(condition, x, kiln_op_scalar(condition, KILN_F32, 100), KILN_LT);
  OK(kiln_graph_set_results(condition, &small, 1));
  kiln_graph* body = make_graph(context, "triple");
  x = scalar_parameter(body, KILN_F32, "x");
  kiln_value triple = kiln_op_multiply(body, kiln_op_scalar(body, KILN_F32, 3), x);
  OK(kiln_graph_set_results(body, &triple, 1));
  /* As it is, and in a tuple of one. */
  for (int wrapped = 0; wrapped < 2; ++wrapped) {
    kiln_graph* g = make_graph(context, "growth");
    int64_t one = 1;
    kiln_value start = kiln_op_reshape(g, f32_parameter(g, "x", one), NULL, 0);
    if (wrapped) start = kiln_op_tuple(g, &start, 1);
    kiln_value end = kiln_op_while(g, start, condition, body);
    if (wrapped) end = kiln_op_get_tuple_element(g, end, 0);
    OK(kiln_graph_status(g));
    OK(kiln_graph_set_results(g, &end, 1));
    const float in = 5, out = 135, *arguments[1] = {&in}, *expected[1] = {&out};
    for (int d = 0; d < 2; ++d) {
      run(g, device_names[d], arguments, &one, 1, expected, (const size_t[]){1}, 1);
    }
    kiln_graph_release(g);
  }
  kiln_graph_release(condition);
  kiln_graph_release(body);
}

static void branches(void) {
  kiln_graph* sum = make_graph(context, "sum");
  kiln_value a = f32_parameter(sum, "a", 2), b = f32_parameter(sum, "b", 2);
  kiln_value r = kiln_op_add(sum, a, b);
  OK(kiln_graph_set_results(sum, &r, 1));
  kiln_graph* negated = make_graph(context, "negated");
  a = f32_parameter(negated, "a", 2);
  r = kiln_op_negate(negated, a);
  OK(kiln_graph_set_results(negated, &r, 1));
  const kiln_graph* regions[2] = {sum, negated};

  kiln_graph* g = make_graph(context, "branch");
  int64_t sizes[3] = {2, 2, 1};
  kiln_value x = f32_parameter(g, "x", 2), y = f32_parameter(g, "y", 2);
  kiln_value flag = kiln_op_reshape(g, f32_parameter(g, "flag", 1), NULL, 0);
  kiln_value pair[2] = {x, y};
  kiln_value operands[2] = {kiln_op_tuple(g, pair, 2), x};
  kiln_value chosen =
      kiln_op_conditional(g, kiln_op_compare(g, flag, kiln_op_scalar(g, KILN_F32, 0), KILN_GT),
                          operands, 2, regions, 2);
  OK(kiln_graph_status(g));
  OK(kiln_graph_set_results(g, &chosen, 1));
  const float xs[2] = {1, 2}, ys[2] = {10, 20}, yes = 1, no = -1;
  const float sums[2] = {11, 22}, negatives[2] = {-1, -2};
  for (int d = 0; d < 2; ++d) {
    const float *with[3] = {xs, ys, &yes}, *without[3] = {xs, ys, &no};
    const float *first[1] = {sums}, *second[1] = {negatives};
    run(g, device_names[d], with, sizes, 3, first, (const size_t[]){2}, 1);
    run(g, device_names[d], without, sizes, 3, second, (const size_t[]){2}, 1);
  }
  kiln_graph_release(g);
  kiln_graph_release(sum);
  kiln_graph_release(negated);
}

/* Branch i of four adds 10 * i; numbers without a branch take the last one. */
static void cases(void) {
  const kiln_graph* regions[4];
  for (int i = 0; i < 4; ++i) {
    kiln_graph* region = make_graph(context, "add");
    kiln_value x = f32_parameter(region, "x", 2);
    kiln_value more = kiln_op_scalar(region, KILN_F32, 10 * i);
    kiln_value sum = kiln_op_add(region, x, more);
    OK(kiln_graph_set_results(region, &sum, 1));
    regions[i] = region;
  }
  kiln_graph* g = make_graph(context, "case");
  int64_t sizes[2] = {2, 1};
  kiln_value x = f32_parameter(g, "x", 2), operands[4] = {x, x, x, x};
  kiln_value number = kiln_op_reshape(g, f32_parameter(g, "number", 1), NULL, 0);
  kiln_value index = kiln_op_convert(g, number, KILN_S32);
  kiln_value chosen = kiln_op_conditional(g, index, operands, 4, regions, 4);
  OK(kiln_graph_status(g));
  OK(kiln_graph_set_results(g, &chosen, 1));
  for (int i = -2; i < 6; ++i) {
    const float xs[2] = {1, 2}, wanted = (float)i, *arguments[2] = {xs, &wanted};
    float more = 10 * (float)(i < 0 || i > 3 ? 3 : i);
    const float sums[2] = {1 + more, 2 + more}, *expected[1] = {sums};
    for (int d = 0; d < 2; ++d) {
      run(g, device_names[d], arguments, sizes, 2, expected, (const size_t[]){2}, 1);
    }
  }
  kiln_graph_release(g);
  for (int i = 0; i < 4; ++i) kiln_graph_release((kiln_graph*)regions[i]);
}

/* A state that is a tuple of one tuple, whose regions take and give that one. */
static void nested_state(void) {
  kiln_graph* g = make_graph(context, "nested");
  int64_t two = 2;
  kiln_value parts[2] = {kiln_op_scalar(g, KILN_S32, 0), f32_parameter(g, "x", two)};
  kiln_value pair = kiln_op_tuple(g, parts, 2), state = kiln_op_tuple(g, &pair, 1);
  kiln_graph* condition = make_graph(context, "condition");
  kiln_value p = kiln_op_parameter_like(condition, g, pair, "pair", 4);
  kiln_value more = kiln_op_compare(condition, kiln_op_get_tuple_element(condition, p, 0),
                                    kiln_op_scalar(condition, KILN_S32, 3), KILN_LT);
  OK(kiln_graph_set_results(condition, &more, 1));
  kiln_graph* body = make_graph(context, "body");
  p = kiln_op_parameter_like(body, g, pair, "pair", 4);
  kiln_value i = kiln_op_get_tuple_element(body, p, 0), x = kiln_op_get_tuple_element(body, p, 1);
  kiln_value next[2] = {kiln_op_add(body, i, kiln_op_scalar(body, KILN_S32, 1)),
                        kiln_op_add(body, x, x)};
  kiln_value both = kiln_op_tuple(body, next, 2);
  OK(kiln_graph_set_results(body, &both, 1));
  kiln_value loop = kiln_op_while(g, state, condition, body);
  OK(kiln_graph_status(g));
  kiln_value result = kiln_op_get_tuple_element(g, kiln_op_get_tuple_element(g, loop, 0), 1);
  OK(kiln_graph_set_results(g, &result, 1));
  const float in[2] = {1, -3}, out[2] = {8, -24}, *arguments[1] = {in}, *expected[1] = {out};
  for (int d = 0; d < 2; ++d) {
    run(g, device_names[d], arguments, &two, 1, expected, (const size_t[]){2}, 1);
  }
  kiln_graph_release(condition);
  kiln_graph_release(body);
  kiln_graph_release(g);
}

/* Cumulative sums, and sums of pairs. */
static void windows(void) {
  kiln_graph* sum = make_graph(context, "sum");
  kiln_value a = scalar_parameter(sum, KILN_F32, "a"), b = scalar_parameter(sum, KILN_F32, "b");
  kiln_value r = kiln_op_add(sum, a, b);
  OK(kiln_graph_set_results(sum, &r, 1));
  kiln_graph* g = make_graph(context, "windows");
  int64_t size = 5, before = 4, two = 2;
  kiln_value x = f32_parameter(g, "x", size), zero = kiln_op_scalar(g, KILN_F32, 0);
  kiln_value both[2] = {
      kiln_op_reduce_window(g, &x, 1, &zero, 1, &size, NULL, NULL, NULL, &before, NULL, 1, sum),
      kiln_op_reduce_window(g, &x, 1, &zero, 1, &two, &two, NULL, NULL, NULL, NULL, 1, sum),
  };
  OK(kiln_graph_status(g));
  OK(kiln_graph_set_results(g, both, 2));
  const float in[5] = {1, 2, 3, 4, 5}, *arguments[1] = {in};
  const float sums[5] = {1, 3, 6, 10, 15}, pairs[2] = {3, 7}, *expected[2] = {sums, pairs};
  for (int d = 0; d < 2; ++d) {
    run(g, device_names[d], arguments, &size, 1, expected, (const size_t[]){5, 2}, 2);
  }
  CHECK(!kiln_op_reduce_window(g, &x, 1, &zero, 1, NULL, NULL, NULL, NULL, NULL, NULL, 1, sum));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "window_dimensions is NULL", g);
  kiln_graph_release(sum);
}

static void reducers(void) {
  static const struct {
    kiln_reducer reducer;
    float of_values, of_nothing;
  } cases[] = {{KILN_REDUCER_SUM, 6, 0},
               {KILN_REDUCER_PRODUCT, -24, 1},
               {KILN_REDUCER_MAX, 4, -1.0f / 0.0f},
               {KILN_REDUCER_MIN, -3, 1.0f / 0.0f}};
  const float values[4] = {2, 4, -3, 3}, *arguments[1] = {values};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (int64_t size = 0; size <= 3; size += 3) {
      kiln_graph* g = make_graph(context, "fold");
      int64_t axis = 0;
      kiln_value r = kiln_op_reduce_by(g, f32_parameter(g, "x", size), &axis, 1, cases[i].reducer);
      OK(kiln_graph_set_results(g, &r, 1));
      float whole = size ? cases[i].of_values : cases[i].of_nothing;
      if (size && cases[i].reducer == KILN_REDUCER_SUM) whole = 3;
      const float* expected[1] = {&whole};
      for (int d = 0; d < 2; ++d) {
        run(g, device_names[d], arguments, &size, 1, expected, (const size_t[]){1}, 1);
      }
      kiln_graph_release(g);
    }
  }
}

/* One graph for several sizes. */
static void symbols(void) {
  kiln_graph* g = make_graph(context, "mean");
  int64_t n = kiln_graph_symbol(g, "N", 1), axis = 0;
  kiln_value x = kiln_op_parameter(g, KILN_F32, &n, 1, "x", 1);
  kiln_value ones = kiln_op_broadcast_like(g, kiln_op_scalar(g, KILN_F32, 1), x, NULL, 0);
  kiln_value both[2] = {kiln_op_reduce_by(g, x, &axis, 1, KILN_REDUCER_SUM),
                        kiln_op_reduce_by(g, ones, &axis, 1, KILN_REDUCER_SUM)};
  kiln_value mean = kiln_op_divide(g, both[0], both[1]);
  OK(kiln_graph_set_results(g, &mean, 1));
  const float values[7] = {7, 1, 4, 0, 3, 9, 4};
  for (int64_t size = 1; size <= 7; size += 2) {
    kiln_symbol_size symbol = {"N", 1, size};
    kiln_compile_options options;
    kiln_compile_options_init(&options, sizeof options);
    options.symbols = &symbol;
    options.symbol_count = 1;
    kiln_executable* e = NULL;
    OK(kiln_graph_compile(g, &options, &e));
    kiln_buffer* argument = f32_buffer(kiln_context_device(context, 0), values, size);
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(e, NULL, &argument, 1, &result, 1));
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += values[i];
    float expected = sum / (float)size;
    expect_f32(result, &expected, 1);
    kiln_buffer_release(argument);
    kiln_buffer_release(result);
    kiln_executable_release(e);
  }
  /* Sessions take the size from what is fed. */
  kiln_session* session = NULL;
  OK(kiln_session_create(g, NULL, &session));
  kiln_value fed = kiln_graph_parameter(g, 0), fetched = kiln_graph_result(g);
  for (int64_t size = 1; size <= 3; ++size) {
    kiln_buffer* argument = f32_buffer(kiln_context_device(context, 0), values, size);
    kiln_buffer* result = NULL;
    OK(kiln_session_run(session, NULL, &fed, &argument, 1, &fetched, &result, 1, NULL, 0));
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += values[i];
    const float expected = sum / (float)size;
    expect_f32(result, &expected, 1);
    kiln_buffer_release(argument);
    kiln_buffer_release(result);
  }
  kiln_session_release(session);
  kiln_graph_release(g);
}

/* No result at all, and one value twice. */
static void results(void) {
  kiln_graph* g = make_graph(context, "odd");
  int64_t two = 2;
  kiln_value x = f32_parameter(g, "x", two), twice[2] = {x, x};
  const float values[2] = {1, 2}, *arguments[1] = {values}, *expected[2] = {values, values};
  OK(kiln_graph_set_results(g, NULL, 0));
  for (int d = 0; d < 2; ++d) run(g, device_names[d], arguments, &two, 1, NULL, NULL, 0);
  OK(kiln_graph_set_results(g, twice, 2));
  for (int d = 0; d < 2; ++d) {
    run(g, device_names[d], arguments, &two, 1, expected, (const size_t[]){2, 2}, 2);
  }
  kiln_graph_release(g);
}

int main(void) {
  context = make_context(2);
  argmax();
  loops();
  single_state();
  branches();
  cases();
  nested_state();
  windows();
  reducers();
  symbols();
  results();
  kiln_context_release(context);
  return test_result();
}
