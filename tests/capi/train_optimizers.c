/* Optimisers and all around them against the numbers of PyTorch and Optax, in the two graphs of a
 * training, on all devices: tests/reference/training.py says what is computed. */
#include <math.h>

#include "../reference/training.inc"
#include "testing.h"

enum { kParameters = 2, kMost = 24, kElements = 15, kSteps = 100 };
static const int64_t kDims[] = {4, 3, 3};
static const size_t kRanks[] = {2, 1}, kSizes[] = {12, 3};

static kiln_context* context;

/* A run of the table: the optimiser, and what is around it. */
typedef struct {
  const char* name;
  kiln_optimizer kind;
  double rate, momentum, beta1, beta2, epsilon, decay; /* 0: the default */
  int32_t nesterov, centered;
  double initial_sum, clip_threshold;
  int mask, clip, schedule, accumulate, average;
} run;

static const run kCases[] = {
    {"sgd", KILN_OPTIMIZER_SGD, .rate = 0.05},
    {"sgd_momentum", KILN_OPTIMIZER_SGD, .rate = 0.02, .momentum = 0.9, .decay = 0.1},
    {"sgd_nesterov", KILN_OPTIMIZER_SGD, .rate = 0.02, .momentum = 0.9, .nesterov = 1},
    {"adam", KILN_OPTIMIZER_ADAM, .rate = 0.01},
    {"adam_decay", KILN_OPTIMIZER_ADAM, .rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-4,
     .decay = 0.1},
    {"adamw", KILN_OPTIMIZER_ADAMW, .rate = 0.01},
    {"adamw_mask", KILN_OPTIMIZER_ADAMW, .rate = 0.01, .decay = 0.3, .mask = 1},
    {"adagrad", KILN_OPTIMIZER_ADAGRAD, .rate = 0.1, .decay = 0.05},
    {"adagrad_sum", KILN_OPTIMIZER_ADAGRAD, .rate = 0.1, .epsilon = 1e-3, .initial_sum = 0.1},
    {"rmsprop", KILN_OPTIMIZER_RMSPROP, .rate = 0.01},
    {"rmsprop_centered", KILN_OPTIMIZER_RMSPROP, .rate = 0.002, .momentum = 0.9, .beta2 = 0.9,
     .epsilon = 1e-4, .decay = 0.1, .centered = 1},
    {"lion", KILN_OPTIMIZER_LION, .rate = 0.01, .decay = 0.1},
    {"adafactor", KILN_OPTIMIZER_ADAFACTOR, .rate = 0.05, .decay = 0.1},
    {"adafactor_slow", KILN_OPTIMIZER_ADAFACTOR, .rate = 0.5, .epsilon = 0.5,
     .clip_threshold = 1.5},
    {"clip_norm", KILN_OPTIMIZER_SGD, .rate = 0.05, .momentum = 0.9, .clip = 1},
    {"clip_value", KILN_OPTIMIZER_SGD, .rate = 0.05, .momentum = 0.9, .clip = 2},
    {"schedule", KILN_OPTIMIZER_ADAM, .schedule = 1},
    {"accumulate", KILN_OPTIMIZER_ADAM, .rate = 0.05, .accumulate = 4},
    {"average", KILN_OPTIMIZER_SGD, .rate = 0.05, .average = 1},
};

static kiln_optimizer_options options_of(const run* r) {
  static const int32_t kDecayed[] = {1, 0};
  kiln_optimizer_options o;
  kiln_optimizer_options_init(&o, sizeof o, r->kind);
  if (r->momentum > 0) o.momentum = r->momentum;
  if (r->beta1 > 0) o.beta1 = r->beta1;
  if (r->beta2 > 0) o.beta2 = r->beta2;
  if (r->epsilon > 0) o.epsilon = r->epsilon;
  if (r->decay > 0) o.weight_decay = r->decay;
  if (r->clip_threshold > 0) o.clip_threshold = r->clip_threshold;
  if (r->mask) o.decayed = kDecayed, o.decayed_count = kParameters;
  o.nesterov = r->nesterov;
  o.centered = r->centered;
  o.initial_sum = r->initial_sum;
  return o;
}

/* The simple numbers of the problem. */
static double number(size_t k, size_t i, int what, int step) {
  const size_t at = i + 100 * k;
  switch (what) {
    case 'p':
      return ((double)((at * 37 + 11) % 64) - 32) / 32;
    case 'c':
      return 0.25 + (double)(at % 7) / 4;
    case 'q':
      return ((double)((at * 53 + 5) % 64) - 32) / 64;
  }
  return ((double)((at * 13 + 29 * (size_t)step) % 16) - 7.5) / 64;
}

