/* Frozen arguments: marked by number, name and in StableHLO; bound in parts and anew; packed,
 * computed with, or read as they are; counted; saved unbound. */
#include <math.h>

#include "testing.h"

/* The sizes of the product: its second factor is packed on a CPU. */
enum { kRows = 24, kDepth = 64, kColumns = 96 };

/* relu(x w^T * (scale * rsqrt(variance)) + shift), and the shift, as it is. */
static const char kLayer[] =
    "func.func @main(%x: tensor<24x64xf32> loc(\"x\"),\n"
    "    %w: tensor<96x64xf32> {kiln.frozen = true} loc(\"w\"), %scale: tensor<96xf32> "
    "loc(\"scale\"),\n"
    "    %variance: tensor<96xf32> loc(\"variance\"), %shift: tensor<96xf32> loc(\"shift\"),\n"
    "    %y: tensor<96xf32> loc(\"y\")) -> (tensor<24x96xf32>, tensor<96xf32>) {\n"
    "  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<96x64xf32>) -> tensor<64x96xf32>\n"
    "  %p = stablehlo.dot %x, %t : (tensor<24x64xf32>, tensor<64x96xf32>) -> tensor<24x96xf32>\n"
    "  %r = stablehlo.rsqrt %variance : tensor<96xf32>\n"
    "  %s = stablehlo.multiply %scale, %r : tensor<96xf32>\n"
    "  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<96xf32>) -> tensor<24x96xf32>\n"
    "  %c = stablehlo.broadcast_in_dim %shift, dims = [1] : (tensor<96xf32>) -> "
    "tensor<24x96xf32>\n"
    "  %m = stablehlo.multiply %p, %b : tensor<24x96xf32>\n"
    "  %a = stablehlo.add %m, %c : tensor<24x96xf32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<24x96xf32>\n"
    "  %u = stablehlo.maximum %a, %z : tensor<24x96xf32>\n"
    "  %v = stablehlo.add %shift, %y : tensor<96xf32>\n"
    "  return %u, %v : tensor<24x96xf32>, tensor<96xf32>\n"
    "}\n";
enum { kX, kW, kScale, kVariance, kShift, kY };

static kiln_buffer* buffer_of(kiln_device* device, const float* values, int64_t rows,
                              int64_t columns) {
  const int64_t dims[] = {rows, columns};
  const int64_t* of = rows ? dims : dims + 1;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, of, rows ? 2 : 1, values,
                           sizeof(float) * (size_t)((rows ? rows : 1) * columns), &buffer));
  return buffer;
}

/* Small whole numbers, so that sums are exact in any order. */
static float number(int64_t i, int64_t seed) { return (float)((i * 7 + seed * 3) % 11 - 5); }

static kiln_buffer* numbers(kiln_device* device, int64_t rows, int64_t columns, int64_t seed) {
  static float values[kColumns * kDepth];
  for (int64_t i = 0; i < (rows ? rows : 1) * columns; ++i) values[i] = number(i, seed);
  return buffer_of(device, values, rows, columns);
}

/* Powers of 4, the square roots of which are exact. */
static kiln_buffer* variances(kiln_device* device, int64_t seed) {
  float values[kColumns];
  for (int64_t i = 0; i < kColumns; ++i) values[i] = (i + seed) % 2 ? 4 : 0.25F;
  return buffer_of(device, values, 0, kColumns);
}

typedef struct layer {
  kiln_device* device;
  kiln_executable* executable;
  kiln_buffer *x, *y;
} layer;

/* The seeds of w, scale, variance and shift. */
typedef struct seeds {
  int64_t w, scale, variance, shift;
} seeds;

