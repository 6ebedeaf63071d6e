/* Trains softmax regression on handwritten digits: XLA's classic experiment, mnist_softmax_xla.py,
 * as a plain C program.
 *
 * Forward pass, loss, gradient and update are one graph (mnist_softmax/graph.c). As in that script,
 * sessions on one device run it from the same initial values: one with the just-in-time compiler
 * off, each op a kernel of its own, and one with it on, which compiles the graph in a cluster. The
 * program compares speed, memory and every loss, and leaves timelines, the graph with its cluster,
 * the cluster after every pass, and the generated code in a folder.
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "kiln/kiln.h"
#include "mnist_softmax/graph.h"
#include "parts/common.h"
#include "parts/curve.h"
#include "parts/digits.h"

#ifndef EXAMPLES
#define EXAMPLES "docs/examples" /* the folder of this file */
#endif

enum { TRACED_STEPS = 5 };
static const double kMaxLossDifference = 1e-5; /* relative, at every step */
static const double kMinAccuracy = 0.88;       /* asked of runs of 1,000 steps and more */

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
  kiln_graph* graph = softmax_step(context, m.feeds, m.fetches);
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

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void train(mode* m, state* s, const data_set* data, size_t steps) {
  double total = 0;
  m->losses = allocate(steps, sizeof(float));
  m->microseconds = allocate(steps, sizeof(double));
  for (size_t i = 0; i < steps; ++i) {
    double start = now_in_seconds();
    m->losses[i] = run_step(m, s, data->batches[i % data->batch_count]);
    m->microseconds[i] = 1e6 * (now_in_seconds() - start);
    total += m->microseconds[i];
    if ((i + 1) % 50 == 0 || i + 1 == steps) {
      char loss[32];
      snprintf(loss, sizeof(loss), "loss %.4f", (double)m->losses[i]);
      show_progress(m->name, i + 1, steps, loss);
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

/* `count` digits from number `first` on, beginning again after the last. */
static batch make_batch(kiln_device* device, const digits* all, size_t first, size_t count) {
  size_t image_bytes = count * PIXELS * sizeof(float);
  size_t label_bytes = count * CLASSES * sizeof(float);
  float *images = allocate(image_bytes, 1), *labels = allocate(label_bytes, 1);
  for (size_t i = 0; i < count; ++i) {
    size_t number = (first + i) % all->count;
    digit_pixels(all, number, NULL, images + i * PIXELS);
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

/* --- Output files ------------------------------------------------------------------------------*/

static void write_output(const char* folder, const char* name, const char* data, size_t size) {
  char* path = format_text("%s/%s", folder, name);
  int error = write_file(path, data, size);
  if (error) fail("cannot write %s: %s", path, strerror(error));
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
  write_output(folder, name, data, size);
  kiln_text_release(json);
  kiln_trace_release(trace);
}

/* Draws a graph with Graphviz; returns 0 if that is not installed. */
static int draw(const char* folder, const char* name) {
  extern char** environ;
  char *dot = format_text("%s/%s.dot", folder, name), *svg = format_text("%s/%s.svg", folder, name);
  char* unfinished = format_text("%s/%s.svg.part", folder, name);
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
      char* path = format_text("%s/%s", folder, name);
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
  write_output(folder, "demo.json", all, (size_t)size);
}

/* --- The program -------------------------------------------------------------------------------*/

typedef struct {
  const char *data, *out, *device;
  size_t steps;
  int32_t threads;
} options;

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
      o.steps = (size_t)parse_integer(optarg, 1, 10000000, "--steps");
    } else if (option == 't') {
      o.threads = (int32_t)parse_integer(optarg, 0, 1024, "--threads"); /* 0: all */
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
  kiln_executable* accuracy = softmax_accuracy(context, m->device, unseen->count);
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
