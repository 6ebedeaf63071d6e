/* Parameters narrower than their updates, with and without master weights; updates that are
 * skipped; averages whose decay grows; a training that goes on from a file; and mistakes. */
#include <math.h>

#include "testing.h"

static kiln_context* context;
static const char* const kDevices[] = {"CPU:0", "REFERENCE:0"};
static const int64_t kThree = 3;

enum { kMost = 16 };

static kiln_value ones(kiln_graph* g, kiln_dtype type, const char* name) {
  kiln_initializer_options o = KILN_INITIALIZER_OPTIONS_INIT;
  o.kind = KILN_INITIALIZER_ONES;
  return kiln_train_initialize(g, &o, type, &kThree, 1, name, strlen(name));
}

static kiln_value everywhere(kiln_graph* g, kiln_dtype type, double number) {
  return kiln_op_broadcast(g, kiln_op_scalar(g, type, number), NULL, 0, &kThree, 1);
}

/* The first element of a buffer of a float type, or a scalar s32. */
static double element(kiln_buffer* buffer) {
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_buffer_shape(buffer, &shape));
  unsigned char bytes[24];
  if (!OK(kiln_buffer_copy_to_host(buffer, bytes, (size_t)shape.byte_size))) return NAN;
  uint16_t half;
  uint32_t wide;
  float number;
  int32_t integer;
  memcpy(&half, bytes, sizeof half);
  switch (shape.dtype) {
    case KILN_F16:
      return ldexp(1024 + (half & 1023), (half >> 10) - 25);
    case KILN_BF16:
      wide = (uint32_t)half << 16;
      memcpy(&number, &wide, sizeof number);
      return (double)number;
    case KILN_S32:
      memcpy(&integer, bytes, sizeof integer);
      return integer;
    default:
      memcpy(&number, bytes, sizeof number);
      return (double)number;
  }
}

/* So many steps of the graph from the values of the initial one; both are given back. `finish`
 * looks at the last values. */
static void steps(kiln_graph* initial, kiln_graph* graph, const char* device, size_t count, int n,
                  void (*finish)(kiln_buffer* const* values, const void* expected),
                  const void* expected) {
  kiln_alias aliases[kMost];
  for (size_t i = 0; i < count; ++i) {
    const kiln_alias alias = {.result = i, .argument = i};
    aliases[i] = alias;
  }
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = find_device(context, device);
  options.verify = 1;
  kiln_executable *first = NULL, *step = NULL;
  kiln_buffer *values[kMost] = {NULL}, *results[kMost];
  if (OK(kiln_graph_compile(initial, &options, &first)) &&
      OK(kiln_executable_run(first, NULL, NULL, 0, values, count))) {
    options.aliases = aliases;
    options.alias_count = count;
    kiln_execute_options donate = KILN_EXECUTE_OPTIONS_INIT;
    donate.donate_aliased = 1;
    if (OK(kiln_graph_compile(graph, &options, &step))) {
      for (int i = 0; i < n; ++i) {
        memset(results, 0, sizeof results);
        OK(kiln_executable_run(step, &donate, values, count, results, count));
        for (size_t k = 0; k < count; ++k) {
          kiln_buffer_release(values[k]);
          values[k] = results[k];
        }
      }
      finish(values, expected);
    }
    for (size_t k = 0; k < count; ++k) kiln_buffer_release(values[k]);
  }
  kiln_executable_release(first);
  kiln_executable_release(step);
  kiln_graph_release(initial);
  kiln_graph_release(graph);
}

typedef struct {
  kiln_dtype type;
  int master;
} narrow;

/* 100 steps of 1e-4 down from 1. Half of one is lost where the parameter itself is updated, and all
 * of them are. */
static void check_narrow(kiln_buffer* const* values, const void* expected) {
  const narrow* n = expected;
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_buffer_shape(values[0], &shape));
  CHECK(shape.dtype == n->type && element(values[1]) == 100);
  if (!n->master) {
    CHECK(element(values[0]) == 1);
    return;
  }
  OK(kiln_buffer_shape(values[2], &shape));
  CHECK(shape.dtype == KILN_F32 && fabs(element(values[2]) - 0.99) < 1e-5);
  CHECK(element(values[0]) == (n->type == KILN_F16 ? 2028.0 / 2048 : 253.0 / 256));
}

