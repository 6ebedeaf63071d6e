/* A GPU through the C ABI: devices, memory, whole graphs, runs in the queue, loops, sessions. */
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>
#include <stdlib.h>

#include "testing.h"

static kiln_context* make_gpu_context(int32_t threads, int64_t memory) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = threads;
  options.gpu = tested_gpu();
  options.gpu_memory_bytes = memory;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  return context;
}

static void test_devices(void) {
  kiln_context* context = make_gpu_context(1, 0);
  const size_t devices = kiln_context_device_count(context);
  CHECK(devices == 5 || (is_test_of_cuda() && devices > 5));
  kiln_device* gpu = find_device(context, "/job:localhost/replica:0/task:0/device:GPU:0");
  CHECK(gpu && strcmp(kiln_device_name(gpu, NULL), "GPU:0") == 0);
  CHECK(gpu &&
        (strstr(kiln_device_description(gpu, NULL), "emulated") == NULL) == is_test_of_cuda());
  CHECK(find_device(context, "xla_gpu") != gpu);
  size_t length = 1;
  CHECK(strcmp(kiln_context_device_notes(context, &length), "") == 0 && length == 0);
  kiln_context_release(context);

  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.gpu = KILN_GPU_OFF;
  context = NULL;
  OK(kiln_context_create(&options, &context));
  CHECK(kiln_context_device_count(context) == 3);
  kiln_device* none = NULL;
  FAILS(KILN_NOT_FOUND, "there is no device 'GPU:0'",
        kiln_context_find_device(context, "GPU:0", 5, &none));
  kiln_context_release(context);
  context = NULL;
  options.gpu = 7;
  FAILS(KILN_INVALID_ARGUMENT, "gpu is 7", kiln_context_create(&options, &context));
  options.gpu = KILN_GPU_AUTO;
  options.gpu_memory_bytes = -1;
  FAILS(KILN_INVALID_ARGUMENT, "gpu_memory_bytes is -1", kiln_context_create(&options, &context));
  CHECK(context == NULL && kiln_context_device_notes(NULL, NULL) == NULL);
}

static void test_memory(void) {
  kiln_context* context = make_gpu_context(1, 1 << 20);
  kiln_device *gpu = find_device(context, "GPU:0"), *cpu = find_device(context, "CPU:0");
  kiln_memory_info info = KILN_MEMORY_INFO_INIT;
  OK(kiln_device_memory(gpu, &info));
  CHECK(info.live_bytes == 0 && info.limit_bytes == 1 << 20);
  const float values[5] = {1, 2, 3, 4, 5};
  kiln_buffer *on_gpu = f32_buffer(gpu, values, 5), *on_cpu = NULL, *again = NULL;
  OK(kiln_device_memory(gpu, &info));
  CHECK(info.live_bytes == 20);
  const void* data = NULL;
  FAILS(KILN_FAILED_PRECONDITION, "the memory of GPU:0 is not the host's",
        kiln_buffer_data(on_gpu, &data));
  OK(kiln_buffer_copy_to_device(on_gpu, cpu, &on_cpu));
  expect_f32(on_cpu, values, 5);
  OK(kiln_buffer_copy_to_device(on_cpu, find_device(context, "XLA_GPU:0"), &again));
  kiln_buffer* home = NULL;
  OK(kiln_buffer_copy_to_device(again, gpu, &home));
  expect_f32(home, values, 5);
  /* Too much leaves everything as it was. */
  int64_t many = 300000;
  kiln_buffer* large = NULL;
  FAILS(KILN_RESOURCE_EXHAUSTED, "1200000 bytes asked for, 40 bytes in use of the limit of 1048576",
        kiln_buffer_create(gpu, KILN_F32, &many, 1, &large));
  CHECK(large == NULL);
  int64_t some = 1000;
  OK(kiln_buffer_create(gpu, KILN_F32, &some, 1, &large));
  float zero = 1, zeros[1000];
  OK(kiln_buffer_copy_to_host(large, zeros, sizeof zeros));
  for (int i = 0; i < 1000; ++i) zero = zero * (zeros[i] == 0);
  CHECK(zero == 1);
  kiln_buffer* all[] = {on_gpu, on_cpu, again, home, large};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) kiln_buffer_release(all[i]);
  OK(kiln_device_memory(gpu, &info));
  CHECK(info.live_bytes == 0 && info.peak_bytes == 4040);
  kiln_context_release(context);
}

/* x, y -> x * y + x, again and again in the queue, each on what the one before has made. */
static void test_runs(void) {
  kiln_context* context = make_gpu_context(2, 0);
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_graph* graph = make_graph(context, "step");
  kiln_value x = f32_parameter(graph, "x", 3), y = f32_parameter(graph, "y", 3);
  kiln_executable* step =
      compile_result(graph, kiln_op_add(graph, kiln_op_multiply(graph, x, y), x), gpu);
  kiln_buffer* arguments[2] = {f32_buffer(gpu, (const float[]){1, 2, 3}, 3),
                               f32_buffer(gpu, (const float[]){1, 0, -1}, 3)};
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(step, NULL, arguments, 2, &result, 1));
  expect_f32(result, (const float[]){2, 2, 0}, 3);
  kiln_buffer* value = arguments[0];
  kiln_event* last = NULL;
  for (int i = 0; i < 40; ++i) {
    kiln_buffer *in[2] = {value, arguments[1]}, *out = NULL, *const *inputs = in, **outputs = &out;
    kiln_event_release(last);
    last = NULL;
    OK(kiln_executable_execute(step, NULL, &inputs, 2, &outputs, 1, 1, &last));
    kiln_buffer_release(value);
    value = out;
  }
  OK(kiln_event_wait(last, -1));
  expect_f32(value, (const float[]){1099511627776.0f, 2, 0}, 3);
  kiln_event_release(last);
  kiln_buffer_release(value);
  kiln_buffer_release(arguments[1]);
  kiln_buffer_release(result);
  kiln_executable_release(step);
  kiln_context_release(context);
}

