/* Memory and streams of the caller's on a GPU whose driver is the stand-in (tests/support/cuda). */
#include <stdint.h>

#include "dlpack.h"
#include "standin.h"

typedef int (*push_function)(void* context);
typedef int (*allocate_function)(unsigned long long* address, size_t bytes);
typedef int (*allocate_pinned_function)(void** address, size_t bytes);
typedef int (*free_function)(unsigned long long address);
typedef int (*free_pinned_function)(void* address);
typedef int (*pop_function)(void** context);

static push_function push;
static pop_function pop;
static allocate_function allocate;
static allocate_pinned_function allocate_pinned;
static free_function free_memory;
static free_pinned_function free_pinned;

static const int64_t kDims[] = {16};
enum { kBytes = 64 };

static kiln_context* open_context(int32_t threads) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  return context;
}

/* Two kernels: the sum of all, by which each element is divided. */
static kiln_executable* compile_on(kiln_context* context, kiln_device* device) {
  kiln_graph* g = make_graph(context, "shares");
  kiln_value x = f32_parameter(g, "x", 16);
  const int64_t all[] = {0};
  kiln_value sum = kiln_op_reduce_by(g, x, all, 1, KILN_REDUCER_SUM);
  return compile_result(g, kiln_op_divide(g, x, kiln_op_broadcast_like(g, sum, x, NULL, 0)),
                        device);
}

static kiln_error* borrow(kiln_device* device, unsigned long long address, kiln_buffer** buffer) {
  return kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, (void*)(uintptr_t)address, kBytes,
                                   NULL, buffer);
}

