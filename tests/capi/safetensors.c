/* Files of named arrays: written, opened, used in place by executions, and refused. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

static char folder[] = "/tmp/kiln-safetensors-XXXXXX";
static char path[64];

static kiln_named_buffer named(const char* name, kiln_buffer* buffer) {
  const kiln_named_buffer made = {name, strlen(name), buffer};
  return made;
}

static kiln_error* write_file(const kiln_named_buffer* arrays, size_t count,
                              const kiln_safetensors_options* options) {
  return kiln_safetensors_save(path, strlen(path), arrays, count, options);
}

static kiln_safetensors* open_file(void) {
  kiln_safetensors* file = NULL;
  OK(kiln_safetensors_open(path, strlen(path), &file));
  return file;
}

static kiln_buffer* buffer_of(kiln_safetensors* file, const char* name, kiln_device* device) {
  kiln_buffer* buffer = NULL;
  OK(kiln_safetensors_buffer(file, name, strlen(name), device, &buffer));
  return buffer;
}

static void put(const void* bytes, size_t size) {
  FILE* file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

/* A header and its data as a file. */
static void put_file(const char* header, const char* data, size_t size) {
  unsigned char bytes[512] = {0};
  const size_t length = strlen(header);
  for (int i = 0; i < 8; ++i) bytes[i] = (unsigned char)(length >> 8 * i);
  memcpy(bytes + 8, header, length);
  memcpy(bytes + 8 + length, data, size);
  put(bytes, 8 + length + size);
}

static int64_t file_size(void) {
  struct stat found;
  return stat(path, &found) == 0 ? (int64_t)found.st_size : -1;
}

static void expect_text(const char* text, size_t length, const char* expected) {
  CHECK(text && length == strlen(expected) && strcmp(text, expected) == 0);
}

static void round_trip(kiln_context* context, const char* device_name) {
  kiln_device* device = find_device(context, device_name);
  const float w[] = {1, 2, 3, 4, 5, 6};
  const int64_t w_dims[] = {2, 3};
  const uint8_t p[] = {0, 1, 7};
  const int64_t p_dims[] = {3};
  kiln_buffer *w_buffer = NULL, *p_buffer = NULL, *none = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, w_dims, 2, w, sizeof w, &w_buffer));
  OK(kiln_buffer_copy_host(device, KILN_PRED, p_dims, 1, p, sizeof p, &p_buffer));
  const int64_t no_rows[] = {0, 4};
  OK(kiln_buffer_create(device, KILN_F64, no_rows, 2, &none));
  const kiln_named_buffer arrays[] = {named("p", p_buffer), named("w", w_buffer),
                                      named("none", none)};
  const kiln_text_pair pairs[] = {{"step", 4, "12", 2}, {"\xc3\xa9", 2, "a\0b", 3}};
  kiln_safetensors_options options = KILN_SAFETENSORS_OPTIONS_INIT;
  options.metadata = pairs;
  options.metadata_count = 2;
  OK(write_file(arrays, 3, &options));
  kiln_buffer_release(w_buffer);
  kiln_buffer_release(p_buffer);
  kiln_buffer_release(none);

  kiln_safetensors* file = open_file();
  size_t length = 0, index = 9;
  CHECK(kiln_safetensors_count(file) == 3);
  const char* name = kiln_safetensors_name(file, 1, &length);
  expect_text(name, length, "w");
  const char* dtype = kiln_safetensors_dtype(file, 2, &length);
  expect_text(dtype, length, "BOOL");
  OK(kiln_safetensors_find(file, "p", 1, &index));
  CHECK(index == 2);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_safetensors_shape(file, 1, &shape));
  CHECK(shape.dtype == KILN_F32 && shape.rank == 2 && shape.dims[1] == 3 && shape.byte_size == 24);
  CHECK(kiln_safetensors_metadata_count(file) == 2);
  const char* key = kiln_safetensors_metadata_key(file, 0, &length);
  expect_text(key, length, "step");
  const char* text = kiln_safetensors_metadata(file, "step", 4, &length);
  expect_text(text, length, "12");
  text = kiln_safetensors_metadata(file, "\xc3\xa9", 2, &length);
  CHECK(length == 3 && memcmp(text, "a\0b", 4) == 0);
  CHECK(!kiln_safetensors_metadata(file, "none", 4, &length) && length == 0);

  /* The buffers keep the file. */
  w_buffer = buffer_of(file, "w", device);
  p_buffer = buffer_of(file, "p", device);
  none = buffer_of(file, "none", device);
  kiln_safetensors_release(file);
  expect_f32(w_buffer, w, 6);
  uint8_t read[3] = {9, 9, 9};
  OK(kiln_buffer_copy_to_host(p_buffer, read, 3));
  CHECK(read[0] == 0 && read[1] == 1 && read[2] == 1);
  OK(kiln_buffer_copy_to_host(none, NULL, 0));
  kiln_buffer_release(w_buffer);
  kiln_buffer_release(p_buffer);
  kiln_buffer_release(none);
}

