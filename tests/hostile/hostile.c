/* Runs programs that a stranger may have written: HLO text (.hlo), StableHLO text or bytecode
 * (.mlir, .mlirbc), each compiled and run on every device by a process of its own, which has 10 s
 * of processor time and 1 GiB of memory beyond what the library takes. A program ends well when it
 * gives results, which are those of the evaluator where that ends, or an error; a loop that would
 * run for too long is cancelled.
 *
 * usage: kiln-hostile [--known FILE] [--device NAME] [--environment NAME] PATH...
 *
 * A path is a file, or a folder of files; NAME is a variable that holds one, without which the
 * program ends with 77. A device that is named is the only one beside the evaluator. Each line of
 * FILE is "NAME DEVICE REASON": a failure that is known, by the file's name and the device or "*";
 * it is told and not counted. A first line
 * "// EXPECT: TEXT" of a file asks for TEXT in the outcome of CPU:0 and GPU:0. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"

enum { kDevices = 3, kMessage = 600, kSeconds = 10, kMostFiles = 4096 };
static const char* const kDeviceNames[kDevices] = {"REFERENCE:0", "CPU:0", "GPU:0"};
static const int64_t kMemory = INT64_C(1) << 30;
static const int64_t kMostResults = INT64_C(1) << 26; /* bytes that are compared */

/* --- in the child ------------------------------------------------------------------------------
 */

static int32_t cancel = 0;
static void on_time(int signal) {
  (void)signal;
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
}

static int64_t address_space(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void limit(int resource, int64_t value) {
  struct rlimit limits = {(rlim_t)value, (rlim_t)value};
  setrlimit(resource, &limits);
}

/* The outcome of a phase is a line; the child ends with it where that is an error. */
static void expect(FILE* out, const char* phase, kiln_error* error) {
  if (!error) return;
  fprintf(out, "%s: %s: %.*s\n", phase, kiln_code_name(kiln_error_code(error)), kMessage - 100,
          kiln_error_message(error, NULL));
  fclose(out);
  _exit(0);
}

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char* data = malloc(*size + 1);
  if (data && fread(data, 1, *size, file) != *size) *size = 0;
  fclose(file);
  return data;
}

/* Small numbers, which every type has. */
static void fill(void* data, const kiln_shape* shape) {
  int64_t width = kiln_dtype_bits(shape->dtype) / 8;
  int64_t count = width > 0 ? shape->byte_size / width : 0;
  for (int64_t i = 0; i < count; ++i) {
    int number = (int)(i % 3);
    switch (shape->dtype) {
      case KILN_PRED:
        ((uint8_t*)data)[i] = number == 1;
        break;
      case KILN_F32:
        ((float*)data)[i] = 0.5f * (float)number;
        break;
      case KILN_F64:
        ((double*)data)[i] = 0.5 * number;
        break;
      case KILN_S32:
      case KILN_U32:
        ((int32_t*)data)[i] = number;
        break;
      case KILN_S64:
      case KILN_U64:
        ((int64_t*)data)[i] = number;
        break;
      default:
        break; /* zeros */
    }
  }
}

