/* Trains softmax regression on handwritten digits: XLA's classic experiment, mnist_softmax_xla.py,
 * as a plain C program.
 *
 * Forward pass, loss, gradient and update are one graph. As in that script, sessions on one device
 * run it from the same initial values: one with the just-in-time compiler off, each op a kernel of
 * its own, and one with it on, which compiles the graph in a cluster. The program compares speed,
 * memory and every loss, and leaves timelines, the graph with its cluster, the cluster after every
 * pass, and the generated code in a folder.
 *
 *   mnist_softmax [--data DIR] [--out DIR] [--steps N] [--threads N] [--device NAME]
 *
 * An option may be given as --steps=N, too. The data are MNIST's four files, unpacked, or files of
 * the same form: by default those in `digits` beside this file, or the folder given by --data.
 * Results go to build/demo, or to --out. The device is CPU:0, or the one given by --device: GPU:0
 * stands for an emulated GPU where there is no other. On XLA_CPU and XLA_GPU, TensorFlow's devices
 * for compiled code, the compiler cannot be off: the session without it runs on CPU or GPU.
 *
 * Test: --steps 20 --out OUT
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kiln/kiln.h"

#ifndef EXAMPLES
#define EXAMPLES "docs/examples" /* the folder of this file */
#endif

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, BATCH = 100, TRACED_STEPS = 5 };
static const double kRate = 0.1;
static const double kMaxLossDifference = 1e-5; /* relative, at every step */
static const double kMinAccuracy = 0.88;       /* asked of runs of 1,000 steps and more */

/* --- Failure. A library would return errors; this program prints them and ends. ----------------*/

static void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fflush(stdout);
  fprintf(stderr, "mnist_softmax: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  exit(1);
}

static void check(kiln_error* error, const char* what) {
  if (!error) return;
  fail("%s: %s: %s", what, kiln_code_name(kiln_error_code(error)), kiln_error_message(error, NULL));
}

static void* allocate(size_t count, size_t size) {
  void* memory = calloc(count, size);
  if (!memory) fail("out of memory");
  return memory;
}

/* --- Graphs ------------------------------------------------------------------------------------*/

enum { IMAGES, LABELS, WEIGHTS, BIAS, FEEDS };
enum { NEW_WEIGHTS, NEW_BIAS, LOSS, FETCHES };

static const int64_t kRows[] = {0}, kColumns[] = {1}, kBoth[] = {0, 1};

/* Builder functions need no checks of their own: after an error they return 0, and the functions
 * that take the graph return the first error. The names appear in timelines and dumps. */
static kiln_value named(kiln_graph* g, const char* name, kiln_value value) {
  check(kiln_graph_set_op_name(g, value, name, strlen(name)), name);
  return value;
}

static kiln_value parameter(kiln_graph* g, const char* name, const int64_t* dims, size_t rank) {
  return kiln_op_parameter(g, KILN_F32, dims, rank, name, strlen(name));
}

static kiln_value matmul(kiln_graph* g, const char* name, kiln_value lhs, const int64_t* lhs_dim,
                         kiln_value rhs, const int64_t* rhs_dim) {
  return named(g, name, kiln_op_dot(g, lhs, rhs, NULL, 0, NULL, 0, lhs_dim, 1, rhs_dim, 1, 0));
}

static kiln_value reduce(kiln_graph* g, const char* name, kiln_reducer reducer, kiln_value value,
                         const int64_t* dims, size_t count) {
  return named(g, name, kiln_op_reduce_by(g, value, dims, count, reducer));
}

/* Broadcasts a value with one element per row, or per column, of `like`. */
static kiln_value repeat(kiln_graph* g, kiln_value value, kiln_value like, const int64_t* dim) {
  return kiln_op_broadcast_like(g, value, like, dim, 1);
}

static kiln_value scale(kiln_graph* g, const char* name, kiln_value value, double factor) {
  kiln_value scalar = kiln_op_scalar(g, KILN_F32, factor);
  kiln_value factors = kiln_op_broadcast_like(g, scalar, value, NULL, 0);
  return named(g, name, kiln_op_multiply(g, value, factors));
}

