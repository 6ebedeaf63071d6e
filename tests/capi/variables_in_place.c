/* Variables updated in their memory: where nobody else has their values, and only there; runs that
 * fail or are cancelled; readers at the same time; and memory that cannot be had. */
#include <pthread.h>
#include <stdint.h>

#include "testing.h"

static kiln_context* context;
static kiln_device* cpu;

/* --- sessions */

static kiln_session* make_session(kiln_graph* graph, kiln_jit jit, kiln_device* device) {
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  options.device = device;
  options.min_cluster_size = 1;
  kiln_session* session = NULL;
  if (!OK(kiln_graph_status(graph)) || !OK(kiln_session_create(graph, &options, &session))) exit(1);
  kiln_graph_release(graph);
  return session;
}

static kiln_value read_f32(kiln_graph* graph, const char* name, int64_t size) {
  return kiln_op_variable(graph, name, strlen(name), KILN_F32, &size, 1);
}

static kiln_value add_to(kiln_graph* graph, kiln_value value, const char* name) {
  return kiln_op_assign_add(graph, value, name, strlen(name));
}

static kiln_buffer* filled(kiln_device* device, float value, int64_t size) {
  float* elements = malloc((size_t)size * sizeof(float));
  for (int64_t i = 0; i < size; ++i) elements[i] = value;
  kiln_buffer* buffer = f32_buffer(device, elements, size);
  free(elements);
  return buffer;
}

static void set(kiln_session* session, const char* name, kiln_device* device, float value,
                int64_t size) {
  kiln_buffer* buffer = filled(device, value, size);
  OK(kiln_session_set_variable(session, name, strlen(name), buffer));
  kiln_buffer_release(buffer);
}

static kiln_buffer* get(kiln_session* session, const char* name) {
  kiln_buffer* buffer = NULL;
  OK(kiln_session_variable(session, name, strlen(name), &buffer));
  return buffer;
}

static uintptr_t address_in(kiln_buffer* buffer) {
  const void* data = NULL;
  OK(kiln_buffer_device_data(buffer, &data));
  return (uintptr_t)data;
}

static uintptr_t address_of(kiln_session* session, const char* name) {
  kiln_buffer* buffer = get(session, name);
  const uintptr_t address = address_in(buffer);
  kiln_buffer_release(buffer);
  return address;
}

/* Whether all elements are the value. */
static int holds_only(kiln_buffer* buffer, float value) {
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_buffer_shape(buffer, &shape));
  const size_t size = (size_t)shape.dims[0];
  float* elements = malloc(size * sizeof(float));
  OK(kiln_buffer_copy_to_host(buffer, elements, size * sizeof(float)));
  int holds = 1;
  for (size_t i = 0; i < size; ++i) holds = holds && elements[i] == value;
  free(elements);
  return holds;
}

static int is_all(kiln_session* session, const char* name, float value) {
  kiln_buffer* buffer = get(session, name);
  const int holds = holds_only(buffer, value);
  kiln_buffer_release(buffer);
  return holds;
}

static kiln_error* run(kiln_session* session, kiln_value feed, kiln_buffer* fed, kiln_value fetch,
                       kiln_buffer** result) {
  return kiln_session_run(session, NULL, &feed, &fed, 1, &fetch, result, 1, NULL, 0);
}

/* For its assignments only. */
static kiln_error* step(kiln_session* session, kiln_value feed, kiln_buffer* fed,
                        kiln_value target) {
  return kiln_session_run(session, NULL, &feed, &fed, 1, NULL, NULL, 0, &target, 1);
}

/* --- one variable: v += x */

struct counter {
  kiln_session* session;
  kiln_value x, sum;
};

static struct counter make_counter(kiln_jit jit, kiln_device* device, int64_t size) {
  struct counter c;
  kiln_graph* g = make_graph(context, "counter");
  c.x = f32_parameter(g, "x", size);
  c.sum = add_to(g, c.x, "v");
  c.session = make_session(g, jit, device);
  return c;
}