/* x + x, in the memory of x if that is donated. */
static kiln_executable* twice(kiln_context* context, kiln_device* device, int64_t size) {
  kiln_graph* graph = make_graph(context, "twice");
  kiln_value x = f32_parameter(graph, "x", size);
  return compile_in_place(graph, kiln_op_add(graph, x, x), device);
}

static void in_place(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  enum { kSize = 1 << 20 };
  static float values[kSize];
  for (int i = 0; i < kSize; ++i) values[i] = (float)(i % 100);
  kiln_buffer* buffer = f32_buffer(cpu, values, kSize);
  const kiln_named_buffer arrays[] = {named("x", buffer)};
  OK(write_file(arrays, 1, NULL));
  kiln_buffer_release(buffer);

  /* Nothing is copied: neither by the file nor for an execution. */
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, after = KILN_MEMORY_INFO_INIT;
  kiln_executable* executable = twice(context, cpu, kSize);
  OK(kiln_context_memory(context, &before));
  kiln_safetensors* file = open_file();
  buffer = buffer_of(file, "x", cpu);
  kiln_buffer* again = buffer_of(file, "x", cpu);
  kiln_safetensors_release(file);
  OK(kiln_context_memory(context, &after));
  CHECK(after.live_bytes == before.live_bytes);
  const void *at = NULL, *again_at = NULL;
  OK(kiln_buffer_data(buffer, &at));
  OK(kiln_buffer_data(again, &again_at));
  CHECK(at == again_at && (uintptr_t)at % 8 == 0);
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(executable, NULL, &buffer, 1, &result, 1));
  const void* doubled = NULL;
  OK(kiln_buffer_data(result, &doubled));
  CHECK(((const float*)doubled)[kSize - 1] == 2 * values[kSize - 1]);

  /* It cannot be written. */
  FAILS(KILN_INVALID_ARGUMENT, "read-only",
        kiln_executable_run(executable, NULL, &result, 1, &buffer, 1));
  const size_t first = 0;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = &first;
  options.donated_count = 1;
  kiln_buffer* other = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "read-only",
        kiln_executable_run(executable, &options, &buffer, 1, &other, 1));

  /* The file is replaced by itself, and by another; buffers of the old one stay. */
  const kiln_named_buffer same[] = {named("x", buffer)};
  OK(write_file(same, 1, NULL));
  const kiln_named_buffer next[] = {named("x", result)};
  OK(write_file(next, 1, NULL));
  CHECK(((const float*)at)[kSize - 1] == values[kSize - 1]);
  kiln_buffer_release(buffer);
  kiln_buffer_release(again);
  kiln_buffer_release(result);
  kiln_executable_release(executable);
}

