/* Tensors of DLPack, out and in: what is shared and what is copied, and who gives it back when. */
#include <stdint.h>

#include "dlpack.h"
#include "testing.h"

static int deleted = 0;
static void count_deleted(DLManagedTensorVersioned* self) {
  CHECK(self->manager_ctx == (void*)&deleted);
  ++deleted;
}
static void count_deleted_unversioned(DLManagedTensor* self) {
  CHECK(self->manager_ctx == (void*)&deleted);
  ++deleted;
}

static DLManagedTensorVersioned tensor_of(void* data, int32_t ndim, int64_t* shape,
                                          int64_t* strides) {
  DLManagedTensorVersioned t = {.version = {1, 0},
                                .manager_ctx = &deleted,
                                .deleter = count_deleted,
                                .flags = 0,
                                .dl_tensor = {.data = data,
                                              .device = {kDLCPU, 0},
                                              .ndim = ndim,
                                              .dtype = {kDLFloat, 32, 1},
                                              .shape = shape,
                                              .strides = strides,
                                              .byte_offset = 0}};
  return t;
}

static const int64_t kDims[] = {3, 4};
static const float kValues[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static kiln_buffer* matrix_on(kiln_device* device) {
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, kDims, 2, kValues, sizeof kValues, &buffer));
  return buffer;
}

/* Both forms say the same. */
static void expect_matrix(const DLTensor* t, const kiln_device* device) {
  int32_t type = 0, id = -1;
  OK(kiln_device_dlpack(device, &type, &id));
  CHECK(type == kDLCPU && id == 0);
  CHECK(t->device.device_type == type && t->device.device_id == id);
  CHECK(t->dtype.code == kDLFloat && t->dtype.bits == 32 && t->dtype.lanes == 1);
  CHECK(t->ndim == 2 && t->shape[0] == 3 && t->shape[1] == 4);
  CHECK(t->strides[0] == 4 && t->strides[1] == 1 && t->byte_offset == 0);
  CHECK(memcmp(t->data, kValues, sizeof kValues) == 0);
}

static void out(kiln_context* context, const char* name) {
  kiln_device* device = find_device(context, name);
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, now = KILN_MEMORY_INFO_INIT;
  OK(kiln_device_memory(device, &before));
  kiln_buffer* buffer = matrix_on(device);
  const void* data = NULL;
  OK(kiln_buffer_device_data(buffer, &data));
  DLManagedTensorVersioned* versioned = NULL;
  DLManagedTensor* unversioned = NULL;
  OK(kiln_buffer_to_dlpack(buffer, (void*)&versioned));
  OK(kiln_buffer_to_dlpack_unversioned(buffer, (void*)&unversioned));
  kiln_buffer_release(buffer);
  CHECK(versioned->version.major == 1 && versioned->flags == kReadOnly);
  expect_matrix(&versioned->dl_tensor, device);
  expect_matrix(&unversioned->dl_tensor, device);
  CHECK(versioned->dl_tensor.data == data && unversioned->dl_tensor.data == data);
  /* Each of them keeps the memory. */
  versioned->deleter(versioned);
  expect_matrix(&unversioned->dl_tensor, device);
  OK(kiln_device_memory(device, &now));
  CHECK(now.live_bytes > before.live_bytes);

  /* And back: the same memory, which goes with the last of them. */
  kiln_buffer* back = NULL;
  OK(kiln_buffer_from_dlpack_unversioned(device, (void*)unversioned, &back));
  float values[12];
  OK(kiln_buffer_copy_to_host(back, values, sizeof values));
  CHECK(memcmp(values, kValues, sizeof values) == 0);
  const void* back_data = NULL;
  OK(kiln_buffer_device_data(back, &back_data));
  CHECK((back_data == data) == (strncmp(name, "XLA_CPU", 7) != 0));
  kiln_buffer_release(back);
  OK(kiln_device_memory(device, &now));
  CHECK(now.live_bytes == before.live_bytes);

  /* No dimensions, and no elements. */
  const int64_t empty[] = {2, 0, 3};
  const float one = 1;
  OK(kiln_buffer_copy_host(device, KILN_F32, NULL, 0, &one, 4, &buffer));
  OK(kiln_buffer_to_dlpack(buffer, (void*)&versioned));
  kiln_buffer_release(buffer);
  CHECK(versioned->dl_tensor.ndim == 0 && *(float*)versioned->dl_tensor.data == 1);
  OK(kiln_buffer_from_dlpack(device, (void*)versioned, &buffer));
  kiln_buffer_release(buffer);
  OK(kiln_buffer_copy_host(device, KILN_F32, empty, 3, NULL, 0, &buffer));
  OK(kiln_buffer_to_dlpack(buffer, (void*)&versioned));
  kiln_buffer_release(buffer);
  OK(kiln_buffer_from_dlpack(device, (void*)versioned, &buffer));
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_buffer_shape(buffer, &shape));
  CHECK(shape.rank == 3 && shape.dims[1] == 0 && shape.dims[2] == 3);
  kiln_buffer_release(buffer);
  OK(kiln_device_memory(device, &now));
  CHECK(now.live_bytes == before.live_bytes);
}