/* Doubles its first argument as often as the second one says. */
static kiln_executable* doubling(kiln_context* context, kiln_device* gpu) {
  enum { I, N, X, STATE };
  kiln_graph* condition = make_graph(context, "condition");
  kiln_graph* body = make_graph(context, "body");
  kiln_graph* graphs[2] = {condition, body};
  const int64_t dims[] = {3};
  for (int g = 0; g < 2; ++g) {
    kiln_value state[STATE];
    state[I] = kiln_op_parameter(graphs[g], KILN_S32, NULL, 0, "i", 1);
    state[N] = kiln_op_parameter(graphs[g], KILN_S32, NULL, 0, "n", 1);
    state[X] = kiln_op_parameter(graphs[g], KILN_F32, dims, 1, "x", 1);
    if (g == 0) {
      state[I] = kiln_op_compare(condition, state[I], state[N], KILN_LT);
      OK(kiln_graph_set_results(condition, state, 1));
    } else {
      state[I] = kiln_op_add(body, state[I], kiln_op_scalar(body, KILN_S32, 1));
      state[X] = kiln_op_add(body, state[X], state[X]);
      OK(kiln_graph_set_results(body, state, STATE));
    }
  }
  kiln_graph* graph = make_graph(context, "doubling");
  kiln_value state[STATE];
  state[X] = f32_parameter(graph, "x", 3);
  state[N] = kiln_op_parameter(graph, KILN_S32, NULL, 0, "n", 1);
  state[I] = kiln_op_scalar(graph, KILN_S32, 0);
  kiln_value loop = kiln_op_while(graph, kiln_op_tuple(graph, state, STATE), condition, body);
  kiln_executable* executable =
      compile_result(graph, kiln_op_get_tuple_element(graph, loop, X), gpu);
  kiln_graph_release(condition);
  kiln_graph_release(body);
  return executable;
}

/* On the device, and from the host where the environment says so. */
static void test_loops(void) {
  for (int host = 0; host < 2; ++host) {
    setenv("KILN_GPU_LOOPS", host ? "host" : "device", 1);
    kiln_context* context = make_gpu_context(2, 0);
    kiln_device* gpu = find_device(context, "GPU:0");
    kiln_executable* executable = doubling(context, gpu);
    const int32_t turns[] = {0, 1, 20};
    const float results[][3] = {{1, 2, -3}, {2, 4, -6}, {1 << 20, 1 << 21, -3 * (1 << 20)}};
    for (int i = 0; i < 3; ++i) {
      kiln_buffer *arguments[2] = {f32_buffer(gpu, results[0], 3), NULL}, *result = NULL;
      OK(kiln_buffer_copy_host(gpu, KILN_S32, NULL, 0, &turns[i], 4, &arguments[1]));
      OK(kiln_executable_run(executable, NULL, arguments, 2, &result, 1));
      expect_f32(result, results[i], 3);
      kiln_buffer_release(arguments[0]);
      kiln_buffer_release(arguments[1]);
      kiln_buffer_release(result);
    }
    kiln_executable_release(executable);
    kiln_context_release(context);
  }
  setenv("KILN_GPU_LOOPS", "both", 1);
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.gpu = KILN_GPU_EMULATED;
  kiln_context* context = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "KILN_GPU_LOOPS is 'both'", kiln_context_create(&options, &context));
  unsetenv("KILN_GPU_LOOPS");
}

static void test_sessions(void) {
  kiln_context* context = make_gpu_context(2, 0);
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_graph* g = make_graph(context, "steps");
  kiln_value x = f32_parameter(g, "x", 3), y = f32_parameter(g, "y", 3);
  kiln_value sum = kiln_op_add(g, x, y), product = kiln_op_multiply(g, sum, x);
  kiln_session_options options;
  kiln_session_options_init(&options, sizeof options);
  options.device = gpu;
  kiln_session* session = NULL;
  OK(kiln_session_create(g, &options, &session));
  kiln_graph_release(g);
  kiln_value feeds[2] = {x, y}, fetches[2] = {sum, product};
  kiln_buffer* buffers[2] = {f32_buffer(gpu, (const float[]){1, 2, 3}, 3),
                             f32_buffer(gpu, (const float[]){10, 20, 30}, 3)};
  kiln_buffer* results[2] = {NULL, NULL};
  for (int i = 0; i < 3; ++i) {
    OK(kiln_session_run(session, NULL, feeds, buffers, 2, fetches, results, 2, NULL, 0));
    expect_f32(results[0], (const float[]){11, 22, 33}, 3);
    expect_f32(results[1], (const float[]){11, 44, 99}, 3);
  }
  for (int i = 0; i < 2; ++i) {
    kiln_buffer_release(buffers[i]);
    kiln_buffer_release(results[i]);
  }
  kiln_session_release(session);
  kiln_context_release(context);
}

int main(void) {
  test_devices();
  test_memory();
  test_runs();
  test_loops();
  test_sessions();
  return test_result();
}