/* The parameters of both graphs, for batches of `count` images, and images x weights + bias. */
static kiln_value logits_of(kiln_graph* g, int64_t count, kiln_value* feeds) {
  const int64_t images[] = {count, PIXELS}, labels[] = {count, CLASSES};
  const int64_t weights[] = {PIXELS, CLASSES}, bias[] = {CLASSES};
  feeds[IMAGES] = parameter(g, "images", images, 2);
  feeds[LABELS] = parameter(g, "labels", labels, 2);
  feeds[WEIGHTS] = parameter(g, "weights", weights, 2);
  feeds[BIAS] = parameter(g, "bias", bias, 1);
  kiln_value product = matmul(g, "forward/matmul", feeds[IMAGES], kColumns, feeds[WEIGHTS], kRows);
  kiln_value repeated = repeat(g, feeds[BIAS], product, kColumns);
  return named(g, "forward/logits", kiln_op_add(g, product, repeated));
}

/* One step of training: the loss of a batch, its gradient by the chain rule, and the parameters
 * after a step against the gradient. */
static kiln_graph* training_graph(kiln_context* context, kiln_value* feeds, kiln_value* fetches) {
  static const char kName[] = "mnist_softmax";
  kiln_graph* g;
  check(kiln_graph_create(context, kName, strlen(kName), &g), "graph");

  /* The logarithm of softmax, from shifted logits of at most 0, so that exp cannot overflow. */
  kiln_value logits = logits_of(g, BATCH, feeds);
  kiln_value max = reduce(g, "forward/max", KILN_REDUCER_MAX, logits, kColumns, 1);
  kiln_value maxima = repeat(g, max, logits, kRows);
  kiln_value shifted = named(g, "forward/shift", kiln_op_subtract(g, logits, maxima));
  kiln_value exps = named(g, "forward/exp", kiln_op_exponential(g, shifted));
  kiln_value sum = reduce(g, "forward/sum", KILN_REDUCER_SUM, exps, kColumns, 1);
  kiln_value log = repeat(g, named(g, "forward/log", kiln_op_log(g, sum)), logits, kRows);
  kiln_value log_softmax = named(g, "forward/log_softmax", kiln_op_subtract(g, shifted, log));

  /* Cross entropy, the mean over the batch. */
  kiln_value hits = named(g, "loss/pick", kiln_op_multiply(g, feeds[LABELS], log_softmax));
  kiln_value total = reduce(g, "loss/sum", KILN_REDUCER_SUM, hits, kBoth, 2);
  fetches[LOSS] = scale(g, "loss/mean", total, -1.0 / BATCH);

  /* The loss by the logits is (softmax - labels) / BATCH. */
  kiln_value sums = repeat(g, sum, logits, kRows);
  kiln_value softmax = named(g, "gradient/softmax", kiln_op_divide(g, exps, sums));
  kiln_value excess = named(g, "gradient/excess", kiln_op_subtract(g, softmax, feeds[LABELS]));
  kiln_value slope = scale(g, "gradient/logits", excess, 1.0 / BATCH);
  kiln_value weights = matmul(g, "gradient/weights", feeds[IMAGES], kRows, slope, kRows);
  kiln_value bias = reduce(g, "gradient/bias", KILN_REDUCER_SUM, slope, kRows, 1);

  weights = scale(g, "update/weights_rate", weights, kRate);
  bias = scale(g, "update/bias_rate", bias, kRate);
  fetches[NEW_WEIGHTS] = named(g, "update/weights", kiln_op_subtract(g, feeds[WEIGHTS], weights));
  fetches[NEW_BIAS] = named(g, "update/bias", kiln_op_subtract(g, feeds[BIAS], bias));
  check(kiln_graph_set_results(g, fetches, FETCHES), "graph");
  return g;
}

/* The share of `count` images whose logit is largest for the right digit. */
static kiln_executable* compile_accuracy(kiln_context* context, kiln_device* device, size_t count) {
  static const char kName[] = "accuracy";
  kiln_value feeds[FEEDS];
  kiln_graph* g;
  check(kiln_graph_create(context, kName, strlen(kName), &g), "graph");
  kiln_value logits = logits_of(g, (int64_t)count, feeds);
  kiln_value max = reduce(g, "max", KILN_REDUCER_MAX, logits, kColumns, 1);
  kiln_value right = kiln_op_multiply(g, logits, feeds[LABELS]);
  right = reduce(g, "right", KILN_REDUCER_SUM, right, kColumns, 1);
  kiln_value hit = kiln_op_convert(g, kiln_op_compare(g, right, max, KILN_EQ), KILN_F32);
  kiln_value hits = reduce(g, "hits", KILN_REDUCER_SUM, hit, kRows, 1);
  kiln_value share = scale(g, "share", hits, 1.0 / (double)count);
  check(kiln_graph_set_results(g, &share, 1), "graph");
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* executable;
  check(kiln_graph_compile(g, &options, &executable), "compile");
  kiln_graph_release(g);
  return executable;
}

