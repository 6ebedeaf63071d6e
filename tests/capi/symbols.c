/* Sizes of symbols: their numbers, which arithmetic makes no sizes of; what inference finds of
 * them; and compiling with numbers. */
#include <stdint.h>

#include "testing.h"

static kiln_context* context;

static int64_t symbol(kiln_graph* g, const char* name) {
  return kiln_graph_symbol(g, name, strlen(name));
}

static void expect_text(kiln_graph* g, int64_t size, const char* expected) {
  kiln_text* text = NULL;
  if (!OK(kiln_graph_symbol_text(g, size, &text))) return;
  CHECK(strcmp(kiln_text_data(text, NULL), expected) == 0);
  kiln_text_release(text);
}

static void numbers(void) {
  kiln_graph* g = make_graph(context, "numbers");
  const int64_t n = symbol(g, "n"), m = symbol(g, "m");
  CHECK(n < INT64_MIN / 2 && m < INT64_MIN / 2 && n != m);
  CHECK(symbol(g, "n") == n);
  const int64_t odd = kiln_graph_symbol_affine(g, n, 2, 1);
  expect_text(g, odd, "2*n+1");
  expect_text(g, kiln_graph_symbol_affine(g, odd, 3, -1), "6*n+2");
  expect_text(g, kiln_graph_symbol_affine(g, n, -1, 8), "-n+8");
  expect_text(g, kiln_graph_symbol_sum(g, n, m), "m+n");
  expect_text(g, kiln_graph_symbol_product(g, odd, m), "2*m*n+m");
  expect_text(g, 7, "7");
  CHECK(kiln_graph_symbol_affine(g, n, 1, 0) == n);
  CHECK(kiln_graph_symbol_affine(g, n, 0, 5) == 5);
  CHECK(kiln_graph_symbol_sum(g, n, n) == kiln_graph_symbol_affine(g, n, 2, 0));
  CHECK(kiln_graph_symbol_sum(g, 3, 4) == 7);
  OK(kiln_graph_status(g));
  kiln_text* text = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "neither a size nor a symbol",
        kiln_graph_symbol_text(g, n + 1, &text));
  kiln_graph_release(g);
}

/* The error that a parameter of the size is, on a graph with symbols n and m. */
static void refuse(int64_t (*size)(int64_t n, int64_t m)) {
  kiln_graph* g = make_graph(context, "refuse");
  const int64_t n = symbol(g, "n"), m = symbol(g, "m"), dim = size(n, m);
  CHECK(kiln_op_parameter(g, KILN_F32, &dim, 1, "x", 1) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "parameter: dims[0]", kiln_graph_status(g));
  FAILS(KILN_INVALID_ARGUMENT, "kiln_graph_symbol_affine()", kiln_graph_status(g));
  kiln_graph_release(g);
}

/* As a processor computes them. */
static int64_t wrap(uint64_t value) { return (int64_t)value; }
static int64_t twice(int64_t n, int64_t m) { return wrap(2 * (uint64_t)n + 0 * (uint64_t)m); }
static int64_t thrice(int64_t n, int64_t m) { return wrap(3 * (uint64_t)n + 0 * (uint64_t)m); }
static int64_t eight(int64_t n, int64_t m) { return wrap(8 * (uint64_t)m + 0 * (uint64_t)n); }
static int64_t sum(int64_t n, int64_t m) { return wrap((uint64_t)n + (uint64_t)m); }
static int64_t difference(int64_t n, int64_t m) { return wrap((uint64_t)n - (uint64_t)m); }
static int64_t other_difference(int64_t n, int64_t m) { return wrap((uint64_t)m - (uint64_t)n); }
static int64_t more(int64_t n, int64_t m) { return wrap((uint64_t)n + 1 + 0 * (uint64_t)m); }
static int64_t less(int64_t n, int64_t m) { return wrap((uint64_t)m - 1 + 0 * (uint64_t)n); }
static int64_t negative(int64_t n, int64_t m) { return wrap(0 - (uint64_t)n + 0 * (uint64_t)m); }
static int64_t half(int64_t n, int64_t m) { return n / 2 + 0 * m; }
static int64_t product(int64_t n, int64_t m) { return wrap((uint64_t)n * (uint64_t)m); }

