/* References, the user's allocator, and what is left when all is given back: nothing. */
#include <dirent.h>
#include <stdatomic.h>
#include <stdint.h>

#include "testing.h"

/* An allocator that counts, checks what it is given back, and fails at will. */
struct counter {
  atomic_llong calls, live, blocks;
  long long fail_at; /* the number of the call that fails, from 1; 0: none */
  int destroyed, wrong;
};

static void* allocate(void* user_data, size_t bytes, size_t alignment) {
  struct counter* counter = user_data;
  if (atomic_fetch_add(&counter->calls, 1) + 1 == counter->fail_at) return NULL;
  /* Where the numbers that must come back are kept: before the memory. */
  size_t head = alignment < 2 * sizeof(size_t) ? 2 * sizeof(size_t) : alignment;
  size_t size = (bytes + head + alignment - 1) / alignment * alignment;
  char* memory = aligned_alloc(alignment, size);
  if (!memory) return NULL;
  ((size_t*)memory)[0] = bytes;
  ((size_t*)memory)[1] = alignment;
  atomic_fetch_add(&counter->live, (long long)bytes);
  atomic_fetch_add(&counter->blocks, 1);
  return memory + head;
}

static void deallocate(void* user_data, void* memory, size_t bytes, size_t alignment) {
  struct counter* counter = user_data;
  size_t head = alignment < 2 * sizeof(size_t) ? 2 * sizeof(size_t) : alignment;
  char* block = (char*)memory - head;
  if (((size_t*)block)[0] != bytes || ((size_t*)block)[1] != alignment) ++counter->wrong;
  atomic_fetch_sub(&counter->live, (long long)bytes);
  atomic_fetch_sub(&counter->blocks, 1);
  free(block);
}

static void note_destroyed(void* user_data) { ++((struct counter*)user_data)->destroyed; }

static kiln_context* counted_context(struct counter* counter, int32_t threads, int32_t anywhere) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = threads;
  options.allocate = allocate;
  options.deallocate = deallocate;
  options.allocator_user_data = counter;
  options.allocator_destroy = note_destroyed;
  options.callbacks_from_any_thread = anywhere;
  kiln_context* context = NULL;
  OK(kiln_context_create(&options, &context));
  return context;
}

/* What a program of some size does, with a temporary and a constant. `result` is 0 or the first
 * failure. */
static kiln_code use(kiln_context* context) {
  kiln_device* cpu = kiln_context_device(context, 0);
  kiln_graph* g = NULL;
  kiln_executable* e = NULL;
  kiln_buffer *x = NULL, *y = NULL, *lent = NULL, *again = NULL;
  kiln_session* session = NULL;
  kiln_event* event = NULL;
  float constant[64], host[65];
  for (int i = 0; i < 64; ++i) constant[i] = (float)i;
  memset(host, 0, sizeof host);
  int64_t dims[2] = {8, 8}, one = 1, zero = 0;
  kiln_error* error = kiln_graph_create(context, "use", 3, &g);
  kiln_value p = kiln_op_parameter(g, KILN_F32, dims, 2, "p", 1);
  kiln_value c = kiln_op_constant(g, KILN_F32, dims, 2, constant, sizeof constant);
  kiln_value product = kiln_op_dot(g, p, c, NULL, 0, NULL, 0, &one, 1, &zero, 1, 0);
  kiln_value value =
      kiln_op_dot(g, kiln_op_tanh(g, product), product, NULL, 0, NULL, 0, &one, 1, &zero, 1, 0);
  if (!error) error = kiln_graph_set_results(g, &value, 1);
  if (!error) error = kiln_graph_compile(g, NULL, &e);
  if (!error) error = kiln_buffer_create(cpu, KILN_F32, dims, 2, &x);
  /* Not aligned: staged. */
  if (!error) {
    error = kiln_buffer_borrow_host(cpu, KILN_F32, dims, 2, host + 1, 256, NULL, &lent);
  }
  if (!error) error = kiln_executable_run(e, NULL, &lent, 1, &y, 1);
  kiln_buffer* const* arguments = &x;
  kiln_buffer** results = &again;
  if (!error) error = kiln_executable_execute(e, NULL, &arguments, 1, &results, 1, 1, &event);
  if (!error) error = kiln_event_wait(event, -1);
  if (!error) error = kiln_session_create(g, NULL, &session);
  if (!error) error = kiln_session_run(session, NULL, &p, &x, 1, &value, &y, 1, NULL, 0);
  kiln_code code = kiln_error_code(error);
  kiln_error_release(error);
  kiln_session_release(session);
  kiln_event_release(event);
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_buffer_release(lent);
  kiln_buffer_release(again);
  kiln_executable_release(e);
  kiln_graph_release(g);
  return code;
}

