/* Scopes and marks of graphs: what ops get from them, how values are found by names, mistakes; and
 * that compiling a graph as a whole does not depend on them. */
#include <stdint.h>

#include "testing.h"

static kiln_context* context;

static kiln_graph* graph(void) { return make_graph(context, "marked"); }

static void push_device(kiln_graph* g, const char* name) {
  OK(kiln_graph_push_device(g, name, strlen(name)));
}

static void push_name(kiln_graph* g, const char* name) {
  OK(kiln_graph_push_name_scope(g, name, strlen(name)));
}

/* The text is this one, or there is none where `wanted` is NULL. */
#define EXPECT_TEXT(wanted, function, ...)             \
  do {                                                 \
    size_t length = 99;                                \
    const char* text = function(__VA_ARGS__, &length); \
    expect_text(wanted, text, length, __LINE__);       \
    CHECK(function(__VA_ARGS__, NULL) == text);        \
  } while (0)

static void expect_text(const char* wanted, const char* text, size_t length, int line) {
  const int equal = wanted && text ? strcmp(wanted, text) == 0 && strlen(text) == length
                                   : !wanted && !text && length == 0;
  if (equal) return;
  printf("line %d: got '%s' of length %zu; expected '%s'\n", line, text ? text : "NULL", length,
         wanted ? wanted : "NULL");
  ++failed_checks;
}

#define DEVICE(wanted, g, v) EXPECT_TEXT(wanted, kiln_graph_value_device, g, v)
#define OP_NAME(wanted, g, v) EXPECT_TEXT(wanted, kiln_graph_value_op_name, g, v)
#define ATTRIBUTE(wanted, g, v, key) \
  EXPECT_TEXT(wanted, kiln_graph_value_frontend_attribute, g, v, key, strlen(key))

/* The HLO text of the graph, whose result is `v`, has the part or lacks it. */
static void expect_hlo(kiln_graph* g, kiln_value v, const char* part, int is_there) {
  kiln_text* text = NULL;
  OK(kiln_graph_set_results(g, &v, 1));
  if (!OK(kiln_graph_to_hlo_text(g, &text))) return;
  const char* hlo = kiln_text_data(text, NULL);
  if ((strstr(hlo, part) != NULL) != is_there) {
    printf("%s is %s in\n%s\n", part, is_there ? "not" : "", hlo);
    ++failed_checks;
  }
  kiln_text_release(text);
}

static void devices(void) {
  kiln_graph* g = graph();
  kiln_value outside = f32_parameter(g, "outside", 2);
  push_device(g, "gpu:1");
  kiln_value p = f32_parameter(g, "p", 2), c = kiln_op_scalar(g, KILN_F32, 2);
  push_device(g, "/job:localhost/replica:0/task:0/device:XLA_CPU:0");
  kiln_value inner = kiln_op_multiply(g, p, c);
  push_device(g, "");
  kiln_value none = kiln_op_tanh(g, inner);
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_pop_device(g));
  kiln_value again = kiln_op_negate(g, none);
  OK(kiln_graph_pop_device(g));
  kiln_value last = kiln_op_add(g, again, outside);
  DEVICE(NULL, g, outside);
  DEVICE("gpu:1", g, p);
  DEVICE("gpu:1", g, c);
  DEVICE("/job:localhost/replica:0/task:0/device:XLA_CPU:0", g, inner);
  DEVICE(NULL, g, none);
  DEVICE("gpu:1", g, again);
  DEVICE(NULL, g, last);
  expect_hlo(g, last, "parameter(1), frontend_attributes={kiln.device=\"gpu:1\"}", 1);

  const char* before = kiln_graph_value_device(g, again, NULL);
  OK(kiln_graph_set_device(g, again, "CPU", 3));
  DEVICE("CPU", g, again);
  CHECK(strcmp(before, "gpu:1") == 0); /* texts live as long as the graph */
  OK(kiln_graph_set_device(g, again, NULL, 0));
  DEVICE(NULL, g, again);
  FAILS(KILN_INVALID_ARGUMENT, "kiln_graph_set_device: 'GPU 0' names no device",
        kiln_graph_set_device(g, again, "GPU 0", 5));
  OK(kiln_graph_set_device(g, again, "/job:worker/device:GPU:99", 25)); /* need not be there */
  DEVICE(NULL, g, 0);
  DEVICE(NULL, NULL, again);

  /* The graph that is read has the same marks. */
  kiln_text* text = NULL;
  OK(kiln_graph_to_hlo_text(g, &text));
  size_t length = 0;
  const char* hlo = kiln_text_data(text, &length);
  kiln_graph* read = NULL;
  OK(kiln_graph_from_hlo_text(context, hlo, length, &read));
  DEVICE("gpu:1", read, kiln_graph_parameter(read, 1));
  DEVICE(NULL, read, kiln_graph_result(read));
  kiln_text_release(text);
  kiln_graph_release(read);
  kiln_graph_release(g);
}