static void expect_run(const layer* of, seeds s) {
  kiln_buffer* arguments[] = {of->x, of->y};
  kiln_buffer* results[] = {NULL, NULL};
  if (!OK(kiln_executable_run(of->executable, NULL, arguments, 2, results, 2))) return;
  static float got[kRows * kColumns], sums[kColumns];
  OK(kiln_buffer_copy_to_host(results[0], got, sizeof got));
  OK(kiln_buffer_copy_to_host(results[1], sums, sizeof sums));
  int wrong = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += number(i * kDepth + k, 1) * number(j * kDepth + k, s.w);
      }
      const float root = (j + s.variance) % 2 ? 2 : 0.5F;
      const float value = sum * (number(j, s.scale) / root) + number(j, s.shift);
      wrong += got[i * kColumns + j] != (value > 0 ? value : 0);
    }
  }
  for (int64_t j = 0; j < kColumns; ++j) wrong += sums[j] != number(j, s.shift) + number(j, 2);
  CHECK(wrong == 0);
  for (int r = 0; r < 2; ++r) kiln_buffer_release(results[r]);
}

static kiln_executable* compile_layer(kiln_context* context, kiln_device* device,
                                      const char* names) {
  kiln_graph* graph = NULL;
  OK(kiln_graph_from_stablehlo(context, kLayer, sizeof kLayer - 1, NULL, &graph));
  const size_t shift = kShift;
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.frozen = &shift;
  options.frozen_count = 1;
  options.frozen_names = names;
  options.frozen_names_length = strlen(names);
  options.verify = 1;
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(graph, &options, &executable));
  kiln_graph_release(graph);
  return executable;
}

static layer make_layer(kiln_context* context, kiln_device* device) {
  layer made = {.device = device, .executable = compile_layer(context, device, "scale\nvar*ce")};
  made.x = numbers(device, kRows, kDepth, 1);
  made.y = numbers(device, 0, kColumns, 2);
  return made;
}

static void release_layer(layer* of) {
  kiln_executable_release(of->executable);
  kiln_buffer_release(of->x);
  kiln_buffer_release(of->y);
}

static kiln_error* bind_one(const layer* of, size_t argument, kiln_buffer* buffer) {
  kiln_error* error = kiln_executable_bind(of->executable, &argument, &buffer, 1);
  kiln_buffer_release(buffer);
  return error;
}

/* The scale and the variance are computed with each other: none of them is kept. */
static void bind_scale(const layer* of, int64_t scale, int64_t variance) {
  const size_t both[] = {kScale, kVariance};
  kiln_buffer* buffers[] = {numbers(of->device, 0, kColumns, scale),
                            variances(of->device, variance)};
  OK(kiln_executable_bind(of->executable, both, buffers, 2));
  for (int i = 0; i < 2; ++i) kiln_buffer_release(buffers[i]);
}

static void test_marks(const layer* of) {
  static const int32_t kFrozen[] = {0, 1, 1, 1, 1, 0, 0};
  for (size_t i = 0; i < 7; ++i) {
    CHECK(kiln_executable_argument_is_frozen(of->executable, i) == kFrozen[i]);
  }
  CHECK(kiln_executable_argument_is_frozen(NULL, 0) == 0);
  size_t index = 99;
  OK(kiln_executable_find_argument(of->executable, "variance", 8, &index));
  CHECK(index == kVariance);
  FAILS(KILN_NOT_FOUND, "no argument 'vari'",
        kiln_executable_find_argument(of->executable, "vari", 4, &index));
  CHECK(index == kVariance);
  CHECK(kiln_executable_argument_count(of->executable) == 6);
}

static void test_errors(const layer* of) {
  kiln_executable* e = of->executable;
  const size_t w = kW, x = kX, beyond = 6, twice[] = {kShift, kShift};
  kiln_buffer* result = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 'x' is not frozen",
        kiln_executable_bind(e, &x, &of->x, 1));
  FAILS(KILN_INVALID_ARGUMENT, "there are 6 arguments",
        kiln_executable_bind(e, &beyond, &of->x, 1));
  FAILS(KILN_INVALID_ARGUMENT, "argument 1 'w' is f32[24,64]",
        kiln_executable_bind(e, &w, &of->x, 1));
  FAILS(KILN_INVALID_ARGUMENT, "argument 1 'w' is NULL", kiln_executable_bind(e, &w, &result, 1));
  FAILS(KILN_INVALID_ARGUMENT, "buffers", kiln_executable_bind(e, &w, NULL, 1));
  FAILS(KILN_INVALID_ARGUMENT, "executable", kiln_executable_bind(NULL, &w, &of->x, 1));
  OK(kiln_executable_bind(e, NULL, NULL, 0));
  kiln_buffer* pair[] = {of->y, of->y};
  FAILS(KILN_INVALID_ARGUMENT, "'shift' is given twice", kiln_executable_bind(e, twice, pair, 2));
  kiln_buffer* few[] = {of->x};
  kiln_buffer* results[] = {NULL, NULL};
  FAILS(KILN_INVALID_ARGUMENT, "1 arguments are given; expected 2",
        kiln_executable_run(e, NULL, few, 1, results, 2));
}

