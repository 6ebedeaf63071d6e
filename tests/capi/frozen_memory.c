/* The memory of frozen arguments: counted, let go where nothing reads it, replaced, and left as it
 * was by what fails. */
#include <stdatomic.h>

#include "testing.h"

/* x w^T + b: on a CPU w is packed, and b is read as it is. */
enum { kRows = 24, kDepth = 64, kColumns = 96 };
enum { kX, kW, kB };
static const int64_t kDims[3][2] = {{kRows, kDepth}, {kColumns, kDepth}, {kRows, kColumns}};

static int64_t elements(int argument) { return kDims[argument][0] * kDims[argument][1]; }

/* What the context has allocated, and after how many more allocations one fails; -1: none. */
static _Atomic int64_t live_bytes;
static atomic_int allocations_left = -1;

static void* allocate(void* user_data, size_t bytes, size_t alignment) {
  (void)user_data;
  if (allocations_left >= 0 && allocations_left-- == 0) return NULL;
  void* memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory) live_bytes += (int64_t)bytes;
  return memory;
}

static void deallocate(void* user_data, void* memory, size_t bytes, size_t alignment) {
  (void)user_data;
  (void)alignment;
  live_bytes -= (int64_t)bytes;
  free(memory);
}

static kiln_context* make_counted_context(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.gpu = KILN_GPU_OFF;
  options.allocate = allocate;
  options.deallocate = deallocate;
  kiln_context* context = NULL;
  OK(kiln_context_create(&options, &context));
  return context;
}

static kiln_executable* compile_layer(kiln_context* context, kiln_device* device) {
  kiln_graph* g = make_graph(context, "layer");
  kiln_value in[3];
  static const char* const kNames[] = {"x", "w", "b"};
  for (int i = 0; i < 3; ++i) in[i] = kiln_op_parameter(g, KILN_F32, kDims[i], 2, kNames[i], 1);
  const int64_t one = 1;
  kiln_value y = kiln_op_dot(g, in[kX], in[kW], NULL, 0, NULL, 0, &one, 1, &one, 1, KILN_F32);
  y = kiln_op_add(g, y, in[kB]);
  OK(kiln_graph_set_results(g, &y, 1));
  static const size_t kFrozen[] = {kW, kB};
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.frozen = kFrozen;
  options.frozen_count = 2;
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(g, &options, &executable));
  kiln_graph_release(g);
  return executable;
}

static kiln_buffer* filled(kiln_device* device, int argument, float value) {
  float* values = malloc((size_t)elements(argument) * sizeof(float));
  for (int64_t i = 0; i < elements(argument); ++i) values[i] = value;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, kDims[argument], 2, values,
                           (size_t)elements(argument) * sizeof(float), &buffer));
  free(values);
  return buffer;
}

/* The same in memory of the user's, whose end is counted. */
typedef struct adopted {
  float* memory;
  int ends;
} adopted;

static void end_adopted(void* user_data) {
  adopted* a = user_data;
  free(a->memory);
  ++a->ends;
}

static kiln_buffer* adopt(kiln_device* device, int argument, float value, adopted* a) {
  const size_t bytes = (size_t)elements(argument) * sizeof(float);
  *a = (adopted){aligned_alloc(KILN_ALIGNMENT, bytes), 0};
  for (int64_t i = 0; i < elements(argument); ++i) a->memory[i] = value;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_adopt_host(device, KILN_F32, kDims[argument], 2, a->memory, bytes, end_adopted, a,
                            &buffer));
  return buffer;
}

static void bind_and_release(kiln_executable* e, size_t argument, kiln_buffer* buffer) {
  OK(kiln_executable_bind(e, &argument, &buffer, 1));
  kiln_buffer_release(buffer);
}

/* A run with x of ones. */
static void expect_run(kiln_executable* e, float w, float b) {
  kiln_buffer *x = filled(kiln_executable_device(e), kX, 1), *result = NULL;
  float got[kRows * kColumns];
  if (OK(kiln_executable_run(e, NULL, &x, 1, &result, 1))) {
    OK(kiln_buffer_copy_to_host(result, got, sizeof got));
    int wrong = 0;
    for (int i = 0; i < kRows * kColumns; ++i) wrong += got[i] != kDepth * w + b;
    CHECK(wrong == 0);
  }
  kiln_buffer_release(result);
  kiln_buffer_release(x);
}

/* The packed form is the only one left of w, also after w is bound anew; b is the user's memory,
 * up to its successor. kiln_program_memory::frozen_bytes is the sum of both. */
