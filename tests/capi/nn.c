/* The words of nn.h: values against plain loops in double, kernels that they become, symbols, and
 * mistakes. The Python tests try more shapes and types. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "testing.h"

static kiln_context* context;

static kiln_value matrix(kiln_graph* g, const char* name, int64_t rows, int64_t columns) {
  const int64_t dims[2] = {rows, columns};
  return kiln_op_parameter(g, KILN_F32, dims, 2, name, strlen(name));
}

/* Runs the graph of one result on every device, which must be near to `expected`; the kernels of
 * the CPU must be `kernels`, unless that is negative. The graph is given back. */
static void run(kiln_graph* g, kiln_value result, const float* const* arguments,
                const int64_t* sizes, size_t count, const double* expected, size_t result_size,
                int64_t kernels) {
  static const char* const devices[2] = {"CPU:0", "REFERENCE:0"};
  OK(kiln_graph_set_results(g, &result, 1));
  for (int d = 0; d < 2; ++d) {
    kiln_device* device = find_device(context, devices[d]);
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.device = device;
    options.verify = 1;
    kiln_executable* e = NULL;
    if (!OK(kiln_graph_compile(g, &options, &e))) continue;
    kiln_program_info info = KILN_PROGRAM_INFO_INIT;
    OK(kiln_executable_info(e, &info));
    if (d == 0 && kernels >= 0 && info.kernels != kernels) {
      printf("%d kernels; expected %d\n", (int)info.kernels, (int)kernels);
      ++failed_checks;
    }
    kiln_buffer *args[4] = {NULL}, *got = NULL;
    for (size_t i = 0; i < count; ++i) {
      kiln_shape shape = KILN_SHAPE_INIT;
      OK(kiln_executable_argument_shape(e, i, &shape));
      OK(kiln_buffer_copy_host(device, KILN_F32, shape.dims, shape.rank, arguments[i],
                               sizeof(float) * (size_t)sizes[i], &args[i]));
    }
    float values[128];
    if (OK(kiln_executable_run(e, NULL, args, count, &got, 1)) &&
        OK(kiln_buffer_copy_to_host(got, values, sizeof(float) * result_size))) {
      for (size_t i = 0; i < result_size; ++i) {
        if (!(fabs(values[i] - expected[i]) <= 4e-6 * fmax(1, fabs(expected[i])))) {
          printf("%s: element %zu is %g; expected %g\n", devices[d], i, (double)values[i],
                 expected[i]);
          ++failed_checks;
        }
      }
    }
    kiln_buffer_release(got);
    for (size_t i = 0; i < count; ++i) kiln_buffer_release(args[i]);
    kiln_executable_release(e);
  }
  kiln_graph_release(g);
}

enum { kRows = 3, kColumns = 5 };
static const float kX[kRows * kColumns] = {0.5f, -1, 2,     0.25f, 8,  -3, 1e-3f, 4,
                                           4,    -7, -0.5f, 0,     12, 11, 3};

static void softmaxes(void) {
  const int64_t last = -1;
  double soft[kRows * kColumns], logarithm[kRows * kColumns];
  for (int r = 0; r < kRows; ++r) {
    const float* x = kX + r * kColumns;
    double most = x[0], sum = 0;
    for (int c = 0; c < kColumns; ++c) most = fmax(most, x[c]);
    for (int c = 0; c < kColumns; ++c) sum += exp(x[c] - most);
    for (int c = 0; c < kColumns; ++c) {
      soft[r * kColumns + c] = exp(x[c] - most) / sum;
      logarithm[r * kColumns + c] = x[c] - most - log(sum);
    }
  }
  const float* arguments[1] = {kX};
  const int64_t sizes[1] = {kRows * kColumns};
  kiln_graph* g = make_graph(context, "softmax");
  run(g, kiln_nn_softmax(g, matrix(g, "x", kRows, kColumns), &last, 1), arguments, sizes, 1, soft,
      kRows * kColumns, 1);
  g = make_graph(context, "log_softmax");
  run(g, kiln_nn_log_softmax(g, matrix(g, "x", kRows, kColumns), &last, 1), arguments, sizes, 1,
      logarithm, kRows * kColumns, 1);
}