/* --- Training ----------------------------------------------------------------------------------*/

/* Images as f32[count,784] from 0 to 1, and labels as f32[count,10] with a 1 for the digit. */
typedef struct {
  kiln_buffer *images, *labels;
} batch;

/* The digits on a device: training cycles through the batches. */
typedef struct {
  batch *batches, tests;
  size_t batch_count;
} data_set;

/* The arguments and results of steps. Each step reads the parameters in one place and writes the
 * new ones to the other, so no step allocates memory. */
typedef struct {
  kiln_buffer *weights[2], *bias[2], *loss;
  int current;
} state;

/* The training graph in a session, with the just-in-time compiler off or on. */
typedef struct {
  const char* name;
  kiln_device* device;
  kiln_session* session;
  kiln_value feeds[FEEDS], fetches[FETCHES];
  kiln_program_info info;
  float* losses;        /* of each step */
  double* microseconds; /* of each step */
  double median, steps_per_second, accuracy;
} mode;

static mode make_mode(const char* name, kiln_context* context, kiln_device* device, kiln_jit jit) {
  mode m = {.name = name, .device = device, .info = KILN_PROGRAM_INFO_INIT};
  kiln_graph* graph = training_graph(context, m.feeds, m.fetches);
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.device = device;
  options.jit = jit;
  check(kiln_session_create(graph, &options, &m.session), name);
  kiln_graph_release(graph);
  /* Compiles, so that the first step does not. */
  check(kiln_session_prepare(m.session, m.feeds, FEEDS, m.fetches, FETCHES, NULL, 0, &m.info),
        name);
  return m;
}

static void release_mode(mode m) {
  kiln_session_release(m.session);
  free(m.losses);
  free(m.microseconds);
}

static kiln_buffer* zeros(kiln_device* device, const int64_t* dims, size_t rank) {
  kiln_buffer* buffer;
  check(kiln_buffer_create(device, KILN_F32, dims, rank, &buffer), "buffer");
  return buffer;
}

static state make_state(kiln_device* device) {
  const int64_t dims[] = {PIXELS, CLASSES};
  state s = {{zeros(device, dims, 2), zeros(device, dims, 2)},
             {zeros(device, dims + 1, 1), zeros(device, dims + 1, 1)},
             zeros(device, NULL, 0),
             0};
  return s;
}

static void release_state(const state* s) {
  for (int i = 0; i < 2; ++i) {
    kiln_buffer_release(s->weights[i]);
    kiln_buffer_release(s->bias[i]);
  }
  kiln_buffer_release(s->loss);
}

/* One step; returns its loss. */
static float run_step(const mode* m, state* s, batch b) {
  int from = s->current, to = 1 - from;
  kiln_buffer* feeds[FEEDS] = {b.images, b.labels, s->weights[from], s->bias[from]};
  kiln_buffer* results[FETCHES] = {s->weights[to], s->bias[to], s->loss};
  check(kiln_session_run(m->session, NULL, m->feeds, feeds, FEEDS, m->fetches, results, FETCHES,
                         NULL, 0),
        m->name);
  s->current = to;
  float loss;
  check(kiln_buffer_copy_to_host(s->loss, &loss, sizeof(loss)), "loss");
  return loss;
}

static double now_in_microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void show_progress(const char* name, size_t done, size_t steps, float loss) {
  static const char kBar[] = "########################################";
  int width = (int)strlen(kBar), filled = (int)(done * (size_t)width / steps);
  printf("\r%-9s [%.*s%*s] %zu/%zu  loss %.4f ", name, filled, kBar, width - filled, "", done,
         steps, (double)loss);
  if (done == steps) printf("\r\033[K"); /* wipes the line */
  fflush(stdout);
}

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void train(mode* m, state* s, const data_set* data, size_t steps) {
  int terminal = isatty(STDOUT_FILENO);
  double total = 0;
  m->losses = allocate(steps, sizeof(float));
  m->microseconds = allocate(steps, sizeof(double));
  for (size_t i = 0; i < steps; ++i) {
    double start = now_in_microseconds();
    m->losses[i] = run_step(m, s, data->batches[i % data->batch_count]);
    m->microseconds[i] = now_in_microseconds() - start;
    total += m->microseconds[i];
    if (terminal && ((i + 1) % 50 == 0 || i + 1 == steps)) {
      show_progress(m->name, i + 1, steps, m->losses[i]);
    }
  }
  qsort(m->microseconds, steps, sizeof(double), compare_doubles);
  m->median = (m->microseconds[(steps - 1) / 2] + m->microseconds[steps / 2]) / 2;
  m->steps_per_second = 1e6 * (double)steps / total;
}

