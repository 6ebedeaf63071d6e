/* Executing: arguments and results that do not fit, options, the caller's memory in all its forms,
 * and devices. */
#include <stdint.h>

#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;

/* 2x + y of four floats. */
static kiln_executable* axpy(kiln_device* device) {
  kiln_graph* g = make_graph(context, "axpy");
  kiln_value x = f32_parameter(g, "x", 4), y = f32_parameter(g, "y", 4);
  kiln_value twice = kiln_op_multiply(g, x, kiln_op_scalar(g, KILN_F32, 2));
  return compile_result(g, kiln_op_add(g, twice, y), device);
}

static const float xs[4] = {1, 2, 3, 4}, ys[4] = {10, 20, 30, 40}, sums[4] = {12, 24, 36, 48};

static void wrong_calls(void) {
  kiln_executable* e = axpy(cpu);
  kiln_buffer* x = f32_buffer(cpu, xs, 4);
  kiln_buffer* y = f32_buffer(cpu, ys, 3);
  kiln_buffer* result = NULL;
  kiln_buffer* args[2] = {x, y};
  FAILS(KILN_INVALID_ARGUMENT, "executable is NULL",
        kiln_executable_run(NULL, NULL, args, 2, &result, 1));
  FAILS(KILN_INVALID_ARGUMENT, "1 arguments are given; expected 2",
        kiln_executable_run(e, NULL, args, 1, &result, 1));
  FAILS(KILN_INVALID_ARGUMENT, "0 results are given; expected 1",
        kiln_executable_run(e, NULL, args, 2, NULL, 0));
  FAILS(KILN_INVALID_ARGUMENT, "the list of arguments is NULL",
        kiln_executable_run(e, NULL, NULL, 2, &result, 1));
  FAILS(KILN_INVALID_ARGUMENT, "the list of results is NULL",
        kiln_executable_run(e, NULL, args, 2, NULL, 1));
  FAILS(KILN_INVALID_ARGUMENT, "argument 1 'y' is f32[3]; expected f32[4]",
        kiln_executable_run(e, NULL, args, 2, &result, 1));
  args[1] = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "argument 1 'y' is NULL; expected f32[4]",
        kiln_executable_run(e, NULL, args, 2, &result, 1));
  kiln_buffer* elsewhere = f32_buffer(find_device(context, "XLA_CPU:0"), ys, 4);
  args[1] = elsewhere;
  FAILS(KILN_INVALID_ARGUMENT, "argument 1 'y' is on XLA_CPU:0; expected CPU:0",
        kiln_executable_run(e, NULL, args, 2, &result, 1));
  kiln_context* stranger = make_context(1);
  kiln_buffer* strange = f32_buffer(kiln_context_device(stranger, 0), ys, 4);
  args[1] = strange;
  FAILS(KILN_INVALID_ARGUMENT, "of another context",
        kiln_executable_run(e, NULL, args, 2, &result, 1));
  args[1] = x;
  kiln_buffer* given = y;
  FAILS(KILN_INVALID_ARGUMENT, "result 0 is f32[3]; expected f32[4]",
        kiln_executable_run(e, NULL, args, 2, &given, 1));
  given = x;
  FAILS(KILN_INVALID_ARGUMENT, "result 0 shares memory with argument",
        kiln_executable_run(e, NULL, args, 2, &given, 1));
  CHECK(result == NULL);
  kiln_execute_options options;
  kiln_execute_options_init(&options, sizeof options);
  options.threads = -1;
  FAILS(KILN_INVALID_ARGUMENT, "threads is -1",
        kiln_executable_run(e, &options, args, 2, &result, 1));
  int32_t cancel = 1;
  kiln_execute_options_init(&options, sizeof options);
  options.cancel = &cancel;
  FAILS(KILN_CANCELLED, "axpy", kiln_executable_run(e, &options, args, 2, &result, 1));
  cancel = 0;
  OK(kiln_executable_run(e, &options, args, 2, &result, 1));
  kiln_buffer* const* lists[2] = {args, args};
  kiln_buffer** results[2] = {&result, &given};
  FAILS(KILN_INVALID_ARGUMENT, "2 lists of arguments",
        kiln_executable_execute(e, NULL, lists, 2, results, 1, 2, NULL));
  kiln_shape shape = KILN_SHAPE_INIT;
  FAILS(KILN_OUT_OF_RANGE, "no argument 2", kiln_executable_argument_shape(e, 2, &shape));
  FAILS(KILN_OUT_OF_RANGE, "no result 1", kiln_executable_result_shape(e, 1, &shape));
  CHECK(kiln_executable_argument_name(e, 2, NULL) == NULL);
  shape.struct_size = 0;
  FAILS(KILN_INVALID_ARGUMENT, "struct_size", kiln_executable_result_shape(e, 0, &shape));
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_buffer_release(elsewhere);
  kiln_buffer_release(strange);
  kiln_buffer_release(result);
  kiln_context_release(stranger);
  kiln_executable_release(e);
}