static void norms(void) {
  const int64_t last = -1, columns = kColumns;
  const float scale[kColumns] = {1, 2, 3, 4, 5}, offset[kColumns] = {9, 8, 7, 6, 5};
  double layer[kRows * kColumns], rms[kRows * kColumns];
  for (int r = 0; r < kRows; ++r) {
    const float* x = kX + r * kColumns;
    double mean = 0, variance = 0, square = 0;
    for (int c = 0; c < kColumns; ++c) mean += x[c] / (double)kColumns;
    for (int c = 0; c < kColumns; ++c) {
      variance += (x[c] - mean) * (x[c] - mean) / kColumns;
      square += (double)x[c] * x[c] / kColumns;
    }
    for (int c = 0; c < kColumns; ++c) {
      layer[r * kColumns + c] = (x[c] - mean) / sqrt(variance + 1e-5) * scale[c] + offset[c];
      rms[r * kColumns + c] = x[c] / sqrt(square + 1e-5) * scale[c];
    }
  }
  const float* arguments[3] = {kX, scale, offset};
  const int64_t sizes[3] = {kRows * kColumns, kColumns, kColumns};
  kiln_graph* g = make_graph(context, "layer_norm");
  kiln_value x = matrix(g, "x", kRows, kColumns), s = f32_parameter(g, "scale", columns);
  kiln_value o = f32_parameter(g, "offset", columns);
  run(g, kiln_nn_layer_norm(g, x, s, o, &last, 1, 1e-5), arguments, sizes, 3, layer,
      kRows * kColumns, 1);
  g = make_graph(context, "rms_norm");
  x = matrix(g, "x", kRows, kColumns);
  s = f32_parameter(g, "scale", columns);
  run(g, kiln_nn_rms_norm(g, x, s, &last, 1, 1e-5), arguments, sizes, 2, rms, kRows * kColumns, 1);
}

static void positions_and_tables(void) {
  const int64_t last = -1;
  const float* arguments[1] = {kX};
  const int64_t sizes[1] = {kRows * kColumns};
  const double largest[kRows] = {4, 2, 2}, flat = 12, means[kRows] = {1.95, -0.3998, 5.1};
  kiln_graph* g = make_graph(context, "argmax");
  kiln_value p = kiln_nn_argmax(g, matrix(g, "x", kRows, kColumns), &last, 1, 0, KILN_S32);
  run(g, kiln_op_convert(g, p, KILN_F32), arguments, sizes, 1, largest, kRows, -1);
  g = make_graph(context, "flat");
  p = kiln_nn_argmax(g, matrix(g, "x", kRows, kColumns), NULL, 0, 0, 0);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_graph_value_shape(g, p, &shape));
  CHECK(shape.rank == 0 && shape.dtype == KILN_S64);
  run(g, kiln_op_convert(g, p, KILN_F32), arguments, sizes, 1, &flat, 1, -1);
  g = make_graph(context, "mean");
  run(g, kiln_nn_mean(g, matrix(g, "x", kRows, kColumns), &last, 1, 1), arguments, sizes, 1, means,
      kRows, 1);
  g = make_graph(context, "take");
  const int32_t indices[3] = {2, -3, 9};
  const int64_t three = 3;
  kiln_value i = kiln_op_constant(g, KILN_S32, &three, 1, indices, sizeof indices);
  const int rows_taken[3] = {2, 0, 2};
  double rows[3 * kColumns];
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < kColumns; ++c) rows[r * kColumns + c] = kX[rows_taken[r] * kColumns + c];
  }
  kiln_value taken = kiln_nn_take(g, matrix(g, "x", kRows, kColumns), i, -2, KILN_TAKE_CLIP);
  run(g, taken, arguments, sizes, 1, rows, 3 * kColumns, -1);
}

