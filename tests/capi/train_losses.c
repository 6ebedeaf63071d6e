/* Losses with their gradients, schedules and loss scaling against the numbers of PyTorch and Optax,
 * on all devices; and mistakes. */
#include <math.h>

#include "../reference/training.inc"
#include "testing.h"

static kiln_context* context;
static const char* const kDevices[] = {"CPU:0", "REFERENCE:0"};
static const int64_t kDims[] = {4, 5};
enum { kElements = 20 };

static const double* row_of(const char* name) {
  for (size_t i = 0; i < sizeof kLosses / sizeof *kLosses; ++i) {
    if (strcmp(kLosses[i].name, name) == 0) return kLosses[i].values;
  }
  exit(1);
}

static void near(const char* what, const char* where, double got, double expected, double bound) {
  if (fabs(got - expected) <= bound * fmax(1, fabs(expected))) return;
  printf("%s on %s is %.17g; expected %.17g\n", what, where, got, expected);
  ++failed_checks;
}

/* The logits in f32, which holds them, or in another type. */
static kiln_value logits(kiln_graph* g, kiln_dtype type) {
  float x[kElements];
  for (int i = 0; i < kElements; ++i) x[i] = (float)((i * 37 + 11) % 64 - 32) / 8;
  return kiln_op_convert(g, kiln_op_constant(g, KILN_F32, kDims, 2, x, sizeof x), type);
}

static kiln_value targets(kiln_graph* g, kiln_dtype type) {
  float y[kElements];
  for (int i = 0; i < kElements; ++i) y[i] = (float)((i * 53 + 5) % 64) / 64;
  return kiln_op_convert(g, kiln_op_constant(g, KILN_F32, kDims, 2, y, sizeof y), type);
}

static kiln_value labels(kiln_graph* g, const int32_t* classes, kiln_dtype type) {
  kiln_value made = kiln_op_constant(g, KILN_S32, kDims, 1, classes, sizeof *classes * 4);
  return kiln_op_convert(g, made, type);
}

/* Runs a graph without parameters whose results are of f64. */
static void run(kiln_graph* g, const kiln_value* results, size_t count, const char* device_name,
                double* const* out, const size_t* sizes) {
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = find_device(context, device_name);
  options.verify = 1;
  kiln_executable* e = NULL;
  kiln_buffer* got[4] = {NULL};
  if (OK(kiln_graph_set_results(g, results, count)) && OK(kiln_graph_compile(g, &options, &e)) &&
      OK(kiln_executable_run(e, NULL, NULL, 0, got, count))) {
    for (size_t i = 0; i < count; ++i) {
      OK(kiln_buffer_copy_to_host(got[i], out[i], sizes[i] * sizeof(double)));
      kiln_buffer_release(got[i]);
    }
  }
  kiln_executable_release(e);
}

/* The loss of x and its gradient are those of the row. */
static void expect_loss(kiln_graph* g, kiln_value x, kiln_value loss, const char* name,
                        double bound) {
  const double* expected = row_of(name);
  kiln_value gradient = 0;
  OK(kiln_graph_gradient(g, loss, &x, 1, NULL, &gradient));
  const kiln_value results[] = {kiln_op_convert(g, loss, KILN_F64),
                                kiln_op_convert(g, gradient, KILN_F64)};
  for (int d = 0; d < 2; ++d) {
    double value = 0, slopes[kElements] = {0};
    double* const out[] = {&value, slopes};
    const size_t sizes[] = {1, kElements};
    run(g, results, 2, kDevices[d], out, sizes);
    near(name, kDevices[d], value, expected[0], bound);
    for (int i = 0; i < kElements; ++i) near(name, kDevices[d], slopes[i], expected[i + 1], bound);
  }
  kiln_graph_release(g);
}

static void softmax(const char* name, const int32_t* classes, kiln_dtype label_type,
                    kiln_dtype type, double smoothing, kiln_reduction reduction, double bound) {
  kiln_graph* g = make_graph(context, name);
  kiln_value x = logits(g, type), y = labels(g, classes, label_type);
  expect_loss(g, x, kiln_train_softmax_cross_entropy(g, x, y, smoothing, reduction), name, bound);
}

