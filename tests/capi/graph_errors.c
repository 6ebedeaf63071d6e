/* Mistakes while a graph is built: each is an error that names the op and the shapes, and the first
 * one stays. */
#include <math.h>
#include <stdint.h>

#include "testing.h"

static kiln_context* context;

static kiln_graph* graph(void) { return make_graph(context, "wrong"); }

static void shapes_and_types(void) {
  kiln_graph* g = graph();
  CHECK(kiln_op_add(g, f32_parameter(g, "a", 2), f32_parameter(g, "b", 3)) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "f32[2]", kiln_graph_status(g));
  FAILS(KILN_INVALID_ARGUMENT, "f32[3]", kiln_graph_status(g));
  /* The graph and the operands have names. */
  FAILS(KILN_INVALID_ARGUMENT, "graph 'wrong': add", kiln_graph_status(g));
  FAILS(KILN_INVALID_ARGUMENT, "(lhs is 'a', rhs is 'b')", kiln_graph_status(g));
  /* Nothing after it counts, and everything that takes the graph tells it. */
  CHECK(f32_parameter(g, "c", 4) == 0);
  CHECK(kiln_op_add(g, 0, 0) == 0);
  kiln_value none = 0;
  kiln_text* text = NULL;
  kiln_executable* executable = NULL;
  kiln_session* session = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "add", kiln_graph_set_results(g, &none, 1));
  FAILS(KILN_INVALID_ARGUMENT, "add", kiln_graph_compile(g, NULL, &executable));
  FAILS(KILN_INVALID_ARGUMENT, "add", kiln_graph_to_hlo_text(g, &text));
  FAILS(KILN_INVALID_ARGUMENT, "add", kiln_graph_to_dot(g, &text));
  FAILS(KILN_INVALID_ARGUMENT, "add", kiln_session_create(g, NULL, &session));
  CHECK(!text && !executable && !session);
  /* What is asked of the value that it did not make is told the mistake. */
  kiln_shape shape = KILN_SHAPE_INIT;
  const char* mistake = "graph 'wrong': add: operands have shapes f32[2] and f32[3]";
  FAILS(KILN_INVALID_ARGUMENT, mistake, kiln_graph_value_shape(g, 0, &shape));
  FAILS(KILN_INVALID_ARGUMENT, mistake, kiln_graph_set_op_name(g, 0, "sum", 3));
  FAILS(KILN_INVALID_ARGUMENT, mistake, kiln_graph_find_value(g, "sum", 3, &none));
  kiln_graph* user = make_graph(context, "user");
  CHECK(kiln_op_parameter_like(user, g, 0, "p", 1) == 0);
  FAILS(KILN_INVALID_ARGUMENT, mistake, kiln_graph_status(user));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "graph 'user': parameter: like", user);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "add", g);

  g = graph();
  int64_t two = 2;
  kiln_value s = kiln_op_parameter(g, KILN_S32, &two, 1, "s", 1);
  CHECK(kiln_op_multiply(g, f32_parameter(g, "a", 2), s) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "s32[2]", g);

  g = graph();
  s = kiln_op_parameter(g, KILN_S32, &two, 1, "s", 1);
  CHECK(kiln_op_tanh(g, s) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "tanh", g);

  /* A scalar goes with any shape, but not with any type. */
  g = graph();
  CHECK(kiln_op_add(g, f32_parameter(g, "a", 2), kiln_op_scalar(g, KILN_F64, 1)) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f64[]", g);

  g = graph();
  int64_t lhs_dims[] = {2, 3}, rhs_dims[] = {4, 5}, one = 1, zero = 0;
  kiln_value lhs = kiln_op_parameter(g, KILN_F32, lhs_dims, 2, "lhs", 3);
  kiln_value rhs = kiln_op_parameter(g, KILN_F32, rhs_dims, 2, "rhs", 3);
  CHECK(kiln_op_dot(g, lhs, rhs, NULL, 0, NULL, 0, &one, 1, &zero, 1, 0) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "f32[2,3]", kiln_graph_status(g));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[4,5]", g);
}