static double test_accuracy(kiln_executable* accuracy, const state* s, batch tests) {
  kiln_buffer* arguments[FEEDS] = {tests.images, tests.labels, s->weights[s->current],
                                   s->bias[s->current]};
  kiln_buffer* result = NULL; /* the library makes it */
  float share;
  check(kiln_executable_run(accuracy, NULL, arguments, FEEDS, &result, 1), "accuracy");
  check(kiln_buffer_copy_to_host(result, &share, sizeof(share)), "accuracy");
  kiln_buffer_release(result);
  return (double)share;
}

/* The largest relative difference of a loss between the two runs. */
static double loss_difference(const mode* a, const mode* b, size_t steps) {
  double largest = 0;
  for (size_t i = 0; i < steps; ++i) {
    double x = (double)a->losses[i], y = (double)b->losses[i];
    if (!isfinite(x) || !isfinite(y)) fail("step %zu: the losses are %g and %g", i, x, y);
    if (x != y) largest = fmax(largest, fabs(x - y) / fmax(fabs(x), fabs(y)));
  }
  return largest;
}

/* --- Digits ------------------------------------------------------------------------------------*/

typedef struct {
  size_t count, rows, columns;
  unsigned char* images; /* count x rows x columns grey levels */
  unsigned char* labels; /* count numbers from 0 to 9 */
} digits;

/* "folder/name" and a suffix, to be freed. */
static char* path_of(const char* folder, const char* name, const char* suffix) {
  size_t size = strlen(folder) + strlen(name) + strlen(suffix) + 2;
  char* path = allocate(size, 1);
  snprintf(path, size, "%s/%s%s", folder, name, suffix);
  return path;
}

static uint32_t big_endian(const unsigned char* b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

/* Reads an IDX file of bytes: a magic number that tells type and rank, a size per dimension, and
 * the elements, which are to be freed. */
static unsigned char* read_idx(const char* folder, const char* name, size_t rank, size_t* sizes) {
  char* path = path_of(folder, name, "");
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot read %s: %s", path, strerror(errno));
  long length = ftell(file);
  rewind(file);
  unsigned char word[4];
  if (fread(word, 1, 4, file) != 4) fail("%s: truncated: no magic number", path);
  if (word[0] == 0x1f && word[1] == 0x8b) fail("%s: compressed; unpack it with gunzip", path);
  if (big_endian(word) != 0x800 + rank) {
    fail("%s: bad magic number 0x%08x; expected 0x%08x", path, (unsigned)big_endian(word),
         (unsigned)(0x800 + rank));
  }
  uint64_t expected = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (fread(word, 1, 4, file) != 4) fail("%s: truncated: no sizes", path);
    sizes[i] = big_endian(word);
    if (sizes[i] == 0 || expected > UINT32_MAX) fail("%s: empty, or too large", path);
    expected *= sizes[i];
  }
  uint64_t there = (uint64_t)length - 4 * (1 + rank);
  if (there != expected) {
    fail("%s: %s: its sizes make %llu bytes of data, there are %llu", path,
         there < expected ? "truncated" : "too long", (unsigned long long)expected,
         (unsigned long long)there);
  }
  unsigned char* data = allocate(expected, 1);
  if (fread(data, 1, expected, file) != expected) fail("cannot read %s", path);
  fclose(file);
  free(path);
  return data;
}

/* Reads `part` ("train" or "t10k") of a folder in MNIST's form. */
static digits read_digits(const char* folder, const char* part) {
  char images[64], labels[64];
  size_t sizes[3], label_count;
  snprintf(images, sizeof(images), "%s-images-idx3-ubyte", part);
  snprintf(labels, sizeof(labels), "%s-labels-idx1-ubyte", part);
  digits all;
  all.images = read_idx(folder, images, 3, sizes);
  all.labels = read_idx(folder, labels, 1, &label_count);
  all.count = sizes[0];
  all.rows = sizes[1];
  all.columns = sizes[2];
  if (all.count != label_count) {
    fail("%s: %zu images in %s, but %zu labels in %s", folder, all.count, images, label_count,
         labels);
  }
  for (size_t i = 0; i < all.count; ++i) {
    if (all.labels[i] < CLASSES) continue;
    fail("%s/%s: label %zu is %d; expected 0 to 9", folder, labels, i, all.labels[i]);
  }
  return all;
}