/* Elements that must be copied: packed, or at an odd address. */
static void copied(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  put_file(
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},"
      "\"c\":{\"dtype\":\"F4\",\"shape\":[2,2],\"data_offsets\":[5,7]},"
      "\"six\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[7,10]},"
      "\"new\":{\"dtype\":\"U128\",\"shape\":[],\"data_offsets\":[10,10]}}",
      "x\0\0\x80?\x21\x43\x01\x02\x03", 10);
  kiln_safetensors* file = open_file();
  if (!file) return;
  kiln_buffer* b = buffer_of(file, "b", cpu);
  expect_f32(b, (const float[]){1}, 1);
  const void* at = NULL;
  OK(kiln_buffer_data(b, &at));
  CHECK((uintptr_t)at % KILN_ALIGNMENT == 0);
  kiln_buffer* c = buffer_of(file, "c", cpu);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_buffer_shape(c, &shape));
  CHECK(shape.dtype == KILN_F4E2M1FN && shape.rank == 2 && shape.byte_size == 4);
  char elements[4];
  OK(kiln_buffer_copy_to_host(c, elements, 4));
  CHECK(memcmp(elements, "\1\2\3\4", 4) == 0);

  /* Only who asks for it learns that there is no such element type. */
  kiln_buffer* none = NULL;
  FAILS(KILN_UNIMPLEMENTED, "'six' has the dtype 'F6_E2M3'",
        kiln_safetensors_buffer(file, "six", 3, cpu, &none));
  FAILS(KILN_UNIMPLEMENTED, "'new' has the dtype 'U128'",
        kiln_safetensors_buffer(file, "new", 3, cpu, &none));
  size_t index = 0;
  OK(kiln_safetensors_find(file, "six", 3, &index));
  FAILS(KILN_UNIMPLEMENTED, "F6_E2M3", kiln_safetensors_shape(file, index, &shape));
  kiln_buffer_release(b);
  kiln_buffer_release(c);
  kiln_safetensors_release(file);
}

static void refused(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_safetensors* file = NULL;
  const size_t length = strlen(path);
  put_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", "x", 1);
  FAILS(KILN_INVALID_ARGUMENT, "'a': U8[2] has 1 bytes",
        kiln_safetensors_open(path, length, &file));
  put_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "xy", 2);
  FAILS(KILN_INVALID_ARGUMENT, path, kiln_safetensors_open(path, length, &file));
  put("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  FAILS(KILN_INVALID_ARGUMENT, "100000000", kiln_safetensors_open(path, length, &file));
  put("", 0);
  FAILS(KILN_INVALID_ARGUMENT, "0 bytes", kiln_safetensors_open(path, length, &file));
  FAILS(KILN_NOT_FOUND, "none", kiln_safetensors_open("/none", 5, &file));
  FAILS(KILN_INVALID_ARGUMENT, "NUL", kiln_safetensors_open("/tmp\0x", 6, &file));
  FAILS(KILN_INVALID_ARGUMENT, "directory", kiln_safetensors_open("/tmp", 4, &file));
  FAILS(KILN_INVALID_ARGUMENT, "path is NULL", kiln_safetensors_open(NULL, 0, &file));
  FAILS(KILN_INVALID_ARGUMENT, "file is NULL", kiln_safetensors_open(path, length, NULL));
  CHECK(!file);
  CHECK(kiln_safetensors_count(NULL) == 0 && !kiln_safetensors_name(NULL, 0, NULL));
  CHECK(kiln_safetensors_metadata_count(NULL) == 0 &&
        !kiln_safetensors_metadata(NULL, "", 0, NULL));
  kiln_safetensors_retain(NULL);
  kiln_safetensors_release(NULL);

  OK(write_file(NULL, 0, NULL));
  file = open_file();
  size_t index = 0;
  kiln_shape shape = KILN_SHAPE_INIT;
  kiln_buffer* buffer = NULL;
  CHECK(!kiln_safetensors_name(file, 0, &index) && !kiln_safetensors_dtype(file, 0, NULL));
  FAILS(KILN_NOT_FOUND, "'x\\000y'", kiln_safetensors_find(file, "x\0y", 3, &index));
  FAILS(KILN_OUT_OF_RANGE, "array 0", kiln_safetensors_shape(file, 0, &shape));
  FAILS(KILN_NOT_FOUND, "'x'", kiln_safetensors_buffer(file, "x", 1, cpu, &buffer));
  kiln_safetensors_retain(file);
  kiln_safetensors_release(file);
  kiln_safetensors_release(file);
}