/* [1,T,N,H] with a causal mask and a bias. */
static void attention(void) {
  enum { T = 3, N = 2, H = 4, kSize = T * N * H };
  float q[kSize], k[kSize], v[kSize], bias[T * T];
  for (int i = 0; i < kSize; ++i) {
    q[i] = (float)sin(i);
    k[i] = (float)cos(3 * i);
    v[i] = (float)i / kSize;
  }
  for (int i = 0; i < T * T; ++i) bias[i] = (float)i / 7;
  double expected[kSize];
  for (int t = 0; t < T; ++t) {
    for (int n = 0; n < N; ++n) {
      double weights[T], sum = 0;
      for (int s = 0; s <= t; ++s) {
        double product = 0;
        for (int h = 0; h < H; ++h) {
          product += (double)q[(t * N + n) * H + h] * k[(s * N + n) * H + h];
        }
        sum += weights[s] = exp(product / 2 + bias[t * T + s]);
      }
      for (int h = 0; h < H; ++h) {
        double value = 0;
        for (int s = 0; s <= t; ++s) value += weights[s] / sum * v[(s * N + n) * H + h];
        expected[(t * N + n) * H + h] = value;
      }
    }
  }
  const int64_t dims[4] = {1, T, N, H}, square[2] = {T, T};
  kiln_graph* g = make_graph(context, "attention");
  kiln_value values[3];
  for (int i = 0; i < 3; ++i) values[i] = kiln_op_parameter(g, KILN_F32, dims, 4, "qkv" + i, 1);
  kiln_attention_options options = KILN_ATTENTION_OPTIONS_INIT;
  options.causal = 1;
  options.bias = kiln_op_parameter(g, KILN_F32, square, 2, "bias", 4);
  const float* arguments[4] = {q, k, v, bias};
  const int64_t sizes[4] = {kSize, kSize, kSize, T * T};
  run(g, kiln_nn_attention(g, values[0], values[1], values[2], &options), arguments, sizes, 4,
      expected, kSize, -1);
}

static void mistakes(void) {
  const int64_t three = 3, minus = -3, dims[2] = {2, 3};
  kiln_attention_options options;
  memset(&options, 0xff, sizeof options);
  kiln_attention_options_init(&options, sizeof options);
  CHECK(options.struct_size == sizeof options && options.scale == 0 && options.mask == 0);
  CHECK(kiln_nn_softmax(NULL, 1, &three, 1) == 0 && kiln_nn_add(NULL, 1, 1) == 0);

  kiln_graph* g = make_graph(context, "g");
  kiln_nn_softmax(g, matrix(g, "x", 2, 3), &minus, 1);
  BUILD_FAILS(
      KILN_INVALID_ARGUMENT,
      "softmax: operand is 'x' f32[2,3]: dimensions has -3; expected a dimension from -2 to "
      "below 2",
      g);
  g = make_graph(context, "g");
  kiln_nn_mean(g, matrix(g, "x", 2, 3), NULL, 2, 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "mean: dimensions is NULL, with 2 numbers", g);
  g = make_graph(context, "g");
  kiln_nn_mean(g, matrix(g, "x", 2, 3), NULL, 0, 2);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "mean: keepdims is 2; expected 0 or 1", g);
  g = make_graph(context, "g");
  kiln_nn_multiply(g, matrix(g, "x", 2, 3), matrix(g, "y", 3, 2));
  BUILD_FAILS(KILN_INVALID_ARGUMENT,
              "multiply: operands 'x' f32[2,3], 'y' f32[3,2] are not broadcast together", g);
  g = make_graph(context, "g");
  kiln_nn_broadcast_to(g, matrix(g, "x", 2, 1), dims + 1, 1);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "broadcast_to: 'x' f32[2,1] is not broadcast to f32[3]", g);
  g = make_graph(context, "g");
  kiln_value x = matrix(g, "x", 2, 3);
  kiln_nn_take(g, x, x, 0, KILN_TAKE_FILL);
  BUILD_FAILS(KILN_INVALID_ARGUMENT,
              "take: indices is 'x' f32[2,3]; the element type must be an integer", g);
  g = make_graph(context, "g");
  kiln_nn_take(g, matrix(g, "x", 2, 3), kiln_op_iota(g, 0, KILN_S32, &three, 1), 0, 7);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "take: mode 7", g);
  g = make_graph(context, "g");
  kiln_nn_one_hot(g, kiln_op_iota(g, 0, KILN_S32, &three, 1), -5, -1, KILN_F32);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "one_hot: classes: ", g);
  g = make_graph(context, "g");
  kiln_nn_gelu(g, matrix(g, "x", 2, 3), 3);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "gelu: approximate is 3", g);
  g = make_graph(context, "g");
  x = matrix(g, "x", 2, 3);
  kiln_nn_attention(g, x, x, x, NULL);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "attention: query is 'x' f32[2,3]", g);
  /* After a mistake nothing is added. */
  g = make_graph(context, "g");
  x = matrix(g, "x", 2, 3);
  kiln_nn_silu(g, 77);
  CHECK(kiln_nn_silu(g, x) == 0 && kiln_nn_softmax(g, x, &three, 1) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "silu: operand: ", g);
}

int main(void) {
  context = make_context(1);
  softmaxes();
  norms();
  positions_and_tables();
  attention();
  mistakes();
  kiln_context_release(context);
  return test_result();
}