/* The position of pixel `i` of SIDE among `size` pixels: between `*low` and `*high`, at the
 * returned distance from `*low`. Positions are those of the pixels' centres. */
static float position(size_t i, size_t size, size_t* low, size_t* high) {
  float at = ((float)i + 0.5f) * (float)size / SIDE - 0.5f;
  at = fminf(fmaxf(at, 0), (float)(size - 1));
  *low = (size_t)at;
  *high = *low + 1 < size ? *low + 1 : *low;
  return at - (float)*low;
}

/* Resamples an image bilinearly to SIDE x SIDE pixels from 0 to 1; images of that size are only
 * scaled. */
static void resample(const unsigned char* image, size_t rows, size_t columns, float* pixels) {
  for (size_t y = 0; y < SIDE; ++y) {
    size_t top, bottom, left, right;
    float down = position(y, rows, &top, &bottom);
    const unsigned char *above = image + top * columns, *below = image + bottom * columns;
    for (size_t x = 0; x < SIDE; ++x) {
      float across = position(x, columns, &left, &right);
      float upper = (1 - across) * above[left] + across * above[right];
      float lower = (1 - across) * below[left] + across * below[right];
      pixels[y * SIDE + x] = ((1 - down) * upper + down * lower) / 255;
    }
  }
}

/* `count` digits from number `first` on, beginning again after the last. */
static batch make_batch(kiln_device* device, const digits* all, size_t first, size_t count) {
  size_t image_bytes = count * PIXELS * sizeof(float);
  size_t label_bytes = count * CLASSES * sizeof(float);
  float *images = allocate(image_bytes, 1), *labels = allocate(label_bytes, 1);
  for (size_t i = 0; i < count; ++i) {
    size_t number = (first + i) % all->count;
    const unsigned char* image = all->images + number * all->rows * all->columns;
    resample(image, all->rows, all->columns, images + i * PIXELS);
    labels[i * CLASSES + all->labels[number]] = 1;
  }
  const int64_t image_dims[] = {(int64_t)count, PIXELS}, label_dims[] = {(int64_t)count, CLASSES};
  batch b;
  check(kiln_buffer_copy_host(device, KILN_F32, image_dims, 2, images, image_bytes, &b.images),
        "images");
  check(kiln_buffer_copy_host(device, KILN_F32, label_dims, 2, labels, label_bytes, &b.labels),
        "labels");
  free(images);
  free(labels);
  return b;
}

static void release_batch(batch b) {
  kiln_buffer_release(b.images);
  kiln_buffer_release(b.labels);
}

static data_set make_data(kiln_device* device, const digits* examples, const digits* unseen) {
  data_set data;
  data.batch_count = (examples->count + BATCH - 1) / BATCH;
  data.batches = allocate(data.batch_count, sizeof(batch));
  for (size_t i = 0; i < data.batch_count; ++i) {
    data.batches[i] = make_batch(device, examples, i * BATCH, BATCH);
  }
  data.tests = make_batch(device, unseen, 0, unseen->count);
  return data;
}

static void release_data(data_set data) {
  for (size_t i = 0; i < data.batch_count; ++i) release_batch(data.batches[i]);
  release_batch(data.tests);
  free(data.batches);
}

static void free_digits(digits all) {
  free(all.images);
  free(all.labels);
}

/* --- Output files ------------------------------------------------------------------------------*/

/* Writes under another name first, so that no reader sees half a file. */
static void write_file(const char* folder, const char* name, const char* data, size_t size) {
  char *path = path_of(folder, name, ""), *unfinished = path_of(folder, name, ".part");
  FILE* file = fopen(unfinished, "wb");
  if (!file) fail("cannot write %s: %s", unfinished, strerror(errno));
  int written = fwrite(data, 1, size, file) == size;
  if (fclose(file) != 0 || !written || rename(unfinished, path) != 0) {
    fail("cannot write %s: %s", path, strerror(errno));
  }
  free(unfinished);
  free(path);
}

