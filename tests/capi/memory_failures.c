/* malloc fails at one allocation of a compile after the other, once, and from there on: each
 * failure is an error, or got by without, and the next compile works. The same for little address
 * space, and for the graphs of a training. How many allocations are tried is the argument. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* Their run-time libraries have malloc themselves. */
int main(void) { return 77; }

#else

/* The C library's own, which glibc exports for such uses. */
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

/* Allocations since the count began; the numbers of those that fail. */
static long count, fails_from, fails_to;
static int counts;

static int fails(void) {
  if (!counts) return 0;
  long number = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  return number >= fails_from && number < fails_to;
}

/* Seen by the library. */
#pragma GCC visibility push(default)
void* malloc(size_t bytes) {
  if (!fails()) return __libc_malloc(bytes);
  errno = ENOMEM;
  return NULL;
}
void* calloc(size_t n, size_t bytes) {
  if (!fails()) return __libc_calloc(n, bytes);
  errno = ENOMEM;
  return NULL;
}
void* realloc(void* memory, size_t bytes) {
  if (!fails()) return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return NULL;
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  if (!fails()) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return NULL;
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
#pragma GCC visibility pop

static const char kText[] =
    "HloModule m\n"
    "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
    "ENTRY e {\n  x = f32[16,32] parameter(0)\n  y = f32[32,16] parameter(1)\n"
    "  d = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  t = f32[16,16] tanh(d)\n  z = f32[] constant(0)\n"
    "  ROOT r = f32[16] reduce(t, z), dimensions={1}, to_apply=sum\n}\n";

static kiln_context* context;
static const char* device_name = "CPU:0";

/* Text to code: parsed, compiled, loaded, given back. */
static kiln_error* compile(void) {
  kiln_graph* graph = NULL;
  kiln_executable* executable = NULL;
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  kiln_error* error =
      kiln_context_find_device(context, device_name, strlen(device_name), &options.device);
  if (!error) error = kiln_graph_from_hlo_text(context, kText, sizeof kText - 1, &graph);
  if (!error) error = kiln_graph_compile(graph, &options, &executable);
  kiln_executable_release(executable);
  kiln_graph_release(graph);
  return error;
}

/* The two graphs of a training. */
static kiln_error* build_training(void) {
  static const int64_t kDims[] = {4, 3};
  enum { STATE = KILN_OPTIMIZER_STATE_MAX(1) };
  kiln_graph *initial = NULL, *graph = NULL;
  kiln_value values[1 + STATE], gradient = 0;
  kiln_initializer_options random = KILN_INITIALIZER_OPTIONS_INIT;
  random.kind = KILN_INITIALIZER_ORTHOGONAL;
  kiln_optimizer_options adam;
  kiln_optimizer_options_init(&adam, sizeof adam, KILN_OPTIMIZER_ADAM);
  size_t states = 0;
  kiln_error* error = kiln_graph_create(context, "initial", 7, &initial);
  if (!error) error = kiln_graph_create(context, "step", 4, &graph);
  if (!error) {
    values[0] = kiln_train_initialize(initial, &random, KILN_F32, kDims, 2, "w", 1);
    error = kiln_train_state(initial, &adam, values, 1, values + 1, STATE, &states);
  }
  if (!error) error = kiln_train_parameters(graph, initial, values, 1 + states, values);
  if (!error) {
    kiln_value labels = kiln_op_parameter(graph, KILN_S64, kDims, 1, "labels", 6);
    kiln_value loss =
        kiln_train_softmax_cross_entropy(graph, values[0], labels, 0.1, KILN_REDUCTION_MEAN);
    error = kiln_graph_gradient(graph, loss, values, 1, NULL, &gradient);
  }
  if (!error) error = kiln_train_clip_by_norm(graph, 1, &gradient, 1, &gradient, NULL);
  if (!error) {
    kiln_value rate = kiln_op_scalar(graph, KILN_F32, 1);
    error = kiln_train_update(graph, &adam, rate, 0, values, &gradient, 1, values + 1, states,
                              values, values + 1);
  }
  kiln_graph_release(initial);
  kiln_graph_release(graph);
  return error;
}

/* What is tried. */
static kiln_error* (*subject)(void) = compile;

static long allocations(void) {
  count = fails_from = fails_to = 0;
  counts = 1;
  kiln_error* error = subject();
  counts = 0;
  OK(error);
  return count;
}

/* Whether it failed for its lack of memory, or got by without; how many did. */
static int failed(long from, long to) {
  count = 0;
  fails_from = from;
  fails_to = to;
  counts = 1;
  kiln_error* error = subject();
  counts = 0;
  if (!error) return 0;
  if (kiln_error_code(error) != KILN_RESOURCE_EXHAUSTED) {
    fprintf(stderr, "allocation %ld: %s\n", from, kiln_error_message(error, NULL));
  }
  CHECK(kiln_error_code(error) == KILN_RESOURCE_EXHAUSTED);
  kiln_error_release(error);
  return 1;
}

static void check_points(long wanted) {
  long all = allocations(), errors = 0, points = 0;
  for (long n = 0; n < all; n += all / wanted + 1, ++points) {
    errors += failed(n, n + 1);
    errors += failed(n, 1L << 60);
  }
  printf("%s: %ld allocations, %ld points, %ld errors\n", device_name, all, points, errors);
  CHECK(errors > 0);
  OK(subject());
}

static int new_context(void) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = 1;
  options.gpu = KILN_GPU_EMULATED;
  return OK(kiln_context_create(&options, &context));
}

/* A child of little address space, beyond what it has, ends well. */
static void check_address_space(long megabytes) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (!new_context()) _exit(5);
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) _exit(2);
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max =
        (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)megabytes << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
    kiln_error* error = compile();
    kiln_code code = kiln_error_code(error);
    if (error && code != KILN_RESOURCE_EXHAUSTED) {
      fprintf(stderr, "%ld MB: %s\n", megabytes, kiln_error_message(error, NULL));
    }
    _exit(!error || code == KILN_RESOURCE_EXHAUSTED ? 0 : 4);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "with %ld MB: status %x\n", megabytes, status);
  }
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char** argv) {
  long points = argc > 1 ? atol(argv[1]) : 12;
  for (long megabytes = 1; megabytes <= 256; megabytes *= 2) check_address_space(megabytes);
  if (!new_context()) return 1;
  check_points(points);
  device_name = "GPU:0";
  check_points(points);
  /* Building is quick. */
  device_name = "a training";
  subject = build_training;
  check_points(50 * points);
  kiln_context_release(context);
  return test_result();
}

#endif