static void losses_of(kiln_dtype type, double bound) {
  static const int32_t kClasses[] = {3, 0, 4, 1}, kIgnored[] = {3, -100, 4, -100};
  static const kiln_dtype kLabelTypes[] = {KILN_U8,  KILN_S8,  KILN_S32,
                                           KILN_U32, KILN_S64, KILN_U64};
  for (int i = 0; i < 6; ++i) {
    softmax("softmax", kClasses, kLabelTypes[i], type, 0, KILN_REDUCTION_MEAN, bound);
  }
  softmax("softmax_sum", kClasses, KILN_S32, type, 0, KILN_REDUCTION_SUM, bound);
  softmax("softmax_smooth", kClasses, KILN_S32, type, 0.1, KILN_REDUCTION_MEAN, bound);
  softmax("softmax_ignore", kIgnored, KILN_S64, type, 0, KILN_REDUCTION_MEAN, bound);
  softmax("softmax_ignore", kIgnored, KILN_S8, type, 0, KILN_REDUCTION_MEAN, bound);
  kiln_graph* g = make_graph(context, "sigmoid");
  kiln_value x = logits(g, type);
  expect_loss(g, x, kiln_train_sigmoid_cross_entropy(g, x, targets(g, type), KILN_REDUCTION_MEAN),
              "sigmoid", bound);
  g = make_graph(context, "squared");
  x = logits(g, type);
  expect_loss(g, x, kiln_train_squared_error(g, x, targets(g, type), KILN_REDUCTION_MEAN),
              "squared", bound);
  g = make_graph(context, "huber");
  x = logits(g, type);
  expect_loss(g, x, kiln_train_huber(g, x, targets(g, type), 1.5, KILN_REDUCTION_MEAN), "huber",
              bound);
}

/* Losses of examples, with labels that are no classes; of f16 they are f32. */
static void labels_beyond(void) {
  static const int32_t kClasses[] = {3, 5, -1, 1};
  for (int d = 0; d < 2; ++d) {
    kiln_graph* g = make_graph(context, "beyond");
    kiln_value x = logits(g, KILN_F16);
    kiln_value loss = kiln_train_softmax_cross_entropy(g, x, labels(g, kClasses, KILN_S64), 0,
                                                       KILN_REDUCTION_NONE);
    kiln_shape shape = KILN_SHAPE_INIT;
    OK(kiln_graph_value_shape(g, loss, &shape));
    CHECK(shape.dtype == KILN_F32 && shape.rank == 1 && shape.dims[0] == 4);
    kiln_value wide = kiln_op_convert(g, loss, KILN_F64);
    double values[4] = {0};
    double* const out[] = {values};
    const size_t four = 4;
    run(g, &wide, 1, kDevices[d], out, &four);
    CHECK(values[0] > 0 && isnan(values[1]) && values[2] == 0 && values[3] > 0);
    kiln_graph_release(g);
  }
}

/* Batches of a size that is known when the graph is compiled. */
static void symbolic_batches(void) {
  static const int32_t kClasses[] = {3, 0, 4, 1};
  kiln_graph* g = make_graph(context, "symbolic");
  const int64_t dims[] = {kiln_graph_symbol(g, "n", 1), 5};
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  kiln_value y = kiln_op_parameter(g, KILN_S32, dims, 1, "y", 1);
  kiln_value results[2] = {kiln_train_softmax_cross_entropy(g, x, y, 0, KILN_REDUCTION_MEAN)};
  OK(kiln_graph_gradient(g, results[0], &x, 1, NULL, &results[1]));
  OK(kiln_graph_set_results(g, results, 2));
  const kiln_symbol_size size = {"n", 1, 4};
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.symbols = &size;
  options.symbol_count = 1;
  kiln_executable* e = NULL;
  kiln_buffer *arguments[2] = {NULL}, *got[2] = {NULL};
  float data[kElements], loss = 0;
  for (int i = 0; i < kElements; ++i) data[i] = (float)((i * 37 + 11) % 64 - 32) / 8;
  kiln_device* device = find_device(context, "CPU:0");
  OK(kiln_buffer_copy_host(device, KILN_F32, kDims, 2, data, sizeof data, &arguments[0]));
  OK(kiln_buffer_copy_host(device, KILN_S32, kDims, 1, kClasses, sizeof kClasses, &arguments[1]));
  if (OK(kiln_graph_compile(g, &options, &e)) &&
      OK(kiln_executable_run(e, NULL, arguments, 2, got, 2))) {
    OK(kiln_buffer_copy_to_host(got[0], &loss, sizeof loss));
    OK(kiln_buffer_copy_to_host(got[1], data, sizeof data));
    near("loss", "n = 4", (double)loss, row_of("softmax")[0], 1e-6);
    near("slope", "n = 4", (double)data[19], row_of("softmax")[20], 1e-6);
  }
  for (int i = 0; i < 2; ++i) {
    kiln_buffer_release(arguments[i]);
    kiln_buffer_release(got[i]);
  }
  kiln_executable_release(e);
  kiln_graph_release(g);
}