/* The elements of the tensor, read by a buffer; whether it is in the tensor's memory. */
static void expect_in(kiln_device* device, DLManagedTensorVersioned* tensor, const float* expected,
                      int count, int in_place) {
  kiln_buffer* buffer = NULL;
  float values[12];
  deleted = 0;
  if (!OK(kiln_buffer_from_dlpack(device, (void*)tensor, &buffer))) return;
  CHECK(deleted == !in_place);
  OK(kiln_buffer_copy_to_host(buffer, values, sizeof(float) * (size_t)count));
  CHECK(memcmp(values, expected, sizeof(float) * (size_t)count) == 0);
  const void* data = NULL;
  OK(kiln_buffer_device_data(buffer, &data));
  const char* first = (const char*)tensor->dl_tensor.data + tensor->dl_tensor.byte_offset;
  CHECK((data == (const void*)first) == in_place);
  kiln_buffer_release(buffer);
  CHECK(deleted == 1);
}

static void in(kiln_context* context, const char* name) {
  printf("%s\n", name);
  kiln_device* device = find_device(context, name);
  const int shares = strncmp(name, "XLA_CPU", 7) != 0, is_host = !strstr(name, "GPU") && shares;
  _Alignas(64) float data[64];
  for (int i = 0; i < 64; ++i) data[i] = (float)i;
  int64_t shape[] = {3, 4}, row_major[] = {4, 1}, columns[] = {1, 3}, backwards[] = {4, -1},
          rows[] = {16, 2}, repeated[] = {0, 1};
  DLManagedTensorVersioned t = tensor_of(data, 2, shape, NULL);
  expect_in(device, &t, kValues, 12, shares);
  t.dl_tensor.strides = row_major;
  expect_in(device, &t, kValues, 12, shares);
  t.dl_tensor.device.device_type = kDLCUDAHost;
  expect_in(device, &t, kValues, 12, shares);
  t.dl_tensor.device.device_type = kDLCPU;
  /* Offsets: aligned, to an element alone, and not. */
  float moved[12];
  t.dl_tensor.byte_offset = 64;
  for (int i = 0; i < 12; ++i) moved[i] = (float)(16 + i);
  expect_in(device, &t, moved, 12, shares);
  t.dl_tensor.byte_offset = 4;
  for (int i = 0; i < 12; ++i) moved[i] = (float)(1 + i);
  expect_in(device, &t, moved, 12, is_host);
  char bytes[64];
  memcpy(bytes + 1, data, 48);
  t.dl_tensor.data = bytes;
  t.dl_tensor.byte_offset = 1;
  expect_in(device, &t, kValues, 12, 0);
  t.dl_tensor.data = data;
  /* Strides of other orders; backwards and standing still, too. */
  t.dl_tensor.byte_offset = 0;
  t.dl_tensor.strides = columns;
  for (int i = 0; i < 12; ++i) moved[i] = (float)(i / 4 + 3 * (i % 4));
  expect_in(device, &t, moved, 12, 0);
  t.dl_tensor.strides = rows;
  for (int i = 0; i < 12; ++i) moved[i] = (float)(16 * (i / 4) + 2 * (i % 4));
  expect_in(device, &t, moved, 12, 0);
  t.dl_tensor.strides = repeated;
  for (int i = 0; i < 12; ++i) moved[i] = (float)(i % 4);
  expect_in(device, &t, moved, 12, 0);
  t.dl_tensor.strides = backwards;
  t.dl_tensor.byte_offset = 12;
  for (int i = 0; i < 12; ++i) moved[i] = (float)(3 + 4 * (i / 4) - i % 4);
  expect_in(device, &t, moved, 12, 0);
  /* Where there is one element of a dimension, its stride does not matter. */
  int64_t flat[] = {1, 12}, any[] = {-77, 1};
  t = tensor_of(data, 2, flat, any);
  expect_in(device, &t, kValues, 12, shares);
  t = tensor_of(data, 0, NULL, NULL);
  expect_in(device, &t, kValues, 1, shares);
  /* Nobody needs to be told. */
  kiln_buffer* buffer = NULL;
  t = tensor_of(data, 2, shape, NULL);
  t.deleter = NULL;
  OK(kiln_buffer_from_dlpack(device, (void*)&t, &buffer));
  kiln_buffer_release(buffer);
  /* The older form. */
  DLManagedTensor old = {t.dl_tensor, &deleted, count_deleted_unversioned};
  deleted = 0;
  OK(kiln_buffer_from_dlpack_unversioned(device, (void*)&old, &buffer));
  CHECK(deleted == !shares);
  kiln_buffer_release(buffer);
  CHECK(deleted == 1);
}