/* Records some more steps as a timeline, for chrome://tracing or Perfetto. */
static void write_timeline(kiln_context* context, const mode* m, state* s, batch b,
                           const char* folder, const char* name) {
  kiln_trace* trace;
  kiln_text* json;
  check(kiln_trace_start(context, &trace), "trace");
  for (int i = 0; i < TRACED_STEPS; ++i) run_step(m, s, b);
  check(kiln_trace_stop(trace), "trace");
  check(kiln_trace_to_json(trace, &json), "trace");
  size_t size;
  const char* data = kiln_text_data(json, &size);
  write_file(folder, name, data, size);
  kiln_text_release(json);
  kiln_trace_release(trace);
}

/* Draws a graph with Graphviz; returns 0 if that is not installed. */
static int draw(const char* folder, const char* name) {
  extern char** environ;
  char *dot = path_of(folder, name, ".dot"), *svg = path_of(folder, name, ".svg");
  char* unfinished = path_of(folder, name, ".svg.part");
  char* arguments[] = {(char*)"dot", (char*)"-Tsvg", (char*)"-o", unfinished, dot, NULL};
  pid_t child;
  int status = 127; /* the status of a child without the program */
  int error = posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ);
  if (error && error != ENOENT) fail("cannot run dot: %s", strerror(error));
  if (!error) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  if (status != 0 && status != 127) fail("dot -Tsvg %s: failed", dot);
  if (status == 0 && rename(unfinished, svg) != 0)
    fail("cannot write %s: %s", svg, strerror(errno));
  free(dot);
  free(svg);
  free(unfinished);
  return status == 0;
}

/* Visits the dumps in a folder, module_0001.mnist_softmax.SUFFIX of the session and
 * module_0002.cluster_0.SUFFIX of the compiler. Either removes all of them, or draws the graph with
 * its cluster, and the cluster before and after all passes; returns how many were drawn, or -1 if
 * Graphviz is not installed. */
static int visit_dumps(const char* folder, int remove_all) {
  static const char* const kDrawn[] = {".after_clustering.dot", ".before_optimizations.dot",
                                       "_after_optimizations.dot"};
  DIR* files = opendir(folder);
  int drawn = 0;
  if (!files) return 0;
  for (struct dirent* entry; (entry = readdir(files));) {
    char name[256];
    snprintf(name, sizeof(name), "%s", entry->d_name);
    if (strncmp(name, "module_", 7) != 0) continue;
    if (!strstr(name, ".mnist_softmax.") && !strstr(name, ".cluster_")) continue;
    if (remove_all) {
      char* path = path_of(folder, name, "");
      if (remove(path) != 0) fail("cannot remove %s: %s", path, strerror(errno));
      free(path);
      continue;
    }
    for (int i = 0; i < 3 && drawn >= 0; ++i) {
      char* suffix = strstr(name, kDrawn[i]);
      if (!suffix) continue;
      *strrchr(name, '.') = 0;
      drawn = draw(folder, name) ? drawn + 1 : -1;
      break;
    }
  }
  closedir(files);
  return drawn;
}

static void set_variable(const char* name, const char* value) {
  if ((value ? setenv(name, value, 1) : unsetenv(name)) != 0) fail("no memory for %s", name);
}

/* The value of a flag in quotes. */
static void append_quoted(char* flags, const char* value) {
  char* end = flags + strlen(flags);
  *end++ = '"';
  for (; *value; ++value) {
    if (*value == '"' || *value == '\\') *end++ = '\\';
    *end++ = *value;
  }
  *end++ = '"';
  *end = 0;
}

/* --- Devices -----------------------------------------------------------------------------------*/

/* A context with the devices for the compiler off and on: the named one, or for the former its
 * plain one. The name of a GPU is that of an emulated one where there is no other. */
static kiln_context* make_context(const char* device, int32_t threads, kiln_device* devices[2]) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  kiln_context* context;
  check(kiln_context_create(&options, &context), "context");
  kiln_error* error = kiln_context_find_device(context, device, strlen(device), &devices[1]);
  if (error && kiln_error_code(error) == KILN_NOT_FOUND && strstr(device, "GPU")) {
    kiln_error_release(error);
    kiln_context_release(context);
    options.gpu = KILN_GPU_EMULATED;
    check(kiln_context_create(&options, &context), "context");
    error = kiln_context_find_device(context, device, strlen(device), &devices[1]);
  }
  check(error, "device");
  const char* plain = kiln_device_name(devices[1], NULL);
  if (strncmp(plain, "XLA_", 4) == 0) plain += 4;
  check(kiln_context_find_device(context, plain, strlen(plain), &devices[0]), "device");
  return context;
}