static void which_memory(void) {
  standin.reset();
  standin.configure("devices=2");
  kiln_context* context = open_context(1);
  kiln_device *gpu = find_device(context, "GPU:0"), *other = find_device(context, "GPU:1");
  void* contexts[2] = {standin.make_context(0), standin.make_context(1)};
  unsigned long long addresses[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    void* popped = NULL;
    CHECK(push(contexts[i]) == 0 && allocate(&addresses[i], 4096) == 0);
    CHECK(pop(&popped) == 0 && popped == contexts[i]);
  }
  void* pinned = NULL;
  CHECK(push(contexts[0]) == 0 && allocate_pinned(&pinned, 4096) == 0);
  _Alignas(64) static float host[16];
  kiln_buffer* buffer = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "given to GPU 0 belongs to CUDA device 1",
        borrow(gpu, addresses[1], &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "given to GPU 1 belongs to CUDA device 0",
        borrow(other, addresses[0], &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "unknown to the CUDA driver",
        borrow(gpu, (unsigned long long)(uintptr_t)host, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "is the host's",
        borrow(gpu, (unsigned long long)(uintptr_t)pinned, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "is not at a multiple of 64 bytes",
        borrow(gpu, addresses[0] + 4, &buffer));
  /* The last byte is looked at, too. */
  const int64_t many = 2048;
  FAILS(KILN_INVALID_ARGUMENT, "memory that is given to GPU 0",
        kiln_buffer_borrow_device(gpu, KILN_F32, &many, 1, (void*)(uintptr_t)addresses[0], 8192,
                                  NULL, &buffer));
  CHECK(buffer == NULL);
  kiln_buffer* result = NULL;
  if (OK(borrow(gpu, addresses[0] + 64, &buffer)) && OK(borrow(gpu, addresses[0] + 128, &result))) {
    const void* data = NULL;
    OK(kiln_buffer_device_data(buffer, &data));
    CHECK(data == (const void*)(uintptr_t)(addresses[0] + 64));
    kiln_executable* executable = compile_on(context, gpu);
    for (int i = 0; i < 3; ++i) OK(kiln_executable_run(executable, NULL, &buffer, 1, &result, 1));
    kiln_executable_release(executable);
    /* Work that has been asked for is done before the memory is the caller's alone. */
    kiln_buffer* copy = NULL;
    OK(kiln_buffer_copy_to_device(buffer, gpu, &copy));
    kiln_buffer_release(copy);
  }
  kiln_buffer_release(buffer);
  kiln_buffer_release(result);
  kiln_context_release(context);
  void* popped = NULL;
  CHECK(free_pinned(pinned) == 0 && free_memory(addresses[0]) == 0 && pop(&popped) == 0);
  CHECK(push(contexts[1]) == 0 && free_memory(addresses[1]) == 0 && pop(&popped) == 0);
  standin.destroy_context(contexts[0]);
  standin.destroy_context(contexts[1]);
  expect_nothing_left("memory", 0);
}

static int deleted = 0;
static void count_deleted(DLManagedTensorVersioned* self) {
  CHECK(self->manager_ctx == (void*)&deleted);
  ++deleted;
}

static void expect_elements(kiln_buffer* buffer, const float* expected) {
  float values[16];
  if (!OK(kiln_buffer_copy_to_host(buffer, values, sizeof values))) return;
  CHECK(memcmp(values, expected, sizeof values) == 0);
}

/* The same elements from a tensor on every device; in place or copied. */
static void import_everywhere(kiln_context* context, const DLTensor* tensor, const float* expected,
                              int in_place) {
  static const char* const names[] = {"GPU:0", "XLA_GPU:0", "GPU:1", "CPU:0", "REFERENCE:0"};
  for (int i = 0; i < 5; ++i) {
    DLManagedTensorVersioned managed = {{1, 0}, &deleted, count_deleted, 0, *tensor};
    kiln_buffer* buffer = NULL;
    deleted = 0;
    if (!OK(kiln_buffer_from_dlpack(find_device(context, names[i]), (void*)&managed, &buffer))) {
      continue;
    }
    CHECK(deleted == !(in_place && i < 2));
    const void* data = NULL;
    OK(kiln_buffer_device_data(buffer, &data));
    CHECK((data == tensor->data) == (in_place && i < 2));
    expect_elements(buffer, expected);
    kiln_buffer_release(buffer);
    CHECK(deleted == 1);
  }
}

/* Tensors in the GPU's memory. */
static void tensors(void) {
  standin.reset();
  standin.configure("devices=2,deferred=1");
  kiln_context* context = open_context(2);
  kiln_device* gpu = find_device(context, "GPU:0");
  int32_t type = 0, id = -1;
  OK(kiln_device_dlpack(find_device(context, "XLA_GPU:1"), &type, &id));
  CHECK(type == kDLCUDA && id == 1);
  float values[64], expected[16];
  for (int i = 0; i < 64; ++i) values[i] = (float)i;
  const int64_t many = 64;
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(gpu, KILN_F32, &many, 1, values, sizeof values, &buffer));
  DLManagedTensorVersioned* out = NULL;
  OK(kiln_buffer_to_dlpack(buffer, (void*)&out));
  kiln_buffer_release(buffer);
  CHECK(out->dl_tensor.device.device_type == kDLCUDA && out->dl_tensor.device.device_id == 0);
  /* The default stream, on which others may have made the elements, is waited for. */
  const long long waits = standin.count("cuStreamWaitEvent");
  int64_t shape[] = {4, 4}, columns[] = {1, 4}, backwards[] = {16, -1};
  DLTensor t = out->dl_tensor;
  t.ndim = 2;
  t.shape = shape;
  t.strides = NULL;
  import_everywhere(context, &t, values, 1);
  CHECK(standin.count("cuStreamWaitEvent") >= waits + 5);
  t.strides = columns;
  for (int i = 0; i < 16; ++i) expected[i] = (float)(i / 4 + 4 * (i % 4));
  import_everywhere(context, &t, expected, 0);
  t.strides = backwards;
  t.byte_offset = 12;
  for (int i = 0; i < 16; ++i) expected[i] = (float)(3 + 16 * (i / 4) - i % 4);
  import_everywhere(context, &t, expected, 0);
  t.strides = NULL;
  t.byte_offset = 4;
  import_everywhere(context, &t, values + 1, 0);
  /* The GPU is another's, or nobody's. */
  DLManagedTensorVersioned managed = {{1, 0}, &deleted, count_deleted, 0, t};
  deleted = 0;
  buffer = NULL;
  managed.dl_tensor.byte_offset = 0;
  managed.dl_tensor.device.device_id = 1;
  FAILS(KILN_INVALID_ARGUMENT, "given to GPU 1 belongs to CUDA device 0",
        kiln_buffer_from_dlpack(find_device(context, "GPU:1"), (void*)&managed, &buffer));
  managed.dl_tensor.device.device_id = 2;
  FAILS(KILN_UNIMPLEMENTED, "device type 2, number 2",
        kiln_buffer_from_dlpack(gpu, (void*)&managed, &buffer));
  CHECK(deleted == 0 && buffer == NULL);
  out->deleter(out);
  kiln_context_release(context);
  expect_nothing_left("tensors", 0);
}

/* Runs on a stream of the caller's, which waits for the device's own, and the other way round. */
static void streams(int32_t threads, const char* settings) {
  standin.reset();
  standin.configure(settings);
  kiln_context* context = open_context(threads);
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_executable* executable = compile_on(context, gpu);
  const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  kiln_buffer* x = f32_buffer(gpu, ones, 16);
  void* stream = standin.make_stream(NULL, 0);
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.stream = stream;
  long long work = 0, waits = 0;
  for (int i = 0; i < 6; ++i) {
    const long long all_waits = standin.count("cuStreamWaitEvent");
    kiln_buffer* results[2] = {NULL, NULL};
    if (i % 2 == 0) {
      OK(kiln_executable_run(executable, &options, &x, 1, results, 1));
    } else {
      kiln_buffer* const* arguments = &x;
      kiln_buffer** places = results;
      kiln_event* events[2] = {NULL, NULL};
      OK(kiln_executable_execute(executable, &options, &arguments, 1, &places, 1, 1, &events[0]));
      /* It has its place in the stream when the call returns, and so has what follows from it. */
      CHECK(standin.stream_work(stream, 0) > work);
      work = standin.stream_work(stream, 0);
      arguments = results;
      places = results + 1;
      OK(kiln_executable_execute(executable, &options, &arguments, 1, &places, 1, 1, &events[1]));
      OK(kiln_event_wait(events[1], -1));
      OK(kiln_event_wait(events[0], -1));
      kiln_event_release(events[0]);
      kiln_event_release(events[1]);
    }
    CHECK(standin.stream_work(stream, 0) > work && standin.stream_work(stream, 1) > waits);
    work = standin.stream_work(stream, 0);
    waits = standin.stream_work(stream, 1);
    CHECK(standin.count("cuStreamWaitEvent") == all_waits + (i % 2 == 0 ? 2 : 4));
    float values[16];
    OK(kiln_buffer_copy_to_host(results[i % 2], values, sizeof values));
    kiln_buffer_release(results[0]);
    kiln_buffer_release(results[1]);
  }
  /* On the device's own stream nothing waits for it. */
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(executable, NULL, &x, 1, &result, 1));
  CHECK(standin.stream_work(stream, 0) == work && standin.stream_work(stream, 1) == waits);
  kiln_buffer_release(result);
  result = NULL;
  /* A queued run makes the argument, and the stream comes after it. */
  kiln_buffer* first = NULL;
  kiln_buffer* const* arguments = &x;
  kiln_buffer** places = &first;
  kiln_event *queued = NULL, *streamed = NULL;
  OK(kiln_executable_execute(executable, NULL, &arguments, 1, &places, 1, 1, &queued));
  arguments = &first;
  places = &result;
  OK(kiln_executable_execute(executable, &options, &arguments, 1, &places, 1, 1, &streamed));
  kiln_buffer_release(first);
  OK(kiln_event_wait(streamed, -1));
  CHECK(kiln_event_is_ready(queued));
  kiln_event_release(queued);
  kiln_event_release(streamed);
  kiln_buffer_release(result);
  kiln_buffer_release(x);
  kiln_executable_release(executable);
  kiln_context_release(context);
  /* The stream is the caller's still. */
  CHECK(standin.count("streams") == 1);
  standin.destroy_stream(stream);
  expect_nothing_left("streams", threads);
}

static kiln_error* run_on(kiln_context* context, const char* name, void* stream) {
  kiln_device* device = find_device(context, name);
  kiln_executable* executable = compile_on(context, device);
  const float ones[16] = {1};
  kiln_buffer* x = f32_buffer(device, ones, 16);
  kiln_buffer* result = NULL;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.stream = stream;
  kiln_error* error = kiln_executable_run(executable, &options, &x, 1, &result, 1);
  if (!error) {
    kiln_buffer_release(result);
    result = NULL;
    kiln_buffer* const* arguments = &x;
    kiln_buffer** places = &result;
    kiln_event* event = NULL;
    error = kiln_executable_execute(executable, &options, &arguments, 1, &places, 1, 1, &event);
    if (!error) error = kiln_event_wait(event, -1);
    kiln_event_release(event);
  }
  kiln_buffer_release(result);
  kiln_buffer_release(x);
  kiln_executable_release(executable);
  return error;
}

static void wrong_streams(void) {
  standin.reset();
  standin.configure("devices=2");
  kiln_context* context = open_context(2);
  void* stream = standin.make_stream(NULL, 0);
  void* foreign_context = standin.make_context(0);
  void* foreign = standin.make_stream(foreign_context, 0);
  FAILS(KILN_INVALID_ARGUMENT, "kiln_execute_options.stream is set; 'shares' runs on CPU:0",
        run_on(context, "CPU:0", stream));
  FAILS(KILN_INVALID_ARGUMENT, "runs on REFERENCE:0", run_on(context, "REFERENCE:0", stream));
  FAILS(KILN_INVALID_ARGUMENT, "belongs to CUDA device 0, not to GPU 1",
        run_on(context, "GPU:1", stream));
  FAILS(KILN_UNIMPLEMENTED, "not the primary one of GPU 0", run_on(context, "GPU:0", foreign));
  OK(run_on(context, "GPU:0", stream));
  OK(run_on(context, "XLA_GPU:0", stream));
  kiln_context_release(context);

  kiln_context_options emulated = KILN_CONTEXT_OPTIONS_INIT;
  emulated.gpu = KILN_GPU_EMULATED;
  OK(kiln_context_create(&emulated, &context));
  FAILS(KILN_INVALID_ARGUMENT, "runs on GPU:0, and only executables on GPUs of the CUDA driver",
        run_on(context, "GPU:0", stream));
  kiln_context_release(context);
  standin.destroy_stream(foreign);
  standin.destroy_context(foreign_context);
  standin.destroy_stream(stream);
  expect_nothing_left("streams", 0);
}

/* Each call of the driver fails once, from compiling on to the results. */
static void failures(void) {
  int failed = 0;
  for (long long n = 1;; ++n) {
    standin.reset();
    standin.configure("deferred=1");
    kiln_context* context = open_context(2);
    void* stream = standin.make_stream(NULL, 0);
    kiln_device* device = find_device(context, "GPU:0");
    kiln_executable* executable = compile_on(context, device);
    const float ones[16] = {1};
    kiln_buffer *x = f32_buffer(device, ones, 16), *result = NULL;
    kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
    options.stream = stream;
    kiln_buffer* const* arguments = &x;
    kiln_buffer** places = &result;
    kiln_event* event = NULL;
    standin.fail(NULL, n, 1, INVALID_VALUE);
    kiln_error* error =
        kiln_executable_execute(executable, &options, &arguments, 1, &places, 1, 1, &event);
    if (!error) error = kiln_event_wait(event, -1);
    const long long calls = standin.count("calls");
    standin.fail(NULL, 0, 0, 0);
    if (error) {
      ++failed;
      CHECK(mentions(error, "CUDA_ERROR_INVALID_VALUE") || mentions(error, "is none"));
      kiln_error_release(error);
    }
    kiln_event_release(event);
    kiln_buffer_release(result);
    result = NULL;
    OK(kiln_executable_run(executable, &options, &x, 1, &result, 1));
    kiln_buffer_release(result);
    kiln_buffer_release(x);
    kiln_executable_release(executable);
    kiln_context_release(context);
    standin.destroy_stream(stream);
    expect_nothing_left("a run on a stream", n);
    if (calls < n || failed_checks > 20) break;
  }
  CHECK(failed > 10);
}

int main(void) {
  open_standin();
  STANDIN_FIND(push, "cuCtxPushCurrent_v2");
  STANDIN_FIND(pop, "cuCtxPopCurrent_v2");
  STANDIN_FIND(allocate, "cuMemAlloc_v2");
  STANDIN_FIND(allocate_pinned, "cuMemAllocHost_v2");
  STANDIN_FIND(free_memory, "cuMemFree_v2");
  STANDIN_FIND(free_pinned, "cuMemFreeHost");
  which_memory();
  tensors();
  streams(1, "deferred=0");
  streams(2, "deferred=0");
  streams(2, "deferred=1,pools=0");
  wrong_streams();
  failures();
  standin.reset();
  return test_result();
}