static void schedules(void) {
  kiln_schedule_options o[3];
  for (int i = 0; i < 3; ++i) kiln_schedule_options_init(&o[i], sizeof o[i]);
  o[0].kind = KILN_SCHEDULE_COSINE, o[0].start = 0.01, o[0].peak = 0.1, o[0].end = 0.001;
  o[0].warmup_steps = 20, o[0].steps = 80;
  o[1].kind = KILN_SCHEDULE_LINEAR, o[1].peak = 0.1, o[1].end = 0.01, o[1].steps = 60;
  o[2].start = 0.02, o[2].peak = 0.1, o[2].warmup_steps = 10;
  for (int d = 0; d < 2; ++d) {
    for (int step = 0; step < 100; ++step) {
      kiln_graph* g = make_graph(context, "schedule");
      kiln_value rates[3];
      kiln_value at = kiln_op_scalar(g, KILN_S32, step);
      for (int i = 0; i < 3; ++i) {
        rates[i] = kiln_op_convert(g, kiln_train_schedule(g, &o[i], at), KILN_F64);
      }
      double found[3] = {0};
      double* const out[] = {&found[0], &found[1], &found[2]};
      const size_t sizes[] = {1, 1, 1};
      /* The evaluator is as good for each of the steps as for some. */
      if (d == 0 || step % 7 == 0) {
        run(g, rates, 3, kDevices[d], out, sizes);
        for (int i = 0; i < 3; ++i) {
          near(kSchedules[i].name, kDevices[d], found[i], kSchedules[i].values[step], 2e-8);
        }
      }
      kiln_graph_release(g);
    }
  }
}

/* A step with gradients of f16 that are finite or not, as the argument says. */
static void loss_scaling(void) {
  kiln_loss_scale_options o = KILN_LOSS_SCALE_OPTIONS_INIT;
  o.initial = 1024;
  o.interval = 3;
  for (int d = 0; d < 2; ++d) {
    kiln_device* device = find_device(context, kDevices[d]);
    kiln_graph *initial = make_graph(context, "initial"), *g = make_graph(context, "step");
    kiln_value state[2], values[3], gradient, finite;
    OK(kiln_train_loss_scale(initial, &o, state));
    OK(kiln_graph_set_results(initial, state, 2));
    OK(kiln_train_parameters(g, initial, state, 2, state));
    const int64_t four = 4;
    kiln_value divisor = kiln_op_parameter(g, KILN_F16, NULL, 0, "divisor", 7);
    kiln_value one = kiln_op_divide(g, kiln_op_scalar(g, KILN_F16, 1), divisor);
    gradient = kiln_op_broadcast(g, one, NULL, 0, &four, 1);
    OK(kiln_train_unscale(g, &o, state, &gradient, 1, &values[2], &finite, values));
    const kiln_value results[] = {values[0], values[1], values[2], finite};
    OK(kiln_graph_set_results(g, results, 4));
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.device = device;
    kiln_executable *first = NULL, *e = NULL;
    kiln_buffer *arguments[3] = {NULL}, *got[4] = {NULL};
    if (OK(kiln_graph_compile(initial, &options, &first)) &&
        OK(kiln_graph_compile(g, &options, &e)) &&
        OK(kiln_executable_run(first, NULL, NULL, 0, arguments, 2))) {
      float scale = 1024;
      for (int step = 0; step < 20; ++step) {
        const int is_finite = kScales[0].values[step] != 0;
        const uint16_t value = is_finite ? 0x3c00 : 0;
        OK(kiln_buffer_copy_host(device, KILN_F16, NULL, 0, &value, 2, &arguments[2]));
        memset(got, 0, sizeof got);
        OK(kiln_executable_run(e, NULL, arguments, 3, got, 4));
        float unscaled[4];
        unsigned char was_finite = 2;
        OK(kiln_buffer_copy_to_host(got[2], unscaled, sizeof unscaled));
        OK(kiln_buffer_copy_to_host(got[3], &was_finite, 1));
        CHECK(was_finite == is_finite);
        if (is_finite) CHECK(unscaled[3] == 1 / scale);
        OK(kiln_buffer_copy_to_host(got[0], &scale, sizeof scale));
        CHECK(scale == (float)kScales[1].values[step]);
        for (int i = 0; i < 3; ++i) kiln_buffer_release(arguments[i]);
        arguments[0] = got[0];
        arguments[1] = got[1];
        kiln_buffer_release(got[2]);
        kiln_buffer_release(got[3]);
      }
    }
    kiln_buffer_release(arguments[0]);
    kiln_buffer_release(arguments[1]);
    kiln_executable_release(first);
    kiln_executable_release(e);
    kiln_graph_release(initial);
    kiln_graph_release(g);
  }
}