/* Compiles once more, with every stage written into the folder, and draws the most telling graphs.
 * Sessions leave dumps where flags of the environment ask for them. A context reads these when it
 * is made: here that is one of its own, before the one that is measured. */
static void write_dumps(const char* device, int32_t threads, const char* folder) {
  static const char* const kVariables[] = {"KILN_FLAGS", "XLA_FLAGS", "TF_XLA_FLAGS",
                                           "TF_DUMP_GRAPH_PREFIX"};
  char *before[4], *flags = allocate(4 * strlen(folder) + 256, 1);
  for (int i = 0; i < 4; ++i) {
    const char* value = getenv(kVariables[i]);
    before[i] = value ? strcpy(allocate(strlen(value) + 1, 1), value) : NULL;
    set_variable(kVariables[i], NULL);
  }
  strcpy(flags, "--dump_hlo_as_text --dump_hlo_as_dot --dump_hlo_pass_re=. --dump_ptx_sm=80");
  append_quoted(strcat(flags, " --dump_to="), folder);
  append_quoted(strcat(flags, " --dump_graph_prefix="), folder);
  set_variable(kVariables[0], flags);
  kiln_device* devices[2];
  kiln_context* context = make_context(device, threads, devices);
  for (int i = 0; i < 4; ++i) {
    set_variable(kVariables[i], before[i]);
    free(before[i]);
  }
  free(flags);

  visit_dumps(folder, 1); /* of an earlier run */
  mode on = make_mode("dumps", context, devices[1], KILN_JIT_ON);
  release_mode(on);
  kiln_context_release(context);
  int drawn = visit_dumps(folder, 0);
  if (drawn == 0) fail("%s: the session wrote no graphs", folder);
  if (drawn < 0) {
    printf("Graphviz is not installed: the graphs are left as DOT files, without pictures.\n\n");
  }
}

/* --- Figures -----------------------------------------------------------------------------------*/

static void print_figures(const mode* off, const mode* on, double ratio, double difference) {
  printf("%-20s %12s %12s\n", "", off->name, on->name);
  printf("%-20s %9.1f us %9.1f us\n", "a step (median)", off->median, on->median);
  printf("%-20s %12.0f %12.0f\n", "steps per second", off->steps_per_second, on->steps_per_second);
  printf("%-20s %12lld %12lld\n", "kernels per step", (long long)off->info.kernels,
         (long long)on->info.kernels);
  printf("%-20s %9.1f kB %9.1f kB\n", "temporary memory", (double)off->info.temporary_bytes / 1e3,
         (double)on->info.temporary_bytes / 1e3);
  printf("%-20s %9.1f ms %9.1f ms\n", "compiling", (double)off->info.compile_microseconds / 1e3,
         (double)on->info.compile_microseconds / 1e3);
  printf("%-20s %12.4f %12.4f\n\n", "test accuracy", off->accuracy, on->accuracy);
  printf("With the JIT on, a step is %.2f times as fast; the losses differ by at most %.1e.\n",
         ratio, difference);
}

static int print_mode(char* out, size_t size, const char* key, const mode* m) {
  return snprintf(out, size,
                  "  \"%s\": {\"step_us_median\": %.3f, \"steps_per_second\": %.3f, "
                  "\"kernels_per_step\": %lld, \"temporary_bytes\": %lld, \"compile_ms\": %.3f, "
                  "\"test_accuracy\": %.4f},\n",
                  key, m->median, m->steps_per_second, (long long)m->info.kernels,
                  (long long)m->info.temporary_bytes, (double)m->info.compile_microseconds / 1e3,
                  m->accuracy);
}

static void write_figures(const char* folder, const mode* off, const mode* on, double ratio,
                          double difference) {
  char one[512], two[512], all[2048];
  print_mode(one, sizeof(one), "jit_off", off);
  print_mode(two, sizeof(two), "jit_on", on);
  int size = snprintf(all, sizeof(all),
                      "{\n%s%s  \"ratio\": %.4f,\n  \"max_rel_loss_difference\": %.3e\n}\n", one,
                      two, ratio, difference);
  write_file(folder, "demo.json", all, (size_t)size);
}

/* --- The program -------------------------------------------------------------------------------*/

typedef struct {
  const char *data, *out, *device;
  size_t steps;
  int32_t threads;
} options;

static long number_of(const char* option, const char* text, long least, long most) {
  char* end;
  long number = strtol(text, &end, 10);
  if (end == text || *end || number < least || number > most) {
    fail("%s %s: expected a number from %ld to %ld", option, text, least, most);
  }
  return number;
}