static void arithmetic(void) {
  int64_t (*const all[])(int64_t, int64_t) = {
      twice, thrice, eight, sum, difference, other_difference, more, less, negative, half, product};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) refuse(all[i]);
  /* Of many symbols, no sum, difference or small multiple of any is a size. */
  kiln_graph* g = make_graph(context, "many");
  enum { kCount = 300 };
  static int64_t n[kCount];
  for (int i = 0; i < kCount; ++i) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    n[i] = symbol(g, name);
  }
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < kCount; ++j) {
      kiln_text* text = NULL;
      kiln_error* e = kiln_graph_symbol_text(g, sum(n[i], n[j]), &text);
      CHECK(e != NULL);
      kiln_error_release(e);
      e = i == j ? NULL : kiln_graph_symbol_text(g, difference(n[i], n[j]), &text);
      CHECK(e != NULL || i == j);
      kiln_error_release(e);
      e = kiln_graph_symbol_text(g, wrap((uint64_t)n[i] * (uint64_t)(j + 2)), &text);
      CHECK(e != NULL);
      kiln_error_release(e);
    }
  }
  kiln_graph_release(g);
  /* What is no symbol's is no size in any graph, and large sizes are without symbols. */
  g = make_graph(context, "plain");
  const int64_t large[2] = {0, INT64_C(1) << 50}, minus = -1;
  CHECK(kiln_op_parameter(g, KILN_PRED, large, 2, "x", 1) != 0);
  OK(kiln_graph_status(g));
  CHECK(kiln_op_parameter(g, KILN_F32, &minus, 1, "y", 1) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "dims[0] is -1", kiln_graph_status(g));
  kiln_graph_release(g);
  /* Mistakes of the functions themselves. */
  g = make_graph(context, "mistakes");
  CHECK(kiln_graph_symbol_affine(g, symbol(g, "n") + 1, 2, 0) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "kiln_graph_symbol_affine: ", kiln_graph_status(g));
  CHECK(symbol(g, "m") == 0);
  CHECK(kiln_graph_symbol_sum(NULL, 1, 2) == 0 && kiln_graph_symbol_affine(NULL, 1, 2, 3) == 0);
  CHECK(kiln_graph_symbol_product(NULL, 1, 2) == 0);
  kiln_graph_release(g);
  g = make_graph(context, "negative");
  CHECK(kiln_graph_symbol_affine(g, symbol(g, "n"), 0, -3) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "must not be negative", kiln_graph_status(g));
  kiln_graph_release(g);
}

static void expect_dims(kiln_graph* g, kiln_value value, const int64_t* dims, size_t rank) {
  kiln_shape shape = KILN_SHAPE_INIT;
  if (!OK(kiln_graph_value_shape(g, value, &shape))) return;
  CHECK(shape.rank == rank);
  for (size_t i = 0; i < rank && i < shape.rank; ++i) CHECK(shape.dims[i] == dims[i]);
  CHECK(shape.byte_size == -1);
}