static void mistakes(void) {
  static const int32_t kClasses[] = {3, 0, 4, 1};
  kiln_graph* g = make_graph(context, "m");
  kiln_value x = logits(g, KILN_F32);
  CHECK(kiln_train_softmax_cross_entropy(g, x, x, 0, KILN_REDUCTION_MEAN) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "labels is f32[4,5]; expected integers", g);
  g = make_graph(context, "m");
  x = logits(g, KILN_F32);
  kiln_train_softmax_cross_entropy(g, x, kiln_op_scalar(g, KILN_S32, 0), 0, KILN_REDUCTION_MEAN);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "logits are f32[4,5] and labels s32[]", g);
  g = make_graph(context, "m");
  kiln_train_softmax_cross_entropy(g, logits(g, KILN_F32), labels(g, kClasses, KILN_S32), 1.5,
                                   KILN_REDUCTION_MEAN);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "label_smoothing is 1.5", g);
  g = make_graph(context, "m");
  kiln_train_squared_error(g, logits(g, KILN_F32), targets(g, KILN_F32), 4);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "kiln_train_squared_error: reduction 4 is none", g);
  g = make_graph(context, "m");
  kiln_train_huber(g, logits(g, KILN_F32), targets(g, KILN_F32), 0, KILN_REDUCTION_SUM);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "delta is 0", g);
  g = make_graph(context, "m");
  kiln_schedule_options o = KILN_SCHEDULE_OPTIONS_INIT;
  o.kind = KILN_SCHEDULE_LINEAR;
  o.warmup_steps = 5;
  o.steps = 5;
  kiln_train_schedule(g, &o, kiln_op_scalar(g, KILN_S32, 0));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "steps is 5; expected more than the 5 of the warm-up", g);
  g = make_graph(context, "m");
  FAILS(KILN_INVALID_ARGUMENT, "0 is no code", kiln_graph_fail(g, KILN_OK, "x", 1));
  FAILS(KILN_OUT_OF_RANGE, "graph 'm': too far",
        kiln_graph_fail(g, KILN_OUT_OF_RANGE, "too far", 7));
  FAILS(KILN_OUT_OF_RANGE, "too far", kiln_graph_fail(g, KILN_ABORTED, "later", 5));
  CHECK(kiln_op_scalar(g, KILN_F32, 1) == 0);
  BUILD_FAILS(KILN_OUT_OF_RANGE, "graph 'm': too far", g);
}

int main(void) {
  context = make_context(2);
  losses_of(KILN_F64, 1e-12);
  losses_of(KILN_F32, 1e-6);
  /* The logits are numbers of f16; gradients are rounded to it. */
  losses_of(KILN_F16, 5e-4);
  labels_beyond();
  symbolic_batches();
  schedules();
  loss_scaling();
  mistakes();
  kiln_context_release(context);
  return test_result();
}