static options read_options(int argc, char** argv) {
  static const char kUsage[] =
      "usage: mnist_softmax [--data DIR] [--out DIR] [--steps N] [--threads N] [--device NAME]";
  static const struct option kOptions[] = {{"data", required_argument, NULL, 'd'},
                                           {"out", required_argument, NULL, 'o'},
                                           {"steps", required_argument, NULL, 's'},
                                           {"threads", required_argument, NULL, 't'},
                                           {"device", required_argument, NULL, 'D'},
                                           {"help", no_argument, NULL, 'h'},
                                           {NULL, 0, NULL, 0}};
  options o = {EXAMPLES "/digits", "build/demo", "CPU:0", 1000, 0};
  for (int option; (option = getopt_long(argc, argv, "", kOptions, NULL)) != -1;) {
    if (option == 'd') {
      o.data = optarg;
    } else if (option == 'o') {
      o.out = optarg;
    } else if (option == 'D') {
      o.device = optarg;
    } else if (option == 's') {
      o.steps = (size_t)number_of("--steps", optarg, 1, 10000000);
    } else if (option == 't') {
      o.threads = (int32_t)number_of("--threads", optarg, 0, 1024); /* 0: all */
    } else if (option == 'h') {
      printf("%s\n", kUsage);
      exit(0);
    } else {
      fail("%s", kUsage); /* the mistake has been printed */
    }
  }
  if (optind < argc) fail("%s: unknown\n%s", argv[optind], kUsage);
  return o;
}

/* Trains in one mode, tests, and records a timeline. */
static void run(mode* m, kiln_context* context, const options* o, const digits* examples,
                const digits* unseen, const char* timeline) {
  kiln_executable* accuracy = compile_accuracy(context, m->device, unseen->count);
  data_set data = make_data(m->device, examples, unseen); /* all batches are made in advance */
  state s = make_state(m->device); /* zeros: the same initial values for both modes */
  train(m, &s, &data, o->steps);
  m->accuracy = test_accuracy(accuracy, &s, data.tests);
  write_timeline(context, m, &s, data.batches[0], o->out, timeline);
  release_state(&s);
  release_data(data);
  kiln_executable_release(accuracy);
}

int main(int argc, char** argv) {
  options o = read_options(argc, argv);
  digits examples = read_digits(o.data, "train"), unseen = read_digits(o.data, "t10k");
  write_dumps(o.device, o.threads, o.out);
  kiln_device* devices[2];
  kiln_context* context = make_context(o.device, o.threads, devices);
  printf("Softmax regression on %zu digits, tested on %zu; %zu steps, batches of %d, %d threads\n",
         examples.count, unseen.count, o.steps, BATCH, (int)kiln_context_threads(context));
  const char* description = kiln_device_description(devices[1], NULL);
  printf("%s: %s\n", kiln_device_name(devices[1], NULL), description);
  if (strncmp(description, "emulated", 8) == 0) {
    printf("The processor stands in for a GPU: the times are not those of one.\n");
  }
  if (devices[0] != devices[1]) {
    printf("All ops of this device are compiled: with the JIT off they run on %s.\n",
           kiln_device_name(devices[0], NULL));
  }
  printf("\n");

  mode off = make_mode("JIT off", context, devices[0], KILN_JIT_OFF);
  mode on = make_mode("JIT on", context, devices[1], KILN_JIT_ON);
  run(&off, context, &o, &examples, &unseen, "timeline.no_jit.json");
  run(&on, context, &o, &examples, &unseen, "timeline.jit.json");
  double ratio = off.median / on.median, difference = loss_difference(&off, &on, o.steps);
  print_figures(&off, &on, ratio, difference);
  write_figures(o.out, &off, &on, ratio, difference);
  printf("%s holds the figures, two timelines, and the graph at every stage.\n", o.out);

  int saves_kernels = on.info.kernels < off.info.kernels;
  double accuracy = fmin(off.accuracy, on.accuracy);
  release_mode(off);
  release_mode(on);
  free_digits(examples);
  free_digits(unseen);
  kiln_context_release(context);

  if (difference > kMaxLossDifference) fail("the losses differ by %g of their size", difference);
  if (!saves_kernels) fail("the JIT saves no kernels");
  if (o.steps >= 1000 && accuracy < kMinAccuracy) {
    fail("the test accuracy is below %g", kMinAccuracy);
  }
  return 0;
}