static void test_memory(kiln_context* context) {
  kiln_device* device = find_device(context, "CPU:0");
  kiln_executable* e = compile_layer(context, device);
  const int64_t at_first = live_bytes;
  adopted w, b, next_w, next_b;
  kiln_buffer* weights = adopt(device, kW, 3, &w);
  bind_and_release(e, kW, weights);
  CHECK(w.ends == 1);
  bind_and_release(e, kB, adopt(device, kB, 5, &b));
  CHECK(b.ends == 0);
  const int64_t packed = live_bytes - at_first, b_bytes = elements(kB) * 4;
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  OK(kiln_executable_memory(e, &memory));
  CHECK(packed >= elements(kW) * 4 && memory.frozen_bytes == packed + b_bytes);
  CHECK(memory.argument_bytes == elements(kX) * 4);
  expect_run(e, 3, 5);
  const int64_t between_runs = live_bytes;
  bind_and_release(e, kW, adopt(device, kW, 4, &next_w));
  CHECK(next_w.ends == 1 && b.ends == 0 && live_bytes == between_runs);
  bind_and_release(e, kB, adopt(device, kB, 6, &next_b));
  CHECK(b.ends == 1 && next_b.ends == 0 && live_bytes == between_runs);
  expect_run(e, 4, 6);
  kiln_executable_release(e);
  CHECK(next_b.ends == 1 && live_bytes <= at_first);
}

/* One allocation after the other fails: nothing has changed, and the buffers are free. */
static void test_failures(kiln_context* context) {
  kiln_device* device = find_device(context, "CPU:0");
  kiln_executable* e = compile_layer(context, device);
  bind_and_release(e, kW, filled(device, kW, 1));
  bind_and_release(e, kB, filled(device, kB, 2));
  expect_run(e, 1, 2);
  int failures = 0;
  for (int done = 0; !done; ++failures) {
    const size_t both[] = {kB, kW};
    kiln_buffer* buffers[] = {filled(device, kB, 3), filled(device, kW, 4)};
    const int64_t before = live_bytes;
    allocations_left = failures;
    kiln_error* error = kiln_executable_bind(e, both, buffers, 2);
    done = allocations_left >= 0;
    allocations_left = -1;
    if (done) {
      OK(error);
      expect_run(e, 4, 3);
    } else {
      FAILS(KILN_RESOURCE_EXHAUSTED, "", error);
      CHECK(live_bytes == before);
      expect_run(e, 1, 2);
      kiln_buffer* x = filled(device, kX, 1);
      OK(kiln_executable_run(e, NULL, &x, 1, &buffers[0], 1));
      kiln_buffer_release(x);
    }
    for (int i = 0; i < 2; ++i) kiln_buffer_release(buffers[i]);
  }
  CHECK(failures >= 2);
  kiln_executable_release(e);
}

/* A buffer whose execution has failed is bound nowhere. */
static void test_failed_value(kiln_context* context, kiln_device* device) {
  kiln_executable* e = compile_layer(context, device);
  bind_and_release(e, kW, filled(device, kW, 1));
  bind_and_release(e, kB, filled(device, kB, 2));
  const int32_t cancel = 1;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.cancel = &cancel;
  kiln_buffer *x = filled(device, kX, 1), *result = NULL;
  kiln_buffer* const* arguments = &x;
  kiln_buffer** results = &result;
  kiln_event* event = NULL;
  OK(kiln_executable_execute(e, &options, &arguments, 1, &results, 1, 1, &event));
  const size_t b = kB;
  FAILS(KILN_CANCELLED, "cancelled", kiln_executable_bind(e, &b, &result, 1));
  kiln_event_release(event);
  kiln_buffer_release(result);
  kiln_buffer_release(x);
  expect_run(e, 1, 2);
  kiln_executable_release(e);
}

/* Bound memory is written under no other name. */
static void test_overlap(kiln_context* context) {
  kiln_device* device = find_device(context, "CPU:0");
  kiln_executable* e = compile_layer(context, device);
  bind_and_release(e, kW, filled(device, kW, 1));
  adopted b;
  kiln_buffer *bound = adopt(device, kB, 2, &b), *alias = NULL;
  kiln_event* end = NULL;
  OK(kiln_buffer_borrow_host(device, KILN_F32, kDims[kB], 2, b.memory,
                             (size_t)elements(kB) * sizeof(float), &end, &alias));
  bind_and_release(e, kB, bound);
  kiln_buffer* x = filled(device, kX, 1);
  FAILS(KILN_INVALID_ARGUMENT, "result 0 shares memory with frozen argument 2",
        kiln_executable_run(e, NULL, &x, 1, &alias, 1));
  expect_run(e, 1, 2);
  bind_and_release(e, kB, filled(device, kB, 3));
  kiln_buffer_release(alias);
  OK(kiln_event_wait(end, -1));
  kiln_event_release(end);
  CHECK(b.ends == 1);
  kiln_buffer_release(x);
  kiln_executable_release(e);
}

/* Frozen arrays of every type, one of them bound as two arguments: results as they are, and
 * transposed, which is computed when they are bound. No argument is left to the executions. */