static int ends_with(const char* text, const char* end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

static kiln_buffer* argument(FILE* out, kiln_device* device, const kiln_shape* shape) {
  kiln_buffer* buffer = NULL;
  if (shape->dtype == KILN_TOKEN) {
    expect(out, "run", kiln_buffer_create(device, KILN_TOKEN, NULL, 0, &buffer));
    return buffer;
  }
  void* data = calloc(1, shape->byte_size > 0 ? (size_t)shape->byte_size : 1);
  if (!data) {
    fprintf(out, "run: RESOURCE_EXHAUSTED: an argument of %lld bytes\n",
            (long long)shape->byte_size);
    fclose(out);
    _exit(0);
  }
  fill(data, shape);
  expect(out, "run",
         kiln_buffer_copy_host(device, shape->dtype, shape->dims, shape->rank, data,
                               (size_t)shape->byte_size, &buffer));
  free(data);
  return buffer;
}

static void child(const char* path, const char* device_name, FILE* out) {
  kiln_context_options with_gpu = KILN_CONTEXT_OPTIONS_INIT;
  with_gpu.threads = 1;
  with_gpu.gpu = KILN_GPU_EMULATED;
  kiln_context* context = NULL;
  kiln_device* device = NULL;
  size_t size = 0;
  char* text = read_file(path, &size);
  expect(out, "start", kiln_context_create(&with_gpu, &context));
  expect(out, "start",
         kiln_context_find_device(context, device_name, strlen(device_name), &device));
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kSeconds);
  limit(RLIMIT_AS, address_space() + kMemory);
  /* Time is the processor's: others may be at work. */
  signal(SIGPROF, on_time);
  struct itimerval late = {{0, 0}, {kSeconds - 1, 0}}, soon = {{0, 0}, {0, 500000}};
  setitimer(ITIMER_PROF, &late, NULL);
  kiln_graph* graph = NULL;
  kiln_stablehlo_options reading = KILN_STABLEHLO_OPTIONS_INIT;
  reading.cancel = &cancel;
  expect(out, "read",
         ends_with(path, ".hlo")
             ? kiln_graph_from_hlo_text(context, text, size, &graph)
             : kiln_graph_from_stablehlo(context, text, size, &reading, &graph));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.cancel = &cancel;
  kiln_executable* executable = NULL;
  expect(out, "compile", kiln_graph_compile(graph, &options, &executable));
  size_t arguments = kiln_executable_argument_count(executable);
  size_t results = kiln_executable_result_count(executable);
  kiln_buffer** buffers = calloc(arguments + results + 1, sizeof *buffers);
  for (size_t i = 0; i < arguments; ++i) {
    kiln_shape shape = KILN_SHAPE_INIT;
    expect(out, "run", kiln_executable_argument_shape(executable, i, &shape));
    buffers[i] = argument(out, device, &shape);
  }
  kiln_execute_options run = KILN_EXECUTE_OPTIONS_INIT;
  run.cancel = &cancel;
  setitimer(ITIMER_PROF, &soon, NULL);
  expect(out, "run",
         kiln_executable_run(executable, &run, buffers, arguments, buffers + arguments, results));
  fprintf(out, "ok\n");
  int64_t written = 0;
  for (size_t i = 0; i < results; ++i) {
    kiln_shape shape = KILN_SHAPE_INIT;
    expect(out, "result", kiln_buffer_shape(buffers[arguments + i], &shape));
    written += shape.byte_size;
    if (written > kMostResults) break;
    void* data = malloc((size_t)shape.byte_size + 1);
    if (!data) break;
    expect(out, "result",
           kiln_buffer_copy_to_host(buffers[arguments + i], data, (size_t)shape.byte_size));
    fprintf(out, "%d %lld\n", (int)shape.dtype, (long long)shape.byte_size);
    fwrite(data, 1, (size_t)shape.byte_size, out);
    free(data);
  }
  fclose(out);
  for (size_t i = 0; i < arguments + results; ++i) kiln_buffer_release(buffers[i]);
  free(buffers);
  free(text);
  kiln_executable_release(executable);
  kiln_graph_release(graph);
  kiln_context_release(context);
  _exit(0);
}

/* --- in the parent -----------------------------------------------------------------------------
 */

typedef struct {
  char outcome[kMessage]; /* "ok", an error, or how the process ended */
  int ended;              /* by itself */
  double seconds;
  int64_t bytes; /* the most that were resident */
  char* results; /* what stands behind the outcome */
  size_t size;
} run_result;