/* In parts, each kept until the last one it is computed with is there; then anew. */
static void test_binding(const layer* of) {
  kiln_buffer* arguments[] = {of->x, of->y};
  kiln_buffer* results[] = {NULL, NULL};
  kiln_executable* e = of->executable;
#define UNBOUND(name)                                                        \
  FAILS(KILN_FAILED_PRECONDITION, name "' is frozen and has not been bound", \
        kiln_executable_run(e, NULL, arguments, 2, results, 2))
  UNBOUND("argument 1 'w");
  OK(bind_one(of, kW, numbers(of->device, kColumns, kDepth, 3)));
  UNBOUND("argument 2 'scale");
  OK(bind_one(of, kScale, numbers(of->device, 0, kColumns, 4)));
  UNBOUND("argument 3 'variance");
  OK(bind_one(of, kShift, numbers(of->device, 0, kColumns, 6)));
  UNBOUND("argument 3 'variance");
#undef UNBOUND
  OK(bind_one(of, kVariance, variances(of->device, 5)));
  expect_run(of, (seeds){3, 4, 5, 6});
  OK(bind_one(of, kW, numbers(of->device, kColumns, kDepth, 7)));
  expect_run(of, (seeds){7, 4, 5, 6});
  OK(bind_one(of, kShift, numbers(of->device, 0, kColumns, 8)));
  bind_scale(of, 9, 10);
  expect_run(of, (seeds){7, 9, 10, 8});
  /* What fails leaves everything as it was. */
  const size_t all[] = {kW, kX};
  kiln_buffer* buffers[] = {numbers(of->device, kColumns, kDepth, 1), of->x};
  FAILS(KILN_INVALID_ARGUMENT, "not frozen", kiln_executable_bind(e, all, buffers, 2));
  kiln_buffer_release(buffers[0]);
  expect_run(of, (seeds){7, 9, 10, 8});
}

/* On devices that make something of the scale and the variance, neither is kept. */
static void test_alone(const layer* of) {
  FAILS(KILN_FAILED_PRECONDITION,
        "argument 2 'scale' is bound anew without argument 3 'variance', which is computed with it",
        bind_one(of, kScale, numbers(of->device, 0, kColumns, 1)));
  expect_run(of, (seeds){7, 9, 10, 8});
}

/* The shift is read as it is: it stays, and nobody may take or write it. */
static void test_kept(const layer* of) {
  kiln_buffer* shift = numbers(of->device, 0, kColumns, 11);
  const size_t number_of_shift = kShift, donated = kY, frozen = kShift;
  OK(kiln_executable_bind(of->executable, &number_of_shift, &shift, 1));
  kiln_buffer* arguments[] = {of->x, shift};
  kiln_buffer* results[] = {NULL, NULL};
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = &donated;
  options.donated_count = 1;
  FAILS(KILN_FAILED_PRECONDITION, "argument 5 is donated, and bound as a frozen argument",
        kiln_executable_run(of->executable, &options, arguments, 2, results, 2));
  options.donated = &frozen;
  FAILS(KILN_INVALID_ARGUMENT, "argument 4 is donated, and is frozen",
        kiln_executable_run(of->executable, &options, arguments, 2, results, 2));
  results[1] = shift;
  arguments[1] = of->y;
  FAILS(KILN_FAILED_PRECONDITION, "is bound as a frozen argument",
        kiln_executable_run(of->executable, NULL, arguments, 2, results, 2));
  expect_run(of, (seeds){7, 9, 10, 11});
  OK(bind_one(of, kShift, numbers(of->device, 0, kColumns, 12)));
  results[0] = NULL;
  OK(kiln_executable_run(of->executable, NULL, arguments, 2, results, 2));
  kiln_buffer_release(results[0]);
  kiln_buffer_release(shift);
  expect_run(of, (seeds){7, 9, 10, 12});
}

