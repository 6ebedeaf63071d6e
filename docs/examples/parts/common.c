#define _POSIX_C_SOURCE 200809L
#include "parts/common.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fflush(stdout);
  fprintf(stderr, "error: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  exit(1);
}

void check(kiln_error* error, const char* what) {
  if (!error) return;
  fail("%s: %s: %s", what, kiln_code_name(kiln_error_code(error)), kiln_error_message(error, NULL));
}

void* allocate(size_t count, size_t size) {
  void* memory = calloc(count ? count : 1, size);
  if (!memory) fail("out of memory");
  return memory;
}

char* format_text(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  char* text = allocate((size_t)length + 1, 1);
  vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (!file) {
    if (errno != ENOENT) fail("%s: %s", path, strerror(errno));
    return NULL;
  }
  size_t used = 0, room = 1 << 16;
  char* bytes = allocate(room + 1, 1);
  for (size_t got; (got = fread(bytes + used, 1, room - used, file)) > 0;) {
    used += got;
    if (used < room) continue;
    room *= 2;
    bytes = realloc(bytes, room + 1);
    if (!bytes) fail("%s: out of memory", path);
  }
  if (ferror(file)) fail("%s: cannot be read", path);
  fclose(file);
  bytes[used] = '\0';
  if (size) *size = used;
  return bytes;
}

int write_file(const char* path, const void* bytes, size_t size) {
  char* other = format_text("%s.%ld", path, (long)getpid());
  errno = 0;
  FILE* file = fopen(other, "wb");
  int failed = !file || fwrite(bytes, 1, size, file) != size;
  if (file && fclose(file) != 0) failed = 1;
  if (!failed && rename(other, path) != 0) failed = 1;
  int error = failed ? (errno ? errno : EIO) : 0;
  if (failed && file) remove(other);
  free(other);
  return error;
}

void make_folder(const char* path) {
  if (mkdir(path, 0777) != 0 && errno != EEXIST) fail("%s: %s", path, strerror(errno));
}

double now_in_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t hash_bytes(uint64_t hash, const void* bytes, size_t size) {
  const unsigned char* p = bytes;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
  return hash;
}

int64_t parse_integer(const char* text, int64_t least, int64_t most, const char* option) {
  char* end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || *end || end == text || value < least || value > most) {
    fail("%s: %s is no number from %" PRId64 " to %" PRId64, option, text, least, most);
  }
  return value;
}

double parse_real(const char* text, double least, double most, const char* option) {
  char* end;
  double value = strtod(text, &end);
  if (*end || end == text || !(value >= least && value <= most)) {
    fail("%s: %s is no number from %g to %g", option, text, least, most);
  }
  return value;
}

uint64_t random_bits(uint64_t* state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

double random_unit(uint64_t* state) { return (double)(random_bits(state) >> 11) * 0x1p-53; }

double random_normal(uint64_t* state) {
  double radius = sqrt(-2 * log(1 - random_unit(state)));
  return radius * cos(6.283185307179586 * random_unit(state));
}

static size_t elements(const int64_t* dims, size_t rank) {
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= (size_t)dims[i];
  return count;
}

static kiln_buffer* host_buffer(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                size_t rank, const void* values) {
  kiln_buffer* buffer;
  check(kiln_buffer_copy_host(device, dtype, dims, rank, values, 4 * elements(dims, rank), &buffer),
        "buffer");
  return buffer;
}

kiln_buffer* f32_buffer(kiln_device* device, const int64_t* dims, size_t rank,
                        const float* values) {
  return host_buffer(device, KILN_F32, dims, rank, values);
}

kiln_buffer* s32_buffer(kiln_device* device, const int64_t* dims, size_t rank,
                        const int32_t* values) {
  return host_buffer(device, KILN_S32, dims, rank, values);
}

kiln_device* open_device(const char* name, int32_t threads, kiln_context** context) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  check(kiln_context_create(&options, context), "context");
  kiln_device* device;
  check(kiln_context_find_device(*context, name, strlen(name), &device), name);
  return device;
}

kiln_graph* new_graph(kiln_context* context, const char* name) {
  kiln_graph* graph;
  check(kiln_graph_create(context, name, strlen(name), &graph), name);
  return graph;
}

kiln_buffer* text_pieces(kiln_device* device, const char* text, size_t size, int64_t count,
                         int64_t length, uint64_t seed) {
  int32_t* characters = allocate((size_t)(count * length), sizeof(int32_t));
  const int64_t dims[] = {count, length};
  for (int64_t i = 0; i < count; ++i) {
    const char* piece = text + random_bits(&seed) % (size - (size_t)length + 1);
    for (int64_t k = 0; k < length; ++k) characters[i * length + k] = (unsigned char)piece[k];
  }
  kiln_buffer* pieces = s32_buffer(device, dims, 2, characters);
  free(characters);
  return pieces;
}