static void test_type(kiln_context* context, kiln_device* device, kiln_dtype dtype) {
  static const int64_t kSizes[] = {2, 3}, kOrder[] = {1, 0};
  kiln_graph* g = make_graph(context, "types");
  kiln_value a = kiln_op_parameter(g, dtype, kSizes, 2, "a", 1);
  kiln_value c = kiln_op_parameter(g, dtype, kSizes, 2, "c", 1);
  const kiln_value out[] = {kiln_op_transpose(g, a, kOrder, 2), a, c};
  OK(kiln_graph_set_results(g, out, 3));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.frozen_names = "a\nc";
  options.frozen_names_length = 3;
  kiln_executable* e = NULL;
  if (!OK(kiln_graph_compile(g, &options, &e))) exit(1);
  kiln_graph_release(g);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_executable_argument_shape(e, 0, &shape));
  const size_t bytes = (size_t)shape.byte_size, each = bytes / 6;
  unsigned char values[6 * 16], got[6 * 16];
  CHECK(each > 0 && bytes == 6 * each);
  /* Bytes that are elements of the narrowest types, too. */
  for (size_t i = 0; i < bytes; ++i) values[i] = (unsigned char)(i / each * 3 % 7 % 2);
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, dtype, kSizes, 2, values, bytes, &buffer));
  const size_t both[] = {0, 1};
  kiln_buffer* bound[] = {buffer, buffer};
  OK(kiln_executable_bind(e, both, bound, 2));
  kiln_buffer_release(buffer);
  kiln_buffer* results[3] = {NULL};
  if (!OK(kiln_executable_run(e, NULL, NULL, 0, results, 3))) {
    printf("of type %s on %s\n", kiln_dtype_name(dtype), kiln_device_name(device, NULL));
    exit(1);
  }
  for (int r = 0; r < 3; ++r) {
    OK(kiln_buffer_copy_to_host(results[r], got, bytes));
    int wrong = 0;
    for (size_t i = 0; i < 6; ++i) {
      const size_t from = r == 0 ? i % 2 * 3 + i / 2 : i;
      wrong += memcmp(got + i * each, values + from * each, each) != 0;
    }
    if (wrong) printf("result %d of type %s\n", r, kiln_dtype_name(dtype));
    CHECK(wrong == 0);
    kiln_buffer_release(results[r]);
  }
  kiln_executable_release(e);
}

static void test_types(kiln_context* context, kiln_device* device) {
  for (kiln_dtype dtype = KILN_PRED; dtype <= KILN_F6E3M2FN; ++dtype) {
    if (kiln_dtype_bits(dtype) > 0) test_type(context, device, dtype);
  }
}

/* Sessions bind nothing: arguments with marks are fed like others. */
static void test_session(kiln_context* context, kiln_device* device) {
  static const char kText[] =
      "func.func @main(%x: tensor<3xf32> loc(\"x\"), %w: tensor<3xf32> {kiln.frozen = true} "
      "loc(\"w\")) -> tensor<3xf32> {\n"
      "  %r = stablehlo.rsqrt %w : tensor<3xf32>\n"
      "  %y = stablehlo.multiply %x, %r : tensor<3xf32>\n"
      "  return %y : tensor<3xf32>\n"
      "}\n";
  kiln_graph* graph = NULL;
  OK(kiln_graph_from_stablehlo(context, kText, sizeof kText - 1, NULL, &graph));
  const kiln_value y = kiln_graph_result(graph);
  kiln_value feeds[2] = {0, 0};
  OK(kiln_graph_find_value(graph, "x", 1, &feeds[0]));
  OK(kiln_graph_find_value(graph, "w", 1, &feeds[1]));
  kiln_session* session = NULL;
  OK(kiln_session_create(graph, NULL, &session));
  kiln_buffer* fed[] = {f32_buffer(device, (const float[]){1, 2, 3}, 3), NULL};
  for (int turn = 0; turn < 2; ++turn) {
    const float w = turn ? 4 : 0.25F, root = turn ? 0.5F : 2;
    fed[1] = f32_buffer(device, (const float[]){w, w, w}, 3);
    kiln_buffer* result = NULL;
    OK(kiln_session_run(session, NULL, feeds, fed, 2, &y, &result, 1, NULL, 0));
    expect_f32(result, (const float[]){root, 2 * root, 3 * root}, 3);
    kiln_buffer_release(result);
    kiln_buffer_release(fed[1]);
  }
  kiln_buffer_release(fed[0]);
  kiln_session_release(session);
  kiln_graph_release(graph);
}

int main(void) {
  kiln_context* counted = make_counted_context();
  test_memory(counted);
  test_failures(counted);
  kiln_context_release(counted);
  CHECK(live_bytes == 0);
  kiln_context* context = make_context_with(2, tested_gpu());
  static const char* const kDevices[] = {"CPU:0", "GPU:0", "REFERENCE:0"};
  for (int d = 0; d < 3; ++d) {
    kiln_device* device = find_device(context, kDevices[d]);
    test_failed_value(context, device);
    test_types(context, device);
  }
  test_overlap(context);
  test_session(context, find_device(context, "CPU:0"));
  kiln_context_release(context);
  return test_result();
}