static void narrow_parameters(void) {
  const kiln_dtype types[] = {KILN_F16, KILN_BF16};
  for (int i = 0; i < 8; ++i) {
    const narrow n = {types[i & 1], i >> 1 & 1};
    kiln_graph *initial = make_graph(context, "initial"), *g = make_graph(context, "step");
    kiln_optimizer_options o;
    kiln_optimizer_options_init(&o, sizeof o, KILN_OPTIMIZER_SGD);
    o.master_weights = n.master;
    kiln_value values[kMost] = {ones(initial, n.type, "w")};
    size_t count = 0;
    OK(kiln_train_state(initial, &o, values, 1, values + 1, kMost - 1, &count));
    CHECK(count == (size_t)(1 + n.master));
    OK(kiln_graph_set_results(initial, values, count + 1));
    OK(kiln_train_parameters(g, initial, values, count + 1, values));
    kiln_value slope = everywhere(g, n.type, 1), rate = kiln_op_scalar(g, KILN_F32, 1e-4);
    OK(kiln_train_update(g, &o, rate, 0, values, &slope, 1, values + 1, count, values, values + 1));
    OK(kiln_graph_set_results(g, values, count + 1));
    steps(initial, g, kDevices[i >> 2], count + 1, 100, check_narrow, &n);
  }
}

/* Every second update is made: 5 of 10, and the step of Adam counts them. */
static void check_skipped(kiln_buffer* const* values, const void* expected) {
  (void)expected;
  /* With a gradient of 1 each update of Adam is the learning rate, epsilon apart. */
  CHECK(element(values[1]) == 5 && fabs(element(values[0]) - 0.5) < 1e-6);
  CHECK(fabs(element(values[2]) - (1 - pow(0.9, 5))) < 1e-6);
  CHECK(fabs(element(values[3]) - (1 - pow(0.999, 5))) < 1e-6);
  CHECK(element(values[4]) == 10);
}

static void skipped_updates(void) {
  for (int d = 0; d < 2; ++d) {
    kiln_graph *initial = make_graph(context, "initial"), *g = make_graph(context, "step");
    kiln_optimizer_options o;
    kiln_optimizer_options_init(&o, sizeof o, KILN_OPTIMIZER_ADAM);
    kiln_value values[kMost] = {ones(initial, KILN_F32, "w")};
    size_t count = 0;
    OK(kiln_train_state(initial, &o, values, 1, values + 1, kMost - 1, &count));
    values[++count] = kiln_op_scalar(initial, KILN_S32, 0);
    OK(kiln_graph_set_results(initial, values, count + 1));
    OK(kiln_train_parameters(g, initial, values, count + 1, values));
    kiln_value calls = kiln_op_add(g, values[count], kiln_op_scalar(g, KILN_S32, 1));
    kiln_value odd = kiln_op_and(g, calls, kiln_op_scalar(g, KILN_S32, 1));
    kiln_value slope = everywhere(g, KILN_F32, 1), rate = kiln_op_scalar(g, KILN_F32, 0.1);
    OK(kiln_train_update(g, &o, rate, kiln_op_convert(g, odd, KILN_PRED), values, &slope, 1,
                         values + 1, count - 1, values, values + 1));
    values[count] = calls;
    OK(kiln_graph_set_results(g, values, count + 1));
    steps(initial, g, kDevices[d], count + 1, 10, check_skipped, NULL);
  }
}

/* From 1 to 0 with a decay of (1 + t) / (10 + t), up to 0.5. */
static void check_average(kiln_buffer* const* values, const void* expected) {
  (void)expected;
  double average = 1;
  for (int t = 0; t < 12; ++t) average *= fmin(0.5, (1.0 + t) / (10 + t));
  CHECK(fabs(element(values[0]) / average - 1) < 1e-5);
}

static void averages(void) {
  for (int d = 0; d < 2; ++d) {
    kiln_graph *initial = make_graph(context, "initial"), *g = make_graph(context, "step");
    kiln_value values[] = {ones(initial, KILN_F32, "average"),
                           kiln_op_scalar(initial, KILN_S32, 0)};
    OK(kiln_graph_set_results(initial, values, 2));
    OK(kiln_train_parameters(g, initial, values, 2, values));
    kiln_value zero = everywhere(g, KILN_F32, 0);
    OK(kiln_train_average(g, 0.5, values[1], values, &zero, 1, values));
    values[1] = kiln_op_add(g, values[1], kiln_op_scalar(g, KILN_S32, 1));
    OK(kiln_graph_set_results(g, values, 2));
    steps(initial, g, kDevices[d], 2, 12, check_average, NULL);
  }
}

