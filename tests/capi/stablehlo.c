/* Graphs out of StableHLO. */
#include "testing.h"

static const char kAdd[] =
    "module @adder {\n"
    "  func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {\n"
    "    %0 = stablehlo.add %x, %y : tensor<3xf32>\n"
    "    %1 = call @twice(%0) : (tensor<3xf32>) -> tensor<3xf32>\n"
    "    return %1 : tensor<3xf32>\n"
    "  }\n"
    "  func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
    "    %0 = stablehlo.add %x, %x : tensor<3xf32>\n"
    "    return %0 : tensor<3xf32>\n"
    "  }\n"
    "}\n";

static const char kOpen[] =
    "func.func @first(%x: tensor<?x2xf32>) -> tensor<?xf32> {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : "
    "(tensor<?x2xf32>, tensor<f32>) -> tensor<?xf32>\n"
    "  return %0 : tensor<?xf32>\n"
    "}\n"
    "func.func @second() {\n"
    "  return\n"
    "}\n";

/* Compiles and runs the graph, whose one result is those floats. */
static void run(const kiln_graph* graph, kiln_buffer* const* arguments, size_t argument_count,
                const float* expected, size_t count) {
  kiln_executable* executable = NULL;
  if (!OK(kiln_graph_compile(graph, NULL, &executable))) return;
  kiln_buffer* result = NULL;
  if (OK(kiln_executable_run(executable, NULL, arguments, argument_count, &result, 1))) {
    expect_f32(result, expected, count);
    kiln_buffer_release(result);
  }
  kiln_executable_release(executable);
}

static void whole_program(kiln_context* context, kiln_device* device) {
  kiln_graph* graph = NULL;
  if (!OK(kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), NULL, &graph))) return;
  CHECK(kiln_graph_parameter_count(graph) == 2);
  kiln_text* hlo = NULL;
  OK(kiln_graph_to_hlo_text(graph, &hlo));
  CHECK(strstr(kiln_text_data(hlo, NULL), "HloModule adder") != NULL);
  kiln_text_release(hlo);
  const float x[] = {1, 2, 3}, y[] = {10, 20, 30}, expected[] = {22, 44, 66};
  kiln_buffer* arguments[] = {f32_buffer(device, x, 3), f32_buffer(device, y, 3)};
  run(graph, arguments, 2, expected, 3);
  for (int i = 0; i < 2; ++i) kiln_buffer_release(arguments[i]);
  kiln_graph_release(graph);
}

/* Arguments have the names that the program tells, in errors too. */
static void names_of_arguments(kiln_context* context, kiln_device* device) {
  static const char program[] =
      "func.func public @main(%arg0: tensor<3xf32> loc(\"p['layer00']['b1']\"), %arg1: "
      "tensor<3xf32> "
      "loc(#loc3)) -> (tensor<3xf32> {jax.result_info = \"result\"}) {\n"
      "  %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32> loc(\"jit(f)/add\")\n"
      "  return %0 : tensor<3xf32>\n"
      "}\n"
      "#loc3 = loc(\"x[0]\"(\"f.py\":2:1))\n";
  static const char* const expected[] = {"p['layer00']['b1']", "x[0]"};
  kiln_graph* graph = NULL;
  if (!OK(kiln_graph_from_stablehlo(context, program, strlen(program), NULL, &graph))) return;
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* executable = NULL;
  if (OK(kiln_graph_compile(graph, &options, &executable))) {
    for (size_t i = 0; i < 2; ++i) {
      size_t length = 0;
      const char* name = kiln_executable_argument_name(executable, i, &length);
      CHECK(name && strcmp(name, expected[i]) == 0 && length == strlen(name));
    }
    const float x[] = {1, 2};
    kiln_buffer* arguments[] = {f32_buffer(device, x, 2), f32_buffer(device, x, 2)};
    kiln_buffer* result = NULL;
    FAILS(KILN_INVALID_ARGUMENT, "argument 0 'p['layer00']['b1']'",
          kiln_executable_run(executable, NULL, arguments, 2, &result, 1));
    for (int i = 0; i < 2; ++i) kiln_buffer_release(arguments[i]);
    kiln_executable_release(executable);
  }
  kiln_text* dot = NULL;
  OK(kiln_graph_to_dot(graph, &dot));
  CHECK(strstr(kiln_text_data(dot, NULL), "\\njit(f)/add\"") != NULL);
  kiln_text_release(dot);
  kiln_graph_release(graph);
}