static void compilation(void) {
  kiln_graph* g = graph();
  kiln_value p = f32_parameter(g, "p", 2);
  OK(kiln_graph_push_jit_scope(g, 1));
  kiln_value a = kiln_op_tanh(g, p);
  OK(kiln_graph_push_jit_scope(g, 0));
  push_device(g, "XLA_CPU");
  kiln_value b = kiln_op_negate(g, a);
  OK(kiln_graph_pop_jit_scope(g)); /* kinds of scopes do not nest in each other */
  kiln_value c = kiln_op_negate(g, b);
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_pop_jit_scope(g));
  OK(kiln_graph_push_jit_scope(g, 0));
  kiln_value d = kiln_op_negate(g, c);
  OK(kiln_graph_pop_jit_scope(g));
  ATTRIBUTE(NULL, g, p, "_XlaCompile");
  ATTRIBUTE("true", g, a, "_XlaCompile");
  ATTRIBUTE("jit_scope_0", g, a, "_XlaScope");
  ATTRIBUTE("false", g, b, "_XlaCompile");
  ATTRIBUTE("jit_scope_0", g, b, "_XlaScope");
  DEVICE("XLA_CPU", g, b);
  ATTRIBUTE("true", g, c, "_XlaCompile");
  DEVICE("XLA_CPU", g, c);
  ATTRIBUTE("false", g, d, "_XlaCompile");
  ATTRIBUTE("jit_scope_1", g, d, "_XlaScope");

  OK(kiln_graph_set_jit(g, p, KILN_JIT_OFF));
  ATTRIBUTE("false", g, p, "_XlaCompile");
  OK(kiln_graph_set_jit(g, p, KILN_JIT_ON));
  ATTRIBUTE("true", g, p, "_XlaCompile");
  OK(kiln_graph_set_jit(g, c, KILN_JIT_DEFAULT));
  ATTRIBUTE(NULL, g, c, "_XlaCompile");
  ATTRIBUTE(NULL, g, c, "_XlaScope");
  DEVICE("XLA_CPU", g, c);
  FAILS(KILN_INVALID_ARGUMENT, "mode is 3", kiln_graph_set_jit(g, p, 3));
  FAILS(KILN_INVALID_ARGUMENT, "'tanh' is a tanh; expected a call",
        kiln_graph_set_must_compile(g, a, 1));

  OK(kiln_graph_set_frontend_attribute(g, a, "any key", 7, "a \"text\"\n", 9));
  ATTRIBUTE("a \"text\"\n", g, a, "any key");
  OK(kiln_graph_set_frontend_attribute(g, a, "any key", 7, "", 0));
  ATTRIBUTE("", g, a, "any key");
  expect_hlo(g, d, "{_XlaCompile=\"true\",_XlaScope=\"jit_scope_0\",\"any key\"=\"\"}", 1);
  OK(kiln_graph_set_frontend_attribute(g, a, "any key", 7, NULL, 0));
  ATTRIBUTE(NULL, g, a, "any key");
  FAILS(KILN_INVALID_ARGUMENT, "names no device",
        kiln_graph_set_frontend_attribute(g, a, "kiln.device", 11, "?", 1));
  FAILS(KILN_INVALID_ARGUMENT, "the key is empty",
        kiln_graph_set_frontend_attribute(g, a, "", 0, "?", 1));

  kiln_graph* callee = graph();
  kiln_value x = kiln_op_negate(callee, f32_parameter(callee, "x", 2));
  OK(kiln_graph_set_results(callee, &x, 1));
  push_device(g, "GPU:3");
  kiln_value call = kiln_op_call(g, &d, 1, callee);
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_set_must_compile(g, call, 1));
  ATTRIBUTE("true", g, call, "_XlaMustCompile");
  /* Scopes are of the graph, not of its regions. */
  expect_hlo(g, call, "negate(%x)\n", 1);
  OK(kiln_graph_set_must_compile(g, call, 0));
  ATTRIBUTE(NULL, g, call, "_XlaMustCompile");
  FAILS(KILN_INVALID_ARGUMENT, "must_compile is 2", kiln_graph_set_must_compile(g, call, 2));
  kiln_graph_release(callee);
  kiln_graph_release(g);
}

