/* Everything works on a thread with a stack of 256 KiB, however deep programs are. */
#define _GNU_SOURCE

#include <pthread.h>
#include <stdarg.h>

#include "testing.h"

#define STACK_BYTES (256 << 10)
/* Large frames must not reach beyond it. */
#define GUARD_BYTES (16 << 20)

static kiln_context* context;

/* Text that grows. */
struct text {
  char* data;
  size_t length, room;
};

static void add(struct text* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[1024];
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (text->length + (size_t)length + 1 > text->room) {
    text->room = 2 * text->room + (size_t)length + 1024;
    text->data = realloc(text->data, text->room);
  }
  memcpy(text->data + text->length, line, (size_t)length + 1);
  text->length += (size_t)length;
}

/* Computations that call each other, one in the other. */
static struct text calls(int depth) {
  struct text t = {0};
  add(&t, "HloModule calls\nc0 {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)\n}\n");
  for (int i = 1; i < depth; ++i) {
    add(&t, "c%d {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] call(x), to_apply=c%d\n}\n", i,
        i - 1);
  }
  add(&t, "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] call(x), to_apply=c%d\n}\n",
      depth - 1);
  return t;
}

/* Branches within branches. */
static struct text branches(int depth) {
  struct text t = {0};
  add(&t,
      "HloModule branches\nsame {\n  ROOT x = f32[4] parameter(0)\n}\n"
      "c0 {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)\n}\n");
  for (int i = 1; i <= depth; ++i) {
    add(&t,
        "%sc%d {\n  x = f32[4] parameter(0)\n  z = f32[] constant(%d)\n"
        "  s = f32[1] slice(x), slice={[0:1]}\n  v = f32[] reshape(s)\n"
        "  p = pred[] compare(v, z), direction=GT\n"
        "  ROOT r = f32[4] conditional(p, x, x), true_computation=same, "
        "false_computation=c%d\n}\n",
        i == depth ? "ENTRY " : "", i, i + 2, i - 1);
  }
  return t;
}

/* Loops of one turn within loops. */
static struct text loops(int depth) {
  struct text t = {0};
  add(&t,
      "HloModule loops\nbody0 {\n  s = (s32[], f32[4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n  x = f32[4] get-tuple-element(s), index=1\n"
      "  n = f32[4] negate(x)\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
      "  ROOT r = (s32[], f32[4]) tuple(j, n)\n}\n");
  for (int d = 0; d < depth; ++d) {
    add(&t,
        "condition%d {\n  s = (s32[], f32[4]) parameter(0)\n"
        "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(1)\n"
        "  ROOT p = pred[] compare(i, n), direction=LT\n}\n"
        "%s%d {\n  %s\n",
        d, d + 1 == depth ? "ENTRY e" : "body", d + 1,
        d + 1 == depth ? "x = f32[4] parameter(0)" : "t = (s32[], f32[4]) parameter(0)");
    if (d + 1 < depth) {
      add(&t,
          "  i = s32[] get-tuple-element(t), index=0\n"
          "  x = f32[4] get-tuple-element(t), index=1\n");
    }
    add(&t,
        "  zero = s32[] constant(0)\n  s = (s32[], f32[4]) tuple(zero, x)\n"
        "  w = (s32[], f32[4]) while(s), condition=condition%d, body=body%d\n"
        "  y = f32[4] get-tuple-element(w), index=1\n",
        d, d);
    if (d + 1 < depth) {
      add(&t,
          "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
          "  ROOT r = (s32[], f32[4]) tuple(j, y)\n}\n");
    } else {
      add(&t, "  ROOT r = f32[4] negate(y)\n}\n");
    }
  }
  return t;
}

/* One op after the other. */
static struct text chain(int length) {
  struct text t = {0};
  add(&t, "HloModule chain\nENTRY e {\n  x0 = f32[4] parameter(0)\n");
  for (int i = 1; i <= length; ++i) {
    add(&t, "  %sx%d = f32[4] %s(x%d%s)\n", i == length ? "ROOT " : "", i,
        i % 3 == 0   ? "sine"
        : i % 3 == 1 ? "negate"
                     : "add",
        i - 1, i % 3 == 2 ? ", x0" : "");
  }
  add(&t, "}\n");
  return t;
}

static struct text solve(void) {
  struct text t = {0};
  add(&t,
      "HloModule solve\nENTRY e {\n  x = f32[4] parameter(0)\n"
      "  m = f32[96,96] iota(), iota_dimension=0\n  n = f32[96,96] iota(), iota_dimension=1\n"
      "  p = pred[96,96] compare(m, n), direction=EQ\n  z = f32[] constant(1)\n"
      "  o = f32[96,96] broadcast(z), dimensions={}\n"
      "  l = f32[] constant(100)\n  d = f32[96,96] broadcast(l), dimensions={}\n"
      "  a = f32[96,96] select(p, d, o)\n  c = f32[96,96] cholesky(a), lower=true\n"
      "  i = f32[96,96] triangular-solve(c, a), left_side=true, lower=true, "
      "transpose_a=NO_TRANSPOSE\n"
      "  f = c64[96,49] fft(i), fft_type=RFFT, fft_length={96}\n  r = f32[96,49] real(f)\n"
      "  s = f32[1,4] slice(r), slice={[0:1], [0:4]}\n  v = f32[4] reshape(s)\n"
      "  ROOT y = f32[4] add(x, v)\n}\n");
  return t;
}