static void one_variable(kiln_jit jit, kiln_device* device, int64_t size) {
  struct counter c = make_counter(jit, device, size);
  set(c.session, "v", device, 10, size);
  kiln_buffer* x = filled(device, 2, size);
  const uintptr_t address = address_of(c.session, "v");
  for (int i = 1; i <= 5; ++i) {
    OK(step(c.session, c.x, x, c.sum));
    CHECK(address_of(c.session, "v") == address);
    CHECK(is_all(c.session, "v", 10 + 2 * (float)i));
  }
  /* A value that was handed out stays. */
  kiln_buffer* held = get(c.session, "v");
  OK(step(c.session, c.x, x, c.sum));
  const uintptr_t copy = address_of(c.session, "v");
  CHECK(copy != address && address_in(held) == address);
  CHECK(holds_only(held, 20) && is_all(c.session, "v", 22));
  /* The copy is nobody else's. */
  OK(step(c.session, c.x, x, c.sum));
  CHECK(address_of(c.session, "v") == copy);
  CHECK(holds_only(held, 20) && is_all(c.session, "v", 24));
  kiln_buffer_release(held);
  /* A buffer that is fed and was the variable's. */
  held = get(c.session, "v");
  OK(step(c.session, c.x, held, c.sum));
  CHECK(holds_only(held, 24) && is_all(c.session, "v", 48));
  kiln_buffer_release(held);
  kiln_buffer_release(x);
  kiln_session_release(c.session);
}

/* --- a step of gradient descent over three variables */

enum { kInputs = 64, kOutputs = 16, kRows = 32 };

struct trainer {
  kiln_session* session;
  kiln_value x, loss;
};

static const char* const kNames[3] = {"w", "b", "s"};
static const int64_t kSizes[3] = {kInputs * kOutputs, kOutputs, kOutputs};

static struct trainer make_trainer(kiln_jit jit, kiln_device* device) {
  struct trainer t;
  kiln_graph* g = make_graph(context, "trainer");
  const int64_t rows[] = {kRows, kInputs}, matrix[] = {kInputs, kOutputs},
                outputs[] = {kRows, kOutputs}, one[] = {1};
  t.x = kiln_op_parameter(g, KILN_F32, rows, 2, "x", 1);
  kiln_value w = kiln_op_reshape(g, read_f32(g, "w", kSizes[0]), matrix, 2);
  kiln_value b = kiln_op_broadcast(g, read_f32(g, "b", kOutputs), one, 1, outputs, 2);
  kiln_value s = kiln_op_broadcast(g, read_f32(g, "s", kOutputs), one, 1, outputs, 2);
  kiln_value y = kiln_op_matmul(g, t.x, w);
  kiln_value h = kiln_op_tanh(g, kiln_op_add(g, y, b));
  kiln_value error = kiln_op_multiply(g, h, s);
  kiln_value squares = kiln_op_multiply(g, error, error);
  const int64_t all[] = {0, 1}, first[] = {0}, flip[] = {1, 0};
  t.loss = kiln_op_reduce_by(g, squares, all, 2, KILN_REDUCER_SUM);
  /* d loss / d h = 2 error s; through tanh by 1 - h h. */
  kiln_value dh = kiln_op_multiply(g, error, s);
  kiln_value dy = kiln_op_subtract(g, dh, kiln_op_multiply(g, dh, kiln_op_multiply(g, h, h)));
  kiln_value dw = kiln_op_matmul(g, kiln_op_transpose(g, t.x, flip, 2), dy);
  kiln_value ds = kiln_op_multiply(g, error, h);
  kiln_value steps[3] = {kiln_op_reshape(g, dw, kSizes, 1),
                         kiln_op_reduce_by(g, dy, first, 1, KILN_REDUCER_SUM),
                         kiln_op_reduce_by(g, ds, first, 1, KILN_REDUCER_SUM)};
  for (int i = 0; i < 3; ++i) {
    kiln_value scale =
        kiln_op_broadcast(g, kiln_op_scalar(g, KILN_F32, -0.01), NULL, 0, &kSizes[i], 1);
    kiln_value after = add_to(g, kiln_op_multiply(g, steps[i], scale), kNames[i]);
    OK(kiln_graph_add_control_dependency(g, after, t.loss));
  }
  t.session = make_session(g, jit, device);
  for (int i = 0; i < 3; ++i) {
    float* elements = malloc((size_t)kSizes[i] * sizeof(float));
    for (int64_t k = 0; k < kSizes[i]; ++k) elements[k] = (float)((k * 7 + i) % 11) * 0.02f - 0.1f;
    kiln_buffer* start = f32_buffer(device, elements, kSizes[i]);
    OK(kiln_session_set_variable(t.session, kNames[i], 1, start));
    kiln_buffer_release(start);
    free(elements);
  }
  return t;
}