static void expect_found(kiln_graph* g, const char* name, kiln_value wanted) {
  kiln_value found = 0;
  OK(kiln_graph_find_value(g, name, strlen(name), &found));
  if (found != wanted) {
    printf("%s is another value\n", name);
    ++failed_checks;
  }
}

static void names(void) {
  kiln_graph* g = graph();
  kiln_value p = f32_parameter(g, "p", 2);
  push_name(g, "layer");
  kiln_value a = kiln_op_add(g, p, p), b = kiln_op_add(g, a, p);
  push_name(g, "Inner");
  kiln_value w = f32_parameter(g, "weights", 2), c = kiln_op_add(g, b, w);
  push_name(g, "");
  kiln_value bare = kiln_op_add(g, c, c);
  OK(kiln_graph_pop_name_scope(g));
  push_name(g, "layer/"); /* continued as it is */
  kiln_value d = kiln_op_add(g, bare, c);
  OK(kiln_graph_pop_name_scope(g));
  OK(kiln_graph_pop_name_scope(g));
  push_name(g, "inner");
  kiln_value e = kiln_op_add(g, d, d);
  OK(kiln_graph_pop_name_scope(g));
  OK(kiln_graph_pop_name_scope(g));
  OK(kiln_graph_set_op_name(g, p, "layer_1", 7));
  push_name(g, "layer");
  kiln_value f = kiln_op_add(g, e, e);
  OK(kiln_graph_pop_name_scope(g));
  OP_NAME("layer_1", g, p);
  OP_NAME("layer/add", g, a);
  OP_NAME("layer/add_1", g, b);
  OP_NAME("layer/Inner/weights", g, w);
  OP_NAME("layer/Inner/add", g, c);
  OP_NAME("", g, bare);
  OP_NAME("layer/add_2", g, d);
  OP_NAME("layer/inner_1/add", g, e);
  OP_NAME("layer_2/add", g, f);
  OP_NAME(NULL, NULL, f);

  expect_found(g, "add", a); /* HLO's name comes first */
  expect_found(g, "layer/add_1", b);
  expect_found(g, "layer/Inner/weights:0", w);
  kiln_value found = 17;
  FAILS(KILN_NOT_FOUND, "'layer/add:1'", kiln_graph_find_value(g, "layer/add:1", 11, &found));
  FAILS(KILN_NOT_FOUND, "''", kiln_graph_find_value(g, "", 0, &found));
  OK(kiln_graph_set_op_name(g, e, "layer/add", 9));
  FAILS(KILN_INVALID_ARGUMENT, "several values of the op name 'layer/add'",
        kiln_graph_find_value(g, "layer/add:0", 11, &found));
  CHECK(found == 17);
  kiln_graph_release(g);

  /* Names of a graph that is read are in use. */
  const char* hlo =
      "ENTRY e { p = f32[] parameter(0), metadata={op_name=\"layer/add\"}\n"
      "n = f32[] negate(p), metadata={op_name=\"LAYER\"} }";
  OK(kiln_graph_from_hlo_text(context, hlo, strlen(hlo), &g));
  kiln_value result = kiln_graph_result(g);
  push_name(g, "layer");
  a = kiln_op_add(g, result, result);
  OK(kiln_graph_pop_name_scope(g));
  push_name(g, "layer/");
  b = kiln_op_add(g, result, a);
  OP_NAME("layer_1/add", g, a);
  OP_NAME("layer/add_1", g, b);
  kiln_graph_release(g);
}

