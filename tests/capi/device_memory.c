/* Memory of the caller's on devices whose memory is the host's: the processor and the emulated
 * GPU. */
#include <stdint.h>

#include "testing.h"

enum { kSize = 48, kBytes = kSize * sizeof(float) };
static const int64_t kDims[] = {kSize};

static int deleted = 0;
static void count_deleted(void* user_data) {
  CHECK(user_data == (void*)&deleted);
  ++deleted;
}

static void fill(float* values, float first) {
  for (int i = 0; i < kSize; ++i) values[i] = first + (float)i;
}

static int all_are(const float* values, float first, float step) {
  for (int i = 0; i < kSize; ++i) {
    if (values[i] == first + step * (float)i) continue;
    printf("element %d is %g\n", i, (double)values[i]);
    return 0;
  }
  return 1;
}

/* 2 x + 1; in the memory of x where that is donated. */
static kiln_executable* compile_on(kiln_context* context, kiln_device* device) {
  kiln_graph* g = make_graph(context, "twice");
  kiln_value x = f32_parameter(g, "x", kSize);
  kiln_value one = kiln_op_broadcast_like(g, kiln_op_scalar(g, KILN_F32, 1), x, NULL, 0);
  return compile_in_place(g, kiln_op_add(g, kiln_op_add(g, x, x), one), device);
}

static void in_place(kiln_context* context, const char* name) {
  printf("%s\n", name);
  _Alignas(64) static float x[2 * kSize], y[kSize];
  kiln_device* device = find_device(context, name);
  kiln_executable* executable = compile_on(context, device);
  kiln_buffer *in = NULL, *out = NULL, *copy = NULL;
  kiln_event *in_done = NULL, *out_done = NULL;
  fill(x, 1);
  OK(kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, x, kBytes, &in_done, &in));
  OK(kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, y, kBytes, &out_done, &out));
  OK(kiln_executable_run(executable, NULL, &in, 1, &out, 1));
  CHECK(all_are(y, 3, 2));
  /* The caller changes his memory between executions, the second of which is asynchronous. */
  fill(x, 5);
  kiln_event* event = NULL;
  kiln_buffer* const* arguments = &in;
  kiln_buffer** places = &out;
  OK(kiln_executable_execute(executable, NULL, &arguments, 1, &places, 1, 1, &event));
  const void *data = NULL, *address = NULL;
  OK(kiln_buffer_address(out, &address));
  CHECK(address == (const void*)y);
  OK(kiln_buffer_device_data(out, &data));
  CHECK(data == (const void*)y && all_are(y, 11, 2));
  kiln_event_release(event);
  /* A copy of it is one of the moment. */
  OK(kiln_buffer_copy_to_device(in, device, &copy));
  CHECK(!kiln_event_is_ready(in_done) && !kiln_event_is_ready(out_done));
  kiln_buffer_release(in);
  kiln_buffer_release(out);
  CHECK(kiln_event_is_ready(in_done) && kiln_event_is_ready(out_done));
  fill(x, -100);
  OK(kiln_buffer_copy_to_host(copy, y, kBytes));
  CHECK(all_are(y, 5, 1));
  OK(kiln_buffer_device_data(copy, &data));
  CHECK(data != NULL && all_are(data, 5, 1));
  kiln_buffer_release(copy);
  kiln_event_release(in_done);
  kiln_event_release(out_done);

  /* Ranges that overlap: each keeps what is its own. */
  kiln_buffer *low = NULL, *high = NULL;
  fill(x, 0);
  fill(x + kSize, kSize);
  OK(kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, x, kBytes, NULL, &low));
  OK(kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, x + 16, kBytes, NULL, &high));
  kiln_buffer_release(low);
  out = NULL;
  OK(kiln_executable_run(executable, NULL, &high, 1, &out, 1));
  OK(kiln_buffer_copy_to_host(out, y, kBytes));
  CHECK(all_are(y, 33, 2));
  kiln_buffer_release(out);
  kiln_buffer_release(high);

  /* Adopted, used by a run that has not ended, and donated to it. */
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donate_aliased = 1;
  deleted = 0;
  fill(x, 7);
  OK(kiln_buffer_adopt_device(device, KILN_F32, kDims, 1, x, kBytes, count_deleted, &deleted, &in));
  out = NULL;
  arguments = &in;
  places = &out;
  OK(kiln_executable_execute(executable, &options, &arguments, 1, &places, 1, 1, &event));
  kiln_buffer_release(in);
  OK(kiln_event_wait(event, -1));
  CHECK(deleted == 0 && all_are(x, 15, 2));
  kiln_buffer_release(out);
  CHECK(deleted == 1);
  kiln_event_release(event);
  OK(kiln_buffer_adopt_device(device, KILN_F32, kDims, 1, x, kBytes, count_deleted, &deleted, &in));
  out = NULL;
  OK(kiln_executable_execute(executable, NULL, &arguments, 1, &places, 1, 1, &event));
  kiln_buffer_release(in);
  OK(kiln_event_wait(event, -1));
  kiln_buffer_release(out);
  kiln_event_release(event);
  CHECK(deleted == 2);

  /* Nothing at all needs no memory. */
  const int64_t none = 0;
  OK(kiln_buffer_borrow_device(device, KILN_F32, &none, 1, NULL, 0, NULL, &in));
  kiln_buffer_release(in);
  kiln_executable_release(executable);
}

static void mistakes(kiln_context* context, const char* name) {
  _Alignas(64) static float x[kSize + 1];
  kiln_device* device = find_device(context, name);
  kiln_buffer* buffer = NULL;
  const void* data = NULL;
  deleted = 0;
  FAILS(KILN_INVALID_ARGUMENT, "is not at a multiple of 64 bytes",
        kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, x + 1, kBytes, NULL, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "is not at a multiple of 64 bytes",
        kiln_buffer_adopt_device(device, KILN_F32, kDims, 1, x + 1, kBytes, count_deleted, &deleted,
                                 &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "bytes is 4; f32[48] takes 192",
        kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, x, 4, NULL, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "data is NULL",
        kiln_buffer_borrow_device(device, KILN_F32, kDims, 1, NULL, kBytes, NULL, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "deleter is NULL",
        kiln_buffer_adopt_device(device, KILN_F32, kDims, 1, x, kBytes, NULL, NULL, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "device is NULL",
        kiln_buffer_borrow_device(NULL, KILN_F32, kDims, 1, x, kBytes, NULL, &buffer));
  FAILS(KILN_INVALID_ARGUMENT, "buffer is NULL", kiln_buffer_device_data(NULL, &data));
  CHECK(buffer == NULL && deleted == 0);
}

int main(void) {
  static const char* const names[] = {"CPU:0", "XLA_CPU:0", "REFERENCE:0", "GPU:0", "XLA_GPU:0"};
  for (int32_t threads = 1; threads <= 2; ++threads) {
    kiln_context* context = make_context_with(threads, KILN_GPU_EMULATED);
    for (int i = 0; i < 5; ++i) {
      in_place(context, names[i]);
      mistakes(context, names[i]);
    }
    kiln_context_release(context);
  }
  return test_result();
}