static int are_equal(kiln_buffer* a, kiln_buffer* b, size_t size) {
  float *x = malloc(size * sizeof(float)), *y = malloc(size * sizeof(float));
  OK(kiln_buffer_copy_to_host(a, x, size * sizeof(float)));
  OK(kiln_buffer_copy_to_host(b, y, size * sizeof(float)));
  const int equal = memcmp(x, y, size * sizeof(float)) == 0;
  free(x);
  free(y);
  return equal;
}

static void three_variables(kiln_jit jit, kiln_device* device) {
  struct trainer t = make_trainer(jit, device), copied = make_trainer(jit, device);
  float numbers[kRows * kInputs];
  for (int i = 0; i < kRows * kInputs; ++i) numbers[i] = (float)(i * 5 % 13) * 0.1f - 0.6f;
  const int64_t rows[] = {kRows, kInputs};
  kiln_buffer *x = NULL, *loss = NULL, *other = NULL;
  OK(kiln_buffer_copy_host(device, KILN_F32, rows, 2, numbers, sizeof numbers, &x));
  uintptr_t addresses[3];
  for (int i = 0; i < 3; ++i) addresses[i] = address_of(t.session, kNames[i]);
  float losses[2] = {0, 0};
  for (int step = 0; step < 6; ++step) {
    kiln_buffer* held[3];
    for (int i = 0; i < 3; ++i) held[i] = get(copied.session, kNames[i]);
    OK(run(t.session, t.x, x, t.loss, &loss));
    OK(run(copied.session, copied.x, x, copied.loss, &other));
    CHECK(are_equal(loss, other, 1));
    OK(kiln_buffer_copy_to_host(loss, &losses[step > 0], sizeof(float)));
    for (int i = 0; i < 3; ++i) {
      CHECK(address_of(t.session, kNames[i]) == addresses[i]);
      CHECK(address_of(copied.session, kNames[i]) != address_in(held[i]));
      kiln_buffer *a = get(t.session, kNames[i]), *b = get(copied.session, kNames[i]);
      CHECK(are_equal(a, b, (size_t)kSizes[i]));
      CHECK(!are_equal(b, held[i], (size_t)kSizes[i]));
      kiln_buffer_release(a);
      kiln_buffer_release(b);
      kiln_buffer_release(held[i]);
    }
  }
  CHECK(losses[1] < losses[0]);
  kiln_buffer_release(x);
  kiln_buffer_release(loss);
  kiln_buffer_release(other);
  kiln_session_release(t.session);
  kiln_session_release(copied.session);
}

/* --- values that are fetched, and variables that exchange theirs */

static void fetched_and_exchanged(kiln_jit jit, kiln_device* device) {
  enum { kSize = 300 };
  kiln_graph* g = make_graph(context, "exchange");
  kiln_value x = f32_parameter(g, "x", kSize);
  kiln_value before = read_f32(g, "v", kSize), other = read_f32(g, "w", kSize);
  kiln_value sum = kiln_op_assign(g, kiln_op_add(g, other, x), "v", 1);
  kiln_value last = kiln_op_assign(g, before, "w", 1);
  kiln_session* session = make_session(g, jit, device);
  set(session, "v", device, 1, kSize);
  set(session, "w", device, 2, kSize);
  kiln_buffer *fed = filled(device, 10, kSize), *results[3] = {NULL, NULL, NULL};
  const kiln_value fetches[3] = {before, sum, last};
  float v = 1, w = 2;
  for (int i = 0; i < 4; ++i) {
    /* Results of the run before are given, and written again. */
    OK(kiln_session_run(session, NULL, &x, &fed, 1, fetches, results, 3, NULL, 0));
    CHECK(holds_only(results[0], v) && holds_only(results[1], w + 10));
    CHECK(holds_only(results[2], v));
    const float old = v;
    v = w + 10;
    w = old;
    CHECK(is_all(session, "v", v) && is_all(session, "w", w));
  }
  for (int i = 0; i < 3; ++i) kiln_buffer_release(results[i]);
  kiln_buffer_release(fed);
  kiln_session_release(session);
}

/* --- sizes known at a run only */