static void control(void) {
  kiln_graph* g = graph();
  kiln_value p = f32_parameter(g, "p", 2);
  kiln_value a = kiln_op_tanh(g, p), b = kiln_op_negate(g, p);
  const kiln_value both[] = {a, b};
  OK(kiln_graph_push_control_dependencies(g, both, 2));
  kiln_value q = f32_parameter(g, "q", 2), one = kiln_op_scalar(g, KILN_F32, 1);
  kiln_value c = kiln_op_sine(g, q);
  kiln_value d = kiln_op_cosine(g, c); /* waits by its operand */
  OK(kiln_graph_push_control_dependencies(g, &d, 1));
  kiln_value e = kiln_op_log(g, q), h = kiln_op_sqrt(g, e);
  OK(kiln_graph_push_control_dependencies(g, NULL, 0));
  kiln_value free_op = kiln_op_ceil(g, p);
  OK(kiln_graph_pop_control_dependencies(g));
  kiln_value i = kiln_op_floor(g, free_op); /* whose operand does not wait */
  kiln_value j = kiln_op_abs(g, b);         /* waits for an operand anyway */
  OK(kiln_graph_pop_control_dependencies(g));
  OK(kiln_graph_pop_control_dependencies(g));
  kiln_value s = kiln_op_sign(g, q);
  kiln_value results[] = {d, h, i, j, s, one};
  OK(kiln_graph_set_results(g, results, 6));
  kiln_value result = kiln_graph_result(g);
  expect_hlo(g, result, "parameter(1)\n", 1);
  expect_hlo(g, result, "constant(1)\n", 1);
  expect_hlo(g, result, "sine(%q), control-predecessors={%tanh, %negate}\n", 1);
  expect_hlo(g, result, "cosine(%sine)\n", 1);
  expect_hlo(g, result, "log(%q), control-predecessors={%cosine, %tanh, %negate}\n", 1);
  expect_hlo(g, result, "sqrt(%log)\n", 1);
  expect_hlo(g, result, "ceil(%p)\n", 1);
  expect_hlo(g, result, "floor(%ceil), control-predecessors={%cosine, %tanh, %negate}\n", 1);
  expect_hlo(g, result, "abs(%negate), control-predecessors={%cosine, %tanh}\n", 1);
  expect_hlo(g, result, "sign(%q)\n", 1);

  OK(kiln_graph_add_control_dependency(g, s, c)); /* of what came later */
  OK(kiln_graph_add_control_dependency(g, s, c));
  expect_hlo(g, result, "sine(%q), control-predecessors={%tanh, %negate, %sign}\n", 1);
  FAILS(KILN_INVALID_ARGUMENT, "'sign' cannot wait for 'floor', which needs it",
        kiln_graph_add_control_dependency(g, i, s));
  kiln_graph_release(g);

  g = graph();
  p = f32_parameter(g, "p", 2);
  a = kiln_op_tanh(g, p);
  b = kiln_op_negate(g, p);
  c = kiln_op_sine(g, a);
  OK(kiln_graph_add_control_dependency(g, b, a));
  expect_hlo(g, c, "tanh(%p), control-predecessors={%negate}\n", 1);
  FAILS(KILN_INVALID_ARGUMENT, "'negate' cannot wait for 'sine', which needs it",
        kiln_graph_add_control_dependency(g, c, b));
  FAILS(KILN_INVALID_ARGUMENT, "'tanh' cannot wait for itself",
        kiln_graph_add_control_dependency(g, a, a));
  OK(kiln_graph_status(g)); /* what is no scope changes nothing */
  kiln_graph_release(g);
}