/* What has been donated cannot be bound. */
static void test_donated(const layer* of) {
  kiln_buffer* arguments[] = {of->x, numbers(of->device, 0, kColumns, 2)};
  kiln_buffer* results[] = {NULL, NULL};
  const size_t donated = kY;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = &donated;
  options.donated_count = 1;
  OK(kiln_executable_run(of->executable, &options, arguments, 2, results, 2));
  for (int r = 0; r < 2; ++r) kiln_buffer_release(results[r]);
  FAILS(KILN_FAILED_PRECONDITION, "argument 4 'shift'", bind_one(of, kShift, arguments[1]));
  expect_run(of, (seeds){7, 9, 10, 12});
}

/* Packed weights are in memory once, and go with the executable. */
static void test_memory(kiln_context* context, const layer* of) {
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  OK(kiln_executable_memory(of->executable, &memory));
  const int64_t w = kColumns * kDepth * 4, vector = kColumns * 4;
  CHECK(memory.argument_bytes == kRows * kDepth * 4 + vector);
  /* Panels are padded; of the scale and the variance one vector is left. */
  CHECK(memory.frozen_bytes >= w + 2 * vector && memory.frozen_bytes <= w + w / 4 + 3 * vector);
  CHECK(memory.peak_bytes == memory.argument_bytes + memory.output_bytes + memory.temporary_bytes +
                                 memory.constant_bytes + memory.frozen_bytes);
  if (strcmp(kiln_device_name(of->device, NULL), "CPU:0") != 0) return;
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, after = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &before));
  OK(bind_one(of, kW, numbers(of->device, kColumns, kDepth, 13)));
  OK(kiln_context_memory(context, &after));
  CHECK(after.live_bytes == before.live_bytes);
  expect_run(of, (seeds){13, 9, 10, 12});
}

/* A saved program has the marks, and nothing that is bound. */
static void test_saved(const layer* of) {
  kiln_text* text = NULL;
  if (!OK(kiln_executable_serialize(of->executable, &text))) return;
  size_t size = 0;
  const char* bytes = kiln_text_data(text, &size);
  layer loaded = *of;
  OK(kiln_executable_load(of->device, bytes, size, &loaded.executable));
  kiln_text_release(text);
  kiln_buffer* arguments[] = {of->x, of->y};
  kiln_buffer* results[] = {NULL, NULL};
  FAILS(KILN_FAILED_PRECONDITION, "argument 1 'w' is frozen and has not been bound",
        kiln_executable_run(loaded.executable, NULL, arguments, 2, results, 2));
  OK(bind_one(&loaded, kW, numbers(of->device, kColumns, kDepth, 14)));
  OK(bind_one(&loaded, kShift, numbers(of->device, 0, kColumns, 15)));
  bind_scale(&loaded, 16, 17);
  expect_run(&loaded, (seeds){14, 16, 17, 15});
  kiln_executable_release(loaded.executable);
}

