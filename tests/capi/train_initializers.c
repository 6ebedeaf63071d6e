/* Initial values: the moments of their distributions, orthogonal matrices, the same bits on all
 * devices, and what they depend on; and mistakes. */
#include <math.h>

#include "testing.h"

enum { kRows = 48, kColumns = 200, kElements = kRows * kColumns };
static const int64_t kDims[] = {kRows, kColumns};

static kiln_context* context;

static kiln_initializer_options options_of(kiln_initializer kind) {
  kiln_initializer_options o = KILN_INITIALIZER_OPTIONS_INIT;
  o.kind = kind;
  o.seed = 42;
  return o;
}

/* The array in double, on a device. */
static void values_of(const kiln_initializer_options* o, kiln_dtype type, const int64_t* dims,
                      size_t rank, const char* name, const char* device, double* values) {
  kiln_graph* g = make_graph(context, "initial");
  kiln_value made = kiln_train_initialize(g, o, type, dims, rank, name, strlen(name));
  size_t count = 1;
  for (size_t d = 0; d < rank; ++d) count *= (size_t)dims[d];
  size_t length = 0;
  const char* op_name = kiln_graph_value_op_name(g, made, &length);
  CHECK(op_name && strcmp(op_name, name) == 0);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_graph_value_shape(g, made, &shape));
  CHECK(shape.dtype == type && shape.rank == rank);
  kiln_executable* e =
      compile_result(g, kiln_op_convert(g, made, KILN_F64), find_device(context, device));
  kiln_buffer* result = NULL;
  if (e && OK(kiln_executable_run(e, NULL, NULL, 0, &result, 1))) {
    OK(kiln_buffer_copy_to_host(result, values, count * sizeof(double)));
  }
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

/* The deviation of so many numbers is within 5 of its own standard deviations, and so is the mean;
 * none is beyond `most`. */
static void expect_moments(kiln_initializer kind, kiln_dtype type, double scale, double deviation,
                           double kurtosis, double most) {
  static double values[kElements];
  kiln_initializer_options o = options_of(kind);
  o.scale = scale;
  values_of(&o, type, kDims, 2, "w", "CPU:0", values);
  double sum = 0, squares = 0, largest = 0;
  for (int i = 0; i < kElements; ++i) {
    sum += values[i];
    squares += values[i] * values[i];
    largest = fmax(largest, fabs(values[i]));
  }
  const double mean = sum / kElements, variance = squares / kElements;
  const double of_mean = deviation / sqrt(kElements);
  const double of_variance = deviation * deviation * sqrt((kurtosis - 1) / kElements);
  if (!(fabs(mean) <= 5 * of_mean) ||
      !(fabs(variance - deviation * deviation) <= 5 * of_variance) ||
      !(largest <= most * (1 + 1e-2)) || !(largest >= 0.9 * fmin(most, 3 * deviation))) {
    printf("kind %d of %s: mean %g, variance %g, largest %g; expected 0, %g, %g\n", (int)kind,
           kiln_dtype_name(type), mean, variance, largest, deviation * deviation, most);
    ++failed_checks;
  }
}

static void moments(kiln_dtype type) {
  const double truncated = 0.87962566103423978, of_truncated = 2.3655;
  expect_moments(KILN_INITIALIZER_UNIFORM, type, 0.5, 0.5 / sqrt(3.0), 1.8, 0.5);
  expect_moments(KILN_INITIALIZER_NORMAL, type, 2, 2, 3, 11);
  expect_moments(KILN_INITIALIZER_TRUNCATED_NORMAL, type, 0, truncated, of_truncated, 2);
  const double glorot = sqrt(2.0 / (kRows + kColumns)), he = sqrt(2.0 / kRows);
  expect_moments(KILN_INITIALIZER_GLOROT_UNIFORM, type, 0, glorot, 1.8, glorot * sqrt(3.0));
  expect_moments(KILN_INITIALIZER_GLOROT_NORMAL, type, 0, glorot, of_truncated,
                 2 * glorot / truncated);
  expect_moments(KILN_INITIALIZER_HE_UNIFORM, type, 0, he, 1.8, he * sqrt(3.0));
  expect_moments(KILN_INITIALIZER_HE_NORMAL, type, 3, 3 * he, of_truncated, 6 * he / truncated);
}

/* Fans of a convolution's weights, [3,3,in,out], and of PyTorch's order, [out,in,3,3]. */
static void fans(void) {
  enum { kCount = 3 * 3 * 16 * 32 };
  static double values[kCount];
  const int64_t last[] = {3, 3, 16, 32}, first[] = {32, 16, 3, 3};
  for (int order = 0; order < 2; ++order) {
    kiln_initializer_options o = options_of(KILN_INITIALIZER_HE_UNIFORM);
    if (order == 1) o.in_dimension = -3, o.out_dimension = -4;
    values_of(&o, KILN_F32, order == 0 ? last : first, 4, "w", "CPU:0", values);
    double largest = 0;
    for (int i = 0; i < kCount; ++i) largest = fmax(largest, fabs(values[i]));
    const double bound = sqrt(6.0 / (3 * 3 * 16));
    CHECK(largest <= bound * (1 + 1e-6) && largest > 0.99 * bound);
  }
}