static void open_sizes(kiln_jit jit, kiln_device* device) {
  kiln_graph* g = make_graph(context, "sizes");
  const int64_t n = kiln_graph_symbol(g, "n", 1);
  kiln_value x = f32_parameter(g, "x", n);
  kiln_value twice = kiln_op_add(g, read_f32(g, "v", n), x);
  kiln_value sum = kiln_op_assign(g, kiln_op_add(g, twice, x), "v", 1);
  kiln_session* session = make_session(g, jit, device);
  for (int64_t size = 3; size < 400; size += 100) {
    set(session, "v", device, 1, size);
    kiln_buffer* fed = filled(device, 2, size);
    const uintptr_t address = address_of(session, "v");
    for (int i = 1; i <= 3; ++i) {
      OK(step(session, x, fed, sum));
      CHECK(is_all(session, "v", 1 + 4 * (float)i));
      CHECK(address_of(session, "v") == address);
    }
    kiln_buffer_release(fed);
  }
  kiln_session_release(session);
}

/* --- runs that do not end well */

static void failed_runs(kiln_jit jit, kiln_device* device) {
  enum { kSize = 1000 };
  kiln_graph* g = make_graph(context, "failing");
  kiln_value x = f32_parameter(g, "x", kSize);
  kiln_value holds = kiln_op_parameter(g, KILN_PRED, NULL, 0, "holds", 5);
  /* Before the assignments, and after one of them. */
  kiln_value early = kiln_op_assert(g, holds, x, NULL, 0, "early", 5);
  kiln_value v = add_to(g, early, "v"), w = add_to(g, x, "w");
  kiln_value late = kiln_op_assert(g, holds, w, NULL, 0, "late", 4);
  kiln_session* session = make_session(g, jit, device);
  set(session, "v", device, 1, kSize);
  set(session, "w", device, 2, kSize);
  kiln_buffer *fed = filled(device, 1, kSize), *flags[2] = {NULL, NULL};
  for (unsigned char yes = 0; yes < 2; ++yes) {
    OK(kiln_buffer_copy_host(cpu, KILN_PRED, NULL, 0, &yes, 1, &flags[yes]));
  }
  const kiln_value feeds[2] = {x, holds}, fetches[2] = {v, late};
  const uintptr_t address = address_of(session, "v");
  const int32_t cancelled = 1;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.cancel = &cancelled;
  for (float done = 0; done < 3; ++done) {
    kiln_buffer* const failing[2] = {fed, flags[0]};
    kiln_buffer* const fine[2] = {fed, flags[1]};
    kiln_buffer* results[2] = {NULL, NULL};
    FAILS(KILN_INVALID_ARGUMENT, "early",
          kiln_session_run(session, NULL, feeds, failing, 2, &v, results, 1, NULL, 0));
    FAILS(KILN_INVALID_ARGUMENT, "late",
          kiln_session_run(session, NULL, feeds, failing, 2, &late, results, 1, NULL, 0));
    FAILS(KILN_CANCELLED, "",
          kiln_session_run(session, &options, feeds, fine, 2, fetches, results, 2, NULL, 0));
    CHECK(!results[0] && !results[1]);
    CHECK(is_all(session, "v", 1 + done) && is_all(session, "w", 2 + done));
    OK(kiln_session_run(session, NULL, feeds, fine, 2, &v, results, 1, NULL, 0));
    OK(kiln_session_run(session, NULL, feeds, fine, 2, &late, results + 1, 1, NULL, 0));
    CHECK(holds_only(results[0], 2 + done) && holds_only(results[1], 3 + done));
    CHECK(is_all(session, "v", 2 + done) && is_all(session, "w", 3 + done));
    CHECK(address_of(session, "v") == address);
    kiln_buffer_release(results[0]);
    kiln_buffer_release(results[1]);
  }
  kiln_buffer_release(flags[0]);
  kiln_buffer_release(flags[1]);
  kiln_buffer_release(fed);
  kiln_session_release(session);
  /* A run that ends before its update, which puts the value back. */
  struct counter c = make_counter(jit, device, kSize);
  set(c.session, "v", device, 5, kSize);
  const uintptr_t place = address_of(c.session, "v");
  kiln_buffer* ones = filled(device, 1, kSize);
  FAILS(KILN_CANCELLED, "",
        kiln_session_run(c.session, &options, &c.x, &ones, 1, NULL, NULL, 0, &c.sum, 1));
  kiln_buffer* kept = get(c.session, "v");
  CHECK(holds_only(kept, 5) && address_in(kept) == place);
  kiln_buffer_release(kept);
  OK(step(c.session, c.x, ones, c.sum));
  CHECK(address_of(c.session, "v") == place && is_all(c.session, "v", 6));
  kiln_buffer_release(ones);
  kiln_session_release(c.session);
}