static run_result run_in_child(const char* path, const char* device) {
  run_result result;
  memset(&result, 0, sizeof result);
  FILE* file = tmpfile();
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    child(path, device, file);
    _exit(3);
  }
  int status = 0;
  struct rusage usage;
  memset(&usage, 0, sizeof usage);
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  result.seconds = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  result.bytes = 1024 * (int64_t)usage.ru_maxrss;
  rewind(file);
  if (WIFSIGNALED(status)) {
    snprintf(result.outcome, sizeof result.outcome, "ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0 || !fgets(result.outcome, kMessage, file)) {
    snprintf(result.outcome, sizeof result.outcome, "ended the process with %d",
             WEXITSTATUS(status));
  } else {
    result.ended = 1;
    result.outcome[strcspn(result.outcome, "\n")] = 0;
    long begin = ftell(file);
    fseek(file, 0, SEEK_END);
    result.size = (size_t)(ftell(file) - begin);
    fseek(file, begin, SEEK_SET);
    result.results = malloc(result.size + 1);
    result.size = fread(result.results, 1, result.size, file);
    result.results[result.size] = 0;
  }
  fclose(file);
  return result;
}

static double number_at(int dtype, const char* data, int64_t i) {
  float f;
  double d;
  switch (dtype) {
    case KILN_F64:
    case KILN_C128:
      memcpy(&d, data + 8 * i, 8);
      return d;
    case KILN_BF16: {
      uint16_t half;
      memcpy(&half, data + 2 * i, 2);
      uint32_t bits = (uint32_t)half << 16;
      memcpy(&f, &bits, 4);
      return f;
    }
    default:
      memcpy(&f, data + 4 * i, 4);
      return f;
  }
}

/* Floats may be rounded in another order; all else has the same bytes. */
static int is_close(int dtype, const char* a, const char* b, int64_t bytes) {
  int64_t width = 0;
  double tolerance = 1e-3;
  if (dtype == KILN_F32 || dtype == KILN_C64) width = 4;
  if (dtype == KILN_F64 || dtype == KILN_C128) width = 8;
  if (dtype == KILN_BF16) {
    width = 2;
    tolerance = 2e-2;
  }
  if (width == 0) return memcmp(a, b, (size_t)bytes) == 0;
  double largest = 0;
  for (int64_t i = 0; i < bytes / width; ++i) {
    double x = fabs(number_at(dtype, a, i));
    if (isfinite(x) && x > largest) largest = x;
  }
  for (int64_t i = 0; i < bytes / width; ++i) {
    double x = number_at(dtype, a, i), y = number_at(dtype, b, i);
    if (x == y || (isnan(x) && isnan(y))) continue;
    if (!(fabs(x - y) <= tolerance * fmax(fabs(x), 1e-2 * largest))) return 0;
  }
  return 1;
}

/* Whether the results are those of the evaluator. */
static int agree(const run_result* a, const run_result* b) {
  size_t at = 0;
  while (at < a->size && at < b->size) {
    const char* end = memchr(a->results + at, '\n', a->size - at);
    if (!end) return 0;
    size_t header = (size_t)(end - a->results) + 1 - at;
    if (at + header > b->size || memcmp(a->results + at, b->results + at, header) != 0) return 0;
    int dtype = 0;
    long long bytes = 0;
    if (sscanf(a->results + at, "%d %lld", &dtype, &bytes) != 2) return 0;
    at += header;
    if (at + (size_t)bytes > a->size || at + (size_t)bytes > b->size) return 0;
    if (!is_close(dtype, a->results + at, b->results + at, bytes)) return 0;
    at += (size_t)bytes;
  }
  return a->size == b->size;
}

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* What a line of the file of known failures says of a run, or NULL. */
static const char* known_failure(const char* known, const char* path, const char* device) {
  static char reason[kMessage];
  FILE* file = known ? fopen(known, "r") : NULL;
  char line[kMessage], name[256], on[64];
  const char* found = NULL;
  while (file && !found && fgets(line, sizeof line, file)) {
    int read = 0;
    if (line[0] == '#' || sscanf(line, "%255s %63s %n", name, on, &read) < 2) continue;
    if (strcmp(name, base_name(path)) != 0) continue;
    if (strcmp(on, "*") != 0 && strcmp(on, device) != 0) continue;
    snprintf(reason, sizeof reason, "%s", line + read);
    reason[strcspn(reason, "\n")] = 0;
    found = reason;
  }
  if (file) fclose(file);
  return found;
}