/* An op that folds so many arrays at once: the frame of its kernel has room for all of them. */
static struct text fold(int arrays) {
  struct text t = {0};
  add(&t,
      "HloModule fold\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT c = f32[] add(a, b)\n}\nf {\n");
  for (int i = 0; i < arrays; ++i) add(&t, "  a%d = f32[] parameter(%d)\n", i, i);
  for (int i = 0; i < arrays; ++i) add(&t, "  b%d = f32[] parameter(%d)\n", i, arrays + i);
  for (int i = 0; i < arrays; ++i) add(&t, "  c%d = f32[] add(a%d, b%d)\n", i, i, i);
  add(&t, "  ROOT t = (f32[]");
  for (int i = 1; i < arrays; ++i) add(&t, ", f32[]");
  add(&t, ") tuple(c0");
  for (int i = 1; i < arrays; ++i) add(&t, ", c%d", i);
  add(&t, ")\n}\nENTRY e {\n  x = f32[4] parameter(0)\n  z = f32[] constant(0)\n");
  for (int i = 0; i < arrays; ++i) {
    add(&t,
        "  v%d = f32[] constant(%d)\n  w%d = f32[4] broadcast(v%d), dimensions={}\n"
        "  y%d = f32[4] multiply(x, w%d)\n  x%d = f32[4,4] broadcast(y%d), dimensions={0}\n",
        i, i, i, i, i, i, i, i);
  }
  add(&t, "  r = (f32[4]");
  for (int i = 1; i < arrays; ++i) add(&t, ", f32[4]");
  add(&t, ") reduce(x0");
  for (int i = 1; i < arrays; ++i) add(&t, ", x%d", i);
  for (int i = 0; i < arrays; ++i) add(&t, ", z");
  add(&t, "), dimensions={1}, to_apply=f\n");
  for (int i = 0; i < arrays; ++i) add(&t, "  g%d = f32[4] get-tuple-element(r), index=%d\n", i, i);
  add(&t, "  g = f32[%d] concatenate(g0", 4 * arrays);
  for (int i = 1; i < arrays; ++i) add(&t, ", g%d", i);
  add(&t,
      "), dimensions={0}\n  s = f32[%d,4] reshape(g)\n"
      "  ROOT t = f32[4] reduce(s, z), dimensions={0}, to_apply=sum\n}\n",
      arrays);
  return t;
}

/* The same op by op. */
static void run_session(kiln_graph* graph, kiln_device* device, kiln_buffer* argument) {
  kiln_session_options options;
  kiln_session_options_init(&options, sizeof options);
  options.device = device;
  kiln_session* session = NULL;
  kiln_buffer* result = NULL;
  kiln_value feed = kiln_graph_parameter(graph, 0), fetch = kiln_graph_result(graph);
  if (!OK(kiln_session_create(graph, &options, &session))) return;
  for (int i = 0; i < 2; ++i) {
    OK(kiln_session_run(session, NULL, &feed, &argument, 1, &fetch, &result, 1, NULL, 0));
  }
  kiln_buffer_release(result);
  kiln_session_release(session);
}

static void check(struct text t, const char* device_name, int runs) {
  kiln_graph* graph = NULL;
  kiln_executable* executable = NULL;
  kiln_text *hlo = NULL, *dot = NULL;
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  OK(kiln_context_find_device(context, device_name, strlen(device_name), &options.device));
  if (!OK(kiln_graph_from_hlo_text(context, t.data, t.length, &graph))) return;
  OK(kiln_graph_to_hlo_text(graph, &hlo));
  OK(kiln_graph_to_dot(graph, &dot));
  kiln_text_release(hlo);
  kiln_text_release(dot);
  if (OK(kiln_graph_compile(graph, &options, &executable)) && runs) {
    float values[4] = {1, 2, 3, 4};
    const int64_t dims[] = {4};
    kiln_buffer *argument = NULL, *result = NULL;
    OK(kiln_buffer_copy_host(options.device, KILN_F32, dims, 1, values, sizeof values, &argument));
    OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1));
    OK(kiln_buffer_copy_to_host(result, values, sizeof values));
    if (strcmp(device_name, "REFERENCE:0") != 0) run_session(graph, options.device, argument);
    kiln_buffer_release(argument);
    kiln_buffer_release(result);
  }
  kiln_executable_release(executable);
  kiln_graph_release(graph);
}

static void* run(void* unused) {
  (void)unused;
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.gpu = KILN_GPU_EMULATED;
  options.threads = 2;
  OK(kiln_context_create(&options, &context));
  static const char* const kDevices[] = {"CPU:0", "GPU:0", "REFERENCE:0"};
  for (int d = 0; d < 3; ++d) {
    /* A GPU's kernels have fewer than 4,095 arrays. */
    struct text texts[] = {calls(499),   branches(300), loops(60),
                           chain(10000), solve(),       fold(d == 1 ? 1000 : 7000)};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; ++k) {
      check(texts[k], kDevices[d], 1);
      free(texts[k].data);
    }
  }
  kiln_context_release(context);
  return NULL;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
      pthread_attr_setguardsize(&attributes, GUARD_BYTES) != 0 ||
      pthread_create(&thread, &attributes, run, NULL) != 0) {
    return 1;
  }
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  return test_result();
}