/* --- readers at the same time */

enum { kReaders = 3, kPair = 256, kAssignments = 2000 };

struct pair {
  kiln_session* session;
  kiln_value reads[2];
  int ended;
  int64_t strange, seen;
};

/* Runs that fetch both variables find them equal, and held values stay. */
static void* read_pairs(void* argument) {
  struct pair* p = argument;
  float last = 0;
  int64_t strange = 0, seen = 0;
  while (!__atomic_load_n(&p->ended, __ATOMIC_ACQUIRE)) {
    kiln_buffer *both[2] = {NULL, NULL}, *held = get(p->session, "w");
    OK(kiln_session_run(p->session, NULL, NULL, NULL, 0, p->reads, both, 2, NULL, 0));
    float a[kPair], b[kPair], c[kPair];
    OK(kiln_buffer_copy_to_host(held, c, sizeof c));
    OK(kiln_buffer_copy_to_host(both[0], a, sizeof a));
    OK(kiln_buffer_copy_to_host(both[1], b, sizeof b));
    const float first = c[0];
    for (int i = 0; i < kPair; ++i) strange += a[i] != a[0] || b[i] != a[0] || c[i] != first;
    strange += first < last || a[0] < first;
    OK(kiln_buffer_copy_to_host(held, c, sizeof c));
    for (int i = 0; i < kPair; ++i) strange += c[i] != first;
    last = a[0];
    ++seen;
    kiln_buffer_release(held);
    kiln_buffer_release(both[0]);
    kiln_buffer_release(both[1]);
  }
  __atomic_add_fetch(&p->strange, strange, __ATOMIC_RELAXED);
  __atomic_add_fetch(&p->seen, seen, __ATOMIC_RELAXED);
  return NULL;
}