static void types(kiln_device* device) {
  static const struct {
    kiln_dtype dtype;
    uint8_t code, bits;
  } rows[] = {{KILN_PRED, kDLBool, 8},    {KILN_S8, kDLInt, 8},       {KILN_S16, kDLInt, 16},
              {KILN_S32, kDLInt, 32},     {KILN_S64, kDLInt, 64},     {KILN_U8, kDLUInt, 8},
              {KILN_U16, kDLUInt, 16},    {KILN_U32, kDLUInt, 32},    {KILN_U64, kDLUInt, 64},
              {KILN_F16, kDLFloat, 16},   {KILN_F32, kDLFloat, 32},   {KILN_F64, kDLFloat, 64},
              {KILN_BF16, kDLBfloat, 16}, {KILN_C64, kDLComplex, 64}, {KILN_C128, kDLComplex, 128},
              {KILN_F8E5M2, 12, 8},       {KILN_F8E4M3FN, 10, 8},     {KILN_F8E8M0FNU, 14, 8},
              {KILN_F6E2M3FN, 15, 6},     {KILN_F6E3M2FN, 16, 6},     {KILN_F4E2M1FN, 17, 4},
              {KILN_S4, kDLInt, 4},       {KILN_U4, kDLUInt, 4},      {KILN_S2, kDLInt, 2},
              {KILN_U2, kDLUInt, 2}};
  const int64_t dims[] = {5};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    kiln_buffer *buffer = NULL, *back = NULL;
    OK(kiln_buffer_create(device, rows[i].dtype, dims, 1, &buffer));
    DLManagedTensorVersioned* tensor = NULL;
    OK(kiln_buffer_to_dlpack(buffer, (void*)&tensor));
    CHECK(tensor->dl_tensor.dtype.code == rows[i].code);
    CHECK(tensor->dl_tensor.dtype.bits == rows[i].bits);
    /* Elements of less than a byte take a whole one, which is for the flag to say. */
    CHECK(!(tensor->flags & kPadded) == (rows[i].bits >= 8));
    if (rows[i].bits < 8) {
      tensor->flags &= ~(uint64_t)kPadded;
      FAILS(KILN_UNIMPLEMENTED, "bits", kiln_buffer_from_dlpack(device, (void*)tensor, &back));
      tensor->flags |= kPadded;
    }
    OK(kiln_buffer_from_dlpack(device, (void*)tensor, &back));
    kiln_shape shape = KILN_SHAPE_INIT;
    OK(kiln_buffer_shape(back, &shape));
    CHECK(shape.dtype == rows[i].dtype && shape.dims[0] == 5);
    kiln_buffer_release(buffer);
    kiln_buffer_release(back);
  }
}

