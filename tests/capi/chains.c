/* Long chains of donations, sessions, and of memory that is given back through other memory. */
#include "chains.h"

typedef struct {
  kiln_session* session;
  kiln_value x, next;
} session_steps;

static kiln_buffer* session_step(void* user_data, kiln_buffer* state) {
  const session_steps* s = user_data;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  size_t zero = 0;
  options.donated = &zero;
  options.donated_count = 1;
  kiln_buffer* next = NULL;
  OK(kiln_session_run(s->session, &options, &s->x, &state, 1, &s->next, &next, 1, NULL, 0));
  kiln_buffer_release(state);
  return next;
}

static void sessions(kiln_context* context, const char* name, long steps) {
  kiln_device* device = find_device(context, name);
  kiln_graph* g = make_graph(context, "step");
  session_steps s;
  s.x = f32_parameter(g, "x", 4);
  s.next = kiln_op_add(g, s.x, kiln_op_scalar(g, KILN_F32, 1));
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.device = device;
  if (OK(kiln_session_create(g, &options, &s.session))) {
    expect_constant_memory("sessions", device, steps, 1, session_step, &s);
    kiln_session_release(s.session);
  }
  kiln_graph_release(g);
}

/* Each buffer is in the memory of the one before, which it gives back when it goes. */
static kiln_buffer* wrap_step(kiln_device* device, kiln_buffer* state) {
  struct DLManagedTensorVersioned* tensor = NULL;
  kiln_buffer* next = NULL;
  OK(kiln_buffer_to_dlpack(state, &tensor));
  OK(kiln_buffer_from_dlpack(device, tensor, &next));
  kiln_buffer_release(state);
  return next;
}

static long given_back = 0;

static void give_back(void* buffer) {
  ++given_back;
  kiln_buffer_release(buffer);
}

static void nested(kiln_context* context, long depth) {
  kiln_device* cpu = find_device(context, "CPU:0");
  const float values[4] = {1, 2, 3, 4};
  kiln_buffer* state = f32_buffer(cpu, values, 4);
  for (long i = 0; i < depth && state; ++i) state = wrap_step(cpu, state);
  expect_f32(state, values, 4);
  kiln_buffer_release(state);

  state = f32_buffer(cpu, values, 4);
  for (long i = 0; i < depth && state; ++i) {
    const void* data = NULL;
    const int64_t size = 4;
    kiln_buffer* next = NULL;
    OK(kiln_buffer_data(state, &data));
    OK(kiln_buffer_adopt_host(cpu, KILN_F32, &size, 1, (void*)data, sizeof values, give_back, state,
                              &next));
    state = next;
  }
  expect_f32(state, values, 4);
  kiln_buffer_release(state);
  CHECK(given_back == depth);
}

/* The last reference of all may go in such a function, too. */
static kiln_context* last;
static int destroyed = 0;

static void release_context(void* buffer) {
  kiln_buffer_release(buffer);
  kiln_context_release(last);
  CHECK(destroyed == 0);
}

static void* give_memory(void* user_data, size_t bytes, size_t alignment) {
  (void)user_data;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void take_memory(void* user_data, void* memory, size_t bytes, size_t alignment) {
  (void)user_data, (void)bytes, (void)alignment;
  free(memory);
}
static void count_destroyed(void* user_data) {
  (void)user_data;
  CHECK(given_back == 1);
  ++destroyed;
}

static void end_inside(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  options.allocate = give_memory;
  options.deallocate = take_memory;
  options.allocator_destroy = count_destroyed;
  if (!OK(kiln_context_create(&options, &last))) return;
  kiln_device* cpu = find_device(last, "CPU:0");
  float values[4] = {1, 2, 3, 4};
  const int64_t size = 4;
  kiln_buffer *inner = NULL, *outer = NULL, *own = f32_buffer(cpu, values, 4);
  OK(kiln_buffer_adopt_host(cpu, KILN_F32, &size, 1, values, sizeof values, give_back, own,
                            &inner));
  OK(kiln_buffer_adopt_host(cpu, KILN_F32, &size, 1, values, sizeof values, release_context, inner,
                            &outer));
  given_back = 0;
  kiln_buffer_release(outer);
  CHECK(given_back == 1);
  CHECK(destroyed == 1);
}

int main(void) {
  kiln_context* context = make_context_with(2, KILN_GPU_EMULATED);
  expect_no_chains(context, "CPU:0", 500000, 1);
  expect_no_chains(context, "XLA_CPU:0", 20000, 1);
  expect_no_chains(context, "REFERENCE:0", 2000, 1);
  expect_no_chains(context, "GPU:0", 2000, 1);
  expect_no_chains(context, "XLA_GPU:0", 2000, 1);
  sessions(context, "CPU:0", 20000);
  sessions(context, "GPU:0", 2000);
  nested(context, 300000);
  kiln_context_release(context);
  end_inside();
  return test_result();
}