/* Sizes that the program leaves open, and a function that is not main. */
static void open_sizes(kiln_context* context, kiln_device* device) {
  const int64_t dims[] = {3, 2};
  kiln_shape shape = KILN_SHAPE_INIT;
  shape.dtype = KILN_F32;
  shape.rank = 2;
  shape.dims = dims;
  const kiln_shape* shapes[] = {&shape};
  kiln_stablehlo_options options = KILN_STABLEHLO_OPTIONS_INIT;
  options.entry = "first";
  options.entry_length = strlen(options.entry);
  kiln_graph* graph = NULL;
  FAILS(KILN_UNIMPLEMENTED, "the size of dimension 0 of tensor<?x2xf32> is not known",
        kiln_graph_from_stablehlo(context, kOpen, strlen(kOpen), &options, &graph));
  options.arguments = shapes;
  options.argument_count = 1;
  if (!OK(kiln_graph_from_stablehlo(context, kOpen, strlen(kOpen), &options, &graph))) return;
  const float x[] = {1, 2, 3, 4, 5, 6}, expected[] = {3, 7, 11};
  kiln_buffer* argument = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, dims, 2, x, sizeof x, &argument));
  run(graph, &argument, 1, expected, 3);
  kiln_buffer_release(argument);
  kiln_graph_release(graph);
}

static void mistakes(kiln_context* context) {
  kiln_graph* graph = NULL;
  const char wrong[] = "func.func @main() {\n  %0 = stablehlo.nothing\n  return\n}\n";
  FAILS(KILN_UNIMPLEMENTED, "line 2, column 8",
        kiln_graph_from_stablehlo(context, wrong, strlen(wrong), NULL, &graph));
  FAILS(KILN_INVALID_ARGUMENT, "line 1, column 1",
        kiln_graph_from_stablehlo(context, "@", 1, NULL, &graph));
  FAILS(KILN_INVALID_ARGUMENT, "several that are public",
        kiln_graph_from_stablehlo(context, kOpen, strlen(kOpen), NULL, &graph));
  FAILS(KILN_INVALID_ARGUMENT, "program is NULL",
        kiln_graph_from_stablehlo(context, NULL, 3, NULL, &graph));
  FAILS(KILN_INVALID_ARGUMENT, "graph is NULL",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), NULL, NULL));
  kiln_stablehlo_options options;
  kiln_stablehlo_options_init(&options, sizeof(options));
  options.entry = "none";
  options.entry_length = 4;
  FAILS(KILN_NOT_FOUND, "no function @none",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  options.entry_length = 0;
  int32_t cancel = 1;
  options.cancel = &cancel;
  FAILS(KILN_CANCELLED, "cancelled",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  cancel = 0;
  options.timeout_ns = 1;
  FAILS(KILN_DEADLINE_EXCEEDED, "the deadline",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  options.timeout_ns = -1;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_stablehlo_options.timeout_ns is -1",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  options.timeout_ns = 0;
  options.argument_count = 2;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_stablehlo_options.arguments is NULL",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  const kiln_shape* shapes[] = {NULL, NULL};
  options.arguments = shapes;
  FAILS(KILN_INVALID_ARGUMENT, "kiln_stablehlo_options.arguments[0] is NULL",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  kiln_shape scalar = KILN_SHAPE_INIT;
  scalar.dtype = KILN_F32;
  shapes[0] = shapes[1] = &scalar;
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 is of tensor<3xf32>; the shape f32[] was given",
        kiln_graph_from_stablehlo(context, kAdd, strlen(kAdd), &options, &graph));
  CHECK(graph == NULL);
}

int main(void) {
  kiln_context* context = make_context(1);
  kiln_device* device = find_device(context, "CPU:0");
  whole_program(context, device);
  names_of_arguments(context, device);
  open_sizes(context, device);
  mistakes(context);
  kiln_context_release(context);
  return test_result();
}