/* Two steps of Adam at a time: the values are written into a file under their names, and read. */
enum { kWeights = 1000, kHalf = 2 };

static kiln_executable* compile_in_parts(kiln_executable** first) {
  kiln_graph *initial = make_graph(context, "initial"), *g = make_graph(context, "step");
  const int64_t dims[] = {kWeights};
  kiln_initializer_options o = KILN_INITIALIZER_OPTIONS_INIT;
  o.kind = KILN_INITIALIZER_NORMAL;
  kiln_optimizer_options adam;
  kiln_optimizer_options_init(&adam, sizeof adam, KILN_OPTIMIZER_ADAM);
  adam.master_weights = 1;
  kiln_value values[5] = {kiln_train_initialize(initial, &o, KILN_BF16, dims, 1, "layer/w", 7)};
  size_t states = 0;
  OK(kiln_train_state(initial, &adam, values, 1, values + 1, 4, &states));
  CHECK(states == 4);
  OK(kiln_graph_set_results(initial, values, 5));
  OK(kiln_train_parameters(g, initial, values, 5, values));
  kiln_value slope = kiln_op_sine(g, values[0]);
  OK(kiln_train_update(g, &adam, kiln_op_scalar(g, KILN_F32, 0.1), 0, values, &slope, 1, values + 1,
                       4, values, values + 1));
  OK(kiln_graph_set_results(g, values, 5));
  kiln_alias aliases[5];
  for (size_t i = 0; i < 5; ++i) {
    const kiln_alias alias = {.result = i, .argument = i};
    aliases[i] = alias;
  }
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  kiln_executable* step = NULL;
  OK(kiln_graph_compile(initial, &options, first));
  options.aliases = aliases;
  options.alias_count = 5;
  OK(kiln_graph_compile(g, &options, &step));
  kiln_graph_release(initial);
  kiln_graph_release(g);
  return step;
}

static void some_steps(kiln_executable* step, kiln_buffer** values, int n, int donate_first) {
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  for (int i = 0; i < n; ++i) {
    kiln_buffer* results[5] = {NULL};
    options.donate_aliased = i > 0 || donate_first;
    OK(kiln_executable_run(step, &options, values, 5, results, 5));
    for (size_t k = 0; k < 5; ++k) {
      kiln_buffer_release(values[k]);
      values[k] = results[k];
    }
  }
}

static void through_a_file(kiln_executable* step, kiln_buffer** values) {
  static const char* const kNames[] = {"layer/w", "step", "layer/w.master", "layer/w.m",
                                       "layer/w.v"};
  const char path[] = "train_states.safetensors";
  kiln_named_buffer arrays[5];
  for (size_t i = 0; i < 5; ++i) {
    arrays[i].name = kiln_executable_argument_name(step, i, &arrays[i].name_length);
    arrays[i].buffer = values[i];
    CHECK(strcmp(arrays[i].name, kNames[i]) == 0);
  }
  kiln_safetensors* file = NULL;
  if (!OK(kiln_safetensors_save(path, strlen(path), arrays, 5, NULL)) ||
      !OK(kiln_safetensors_open(path, strlen(path), &file))) {
    return;
  }
  for (size_t i = 0; i < 5; ++i) {
    kiln_buffer_release(values[i]);
    OK(kiln_safetensors_buffer(file, kNames[i], strlen(kNames[i]), find_device(context, "CPU:0"),
                               &values[i]));
  }
  kiln_safetensors_release(file);
  remove(path);
}