static int expected_text(const char* path, char* text, size_t size) {
  FILE* file = fopen(path, "r");
  char line[kMessage];
  int found = file && fgets(line, sizeof line, file) && strncmp(line, "// EXPECT: ", 11) == 0;
  if (found) {
    line[strcspn(line, "\n")] = 0;
    snprintf(text, size, "%s", line + 11);
  }
  if (file) fclose(file);
  return found;
}

/* The number of failures that are not known. */
static int check(const char* path, const char* known, const char* only) {
  int failures = 0;
  char wanted[kMessage];
  int has_wanted = expected_text(path, wanted, sizeof wanted);
  run_result reference;
  for (int d = 0; d < kDevices; ++d) {
    const char* device = kDeviceNames[d];
    if (only && d > 0 && strcmp(only, device) != 0) continue;
    run_result result = run_in_child(path, device);
    const char* why = NULL;
    if (!result.ended) why = "did not end by itself";
    if (!why && strncmp(result.outcome, "compile: CANCELLED", 18) == 0)
      why = "compiles for too long";
    if (!why && strstr(result.outcome, ": INTERNAL: ")) why = "is a mistake of the library's";
    if (!why && d > 0 && has_wanted && !strstr(result.outcome, wanted)) why = wanted;
    if (!why && d > 0 && strcmp(result.outcome, "ok") == 0 &&
        strcmp(reference.outcome, "ok") == 0 && !agree(&reference, &result)) {
      why = "gives other results than the evaluator";
    }
    const char* reason = known_failure(known, path, device);
    printf("%-40s %-11s %5.2f s %5.0f MB  %s\n", base_name(path), device, result.seconds,
           1e-6 * (double)result.bytes, result.outcome);
    if (why && reason) printf("  known: %s\n", reason);
    if (!why && reason && d > 0) printf("  no longer fails, though it is known for: %s\n", reason);
    if (why && !reason) {
      printf("  FAILS: %s\n", why);
      ++failures;
    }
    if (d == 0) {
      reference = result;
    } else {
      free(result.results);
    }
  }
  free(reference.results);
  return failures;
}

static int by_name(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static int is_program(const char* name) {
  return ends_with(name, ".hlo") || ends_with(name, ".mlir") || ends_with(name, ".mlirbc");
}

static char* files[kMostFiles];
static int file_count = 0;

static void add_path(const char* path) {
  DIR* folder = opendir(path);
  if (!folder) {
    if (file_count < kMostFiles) files[file_count++] = strdup(path);
    return;
  }
  int first = file_count;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (!is_program(entry->d_name) || file_count == kMostFiles) continue;
    size_t length = strlen(path) + strlen(entry->d_name) + 2;
    files[file_count] = malloc(length);
    snprintf(files[file_count++], length, "%s/%s", path, entry->d_name);
  }
  closedir(folder);
  qsort(files + first, (size_t)(file_count - first), sizeof *files, by_name);
}

int main(int argc, char** argv) {
  const char *known = NULL, *device = NULL;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--known") == 0 && i + 1 < argc) {
      known = argv[++i];
    } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      device = argv[++i];
    } else if (strcmp(argv[i], "--environment") == 0 && i + 1 < argc) {
      const char* path = getenv(argv[++i]);
      if (!path) {
        printf("%s is not set\n", argv[i]);
        return 77;
      }
      add_path(path);
    } else {
      add_path(argv[i]);
    }
  }
  if (file_count == 0) {
    fprintf(stderr, "no files\n");
    return 2;
  }
  int failures = 0;
  for (int i = 0; i < file_count; ++i) {
    failures += check(files[i], known, device);
    free(files[i]);
  }
  printf("%d files, %d failures\n", file_count, failures);
  return failures ? 1 : 0;
}