/* Rows, or columns if these are fewer, are orthonormal; `out` is one side. */
static void orthogonal(const int64_t* dims, size_t rank, int64_t out_dimension, kiln_dtype type,
                       double bound) {
  static double values[kElements];
  kiln_initializer_options o = options_of(KILN_INITIALIZER_ORTHOGONAL);
  o.scale = 3;
  o.out_dimension = out_dimension;
  if (out_dimension == -2) o.in_dimension = -1;
  values_of(&o, type, dims, rank, "w", "CPU:0", values);
  const int64_t out = dims[(int64_t)rank + out_dimension];
  int64_t inner = 1, count = 1;
  for (size_t d = 0; d < rank; ++d) count *= dims[d];
  for (int64_t d = out_dimension + 1; d < 0; ++d) inner *= dims[(int64_t)rank + d];
  const int64_t others = count / out, sides = out < others ? out : others;
  double worst = 0;
  for (int64_t a = 0; a < sides; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (int64_t k = 0; k < (out < others ? others : out); ++k) {
        /* The matrix's element [out, others]. */
        double product = 1;
        for (int side = 0; side < 2; ++side) {
          const int64_t at = side ? b : a;
          const int64_t of_out = out < others ? at : k, of_others = out < others ? k : at;
          product *= values[of_others / inner * inner * out + of_out * inner + of_others % inner];
        }
        dot += product;
      }
      worst = fmax(worst, fabs(dot / 9 - (a == b)));
    }
  }
  if (worst > bound) {
    printf("an orthogonal matrix of %s is off by %g\n", kiln_dtype_name(type), worst);
    ++failed_checks;
  }
}

/* Seeds and names make other numbers; devices and types of the same computation do not. */
static void dependence(void) {
  static double a[kElements], b[kElements], c[kElements], d[kElements], e[kElements];
  kiln_initializer_options o = options_of(KILN_INITIALIZER_UNIFORM);
  values_of(&o, KILN_F32, kDims, 2, "w", "CPU:0", a);
  values_of(&o, KILN_F32, kDims, 2, "w", "REFERENCE:0", b);
  values_of(&o, KILN_F32, kDims, 2, "v", "CPU:0", c);
  values_of(&o, KILN_BF16, kDims, 2, "w", "CPU:0", d);
  o.seed = 43;
  values_of(&o, KILN_F32, kDims, 2, "w", "CPU:0", e);
  int other_name = 0, other_seed = 0;
  double by_name = 0, by_seed = 0;
  for (int i = 0; i < kElements; ++i) {
    CHECK(a[i] == b[i] && fabs(a[i] - d[i]) <= fabs(a[i]) / 256);
    other_name += a[i] != c[i];
    other_seed += a[i] != e[i];
    by_name += 3 * a[i] * c[i] / kElements;
    by_seed += 3 * a[i] * e[i] / kElements;
  }
  CHECK(other_name > kElements - 9 && other_seed > kElements - 9);
  /* Correlations. */
  CHECK(fabs(by_name) < 0.06 && fabs(by_seed) < 0.06);
}

static void constants(void) {
  double values[6];
  const int64_t dims[] = {2, 3};
  values_of(NULL, KILN_F16, dims, 2, "zeros", "CPU:0", values);
  CHECK(values[0] == 0 && values[5] == 0);
  kiln_initializer_options o = options_of(KILN_INITIALIZER_ONES);
  o.scale = -0.5;
  values_of(&o, KILN_BF16, dims, 2, "", "REFERENCE:0", values);
  CHECK(values[0] == -0.5 && values[5] == -0.5);
}

static void mistakes(void) {
  kiln_graph* g = make_graph(context, "m");
  kiln_initializer_options o = options_of(KILN_INITIALIZER_HE_NORMAL);
  CHECK(kiln_train_initialize(g, &o, KILN_F32, kDims, 1, "b", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "1 dimensions; expected 2 or more", g);
  g = make_graph(context, "m");
  CHECK(kiln_train_initialize(g, &o, KILN_S32, kDims, 2, "b", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dtype is s32; expected a float type", g);
  g = make_graph(context, "m");
  o.out_dimension = -3;
  CHECK(kiln_train_initialize(g, &o, KILN_F32, kDims, 2, "b", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dimension -3 is none", g);
  g = make_graph(context, "m");
  o = options_of(11);
  CHECK(kiln_train_initialize(g, &o, KILN_F32, kDims, 2, "b", 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "kind 11 is none", g);
}

int main(void) {
  context = make_context(2);
  moments(KILN_F32);
  moments(KILN_F64);
  moments(KILN_BF16);
  fans();
  const int64_t tall[] = {40, 7}, wide[] = {7, 40}, window[] = {3, 3, 4, 10}, few[] = {2, 2, 3, 30};
  const kiln_dtype types[] = {KILN_F32, KILN_F64};
  for (int i = 0; i < 2; ++i) {
    const double bound = i == 0 ? 3e-6 : 1e-14;
    orthogonal(tall, 2, -1, types[i], bound);
    orthogonal(wide, 2, -1, types[i], bound);
    orthogonal(wide, 2, -2, types[i], bound);
    orthogonal(window, 4, -1, types[i], bound);
    orthogonal(few, 4, -1, types[i], bound);
    orthogonal(few, 4, -2, types[i], bound);
  }
  dependence();
  constants();
  mistakes();
  kiln_context_release(context);
  return test_result();
}