/* As elements of the type. */
static size_t fill(kiln_dtype type, size_t k, int what, int step, void* out) {
  for (size_t i = 0; i < kSizes[k]; ++i) {
    const double x = number(k, i, what, step);
    if (type == KILN_F64) {
      ((double*)out)[i] = x;
    } else {
      ((float*)out)[i] = (float)x;
    }
  }
  return kSizes[k] * (type == KILN_F64 ? sizeof(double) : sizeof(float));
}

static kiln_value constant(kiln_graph* g, kiln_dtype type, size_t k, int what) {
  double data[kElements];
  const size_t bytes = fill(type, k, what, 0, data);
  return kiln_op_constant(g, type, kDims + 2 * k, kRanks[k], data, bytes);
}

/* The first values of all that a step changes: parameters, the optimiser's state, and others. */
static size_t build_initial(kiln_graph* g, const run* r, kiln_dtype type, kiln_value* values,
                            size_t* state_count) {
  static const char* const kNames[] = {"w", "b"};
  for (size_t k = 0; k < kParameters; ++k) {
    values[k] = constant(g, type, k, 'p');
    OK(kiln_graph_set_op_name(g, values[k], kNames[k], 1));
  }
  const kiln_optimizer_options o = options_of(r);
  size_t count = 0, needed = 0;
  OK(kiln_train_state(g, &o, values, kParameters, NULL, 0, &needed));
  OK(kiln_train_state(g, &o, values, kParameters, values + kParameters,
                      KILN_OPTIMIZER_STATE_MAX(kParameters), &count));
  CHECK(count == needed);
  *state_count = count;
  count += kParameters;
  if (r->accumulate) {
    OK(kiln_train_accumulator(g, values, kParameters, values + count));
    count += kParameters + 1;
  }
  if (r->average) {
    for (size_t k = 0; k < kParameters; ++k) values[count++] = kiln_op_copy(g, values[k]);
  }
  OK(kiln_graph_set_results(g, values, count));
  return count;
}

static kiln_value rate_of(kiln_graph* g, const run* r, kiln_dtype type, kiln_value step) {
  if (!r->schedule) return kiln_op_scalar(g, type, r->rate);
  kiln_schedule_options o = KILN_SCHEDULE_OPTIONS_INIT;
  o.kind = KILN_SCHEDULE_COSINE;
  o.start = 0.01;
  o.peak = 0.1;
  o.end = 0.001;
  o.warmup_steps = 20;
  o.steps = 80;
  return kiln_train_schedule(g, &o, kiln_op_convert(g, step, type));
}

/* The values of the initial graph become the next ones. */
static void build_step(kiln_graph* g, kiln_graph* initial, const run* r, kiln_dtype type,
                       kiln_value* values, size_t count, size_t state_count) {
  OK(kiln_train_parameters(g, initial, values, count, values));
  kiln_value gradients[kParameters], ready = 0;
  kiln_value *state = values + kParameters, *others = state + state_count;
  for (size_t k = 0; k < kParameters; ++k) {
    kiln_value noise = kiln_op_parameter(g, type, kDims + 2 * k, kRanks[k], "noise", 5);
    kiln_value away = kiln_op_subtract(g, values[k], constant(g, type, k, 'q'));
    gradients[k] = kiln_op_add(g, kiln_op_multiply(g, constant(g, type, k, 'c'), away), noise);
  }
  if (r->clip == 1) OK(kiln_train_clip_by_norm(g, 0.5, gradients, kParameters, gradients, NULL));
  if (r->clip == 2) OK(kiln_train_clip_by_value(g, 0.25, gradients, kParameters, gradients));
  if (r->accumulate) {
    OK(kiln_train_accumulate(g, r->accumulate, 0, gradients, kParameters, others, gradients, &ready,
                             others));
  }
  const kiln_optimizer_options o = options_of(r);
  OK(kiln_train_update(g, &o, rate_of(g, r, type, state[0]), ready, values, gradients, kParameters,
                       state, state_count, values, state));
  if (r->average) OK(kiln_train_average(g, 0.9, 0, others, values, kParameters, others));
  OK(kiln_graph_set_results(g, values, count));
}