static void mistakes(void) {
  kiln_graph* g = graph();
  FAILS(KILN_FAILED_PRECONDITION, "kiln_graph_pop_device: there is no device scope to leave",
        kiln_graph_pop_device(g));
  CHECK(f32_parameter(g, "p", 2) == 0); /* it is the graph's */
  FAILS(KILN_FAILED_PRECONDITION, "pop_device", kiln_graph_push_device(g, "GPU", 3));
  BUILD_FAILS(KILN_FAILED_PRECONDITION, "graph 'marked': kiln_graph_pop_device", g);
  g = graph();
  FAILS(KILN_FAILED_PRECONDITION, "jit scope", kiln_graph_pop_jit_scope(g));
  kiln_graph_release(g);
  g = graph();
  FAILS(KILN_FAILED_PRECONDITION, "name scope", kiln_graph_pop_name_scope(g));
  kiln_graph_release(g);
  g = graph();
  FAILS(KILN_FAILED_PRECONDITION, "control", kiln_graph_pop_control_dependencies(g));
  kiln_graph_release(g);
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "'GPU:' names no device", kiln_graph_push_device(g, "GPU:", 4));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "kiln_graph_push_device", g);
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "compile is 2", kiln_graph_push_jit_scope(g, 2));
  kiln_graph_release(g);
  static const char* const kWrong[] = {"_a", "a b", "-", "/", "\xc3\xa4"};
  for (size_t i = 0; i < sizeof kWrong / sizeof *kWrong; ++i) {
    g = graph();
    FAILS(KILN_INVALID_ARGUMENT, "is no name of a scope",
          kiln_graph_push_name_scope(g, kWrong[i], strlen(kWrong[i])));
    kiln_graph_release(g);
  }
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "name is NULL", kiln_graph_push_name_scope(g, NULL, 1));
  kiln_graph_release(g);
  kiln_graph* other = graph();
  kiln_value foreign = f32_parameter(other, "p", 2);
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "values[0]: ", kiln_graph_push_control_dependencies(g, &foreign, 1));
  kiln_graph_release(g);
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "values is NULL", kiln_graph_push_control_dependencies(g, NULL, 1));
  kiln_graph_release(g);
  g = graph();
  FAILS(KILN_INVALID_ARGUMENT, "another graph", kiln_graph_set_device(g, foreign, "GPU", 3));
  FAILS(KILN_INVALID_ARGUMENT, "another graph", kiln_graph_set_jit(g, foreign, KILN_JIT_ON));
  FAILS(KILN_INVALID_ARGUMENT, "another graph", kiln_graph_set_must_compile(g, foreign, 1));
  FAILS(KILN_INVALID_ARGUMENT, "another graph",
        kiln_graph_set_frontend_attribute(g, foreign, "k", 1, "v", 1));
  FAILS(KILN_INVALID_ARGUMENT, "another graph",
        kiln_graph_add_control_dependency(g, f32_parameter(g, "p", 2), foreign));
  FAILS(KILN_INVALID_ARGUMENT, "another graph",
        kiln_graph_add_control_dependency(g, foreign, kiln_graph_parameter(g, 0)));
  DEVICE(NULL, g, foreign);
  FAILS(KILN_INVALID_ARGUMENT, "graph is NULL", kiln_graph_push_device(NULL, "GPU", 3));
  FAILS(KILN_INVALID_ARGUMENT, "graph is NULL", kiln_graph_set_device(NULL, 1, "GPU", 3));
  OK(kiln_graph_status(g));
  kiln_graph_release(g);
  kiln_graph_release(other);
}

/* A graph of several kernels, with marks of all kinds or without. */
static kiln_executable* built(int is_marked, kiln_device* device) {
  kiln_graph* g = graph();
  kiln_value x = f32_parameter(g, "x", 8), y = f32_parameter(g, "y", 8);
  const int64_t zero = 0;
  if (is_marked) {
    push_device(g, "GPU:5");
    push_name(g, "layer");
    OK(kiln_graph_push_jit_scope(g, 0));
  }
  kiln_value sum = kiln_op_reduce_by(g, kiln_op_tanh(g, x), &zero, 1, KILN_REDUCER_SUM);
  kiln_value unused = kiln_op_exponential(g, y);
  if (is_marked) {
    OK(kiln_graph_pop_jit_scope(g));
    OK(kiln_graph_push_jit_scope(g, 1));
    const kiln_value values[] = {unused, sum};
    OK(kiln_graph_push_control_dependencies(g, values, 2));
  }
  kiln_value scaled = kiln_op_multiply(g, kiln_op_tanh(g, x), sum);
  kiln_value result = kiln_op_add(g, scaled, kiln_op_sine(g, y));
  if (is_marked) {
    OK(kiln_graph_pop_control_dependencies(g));
    OK(kiln_graph_add_control_dependency(g, kiln_op_negate(g, y), sum));
  }
  return compile_result(g, result, device);
}