static void mistakes(kiln_context* context, kiln_device* device) {
  _Alignas(64) float data[12] = {0};
  int64_t shape[] = {3, 4}, negative[] = {3, -4}, far[] = {INT64_MAX / 4, 1},
          farther[] = {INT64_MAX / 8, INT64_MAX / 12};
  kiln_buffer* buffer = NULL;
  deleted = 0;
  const DLManagedTensorVersioned right = tensor_of(data, 2, shape, NULL);
#define REFUSED(code, text, change)                                         \
  do {                                                                      \
    DLManagedTensorVersioned t = right;                                     \
    change;                                                                 \
    FAILS(code, text, kiln_buffer_from_dlpack(device, (void*)&t, &buffer)); \
  } while (0)
  REFUSED(KILN_UNIMPLEMENTED, "a tensor of DLPack 2.3", (t.version.major = 2, t.version.minor = 3));
  REFUSED(KILN_UNIMPLEMENTED, "4 lanes", t.dl_tensor.dtype.lanes = 4);
  REFUSED(KILN_UNIMPLEMENTED, "type code 3 and 64 bits",
          t.dl_tensor.dtype = ((DLDataType){kDLOpaqueHandle, 64, 1}));
  REFUSED(KILN_UNIMPLEMENTED, "type code 0 and 4 bits",
          t.dl_tensor.dtype = ((DLDataType){kDLInt, 4, 1}));
  REFUSED(KILN_UNIMPLEMENTED, "device type 8, number 0", t.dl_tensor.device.device_type = kDLMetal);
  REFUSED(KILN_UNIMPLEMENTED, "device type 2, number 5",
          t.dl_tensor.device = ((DLDevice){kDLCUDA, 5}));
  REFUSED(KILN_INVALID_ARGUMENT, "-1 dimensions", t.dl_tensor.ndim = -1);
  REFUSED(KILN_INVALID_ARGUMENT, "without its shape", t.dl_tensor.shape = NULL);
  REFUSED(KILN_INVALID_ARGUMENT, "without data", t.dl_tensor.data = NULL);
  REFUSED(KILN_INVALID_ARGUMENT, "-4", t.dl_tensor.shape = negative);
  REFUSED(KILN_INVALID_ARGUMENT, "stride", t.dl_tensor.strides = far);
  REFUSED(KILN_INVALID_ARGUMENT, "stride", t.dl_tensor.strides = farther);
  FAILS(KILN_INVALID_ARGUMENT, "tensor is NULL", kiln_buffer_from_dlpack(device, NULL, &buffer));
  CHECK(deleted == 0 && buffer == NULL);

  DLManagedTensorVersioned* tensor = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "buffer is NULL", kiln_buffer_to_dlpack(NULL, (void*)&tensor));
  const int64_t dims[] = {4};
  OK(kiln_buffer_create(device, KILN_S4, dims, 1, &buffer));
  FAILS(KILN_UNIMPLEMENTED, "elements like those of s4",
        kiln_buffer_to_dlpack_unversioned(buffer, (void*)&tensor));
  kiln_buffer_release(buffer);

  /* What must not be written is neither a result nor donated. */
  kiln_graph* g = make_graph(context, "negate");
  kiln_value x = kiln_op_parameter(g, KILN_F32, shape, 2, "x", 1);
  kiln_executable* executable = compile_result(g, kiln_op_negate(g, x), device);
  DLManagedTensorVersioned t = right;
  t.flags = kReadOnly;
  buffer = NULL;
  OK(kiln_buffer_from_dlpack(device, (void*)&t, &buffer));
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(executable, NULL, &buffer, 1, &result, 1));
  FAILS(KILN_INVALID_ARGUMENT, "result 0 is in read-only memory",
        kiln_executable_run(executable, NULL, &result, 1, &buffer, 1));
  const size_t zero = 0;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = &zero;
  options.donated_count = 1;
  kiln_buffer* other = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "argument 0 is donated, and is in read-only memory",
        kiln_executable_run(executable, &options, &buffer, 1, &other, 1));
  kiln_buffer_release(buffer);
  CHECK(deleted == 1);
  /* What may be written is. */
  t.flags = 0;
  OK(kiln_buffer_from_dlpack(device, (void*)&t, &buffer));
  data[5] = 7;
  OK(kiln_executable_run(executable, NULL, &buffer, 1, &result, 1));
  float values[12];
  OK(kiln_buffer_copy_to_host(result, values, sizeof values));
  CHECK(values[5] == -7);
  OK(kiln_executable_run(executable, NULL, &result, 1, &buffer, 1));
  CHECK(data[5] == 7 && deleted == 1);
  /* A run that goes on keeps it. */
  kiln_event* event = NULL;
  kiln_buffer* const* arguments = &buffer;
  kiln_buffer** places = &other;
  OK(kiln_executable_execute(executable, NULL, &arguments, 1, &places, 1, 1, &event));
  kiln_buffer_release(buffer);
  OK(kiln_event_wait(event, -1));
  OK(kiln_buffer_copy_to_host(other, values, sizeof values));
  CHECK(values[5] == -7 && deleted == 2);
  kiln_event_release(event);
  kiln_buffer_release(other);
  kiln_buffer_release(result);
  kiln_executable_release(executable);
}

/* A tensor outlives all that the user has of the library. */
static void tensor_alone(void) {
  kiln_context* context = make_context(2);
  kiln_buffer* buffer = matrix_on(find_device(context, "CPU:0"));
  DLManagedTensorVersioned* tensor = NULL;
  OK(kiln_buffer_to_dlpack(buffer, (void*)&tensor));
  kiln_buffer_release(buffer);
  kiln_context_release(context);
  CHECK(memcmp(tensor->dl_tensor.data, kValues, sizeof kValues) == 0);
  tensor->deleter(tensor);
}

int main(void) {
  static const char* const names[] = {"CPU:0", "XLA_CPU:0", "REFERENCE:0", "GPU:0", "XLA_GPU:0"};
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.gpu = KILN_GPU_EMULATED;
  options.threads = 2;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) return 1;
  for (int i = 0; i < 5; ++i) {
    out(context, names[i]);
    in(context, names[i]);
    types(find_device(context, names[i]));
    if (strncmp(names[i], "XLA_CPU", 7) != 0) mistakes(context, find_device(context, names[i]));
  }
  kiln_context_release(context);
  tensor_alone();
  return test_result();
}