static void signature(void) {
  kiln_executable* e = axpy(cpu);
  CHECK(kiln_executable_argument_count(e) == 2 && kiln_executable_result_count(e) == 1);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_executable_argument_shape(e, 1, &shape));
  CHECK(shape.dtype == KILN_F32 && shape.rank == 1 && shape.dims[0] == 4 && shape.byte_size == 16);
  size_t length = 0;
  const char* name = kiln_executable_argument_name(e, 1, &length);
  CHECK(name && length == 1 && strcmp(name, "y") == 0);
  CHECK(kiln_executable_device(e) == cpu);
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  OK(kiln_executable_info(e, &info));
  CHECK(info.kernels == 1 && info.temporary_bytes == 0 && info.compile_microseconds > 0);
  kiln_executable_release(e);
}

/* Copied, borrowed, adopted, misaligned; results in all of them. */
static void freed(void* count) { ++*(int*)count; }

static void memory(void) {
  kiln_executable* e = axpy(cpu);
  int64_t four = 4;
  _Alignas(KILN_ALIGNMENT) float host[64];
  for (size_t offset = 0; offset < 4; ++offset) {
    /* Aligned at 0 only. */
    float* x = host + offset;
    float* y = host + 16 + offset;
    float* z = host + 32 + offset;
    memcpy(x, xs, sizeof xs);
    memcpy(y, ys, sizeof ys);
    kiln_buffer* buffers[3] = {NULL};
    kiln_event* done[2] = {NULL};
    int deleted = 0;
    OK(kiln_buffer_borrow_host(cpu, KILN_F32, &four, 1, x, 16, &done[0], &buffers[0]));
    OK(kiln_buffer_adopt_host(cpu, KILN_F32, &four, 1, y, 16, freed, &deleted, &buffers[1]));
    OK(kiln_buffer_borrow_host(cpu, KILN_F32, &four, 1, z, 16, &done[1], &buffers[2]));
    OK(kiln_executable_run(e, NULL, buffers, 2, &buffers[2], 1));
    CHECK(memcmp(z, sums, sizeof sums) == 0);
    /* The caller may change what he has lent. */
    x[0] = 100;
    OK(kiln_executable_run(e, NULL, buffers, 2, &buffers[2], 1));
    CHECK(z[0] == 210 && z[1] == 24);
    const void* data = NULL;
    OK(kiln_buffer_data(buffers[2], &data));
    CHECK(data == z);
    CHECK(!kiln_event_is_ready(done[0]) && deleted == 0);
    FAILS(KILN_DEADLINE_EXCEEDED, "still", kiln_event_wait(done[0], 1000));
    for (int i = 0; i < 3; ++i) kiln_buffer_release(buffers[i]);
    OK(kiln_event_wait(done[0], -1));
    CHECK(kiln_event_is_ready(done[1]) && deleted == 1);
    kiln_event_release(done[0]);
    kiln_event_release(done[1]);
  }
  /* Two buffers of overlapping memory: fine for reading, not for a result. */
  kiln_buffer* args[2] = {NULL};
  kiln_buffer* result = NULL;
  OK(kiln_buffer_borrow_host(cpu, KILN_F32, &four, 1, host, 16, NULL, &args[0]));
  OK(kiln_buffer_borrow_host(cpu, KILN_F32, &four, 1, host + 2, 16, NULL, &args[1]));
  OK(kiln_executable_run(e, NULL, args, 2, &result, 1));
  kiln_buffer_release(result);
  OK(kiln_buffer_borrow_host(cpu, KILN_F32, &four, 1, host + 5, 16, NULL, &result));
  FAILS(KILN_INVALID_ARGUMENT, "result 0 shares memory with argument 1",
        kiln_executable_run(e, NULL, args, 2, &result, 1));
  kiln_buffer_release(args[0]);
  kiln_buffer_release(args[1]);
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

static void wrong_buffers(void) {
  int64_t four = 4, negative = -1, huge[] = {INT64_MAX, 2};
  kiln_buffer* buffer = NULL;
  float data[4] = {0};
  FAILS(KILN_INVALID_ARGUMENT, "device is NULL",
        kiln_buffer_create(NULL, KILN_F32, &four, 1, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "buffer is NULL", kiln_buffer_create(cpu, KILN_F32, &four, 1, NULL));
  FAILS(KILN_INVALID_ARGUMENT, "dtype 0", kiln_buffer_create(cpu, 0, &four, 1, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "dims is NULL", kiln_buffer_create(cpu, KILN_F32, NULL, 1, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "-1", kiln_buffer_create(cpu, KILN_F32, &negative, 1, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "9223372036854775807",
        kiln_buffer_create(cpu, KILN_U8, huge, 2, &buffer));
  FAILS(KILN_RESOURCE_EXHAUSTED, "out of memory",
        kiln_buffer_create(cpu, KILN_U8, huge, 1, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "bytes is 12; f32[4] takes 16",
        kiln_buffer_copy_host(cpu, KILN_F32, &four, 1, data, 12, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "data is NULL",
        kiln_buffer_copy_host(cpu, KILN_F32, &four, 1, NULL, 16, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "deleter is NULL",
        kiln_buffer_adopt_host(cpu, KILN_F32, &four, 1, data, 16, NULL, NULL, &buffer));
  CHECK(buffer == NULL);
  buffer = f32_buffer(cpu, data, 4);
  FAILS(KILN_INVALID_ARGUMENT, "takes 16", kiln_buffer_copy_to_host(buffer, data, 8));
  FAILS(KILN_INVALID_ARGUMENT, "data is NULL", kiln_buffer_copy_to_host(buffer, NULL, 16));
  FAILS(KILN_INVALID_ARGUMENT, "data is NULL", kiln_buffer_data(buffer, NULL));
  kiln_buffer_release(buffer);
  kiln_buffer_release(NULL);
  /* Empty arrays need no memory of the user's. */
  int64_t zero = 0;
  OK(kiln_buffer_copy_host(cpu, KILN_F32, &zero, 1, NULL, 0, &buffer));
  OK(kiln_buffer_copy_to_host(buffer, NULL, 0));
  kiln_buffer_release(buffer);
}

static void devices(void) {
  static const char* const names[] = {"CPU:0",
                                      "cpu",
                                      "XLA_CPU",
                                      "xla_cpu:0",
                                      "REFERENCE:0",
                                      "/device:CPU:0",
                                      "/job:localhost/replica:0/task:0/device:XLA_CPU:0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    kiln_device* device = find_device(context, names[i]);
    if (!device) continue;
    /* All devices compute the same, from copies. */
    kiln_executable* e = axpy(device);
    kiln_buffer* args[2] = {f32_buffer(device, xs, 4), f32_buffer(device, ys, 4)};
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(e, NULL, args, 2, &result, 1));
    expect_f32(result, sums, 4);
    kiln_buffer* copy = NULL;
    OK(kiln_buffer_copy_to_device(result, cpu, &copy));
    CHECK(kiln_buffer_device(copy) == cpu && kiln_buffer_device(result) == device);
    expect_f32(copy, sums, 4);
    kiln_buffer_release(copy);
    kiln_buffer_release(args[0]);
    kiln_buffer_release(args[1]);
    kiln_buffer_release(result);
    kiln_executable_release(e);
  }
  kiln_device* none = NULL;
  FAILS(KILN_NOT_FOUND, "there are CPU:0, XLA_CPU:0, REFERENCE:0",
        kiln_context_find_device(context, "TPU:0", 5, &none));
  FAILS(KILN_NOT_FOUND, "CPU:1", kiln_context_find_device(context, "CPU:1", 5, &none));
  FAILS(KILN_NOT_FOUND, "task:1",
        kiln_context_find_device(context, "/task:1/device:CPU:0", 20, &none));
  FAILS(KILN_INVALID_ARGUMENT, "names no device", kiln_context_find_device(context, "", 0, &none));
  CHECK(none == NULL && kiln_context_device(context, 99) == NULL);

  /* XLA_CPU's memory is its own: what is lent is copied, and back at once. */
  kiln_device* xla = find_device(context, "XLA_CPU:0");
  _Alignas(KILN_ALIGNMENT) float host[4] = {1, 2, 3, 4};
  int64_t four = 4;
  int deleted = 0;
  kiln_event* done = NULL;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_borrow_host(xla, KILN_F32, &four, 1, host, 16, &done, &buffer));
  CHECK(kiln_event_is_ready(done));
  host[0] = 7;
  expect_f32(buffer, xs, 4);
  const void* data = NULL;
  FAILS(KILN_FAILED_PRECONDITION, "XLA_CPU:0", kiln_buffer_data(buffer, &data));
  kiln_buffer_release(buffer);
  kiln_event_release(done);
  OK(kiln_buffer_adopt_host(xla, KILN_F32, &four, 1, host, 16, freed, &deleted, &buffer));
  CHECK(deleted == 1);
  kiln_buffer_release(buffer);
}

static void compile_options(void) {
  kiln_graph* g = make_graph(context, "options");
  int64_t n = kiln_graph_symbol(g, "N", 1);
  kiln_value x = kiln_op_parameter(g, KILN_F32, &n, 1, "x", 1);
  kiln_value y =
      kiln_op_add(g, x, kiln_op_broadcast_like(g, kiln_op_scalar(g, KILN_F32, 1), x, NULL, 0));
  OK(kiln_graph_set_results(g, &y, 1));
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_graph_value_shape(g, y, &shape));
  CHECK(shape.rank == 1 && shape.dims[0] == n && shape.byte_size == -1);
  kiln_executable* e = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "symbol N has no size", kiln_graph_compile(g, NULL, &e));
  kiln_symbol_size sizes[2] = {{"N", 1, 4}, {"N", 1, 5}};
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.symbols = sizes;
  options.symbol_count = 2;
  FAILS(KILN_INVALID_ARGUMENT, "'N' is given a size twice", kiln_graph_compile(g, &options, &e));
  options.symbol_count = 1;
  sizes[0].size = -4;
  FAILS(KILN_INVALID_ARGUMENT, "the size -4", kiln_graph_compile(g, &options, &e));
  sizes[0].size = 4;
  options.replicas = 2;
  FAILS(KILN_UNIMPLEMENTED, "2 replicas", kiln_graph_compile(g, &options, &e));
  options.replicas = 1;
  options.partitions = 3;
  FAILS(KILN_UNIMPLEMENTED, "3 partitions", kiln_graph_compile(g, &options, &e));
  options.partitions = 1;
  options.disabled_passes = "fusion, nonsense";
  options.disabled_passes_length = strlen(options.disabled_passes);
  FAILS(KILN_NOT_FOUND, "'nonsense'", kiln_graph_compile(g, &options, &e));
  options.disabled_passes = "fusion";
  options.disabled_passes_length = 6;
  options.dump_ptx_sm = 33;
  FAILS(KILN_INVALID_ARGUMENT, "33", kiln_graph_compile(g, &options, &e));
  options.dump_ptx_sm = 0;
  options.optimization = 3;
  FAILS(KILN_INVALID_ARGUMENT, "optimization is 3", kiln_graph_compile(g, &options, &e));
  options.optimization = KILN_OPTIMIZATION_AUTO;
  options.dump_folder = "/proc/nowhere/kiln";
  options.dump_folder_length = strlen(options.dump_folder);
  kiln_error* error = kiln_graph_compile(g, &options, &e);
  CHECK(error && strstr(kiln_error_message(error, NULL), "/proc/nowhere/kiln"));
  kiln_error_release(error);
  options.dump_folder = NULL;
  options.dump_folder_length = 0;
  kiln_context* stranger = make_context(1);
  options.device = kiln_context_device(stranger, 0);
  FAILS(KILN_INVALID_ARGUMENT, "of another context", kiln_graph_compile(g, &options, &e));
  kiln_context_release(stranger);
  CHECK(e == NULL);
  options.device = NULL;
  options.verify = 1;
  kiln_buffer* arg = f32_buffer(cpu, xs, 4);
  for (options.optimization = KILN_OPTIMIZATION_AUTO;
       options.optimization <= KILN_OPTIMIZATION_FULL; ++options.optimization) {
    OK(kiln_graph_compile(g, &options, &e));
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(e, NULL, &arg, 1, &result, 1));
    expect_f32(result, (const float[]){2, 3, 4, 5}, 4);
    kiln_buffer_release(result);
    kiln_executable_release(e);
  }
  kiln_graph_release(g);
  kiln_buffer_release(arg);
}

static void no_deallocate(void* user_data, void* memory, size_t bytes, size_t alignment) {
  (void)user_data, (void)memory, (void)bytes, (void)alignment;
}

/* Option structs of other versions. */
static void struct_sizes(void) {
  struct {
    kiln_execute_options known;
    int64_t later;
  } options;
  kiln_execute_options_init(&options.known, sizeof options);
  CHECK(options.known.struct_size == sizeof options && options.later == 0);
  kiln_executable* e = axpy(cpu);
  kiln_buffer* args[2] = {f32_buffer(cpu, xs, 4), f32_buffer(cpu, ys, 4)};
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(e, &options.known, args, 2, &result, 1)); /* longer, and empty there */
  options.later = 1;
  FAILS(KILN_INVALID_ARGUMENT, "does not know",
        kiln_executable_run(e, &options.known, args, 2, &result, 1));
  memset(&options, 0xff, sizeof options);
  options.known.struct_size = sizeof(size_t); /* shorter: the rest is not looked at */
  OK(kiln_executable_run(e, &options.known, args, 2, &result, 1));
  options.known.struct_size = 3;
  FAILS(KILN_INVALID_ARGUMENT, "struct_size is 3",
        kiln_executable_run(e, &options.known, args, 2, &result, 1));
  kiln_buffer_release(args[0]);
  kiln_buffer_release(args[1]);
  kiln_buffer_release(result);
  kiln_executable_release(e);

  kiln_context_options bad;
  kiln_context* none = NULL;
  kiln_context_options_init(&bad, sizeof bad);
  bad.threads = -2;
  FAILS(KILN_INVALID_ARGUMENT, "threads is -2", kiln_context_create(&bad, &none));
  kiln_context_options_init(&bad, sizeof bad);
  bad.log_level = 9;
  FAILS(KILN_INVALID_ARGUMENT, "log_level is 9", kiln_context_create(&bad, &none));
  kiln_context_options_init(&bad, sizeof bad);
  bad.deallocate = no_deallocate;
  FAILS(KILN_INVALID_ARGUMENT, "both or neither", kiln_context_create(&bad, &none));
  FAILS(KILN_INVALID_ARGUMENT, "context is NULL", kiln_context_create(NULL, NULL));
  CHECK(none == NULL);
}

int main(void) {
  context = make_context(2);
  cpu = find_device(context, "CPU:0");
  wrong_calls();
  signature();
  memory();
  wrong_buffers();
  devices();
  compile_options();
  struct_sizes();
  kiln_memory_info info = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &info));
  CHECK(info.live_bytes == 0 && info.peak_bytes > 0);
  kiln_context_release(context);
  return test_result();
}