static void checkpoints(void) {
  kiln_executable* first = NULL;
  kiln_executable* step = compile_in_parts(&first);
  static unsigned char ends[2][5][kWeights * sizeof(float)];
  for (int pass = 0; pass < 2; ++pass) {
    kiln_buffer* values[5] = {NULL};
    OK(kiln_executable_run(first, NULL, NULL, 0, values, 5));
    some_steps(step, values, kHalf, 1);
    if (pass == 1) through_a_file(step, values);
    some_steps(step, values, kHalf, pass == 0);
    for (size_t i = 0; i < 5; ++i) {
      kiln_shape shape = KILN_SHAPE_INIT;
      OK(kiln_buffer_shape(values[i], &shape));
      OK(kiln_buffer_copy_to_host(values[i], ends[pass][i], (size_t)shape.byte_size));
      kiln_buffer_release(values[i]);
    }
  }
  CHECK(memcmp(ends[0], ends[1], sizeof ends[0]) == 0);
  kiln_executable_release(first);
  kiln_executable_release(step);
}

static void mistakes(void) {
  kiln_optimizer_options o;
  kiln_optimizer_options_init(&o, sizeof o, KILN_OPTIMIZER_ADAM);
  CHECK(o.beta1 == 0.9 && o.beta2 == 0.999 && o.epsilon == 1e-8 && o.struct_size == sizeof o);
  size_t count = 0;
  kiln_value state[kMost], next[kMost];
  kiln_graph* g = make_graph(context, "m");
  kiln_value w = ones(g, KILN_F32, "w"), rate = kiln_op_scalar(g, KILN_F32, 1);
  FAILS(KILN_INVALID_ARGUMENT, "room for 2 values of a state of 3",
        kiln_train_state(g, &o, &w, 1, state, 2, &count));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "graph 'm': kiln_train_state: there is room", g);

  g = make_graph(context, "m");
  w = ones(g, KILN_F32, "w"), rate = kiln_op_scalar(g, KILN_F32, 1);
  OK(kiln_train_state(g, &o, &w, 1, state, kMost, &count));
  CHECK(count == 3);
  FAILS(KILN_INVALID_ARGUMENT, "the state has 2 values; expected 3",
        kiln_train_update(g, &o, rate, 0, &w, &w, 1, state, 2, next, next + 1));
  kiln_graph_release(g);

  g = make_graph(context, "m");
  w = ones(g, KILN_F32, "w"), rate = kiln_op_scalar(g, KILN_F32, 1);
  OK(kiln_train_state(g, &o, &w, 1, state, kMost, &count));
  state[2] = rate;
  FAILS(KILN_INVALID_ARGUMENT, "state[2] is f32[]; expected v, f32[3]",
        kiln_train_update(g, &o, rate, 0, &w, &w, 1, state, 3, next, next + 1));
  kiln_graph_release(g);

  g = make_graph(context, "m");
  w = ones(g, KILN_F32, "w"), rate = kiln_op_scalar(g, KILN_F32, 1);
  OK(kiln_train_state(g, &o, &w, 1, state, kMost, &count));
  FAILS(KILN_INVALID_ARGUMENT, "gradients[0] is f32[]; its parameter is f32[3]",
        kiln_train_update(g, &o, rate, 0, &w, &rate, 1, state, 3, next, next + 1));
  kiln_graph_release(g);

  g = make_graph(context, "m");
  w = ones(g, KILN_F32, "w");
  o.beta1 = 1;
  FAILS(KILN_INVALID_ARGUMENT, "a beta is 1; expected a number from 0 to below 1",
        kiln_train_state(g, &o, &w, 1, state, kMost, &count));
  kiln_graph_release(g);
  o.beta1 = 0.9;

  static const int32_t kDecayed[] = {1, 2};
  g = make_graph(context, "m");
  w = ones(g, KILN_F32, "w");
  o.decayed = kDecayed;
  o.decayed_count = 2;
  FAILS(KILN_INVALID_ARGUMENT, "decayed_count is 2; there are 1 parameters",
        kiln_train_state(g, &o, &w, 1, state, kMost, &count));
  kiln_graph_release(g);

  g = make_graph(context, "m");
  kiln_value integer = kiln_op_scalar(g, KILN_S32, 1);
  FAILS(KILN_INVALID_ARGUMENT, "gradients[0] is s32[]; expected floats",
        kiln_train_clip_by_value(g, 1, &integer, 1, next));
  kiln_graph_release(g);

  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_train_clip_by_value(NULL, 1, &w, 1, next));
  CHECK(kiln_train_norm(NULL, NULL, 0) == 0);
}

int main(void) {
  context = make_context(2);
  narrow_parameters();
  skipped_updates();
  averages();
  checkpoints();
  mistakes();
  kiln_context_release(context);
  return test_result();
}