static void allocator(int32_t threads, int32_t anywhere) {
  struct counter counter = {0};
  kiln_context* context = counted_context(&counter, threads, anywhere);
  CHECK(use(context) == KILN_OK);
  long long calls = atomic_load(&counter.calls);
  CHECK(calls > 4);
  CHECK(atomic_load(&counter.blocks) == 0 && atomic_load(&counter.live) == 0);
  CHECK(counter.destroyed == 0);
  kiln_context_release(context);
  CHECK(counter.destroyed == 1 && counter.wrong == 0);
  /* Every allocation fails once: the error says so, and nothing is lost. */
  for (long long n = 1; n <= calls; ++n) {
    struct counter failing = {.fail_at = n};
    context = counted_context(&failing, threads, anywhere);
    CHECK(use(context) == KILN_RESOURCE_EXHAUSTED);
    CHECK(atomic_load(&failing.blocks) == 0);
    failing.fail_at = 0;
    CHECK(use(context) == KILN_OK); /* the context is as good as before */
    CHECK(atomic_load(&failing.blocks) == 0);
    kiln_context_release(context);
    CHECK(failing.destroyed == 1 && failing.wrong == 0);
  }
}

/* Whatever is given back first, what is left works. */
static void parents(void) {
  struct counter counter = {0};
  kiln_context* context = counted_context(&counter, 2, 0);
  kiln_device* cpu = kiln_context_device(context, 0);
  kiln_graph* g = make_graph(context, "g");
  kiln_context_release(context);
  kiln_executable* e = compile_result(g, kiln_op_tanh(g, f32_parameter(g, "x", 2)), NULL);
  CHECK(counter.destroyed == 0);
  kiln_buffer* x = f32_buffer(cpu, (const float[]){0, 0}, 2);
  kiln_buffer* y = NULL;
  OK(kiln_executable_run(e, NULL, &x, 1, &y, 1));
  kiln_executable_retain(e);
  kiln_executable_release(e);
  OK(kiln_executable_run(e, NULL, &x, 1, &y, 1));
  kiln_executable_release(e);
  kiln_buffer_release(x);
  kiln_buffer_retain(y);
  kiln_buffer_release(y);
  kiln_event* ready = NULL;
  OK(kiln_buffer_ready(y, &ready));
  kiln_buffer_release(y);
  CHECK(counter.destroyed == 0 && kiln_event_is_ready(ready));
  kiln_event_retain(ready);
  kiln_event_release(ready);
  kiln_event_release(ready);
  CHECK(counter.destroyed == 1 && atomic_load(&counter.blocks) == 0);

  /* A device is its context. */
  memset(&counter, 0, sizeof counter);
  context = counted_context(&counter, 1, 0);
  cpu = kiln_context_device(context, 0);
  kiln_device_retain(cpu);
  kiln_context_retain(context);
  kiln_context_release(context);
  kiln_context_release(context);
  CHECK(counter.destroyed == 0 && strcmp(kiln_device_name(cpu, NULL), "CPU:0") == 0);
  kiln_device_release(cpu);
  CHECK(counter.destroyed == 1);

  /* Errors and texts outlive all. */
  context = make_context(1);
  g = make_graph(context, "g");
  kiln_value x_value = f32_parameter(g, "x", 2);
  OK(kiln_graph_set_results(g, &x_value, 1));
  kiln_text* text = NULL;
  OK(kiln_graph_to_hlo_text(g, &text));
  kiln_op_add(g, 0, 0);
  kiln_error* error = kiln_graph_status(g);
  kiln_graph_retain(g);
  kiln_graph_release(g);
  kiln_graph_release(g);
  kiln_context_release(context);
  size_t length = 0;
  CHECK(strlen(kiln_text_data(text, &length)) == length && length > 20);
  kiln_text_retain(text);
  kiln_text_release(text);
  kiln_text_release(text);
  kiln_error_retain(error);
  kiln_error_release(error);
  FAILS(KILN_INVALID_ARGUMENT, "add", error);
}

