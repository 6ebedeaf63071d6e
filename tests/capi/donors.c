/* Arguments that executions may take although no alias names them, by marks of StableHLO and by the
 * compiler's option; and the attributes of a program's arguments and results. */
#include "testing.h"

static const char kProgram[] =
    "func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true, mhlo.memory_kind = "
    "\"pinned_host\"},\n"
    "    %b: tensor<4xf32> {tf.aliasing_output = 1 : i32},\n"
    "    %c: tensor<2xf32> {jax.buffer_donor = true},\n"
    "    %d: tensor<4xf32> {jax.buffer_donor = false})\n"
    "    -> (tensor<4xf32> {mhlo.layout_mode = \"default\"}, tensor<4xf32>, tensor<4xf32>) {\n"
    "  %s = stablehlo.add %a, %b : tensor<4xf32>\n"
    "  %m = stablehlo.multiply %a, %b : tensor<4xf32>\n"
    "  %z = stablehlo.slice %c [0:1] : (tensor<2xf32>) -> tensor<1xf32>\n"
    "  %y = stablehlo.reshape %z : (tensor<1xf32>) -> tensor<f32>\n"
    "  %x = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<4xf32>\n"
    "  %t = stablehlo.add %x, %d : tensor<4xf32>\n"
    "  return %s, %m, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>\n"
    "}\n";

static kiln_graph* read_program(kiln_context* context) {
  kiln_graph* graph = NULL;
  OK(kiln_graph_from_stablehlo(context, kProgram, sizeof kProgram - 1, NULL, &graph));
  return graph;
}

static int is_attribute(const char* text, size_t length, const char* expected) {
  if (!expected) return !text && length == 0;
  return text && strlen(expected) == length && strcmp(text, expected) == 0;
}

static void test_attributes(kiln_context* context) {
  kiln_graph* graph = read_program(context);
  static const struct {
    size_t index;
    const char *name, *expected;
  } kRows[] = {{0, "jax.buffer_donor", "true"},  {0, "mhlo.memory_kind", "pinned_host"},
               {1, "tf.aliasing_output", "1"},   {1, "mhlo.memory_kind", NULL},
               {3, "jax.buffer_donor", "false"}, {4, "jax.buffer_donor", NULL}};
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; ++i) {
    size_t length = 99;
    const char* text = kiln_graph_argument_attribute(graph, kRows[i].index, kRows[i].name,
                                                     strlen(kRows[i].name), &length);
    CHECK(is_attribute(text, length, kRows[i].expected));
  }
  size_t length = 99;
  const char* text = kiln_graph_result_attribute(graph, 0, "mhlo.layout_mode", 16, &length);
  CHECK(is_attribute(text, length, "default"));
  text = kiln_graph_result_attribute(graph, 1, "mhlo.layout_mode", 16, &length);
  CHECK(is_attribute(text, length, NULL));
  CHECK(!kiln_graph_result_attribute(graph, 0, NULL, 0, NULL));
  CHECK(!kiln_graph_argument_attribute(NULL, 0, "x", 1, NULL));
  kiln_graph_release(graph);
}

/* Argument 0 has result 0's memory, 1 has result 1's, and 2 fits no result. */
static void test_marks(kiln_context* context) {
  kiln_graph* graph = read_program(context);
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(graph, NULL, &executable));
  kiln_graph_release(graph);
  static const int32_t kDonatable[] = {1, 1, 1, 0, 0};
  for (size_t i = 0; i < 5; ++i) {
    CHECK(kiln_executable_argument_is_donatable(executable, i) == kDonatable[i]);
  }
  CHECK(kiln_executable_argument_is_donatable(NULL, 0) == 0);
  static const int64_t kAliases[] = {0, 1, -1};
  for (size_t i = 0; i < 3; ++i) {
    int64_t argument = -2;
    OK(kiln_executable_result_alias(executable, i, &argument));
    CHECK(argument == kAliases[i]);
  }
  kiln_device* device = find_device(context, "CPU:0");
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[] = {10, 20}, d[] = {0, 1, 2, 3};
  for (int donating = 0; donating < 2; ++donating) {
    kiln_buffer* arguments[] = {f32_buffer(device, a, 4), f32_buffer(device, b, 4),
                                f32_buffer(device, c, 2), f32_buffer(device, d, 4)};
    const void *before = NULL, *after = NULL;
    OK(kiln_buffer_data(arguments[0], &before));
    const size_t donated[] = {0, 2};
    kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
    options.donated = donated;
    options.donated_count = donating ? 2 : 0;
    kiln_buffer* results[3] = {NULL, NULL, NULL};
    OK(kiln_executable_run(executable, &options, arguments, 4, results, 3));
    OK(kiln_buffer_data(results[0], &after));
    CHECK((before == after) == donating);
    float values[4];
    OK(kiln_buffer_copy_to_host(results[0], values, sizeof values));
    CHECK(values[0] == 6 && values[3] == 12);
    OK(kiln_buffer_copy_to_host(results[1], values, sizeof values));
    CHECK(values[0] == 5 && values[3] == 32);
    OK(kiln_buffer_copy_to_host(results[2], values, sizeof values));
    CHECK(values[0] == 10 && values[3] == 13);
    if (donating) {
      FAILS(KILN_FAILED_PRECONDITION, "donated", kiln_buffer_data(arguments[2], &after));
      FAILS(KILN_FAILED_PRECONDITION, "donated", kiln_buffer_address(arguments[2], &after));
    }
    for (int i = 0; i < 4; ++i) kiln_buffer_release(arguments[i]);
    for (int i = 0; i < 3; ++i) kiln_buffer_release(results[i]);
  }
  kiln_executable_release(executable);
}

static void test_option(kiln_context* context) {
  kiln_graph* graph = make_graph(context, "g");
  const kiln_value x = f32_parameter(graph, "x", 8), y = f32_parameter(graph, "y", 8);
  const kiln_value sum = kiln_op_add(graph, x, y);
  OK(kiln_graph_set_results(graph, &sum, 1));
  const size_t donors[] = {1, 0};
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.donors = donors;
  options.donor_count = 2;
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(graph, &options, &executable));
  int64_t argument = -2;
  OK(kiln_executable_result_alias(executable, 0, &argument));
  CHECK(argument == 1);
  CHECK(kiln_executable_argument_is_donatable(executable, 0) == 1);
  CHECK(kiln_executable_argument_is_donatable(executable, 1) == 1);
  kiln_executable_release(executable);
  const size_t beyond = 2;
  options.donors = &beyond;
  options.donor_count = 1;
  executable = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "donor 2: there are 2 arguments",
        kiln_graph_compile(graph, &options, &executable));
  options.donors = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "donors is NULL", kiln_graph_compile(graph, &options, &executable));
  kiln_graph_release(graph);
}

int main(void) {
  kiln_context* context = make_context(2);
  test_attributes(context);
  test_marks(context);
  test_option(context);
  kiln_context_release(context);
  return test_result();
}