static void whole_graphs_ignore_marks(const char* device_name) {
  kiln_device* device = find_device(context, device_name);
  float x[8], y[8], results[2][8];
  for (int i = 0; i < 8; ++i) {
    x[i] = 0.3f * (float)i - 1;
    y[i] = 1.7f - 0.9f * (float)i;
  }
  kiln_buffer* arguments[] = {f32_buffer(device, x, 8), f32_buffer(device, y, 8)};
  kiln_program_info info[2] = {KILN_PROGRAM_INFO_INIT, KILN_PROGRAM_INFO_INIT};
  for (int is_marked = 0; is_marked < 2; ++is_marked) {
    kiln_executable* executable = built(is_marked, device);
    OK(kiln_executable_info(executable, &info[is_marked]));
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(executable, NULL, arguments, 2, &result, 1));
    OK(kiln_buffer_copy_to_host(result, results[is_marked], sizeof results[0]));
    kiln_buffer_release(result);
    kiln_executable_release(executable);
  }
  CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
  CHECK(info[0].kernels == info[1].kernels);
  CHECK(info[0].temporary_bytes == info[1].temporary_bytes);
  kiln_buffer_release(arguments[0]);
  kiln_buffer_release(arguments[1]);
}

static char notes[32];

/* Writes down the letters of its calls. */
static kiln_error* note(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  strncat(notes, call->backend_config, call->backend_config_length);
  return NULL;
}

static kiln_value effect(kiln_graph* g, kiln_value x, const char* letter) {
  kiln_shape array = KILN_SHAPE_INIT;
  const int64_t three = 3;
  array.dtype = KILN_F32;
  array.rank = 1;
  array.dims = &three;
  const kiln_shape* results[] = {&array};
  kiln_custom_call_options options = KILN_CUSTOM_CALL_OPTIONS_INIT;
  options.backend_config = letter;
  options.backend_config_length = 1;
  options.has_side_effect = 1;
  return kiln_op_custom_call(g, "note", 4, &x, 1, results, 1, &options);
}

/* Side effects are in the demanded order, also where nothing else is. */
static void effects_wait(const char* device_name) {
  notes[0] = 0;
  kiln_graph* g = graph();
  kiln_value x = f32_parameter(g, "x", 3);
  kiln_value a = effect(g, x, "a"), b = effect(g, x, "b");
  kiln_value c = effect(g, kiln_op_negate(g, x), "c");
  effect(g, x, "d");
  OK(kiln_graph_add_control_dependency(g, c, a));
  OK(kiln_graph_add_control_dependency(g, b, kiln_op_tanh(g, x)));
  const float values[] = {1, 2, 3};
  kiln_device* device = find_device(context, device_name);
  kiln_buffer *argument = f32_buffer(device, values, 3), *result = NULL;
  kiln_executable* executable = compile_result(g, kiln_op_abs(g, x), device);
  OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1));
  if (strcmp(notes, "cabd") != 0) {
    printf("on %s the effects were %s\n", device_name, notes);
    ++failed_checks;
  }
  kiln_executable_release(executable);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
}

int main(void) {
  context = make_context(2);
  devices();
  compilation();
  names();
  control();
  mistakes();
  whole_graphs_ignore_marks("CPU:0");
  whole_graphs_ignore_marks("REFERENCE:0");
  OK(kiln_context_register_call(context, "note", 4, note, NULL, NULL));
  effects_wait("CPU:0");
  effects_wait("REFERENCE:0");
  kiln_context_release(context);
  return test_result();
}