/* Products of vectors, matrices and batches: the shapes that come out, and what does not fit. */
static void products(void) {
  static const struct {
    size_t lhs_rank, rhs_rank, rank;
    int64_t lhs[4], rhs[4], dims[4];
  } cases[] = {
      {1, 1, 0, {3}, {3}, {0}},
      {2, 1, 1, {2, 3}, {3}, {2}},
      {1, 2, 1, {3}, {3, 4}, {4}},
      {2, 2, 2, {2, 3}, {3, 4}, {2, 4}},
      {4, 4, 4, {5, 6, 2, 3}, {5, 6, 3, 4}, {5, 6, 2, 4}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    kiln_graph* g = graph();
    kiln_value lhs = kiln_op_parameter(g, KILN_F32, cases[i].lhs, cases[i].lhs_rank, "l", 1);
    kiln_value rhs = kiln_op_parameter(g, KILN_F32, cases[i].rhs, cases[i].rhs_rank, "r", 1);
    kiln_value product = kiln_op_matmul(g, lhs, rhs);
    OK(kiln_graph_status(g));
    kiln_shape shape = KILN_SHAPE_INIT;
    OK(kiln_graph_value_shape(g, product, &shape));
    CHECK(shape.rank == cases[i].rank);
    for (size_t d = 0; d < cases[i].rank; ++d) CHECK(shape.dims[d] == cases[i].dims[d]);
    kiln_graph_release(g);
  }
  int64_t cube[] = {2, 3, 4}, other[] = {7, 4, 5};
  kiln_graph* g = graph();
  CHECK(kiln_op_matmul(g, f32_parameter(g, "x", 3), kiln_op_scalar(g, KILN_F32, 1)) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "lhs is 'x'", kiln_graph_status(g));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "matmul of f32[3] and f32[]", g);
  g = graph();
  kiln_value x = kiln_op_parameter(g, KILN_F32, cube, 3, "x", 1);
  CHECK(kiln_op_matmul(g, x, f32_parameter(g, "y", 4)) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[2,3,4]", g);
  g = graph();
  x = kiln_op_parameter(g, KILN_F32, cube, 3, "x", 1);
  CHECK(kiln_op_matmul(g, x, kiln_op_parameter(g, KILN_F32, other, 3, "y", 1)) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[7,4,5]", g);
  g = graph();
  CHECK(kiln_op_matmul(g, f32_parameter(g, "x", 3), 0) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "(operand 0 is 'x')", kiln_graph_status(g));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "operand rhs: the value is 0, which is none", g);
}

static void axes(void) {
  int64_t dims[] = {2, 3}, axis = 2, twice[] = {0, 0}, negative = -1;
  kiln_graph* g = graph();
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  CHECK(kiln_op_reduce_by(g, x, &axis, 1, KILN_REDUCER_SUM) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "reduce", g);

  g = graph();
  x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  CHECK(kiln_op_transpose(g, x, twice, 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "transpose", g);

  g = graph();
  x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  CHECK(kiln_op_reduce_by(g, x, &negative, 1, KILN_REDUCER_MAX) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "reduce", g);

  g = graph();
  CHECK(kiln_op_iota(g, 2, KILN_S32, dims, 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "iota", g);

  g = graph();
  x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  int64_t start[] = {0, 2}, limit[] = {2, 4};
  CHECK(kiln_op_slice(g, x, start, limit, NULL, 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[2,3]", g);

  g = graph();
  x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  int64_t seven = 7;
  CHECK(kiln_op_reshape(g, x, &seven, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[7]", g);

  g = graph();
  x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  CHECK(kiln_op_reduce_by(g, x, &axis, 1, 99) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "99 is not a reducer", g);

  g = graph();
  x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  int64_t first = 0;
  CHECK(kiln_op_reduce_by(g, x, &first, 1, KILN_REDUCER_AND) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "and", g);
}

/* Sizes that are none, and counts that overflow. */
static void sizes(void) {
  int64_t huge[] = {INT64_MAX, INT64_MAX}, bytes[] = {INT64_MAX}, negative[] = {-3};
  int64_t many[70] = {0};
  kiln_graph* g = graph();
  CHECK(kiln_op_parameter(g, KILN_F32, huge, 2, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "9223372036854775807", g);
  g = graph();
  CHECK(kiln_op_parameter(g, KILN_F64, bytes, 1, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "parameter", g);
  g = graph();
  CHECK(kiln_op_parameter(g, KILN_F32, negative, 1, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dims[0] is -3", g);
  g = graph();
  CHECK(kiln_op_parameter(g, KILN_F32, many, 70, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "rank 70", g);
  g = graph();
  CHECK(kiln_op_parameter(g, KILN_F32, many, SIZE_MAX, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "rank", g);
  g = graph();
  CHECK(kiln_op_broadcast(g, kiln_op_scalar(g, KILN_F32, 1), NULL, 0, huge, 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "broadcast", g);
  g = graph();
  kiln_value x = f32_parameter(g, "x", 4);
  int64_t low[] = {INT64_MAX}, high[] = {INT64_MAX};
  CHECK(kiln_op_pad(g, x, kiln_op_scalar(g, KILN_F32, 0), low, high, NULL, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "pad", g);
  g = graph();
  int64_t half[] = {INT64_MAX / 4};
  x = kiln_op_parameter(g, KILN_U8, half, 1, "x", 1);
  kiln_value five[] = {x, x, x, x, x};
  CHECK(x != 0);
  CHECK(kiln_op_concatenate(g, five, 5, low, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "concatenate", g);
}

static void values(void) {
  kiln_graph* g = graph();
  kiln_graph* other = graph();
  kiln_value foreign = f32_parameter(other, "x", 2);
  CHECK(kiln_op_negate(g, foreign) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "belongs to another graph", g);
  g = graph();
  CHECK(kiln_op_negate(g, 0) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "negate: operand operand: the value is 0", g);
  g = graph();
  kiln_value x = f32_parameter(g, "x", 2);
  CHECK(kiln_op_add(g, x, x + 1000) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "add: operand rhs", g);
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "result 0", kiln_graph_set_results(g, &foreign, 1));
  OK(kiln_graph_status(g)); /* what is no builder function changes nothing */
  FAILS(KILN_INVALID_ARGUMENT, "values is NULL", kiln_graph_set_results(g, NULL, 1));
  kiln_shape shape = KILN_SHAPE_INIT;
  FAILS(KILN_INVALID_ARGUMENT, "another graph", kiln_graph_value_shape(g, foreign, &shape));
  CHECK(kiln_graph_value_name(g, foreign, NULL) == NULL);
  FAILS(KILN_INVALID_ARGUMENT, "another graph", kiln_graph_set_op_name(g, foreign, "n", 1));
  kiln_value found = 17;
  FAILS(KILN_NOT_FOUND, "'nothing'", kiln_graph_find_value(g, "nothing", 7, &found));
  CHECK(found == 17);
  CHECK(kiln_graph_parameter(g, 0) == 0);
  CHECK(kiln_graph_result(g) == 0);
  kiln_executable* executable = NULL;
  FAILS(KILN_FAILED_PRECONDITION, "has no results", kiln_graph_compile(g, NULL, &executable));
  kiln_graph_release(g);
  kiln_graph_release(other);
  /* A graph that has gone gives its ids to nobody. */
  g = graph();
  f32_parameter(g, "x", 2);
  CHECK(kiln_op_negate(g, foreign) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "belongs to another graph", g);
}

static void nulls_and_enums(void) {
  int64_t two = 2;
  float data[2] = {1, 2};
  CHECK(kiln_op_parameter(NULL, KILN_F32, &two, 1, "x", 1) == 0);
  CHECK(kiln_op_add(NULL, 1, 2) == 0);
  CHECK(kiln_graph_parameter_count(NULL) == 0);
  CHECK(kiln_graph_symbol(NULL, "N", 1) == 0);
  FAILS(KILN_INVALID_ARGUMENT, "graph is NULL", kiln_graph_status(NULL));
  kiln_graph* g = graph();
  CHECK(kiln_op_parameter(g, KILN_F32, NULL, 1, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dims is NULL", g);
  g = graph();
  CHECK(kiln_op_parameter(g, KILN_F32, &two, 1, NULL, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "name is NULL", g);
  g = graph();
  CHECK(kiln_op_parameter(g, 77, &two, 1, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dtype 77", g);
  g = graph();
  CHECK(kiln_op_parameter(g, KILN_TUPLE, &two, 1, "x", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dtype 13", g);
  g = graph();
  CHECK(kiln_op_is_finite(g, kiln_op_parameter(g, KILN_C64, &two, 1, "x", 1)) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "c64[2]; the element type must be a float type", g);
  g = graph();
  CHECK(kiln_op_constant(g, KILN_F32, &two, 1, data, 4) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[2] takes 8", g);
  g = graph();
  CHECK(kiln_op_constant(g, KILN_F32, &two, 1, NULL, 8) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "data is NULL", g);
  g = graph();
  CHECK(kiln_op_constant(g, KILN_PRED, &two, 1, "\1\2", 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "pred", g);
  g = graph();
  CHECK(kiln_op_constant(g, KILN_S4, &two, 1, "\1\010", 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "an element of s4 has bits above its own", g);
  g = graph();
  CHECK(kiln_op_constant(g, KILN_F4E2M1FN, &two, 1, "\1\020", 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "an element of f4e2m1fn has bits above its own", g);
  g = graph();
  CHECK(kiln_op_convert(g, f32_parameter(g, "x", 2), 77) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "convert: dtype 77", g);
  g = graph();
  CHECK(kiln_op_convert(g, f32_parameter(g, "x", 2), 0) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "convert", g);
  g = graph();
  kiln_value x = f32_parameter(g, "x", 2);
  CHECK(kiln_op_compare(g, x, x, 6) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "compare: direction is 6", g);
  g = graph();
  CHECK(kiln_op_tuple(g, NULL, 3) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "tuple: operands is NULL", g);
  g = graph();
  CHECK(kiln_op_transpose(g, f32_parameter(g, "x", 2), NULL, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "transpose: dimensions is NULL", g);
  g = graph();
  CHECK(kiln_op_slice(g, f32_parameter(g, "x", 2), NULL, &two, NULL, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "start is NULL", g);
}

/* Numbers that a type does not have. */
static void scalars(void) {
  static const struct {
    kiln_dtype dtype;
    double value;
  } wrong[] = {{KILN_S32, 0.5},    {KILN_S32, 2147483648.0},
               {KILN_U8, -1},      {KILN_U8, 256},
               {KILN_PRED, 2},     {KILN_S64, 9223372036854775808.0},
               {KILN_S32, NAN},    {KILN_S64, INFINITY},
               {KILN_S64, -1e300}, {KILN_S4, 8},
               {KILN_U2, 4},       {KILN_S2, -3}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    kiln_graph* g = graph();
    CHECK(kiln_op_scalar(g, wrong[i].dtype, wrong[i].value) == 0);
    BUILD_FAILS(KILN_INVALID_ARGUMENT, "is not a value of", g);
  }
  kiln_graph* g = graph();
  CHECK(kiln_op_scalar(g, KILN_S64, -9223372036854775808.0) != 0);
  CHECK(kiln_op_scalar(g, KILN_S32, -2147483648.0) != 0);
  CHECK(kiln_op_scalar(g, KILN_U8, 255) != 0);
  CHECK(kiln_op_scalar(g, KILN_F32, 1e300) != 0); /* rounds to infinity */
  CHECK(kiln_op_scalar(g, KILN_F64, NAN) != 0);
  CHECK(kiln_op_scalar(g, KILN_S4, -8) != 0);
  CHECK(kiln_op_scalar(g, KILN_C64, 1.5) != 0);
  CHECK(kiln_op_scalar(g, KILN_F8E4M3FN, 1e9) != 0); /* NaN */
  OK(kiln_graph_status(g));
  kiln_graph_release(g);
}

static void regions(void) {
  kiln_graph* g = graph();
  kiln_value x = f32_parameter(g, "x", 4);
  kiln_value zero = kiln_op_scalar(g, KILN_F32, 0);
  int64_t axis = 0;
  CHECK(kiln_op_reduce(g, &x, 1, &zero, 1, &axis, 1, NULL) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "reduce: to_apply is NULL", g);

  g = graph();
  x = f32_parameter(g, "x", 4);
  zero = kiln_op_scalar(g, KILN_F32, 0);
  CHECK(kiln_op_reduce(g, &x, 1, &zero, 1, &axis, 1, g) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "cannot be a region of its own", g);

  kiln_graph* region = make_graph(context, "region");
  g = graph();
  x = f32_parameter(g, "x", 4);
  zero = kiln_op_scalar(g, KILN_F32, 0);
  CHECK(kiln_op_reduce(g, &x, 1, &zero, 1, &axis, 1, region) == 0);
  BUILD_FAILS(KILN_FAILED_PRECONDITION, "to_apply: the graph 'region' has no results", g);

  /* One operand too few. */
  kiln_value a = kiln_op_parameter(region, KILN_F32, NULL, 0, "a", 1);
  OK(kiln_graph_set_results(region, &a, 1));
  g = graph();
  x = f32_parameter(g, "x", 4);
  zero = kiln_op_scalar(g, KILN_F32, 0);
  CHECK(kiln_op_reduce(g, &x, 1, &zero, 1, &axis, 1, region) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "reduce", g);

  /* The region's own mistake is told. */
  kiln_op_add(region, a, 0);
  g = graph();
  x = f32_parameter(g, "x", 4);
  zero = kiln_op_scalar(g, KILN_F32, 0);
  CHECK(kiln_op_reduce(g, &x, 1, &zero, 1, &axis, 1, region) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "add: operand rhs", g);
  kiln_graph_release(region);

  /* A condition that gives no pred. */
  kiln_graph* same = make_graph(context, "same");
  a = kiln_op_parameter(same, KILN_F32, NULL, 0, "a", 1);
  OK(kiln_graph_set_results(same, &a, 1));
  g = graph();
  zero = kiln_op_scalar(g, KILN_F32, 0);
  CHECK(kiln_op_while(g, zero, same, same) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "while", g);
  kiln_graph_release(same);
}

static void symbols(void) {
  kiln_graph* g = graph();
  CHECK(kiln_graph_symbol(g, "1x", 2) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "1x", g);
  g = graph();
  CHECK(kiln_graph_symbol(g, "a_name_that_is_too_long", 23) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "too_long", g);
  g = graph();
  int64_t n = kiln_graph_symbol(g, "N", 1), m = kiln_graph_symbol(g, "M", 1);
  CHECK(n < 0 && m < 0 && n != m && kiln_graph_symbol(g, "N", 1) == n);
  kiln_value x = kiln_op_parameter(g, KILN_F32, &n, 1, "x", 1);
  kiln_value y = kiln_op_parameter(g, KILN_F32, &m, 1, "y", 1);
  CHECK(kiln_op_add(g, x, y) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "f32[N]", g);
}

static void hlo_text(void) {
  static const struct {
    const char *text, *message;
    kiln_code code;
  } wrong[] = {
      {"", "line 1, column 1", KILN_INVALID_ARGUMENT},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] neg(x)\n}", "line 4",
       KILN_UNIMPLEMENTED},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[3] negate(x)\n}",
       "line 4", KILN_INVALID_ARGUMENT},
      {"HloModule m\nENTRY e { ROOT y = f32[2] negate(z) }", "line 2, column",
       KILN_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    kiln_graph* g = NULL;
    FAILS(wrong[i].code, wrong[i].message,
          kiln_graph_from_hlo_text(context, wrong[i].text, strlen(wrong[i].text), &g));
    CHECK(g == NULL);
  }
  kiln_graph* g = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "text is NULL", kiln_graph_from_hlo_text(context, NULL, 3, &g));
}

static void count_warnings(void* user_data, kiln_log_level level, const char* message,
                           size_t length) {
  CHECK(strstr(message, "'left_out'") && strstr(message, "2 values") && length > 0);
  *(int*)user_data += level == KILN_LOG_WARNING;
}

/* Constants without elements have made-up ones, which one message tells of. */
static void left_out(void) {
  static const char text[] =
      "HloModule left_out\nENTRY e { a = f32[8] constant({...})\nb = f32[8] constant({...})\n"
      "ROOT c = f32[8] add(a, b) }";
  int warnings = 0;
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  options.gpu = KILN_GPU_OFF;
  options.log = count_warnings;
  options.log_user_data = &warnings;
  kiln_context* logging = NULL;
  kiln_graph* g = NULL;
  OK(kiln_context_create(&options, &logging));
  OK(kiln_graph_from_hlo_text(logging, text, sizeof text - 1, &g));
  CHECK(warnings == 1);
  kiln_graph_release(g);
  kiln_context_release(logging);
}

/* A compilation may take its graph: the program is that of a copy, and the graph is none any more.
 */
static void given_up(void) {
  static const char text[] =
      "HloModule given\nunused { u = f32[] parameter(0)\nROOT v = f32[] negate(u) }\n"
      "twice { x = f32[8] parameter(0)\nROOT y = f32[8] add(x, x) }\n"
      "ENTRY e { a = f32[8] parameter(0)\nROOT b = f32[8] call(a), to_apply=twice }";
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  kiln_text* saved[2] = {NULL, NULL};
  kiln_graph* g = NULL;
  OK(kiln_graph_from_hlo_text(context, text, sizeof text - 1, &g));
  kiln_executable* executable = NULL;
  kiln_value a = 0;
  OK(kiln_graph_find_value(g, "a", 1, &a));
  for (int takes = 0; takes < 2; ++takes) {
    options.takes_graph = takes;
    OK(kiln_graph_compile(g, &options, &executable));
    OK(kiln_executable_serialize(executable, &saved[takes]));
    kiln_executable_release(executable);
  }
  size_t lengths[2] = {0, 0};
  const char* bytes[2];
  for (int k = 0; k < 2; ++k) bytes[k] = kiln_text_data(saved[k], &lengths[k]);
  CHECK(lengths[0] == lengths[1] && memcmp(bytes[0], bytes[1], lengths[0]) == 0);
  for (int k = 0; k < 2; ++k) kiln_text_release(saved[k]);
  const char* mistake = "graph 'given': it was given up to be compiled";
  kiln_text* printed = NULL;
  kiln_shape shape = KILN_SHAPE_INIT;
  executable = NULL;
  FAILS(KILN_FAILED_PRECONDITION, mistake, kiln_graph_compile(g, NULL, &executable));
  FAILS(KILN_FAILED_PRECONDITION, mistake, kiln_graph_compile(g, &options, &executable));
  FAILS(KILN_FAILED_PRECONDITION, mistake, kiln_graph_to_hlo_text(g, &printed));
  FAILS(KILN_INVALID_ARGUMENT, "has no value", kiln_graph_value_shape(g, a, &shape));
  CHECK(kiln_op_add(g, a, a) == 0 && !executable && !printed);
  BUILD_FAILS(KILN_FAILED_PRECONDITION, mistake, g);
}

int main(void) {
  context = make_context(1);
  shapes_and_types();
  products();
  axes();
  sizes();
  values();
  nulls_and_enums();
  scalars();
  regions();
  symbols();
  hlo_text();
  left_out();
  given_up();
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  return test_result();
}