/* What cannot be written leaves the file as it is. */
static void failures(kiln_context* context) {
  kiln_device* cpu = find_device(context, "CPU:0");
  static float values[100000];
  kiln_buffer* large = f32_buffer(cpu, values, 100000);
  kiln_buffer* small = f32_buffer(cpu, values, 2);
  const kiln_named_buffer one[] = {named("a", small)};
  OK(write_file(one, 1, NULL));
  const int64_t size = file_size();

  const kiln_named_buffer twins[] = {named("a", small), named("a", large)};
  FAILS(KILN_INVALID_ARGUMENT, "'a' is there twice", write_file(twins, 2, NULL));
  const kiln_named_buffer null[] = {named("a", NULL)};
  FAILS(KILN_INVALID_ARGUMENT, "arrays[0].buffer is NULL", write_file(null, 1, NULL));
  FAILS(KILN_INVALID_ARGUMENT, "arrays is NULL", write_file(NULL, 1, NULL));
  const kiln_named_buffer no_name[] = {{NULL, 3, small}};
  FAILS(KILN_INVALID_ARGUMENT, "arrays[0].name", write_file(no_name, 1, NULL));
  kiln_safetensors_options options;
  kiln_safetensors_options_init(&options, sizeof options);
  options.metadata_count = 1;
  FAILS(KILN_INVALID_ARGUMENT, "metadata is NULL", write_file(one, 1, &options));
  const kiln_text_pair wrong = {"k", 1, "\xff", 1};
  options.metadata = &wrong;
  FAILS(KILN_INVALID_ARGUMENT, "UTF-8", write_file(one, 1, &options));
  const double complex_values[2] = {1, 2};
  kiln_buffer* wide = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_C128, NULL, 0, complex_values, 16, &wide));
  const kiln_named_buffer unknown[] = {named("z", wide)};
  FAILS(KILN_UNIMPLEMENTED, "'z' is of c128[]", write_file(unknown, 1, NULL));
  kiln_buffer_release(wide);

  /* A buffer that was donated. */
  kiln_executable* executable = twice(context, cpu, 2);
  kiln_execute_options execute = KILN_EXECUTE_OPTIONS_INIT;
  execute.donate_aliased = 1;
  kiln_buffer *donated = f32_buffer(cpu, values, 2), *result = NULL;
  OK(kiln_executable_run(executable, &execute, &donated, 1, &result, 1));
  const kiln_named_buffer gone[] = {named("large", large), named("z", donated)};
  FAILS(KILN_FAILED_PRECONDITION, "'z'", write_file(gone, 2, NULL));
  kiln_buffer_release(donated);
  kiln_buffer_release(result);
  kiln_executable_release(executable);

  /* A limit on the sizes of files, which would also end the process. */
  const kiln_named_buffer full[] = {named("a", large)};
  struct rlimit before, limit;
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  limit.rlim_cur = 50000;
  setrlimit(RLIMIT_FSIZE, &limit);
  kiln_error* error = write_file(full, 1, NULL);
  setrlimit(RLIMIT_FSIZE, &before);
  FAILS(KILN_RESOURCE_EXHAUSTED, path, error);
  FAILS(KILN_NOT_FOUND, "none", kiln_safetensors_save("/none/file", 10, one, 1, NULL));
  FAILS(KILN_INVALID_ARGUMENT, "regular", kiln_safetensors_save("/dev/null", 9, one, 1, NULL));
  CHECK(file_size() == size);
  /* Nothing else is in the folder, which can be removed with the file. */
  CHECK(unlink(path) == 0 && rmdir(folder) == 0);
  kiln_buffer_release(large);
  kiln_buffer_release(small);
}

int main(void) {
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/file", folder);
  kiln_context* context = make_context_with(2, tested_gpu());
  round_trip(context, "CPU:0");
  round_trip(context, "REFERENCE:0");
  round_trip(context, "XLA_CPU:0");
  round_trip(context, "GPU:0");
  in_place(context);
  copied(context);
  refused(context);
  failures(context);
  kiln_context_release(context);
  return test_result();
}