static void readers(kiln_jit jit) {
  struct pair p = {.ended = 0};
  kiln_graph* g = make_graph(context, "pair");
  kiln_value x = f32_parameter(g, "x", kPair);
  p.reads[0] = read_f32(g, "v", kPair);
  p.reads[1] = read_f32(g, "w", kPair);
  kiln_value v = add_to(g, x, "v"), w = add_to(g, x, "w");
  kiln_value done =
      kiln_op_reduce_by(g, kiln_op_add(g, v, w), (const int64_t[]){0}, 1, KILN_REDUCER_MAX);
  p.session = make_session(g, jit, cpu);
  set(p.session, "v", cpu, 0, kPair);
  set(p.session, "w", cpu, 0, kPair);
  pthread_t threads[kReaders];
  for (int t = 0; t < kReaders; ++t) {
    CHECK(pthread_create(&threads[t], NULL, read_pairs, &p) == 0);
  }
  kiln_buffer *fed = filled(cpu, 1, kPair), *result = NULL;
  for (int i = 0; i < kAssignments; ++i) OK(run(p.session, x, fed, done, &result));
  __atomic_store_n(&p.ended, 1, __ATOMIC_RELEASE);
  for (int t = 0; t < kReaders; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  CHECK(p.strange == 0 && p.seen > 0);
  CHECK(is_all(p.session, "v", kAssignments) && is_all(p.session, "w", kAssignments));
  const uintptr_t address = address_of(p.session, "w");
  OK(run(p.session, x, fed, done, &result));
  CHECK(address_of(p.session, "w") == address);
  kiln_buffer_release(fed);
  kiln_buffer_release(result);
  kiln_session_release(p.session);
}

/* --- memory */

static int64_t allocations = 0, left = -1; /* left: before the first that fails; -1: none fails */

static void* count_allocate(void* user_data, size_t bytes, size_t alignment) {
  void* memory = NULL;
  (void)user_data;
  if (left == 0) return NULL;
  if (left > 0) --left;
  ++allocations;
  return posix_memalign(&memory, alignment, bytes) ? NULL : memory;
}

static void count_deallocate(void* user_data, void* memory, size_t bytes, size_t alignment) {
  (void)user_data, (void)bytes, (void)alignment;
  free(memory);
}

/* A run in place allocates nothing. */
static void allocated(kiln_jit jit) {
  struct counter c = make_counter(jit, cpu, 5000);
  set(c.session, "v", cpu, 0, 5000);
  kiln_buffer* x = filled(cpu, 1, 5000);
  OK(step(c.session, c.x, x, c.sum));
  const int64_t before = allocations;
  for (int i = 0; i < 3; ++i) OK(step(c.session, c.x, x, c.sum));
  CHECK(allocations == before);
  CHECK(is_all(c.session, "v", 4));
  kiln_buffer_release(x);
  kiln_session_release(c.session);
}

/* Wherever memory ends, a failed run assigns nothing. */
static void short_of_memory(kiln_jit jit) {
  float numbers[kRows * kInputs];
  for (int i = 0; i < kRows * kInputs; ++i) numbers[i] = (float)(i % 7) * 0.1f;
  const int64_t rows[] = {kRows, kInputs};
  kiln_buffer* x = NULL;
  OK(kiln_buffer_copy_host(cpu, KILN_F32, rows, 2, numbers, sizeof numbers, &x));
  int failures = 0;
  for (int n = 0, ok = 0; !ok && n < 100; ++n) {
    struct trainer t = make_trainer(jit, cpu);
    kiln_buffer *before[3], *loss = NULL;
    uintptr_t addresses[3];
    struct trainer same = make_trainer(jit, cpu);
    OK(kiln_session_prepare(t.session, &t.x, 1, &t.loss, 1, NULL, 0, NULL));
    for (int i = 0; i < 3; ++i) {
      addresses[i] = address_of(t.session, kNames[i]);
      before[i] = get(same.session, kNames[i]);
    }
    left = n;
    kiln_error* error = run(t.session, t.x, x, t.loss, &loss);
    left = -1;
    ok = error == NULL;
    failures += !ok;
    if (error) CHECK(kiln_error_code(error) == KILN_RESOURCE_EXHAUSTED);
    kiln_error_release(error);
    for (int i = 0; i < 3; ++i) {
      kiln_buffer* after = get(t.session, kNames[i]);
      CHECK(address_in(after) == addresses[i]);
      CHECK(are_equal(before[i], after, (size_t)kSizes[i]) == !ok);
      kiln_buffer_release(after);
      kiln_buffer_release(before[i]);
    }
    kiln_buffer_release(loss);
    kiln_session_release(t.session);
    kiln_session_release(same.session);
  }
  CHECK(failures >= 1 && failures < 99);
  kiln_buffer_release(x);
}

static void with_hooks(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  options.allocate = count_allocate;
  options.deallocate = count_deallocate;
  OK(kiln_context_create(&options, &context));
  cpu = find_device(context, "CPU:0");
  const kiln_jit levels[] = {KILN_JIT_OFF, KILN_JIT_ON};
  for (int i = 0; i < 2; ++i) {
    allocated(levels[i]);
    short_of_memory(levels[i]);
  }
  kiln_context_release(context);
}

static void on_device(kiln_device* device, int64_t size) {
  const kiln_jit levels[] = {KILN_JIT_OFF, KILN_JIT_ON};
  for (int i = 0; i < 2; ++i) {
    one_variable(levels[i], device, size);
    fetched_and_exchanged(levels[i], device);
    open_sizes(levels[i], device);
    failed_runs(levels[i], device);
  }
}

int main(void) {
  context = make_context_with(2, KILN_GPU_OFF);
  cpu = find_device(context, "CPU:0");
  kiln_device* xla = find_device(context, "XLA_CPU:0");
  on_device(cpu, 1 << 20);
  on_device(xla, 1 << 20);
  const kiln_jit levels[] = {KILN_JIT_OFF, KILN_JIT_ON};
  for (int i = 0; i < 2; ++i) {
    three_variables(levels[i], cpu);
    three_variables(levels[i], xla);
    readers(levels[i]);
  }
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  with_hooks();
  context = make_context_with(2, tested_gpu());
  cpu = find_device(context, "CPU:0");
  kiln_device* gpu = NULL;
  kiln_error_release(kiln_context_find_device(context, "GPU:0", 5, &gpu));
  if (gpu) on_device(gpu, 1000);
  kiln_context_release(context);
  return test_result();
}