static void test_compile_errors(kiln_context* context, kiln_device* device) {
  kiln_graph* graph = NULL;
  OK(kiln_graph_from_stablehlo(context, kLayer, sizeof kLayer - 1, NULL, &graph));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* executable = NULL;
  size_t number_of_one = 6;
  options.frozen_count = 1;
  FAILS(KILN_INVALID_ARGUMENT, "frozen is NULL", kiln_graph_compile(graph, &options, &executable));
  options.frozen = &number_of_one;
  FAILS(KILN_INVALID_ARGUMENT, "frozen argument 6: there are 6 arguments",
        kiln_graph_compile(graph, &options, &executable));
  number_of_one = kY;
  options.donors = &number_of_one;
  options.donor_count = 1;
  FAILS(KILN_INVALID_ARGUMENT, "frozen argument 5 may be donated",
        kiln_graph_compile(graph, &options, &executable));
  options.donor_count = 0;
  options.frozen_names = "sc*\nb*";
  options.frozen_names_length = strlen(options.frozen_names);
  FAILS(KILN_NOT_FOUND, "there is no argument 'b*'; there are x, w, scale, variance, shift, y",
        kiln_graph_compile(graph, &options, &executable));
  kiln_graph_release(graph);
  kiln_executable* plain = NULL;
  kiln_graph* sum = make_graph(context, "sum");
  kiln_value a = f32_parameter(sum, "a", 4);
  plain = compile_result(sum, kiln_op_add(sum, a, a), device);
  const size_t first = 0;
  const float four[] = {1, 2, 3, 4};
  kiln_buffer* buffer = f32_buffer(device, four, 4);
  FAILS(KILN_INVALID_ARGUMENT, "'sum' has no frozen arguments",
        kiln_executable_bind(plain, &first, &buffer, 1));
  kiln_buffer_release(buffer);
  kiln_executable_release(plain);
}

/* A result made of frozen arguments alone, of some in tuples, and one that is an argument itself.
 */
static void test_whole_results(kiln_context* context, kiln_device* device) {
  static const char kText[] =
      "HloModule whole\n"
      "ENTRY main {\n"
      "  p = (f32[4], (f32[4], f32[4])) parameter(0)\n"
      "  a = f32[4] get-tuple-element(p), index=0\n"
      "  q = (f32[4], f32[4]) get-tuple-element(p), index=1\n"
      "  b = f32[4] get-tuple-element(q), index=0\n"
      "  c = f32[4] get-tuple-element(q), index=1\n"
      "  d = f32[4] add(a, c)\n"
      "  e = f32[4] multiply(d, c)\n"
      "  f = f32[4] subtract(b, e)\n"
      "  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(e, f, c, d)\n"
      "}\n";
  kiln_graph* graph = NULL;
  OK(kiln_graph_from_hlo_text(context, kText, sizeof kText - 1, &graph));
  const size_t frozen[] = {0, 2};
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.frozen = frozen;
  options.frozen_count = 2;
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(graph, &options, &e));
  kiln_graph_release(graph);
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[] = {-1, 0, 1, 2};
  kiln_buffer* bound[] = {f32_buffer(device, a, 4), f32_buffer(device, c, 4)};
  kiln_buffer* argument = f32_buffer(device, b, 4);
  OK(kiln_executable_bind(e, frozen, bound, 2));
  for (int i = 0; i < 2; ++i) kiln_buffer_release(bound[i]);
  kiln_buffer* results[4] = {NULL};
  OK(kiln_executable_run(e, NULL, &argument, 1, results, 4));
  const float d_expected[] = {0, 2, 4, 6}, e_expected[] = {0, 0, 4, 12},
              f_expected[] = {5, 6, 3, -4};
  expect_f32(results[0], e_expected, 4);
  expect_f32(results[1], f_expected, 4);
  expect_f32(results[2], c, 4);
  expect_f32(results[3], d_expected, 4);
  for (int i = 0; i < 4; ++i) kiln_buffer_release(results[i]);
  kiln_buffer_release(argument);
  kiln_executable_release(e);
}

int main(void) {
  kiln_context* context = make_context_with(2, tested_gpu());
  static const char* const kDevices[] = {"CPU:0", "GPU:0", "REFERENCE:0"};
  for (int d = 0; d < 3; ++d) {
    kiln_device* device = find_device(context, kDevices[d]);
    layer of = make_layer(context, device);
    test_marks(&of);
    test_errors(&of);
    test_binding(&of);
    if (d < 2) test_alone(&of);
    test_kept(&of);
    test_donated(&of);
    if (d < 2) test_memory(context, &of);
    test_saved(&of);
    release_layer(&of);
    test_compile_errors(context, device);
    test_whole_results(context, device);
  }
  kiln_context_release(context);
  return test_result();
}