static void compare(const run* r, const char* device, kiln_dtype type, int row,
                    kiln_buffer* const* values) {
  const double* expected = NULL;
  for (size_t i = 0; i < sizeof kRuns / sizeof *kRuns; ++i) {
    if (strcmp(kRuns[i].name, r->name) == 0) expected = kRuns[i].values + row * kElements;
  }
  if (!expected) exit(1);
  for (size_t k = 0; k < kParameters; ++k) {
    double data[kElements];
    const size_t width = type == KILN_F64 ? sizeof(double) : sizeof(float);
    OK(kiln_buffer_copy_to_host(values[k], data, kSizes[k] * width));
    for (size_t i = 0; i < kSizes[k]; ++i, ++expected) {
      const double got = type == KILN_F64 ? data[i] : (double)((float*)data)[i];
      const double bound = type == KILN_F64 ? 1e-11 : 1e-6;
      if (fabs(got - *expected) <= bound * fmax(1, fabs(*expected))) continue;
      printf("%s of %s on %s, row %d: %zu of parameter %zu is %.17g; expected %.17g\n", r->name,
             kiln_dtype_name(type), device, row, i, k, got, *expected);
      ++failed_checks;
      return;
    }
  }
}

static void train(const run* r, kiln_dtype type, kiln_device* device, kiln_executable* first,
                  kiln_executable* step, size_t count, size_t compared) {
  kiln_buffer *arguments[kMost + kParameters], *results[kMost];
  memset(results, 0, sizeof results);
  if (!OK(kiln_executable_run(first, NULL, NULL, 0, results, count))) return;
  memcpy(arguments, results, sizeof results);
  kiln_execute_options donate = KILN_EXECUTE_OPTIONS_INIT;
  donate.donate_aliased = 1;
  int row = 0;
  for (int t = 0; t < kSteps; ++t) {
    for (size_t k = 0; k < kParameters; ++k) {
      double noise[kElements];
      const size_t bytes = fill(type, k, 'n', t, noise);
      OK(kiln_buffer_copy_host(device, type, kDims + 2 * k, kRanks[k], noise, bytes,
                               &arguments[count + k]));
    }
    memset(results, 0, sizeof results);
    const int done =
        OK(kiln_executable_run(step, &donate, arguments, count + kParameters, results, count));
    for (size_t i = 0; i < count + kParameters; ++i) kiln_buffer_release(arguments[i]);
    memcpy(arguments, results, sizeof results);
    if (!done) break;
    if (t == 0 || t == 9 || t == 99) {
      compare(r, kiln_device_name(device, NULL), type, row++, arguments + compared);
    }
  }
  for (size_t i = 0; i < count; ++i) kiln_buffer_release(results[i]);
}

static void test_run(const run* r, kiln_dtype type, kiln_device* device) {
  kiln_graph *initial = make_graph(context, "initial"), *graph = make_graph(context, "step");
  kiln_value values[kMost];
  size_t state_count = 0;
  const size_t count = build_initial(initial, r, type, values, &state_count);
  build_step(graph, initial, r, type, values, count, state_count);
  kiln_alias aliases[kMost];
  for (size_t i = 0; i < count; ++i) {
    const kiln_alias alias = {.result = i, .argument = i};
    aliases[i] = alias;
  }
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.verify = 1;
  kiln_executable *first = NULL, *step = NULL;
  if (OK(kiln_graph_compile(initial, &options, &first))) {
    options.aliases = aliases;
    options.alias_count = count;
    if (OK(kiln_graph_compile(graph, &options, &step))) {
      train(r, type, device, first, step, count, r->average ? count - kParameters : 0);
      if (strcmp(r->name, "adam") == 0) {
        kiln_program_info info = KILN_PROGRAM_INFO_INIT;
        OK(kiln_executable_info(step, &info));
        /* One for each parameter, and one for the scalars. */
        CHECK(device != find_device(context, "CPU:0") || info.kernels == 3);
        static const char* const kNames[] = {"w", "b", "step", "w.m", "w.v", "b.m", "b.v"};
        for (size_t i = 0; i < count; ++i) {
          CHECK(strcmp(kiln_executable_argument_name(step, i, NULL), kNames[i]) == 0);
        }
      }
    }
  }
  kiln_executable_release(first);
  kiln_executable_release(step);
  kiln_graph_release(initial);
  kiln_graph_release(graph);
}

int main(void) {
  context = make_context_with(2, tested_gpu());
  static const char* const kDevices[] = {"CPU:0", "REFERENCE:0"};
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    for (int d = 0; d < 2; ++d) {
      test_run(&kCases[i], KILN_F64, find_device(context, kDevices[d]));
      test_run(&kCases[i], KILN_F32, find_device(context, kDevices[d]));
    }
    /* An emulated GPU is slow. */
    if (i % 4 == 3) test_run(&kCases[i], KILN_F32, find_device(context, "GPU:0"));
  }
  kiln_context_release(context);
  return test_result();
}