/* What ops make of sizes has the numbers that the functions give, and computes. */
static void computed(void) {
  kiln_graph* g = make_graph(context, "computed");
  const int64_t n = symbol(g, "n"), m = symbol(g, "m"), axis = 0, one = 1, zero = 0;
  const int64_t odd = kiln_graph_symbol_affine(g, n, 2, 1), both = kiln_graph_symbol_sum(g, n, m);
  kiln_value x = kiln_op_parameter(g, KILN_F32, &odd, 1, "x", 1);
  kiln_value y = kiln_op_parameter(g, KILN_F32, &m, 1, "y", 1);
  expect_dims(g, x, &odd, 1);
  kiln_value head = kiln_op_slice(g, x, &zero, &n, &one, 1);
  expect_dims(g, head, &n, 1);
  kiln_value values[2] = {head, y};
  kiln_value joined = kiln_op_concatenate(g, values, 2, &axis, 1);
  expect_dims(g, joined, &both, 1);
  kiln_value padded = kiln_op_pad(g, joined, kiln_op_scalar(g, KILN_F32, 9), &one, &n, &zero, 1);
  const int64_t padded_size = kiln_graph_symbol_affine(g, both, 1, 1),
                all = kiln_graph_symbol_sum(g, padded_size, n);
  expect_dims(g, padded, &all, 1);
  const int64_t table_dims[2] = {2, odd}, flat = kiln_graph_symbol_affine(g, odd, 2, 0);
  kiln_value table = kiln_op_broadcast(g, x, &one, 1, table_dims, 2);
  kiln_value row = kiln_op_reshape(g, table, &flat, 1);
  expect_dims(g, row, &flat, 1);
  kiln_value start = kiln_op_scalar(g, KILN_S32, 1);
  kiln_value part = kiln_op_dynamic_slice(g, row, &start, 1, &odd, 1);
  expect_dims(g, part, &odd, 1);
  kiln_value results[2] = {padded, part};
  OK(kiln_graph_set_results(g, results, 2));
  OK(kiln_graph_status(g));

  kiln_symbol_size sizes[3] = {{"n", 1, 2}, {"m", 1, 3}, {"k", 1, 4}};
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.symbols = sizes;
  options.symbol_count = 3;
  kiln_executable* e = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "the graph 'computed' has no symbol 'k'; there are m, n",
        kiln_graph_compile(g, &options, &e));
  options.symbol_count = 1;
  FAILS(KILN_INVALID_ARGUMENT, "symbol m has no size", kiln_graph_compile(g, &options, &e));
  options.symbol_count = 2;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_device* device = kiln_context_device(context, 0);
  const float xs[5] = {1, 2, 3, 4, 5}, ys[3] = {6, 7, 8};
  kiln_buffer* arguments[2] = {f32_buffer(device, xs, 5), f32_buffer(device, ys, 3)};
  kiln_buffer* got[2] = {NULL, NULL};
  OK(kiln_executable_run(e, NULL, arguments, 2, got, 2));
  const float expected[8] = {9, 1, 2, 6, 7, 8, 9, 9}, expected_part[5] = {2, 3, 4, 5, 1};
  expect_f32(got[0], expected, 8);
  expect_f32(got[1], expected_part, 5);
  for (int i = 0; i < 2; ++i) {
    kiln_buffer_release(arguments[i]);
    kiln_buffer_release(got[i]);
  }
  kiln_executable_release(e);
  kiln_graph_release(g);
}

/* What a size is wrong for is named with the op; HLO text has the sizes. */
static void mistakes(void) {
  kiln_graph* g = make_graph(context, "wrong");
  const int64_t n = symbol(g, "n"), zero = 0, one = 1, beyond = 2 * (n / 2) + 1;
  kiln_value x = kiln_op_parameter(g, KILN_F32, &n, 1, "x", 1);
  CHECK(kiln_op_slice(g, x, &zero, &beyond, &one, 1) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "slice: slice: ", kiln_graph_status(g));
  FAILS(KILN_INVALID_ARGUMENT, "kiln_graph_symbol_affine()", kiln_graph_status(g));
  kiln_graph_release(g);

  /* Where no size of symbols can be. */
  g = make_graph(context, "k");
  const int64_t some = symbol(g, "n");
  kiln_op_topk(g, f32_parameter(g, "x", 4), some, 1, 0);
  BUILD_FAILS(KILN_UNIMPLEMENTED, "topk: k has n; sizes of symbols are not implemented there", g);
  g = make_graph(context, "stride");
  const int64_t m = symbol(g, "m");
  kiln_op_slice(g, f32_parameter(g, "x", m), &zero, &m, &m, 1);
  BUILD_FAILS(KILN_UNIMPLEMENTED, "slice: slice has m; ", g);

  g = make_graph(context, "printed");
  const int64_t odd = kiln_graph_symbol_affine(g, symbol(g, "n"), 2, 1);
  x = kiln_op_parameter(g, KILN_F32, &odd, 1, "x", 1);
  OK(kiln_graph_set_results(g, &x, 1));
  kiln_text* text = NULL;
  OK(kiln_graph_to_hlo_text(g, &text));
  size_t length = 0;
  const char* hlo = kiln_text_data(text, &length);
  CHECK(strstr(hlo, "f32[2*n+1]{0} parameter(0)") != NULL);
  kiln_graph* again = NULL;
  if (OK(kiln_graph_from_hlo_text(context, hlo, length, &again))) {
    const int64_t same = kiln_graph_symbol_affine(again, symbol(again, "n"), 2, 1);
    expect_dims(again, kiln_graph_parameter(again, 0), &same, 1);
    kiln_graph_release(again);
  }
  kiln_text_release(text);
  kiln_graph_release(g);
}

int main(void) {
  context = make_context(1);
  numbers();
  arithmetic();
  computed();
  mistakes();
  kiln_context_release(context);
  return test_result();
}