static void nothing_is_taken(void) {
  kiln_error_retain(NULL);
  kiln_error_release(NULL);
  kiln_text_retain(NULL);
  kiln_text_release(NULL);
  kiln_context_retain(NULL);
  kiln_context_release(NULL);
  kiln_device_retain(NULL);
  kiln_device_release(NULL);
  kiln_graph_retain(NULL);
  kiln_graph_release(NULL);
  kiln_executable_retain(NULL);
  kiln_executable_release(NULL);
  kiln_session_retain(NULL);
  kiln_session_release(NULL);
  kiln_buffer_retain(NULL);
  kiln_buffer_release(NULL);
  kiln_event_retain(NULL);
  kiln_event_release(NULL);
  kiln_trace_retain(NULL);
  kiln_trace_release(NULL);
  kiln_context_options_init(NULL, 100);
  kiln_compile_options_init(NULL, 100);
  CHECK(kiln_error_code(NULL) == KILN_OK && kiln_error_message(NULL, NULL)[0] == 0);
  CHECK(kiln_text_data(NULL, NULL) == NULL && kiln_device_name(NULL, NULL) == NULL);
  CHECK(kiln_context_threads(NULL) == 0 && kiln_context_device_count(NULL) == 0);
  CHECK(kiln_executable_argument_count(NULL) == 0 && kiln_executable_result_count(NULL) == 0);
  CHECK(kiln_executable_device(NULL) == NULL && kiln_buffer_device(NULL) == NULL);
  CHECK(kiln_event_is_ready(NULL) == 0);
  CHECK(strcmp(kiln_code_name(KILN_UNIMPLEMENTED), "UNIMPLEMENTED") == 0);
  CHECK(strcmp(kiln_code_name(99), "UNKNOWN") == 0);
  CHECK(strcmp(kiln_dtype_name(KILN_BF16), "bf16") == 0);
  CHECK(strcmp(kiln_dtype_name(-5), "invalid") == 0);
  CHECK(kiln_dtype_bits(KILN_C128) == 128 && kiln_dtype_bits(KILN_TUPLE) == 0);
}

static int thread_count(void) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  while (readdir(tasks)) ++count;
  closedir(tasks);
  return count - 2;
}

/* One thread means that none is made. */
static void threads(void) {
  int before = thread_count();
  kiln_context* context = make_context(1);
  CHECK(kiln_context_threads(context) == 1);
  CHECK(use(context) == KILN_OK);
  CHECK(thread_count() == before);
  kiln_context_release(context);
  context = make_context(3);
  CHECK(kiln_context_threads(context) == 3);
  CHECK(use(context) == KILN_OK);
  kiln_context_release(context);
  CHECK(thread_count() == before);
  context = make_context(0);
  CHECK(kiln_context_threads(context) >= 1);
  kiln_context_release(context);
}

struct log {
  int messages, destroyed;
  kiln_log_level worst;
};
static void take_message(void* user_data, kiln_log_level level, const char* message,
                         size_t length) {
  struct log* log = user_data;
  ++log->messages;
  if (level > log->worst) log->worst = level;
  CHECK(length > 0 && message[0] != 0);
}
static void drop_log(void* user_data) { ++((struct log*)user_data)->destroyed; }

static void logs(void) {
  for (kiln_log_level level = KILN_LOG_INFO; level <= KILN_LOG_OFF; ++level) {
    struct log log = {0};
    kiln_context_options options;
    kiln_context_options_init(&options, sizeof options);
    options.log = take_message;
    options.log_user_data = &log;
    options.log_destroy = drop_log;
    options.log_level = level;
    kiln_context* context = NULL;
    OK(kiln_context_create(&options, &context));
    CHECK(use(context) == KILN_OK);
    CHECK(level == KILN_LOG_INFO ? log.messages > 0 && log.worst == KILN_LOG_INFO
                                 : log.messages == 0);
    kiln_context_release(context);
    CHECK(log.destroyed == 1);
  }
}

int main(void) {
  nothing_is_taken();
  threads();
  allocator(1, 0);
  allocator(2, 0);
  allocator(2, 1);
  parents();
  logs();
  return test_result();
}
