/* Functions of the user's that programs call: registered, called on every device and by threads
 * that may, failing, and gone when nothing can call them any more. */
#include <pthread.h>

#include "testing.h"

typedef struct Counter {
  int calls;
  int destroyed;
  pthread_t last_thread;
  int fail_from;
} Counter;

static void destroy(void* user_data) { ++((Counter*)user_data)->destroyed; }

/* (x, y) -> (x * y, the sum of x) */
static kiln_error* product_and_sum(void* user_data, const kiln_custom_call* call) {
  Counter* counter = user_data;
  ++counter->calls;
  counter->last_thread = pthread_self();
  if (counter->fail_from > 0 && counter->calls >= counter->fail_from) {
    const char* message = "no more today";
    return kiln_error_create(KILN_UNAVAILABLE, message, strlen(message));
  }
  CHECK(call->struct_size >= sizeof(kiln_custom_call));
  CHECK(call->target_length == 4 && strncmp(call->target, "both", 4) == 0);
  CHECK(call->operand_count == 2 && call->result_count == 2);
  const kiln_call_array *x = call->operands[0], *y = call->operands[1];
  const kiln_call_array *product = call->results[0], *sum = call->results[1];
  CHECK(x->struct_size >= sizeof(kiln_call_array));
  CHECK(x->dtype == KILN_F32 && x->rank == 1 && x->dims[0] == 3 && x->byte_size == 12);
  CHECK(sum->dtype == KILN_F32 && sum->rank == 0 && sum->byte_size == 4);
  CHECK((uintptr_t)x->data % KILN_ALIGNMENT == 0 && (uintptr_t)sum->data % KILN_ALIGNMENT == 0);
  const float scale = call->backend_config_length == 2 ? 10.0f : 1.0f;
  float total = 0;
  for (int64_t i = 0; i < x->dims[0]; ++i) {
    ((float*)product->data)[i] = scale * ((float*)x->data)[i] * ((float*)y->data)[i];
    total += ((float*)x->data)[i];
  }
  *(float*)sum->data = total;
  return NULL;
}

static const int64_t kThree = 3;

static kiln_value both(kiln_graph* graph, kiln_value x, kiln_value y, const char* config) {
  kiln_shape array = KILN_SHAPE_INIT, scalar = KILN_SHAPE_INIT;
  array.dtype = scalar.dtype = KILN_F32;
  array.rank = 1;
  array.dims = &kThree;
  const kiln_shape* results[] = {&array, &scalar};
  const kiln_value operands[] = {x, y};
  kiln_custom_call_options options = KILN_CUSTOM_CALL_OPTIONS_INIT;
  options.backend_config = config;
  options.backend_config_length = strlen(config);
  return kiln_op_custom_call(graph, "both", 4, operands, 2, results, 2, &options);
}

static kiln_context* context_of(int32_t from_any_thread) {
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.threads = 2;
  options.gpu = tested_gpu();
  options.callbacks_from_any_thread = from_any_thread;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  return context;
}

/* -x * y * 10, and the sum of -x */
static kiln_executable* program(kiln_context* context, kiln_device* device) {
  kiln_graph* graph = make_graph(context, "calls");
  kiln_value x = f32_parameter(graph, "x", 3), y = f32_parameter(graph, "y", 3);
  kiln_value pair = both(graph, kiln_op_negate(graph, x), y, "x1");
  kiln_value results[] = {kiln_op_get_tuple_element(graph, pair, 0),
                          kiln_op_get_tuple_element(graph, pair, 1)};
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.device = device;
  kiln_executable* executable = NULL;
  if (OK(kiln_graph_set_results(graph, results, 2))) {
    OK(kiln_graph_compile(graph, &options, &executable));
  }
  kiln_graph_release(graph);
  return executable;
}

static void runs_on(kiln_context* context, const char* name, Counter* counter) {
  kiln_device* device = find_device(context, name);
  kiln_executable* executable = program(context, device);
  const float xs[] = {1, 2, 3}, ys[] = {4, 5, 6};
  kiln_buffer* arguments[] = {f32_buffer(device, xs, 3), f32_buffer(device, ys, 3)};
  const float product[] = {-40, -100, -180}, sum[] = {-6};
  for (int run = 0; run < 3; ++run) {
    kiln_buffer* results[] = {NULL, NULL};
    const int before = counter->calls;
    if (run < 2) {
      OK(kiln_executable_run(executable, NULL, arguments, 2, results, 2));
    } else {
      kiln_buffer* const* all_arguments[] = {arguments};
      kiln_buffer** all_results[] = {results};
      kiln_event* event = NULL;
      OK(kiln_executable_execute(executable, NULL, all_arguments, 2, all_results, 2, 1, &event));
      OK(kiln_event_wait(event, -1));
      kiln_event_release(event);
    }
    CHECK(counter->calls == before + 1);
    expect_f32(results[0], product, 3);
    expect_f32(results[1], sum, 1);
    kiln_buffer_release(results[0]);
    kiln_buffer_release(results[1]);
  }
  kiln_buffer_release(arguments[0]);
  kiln_buffer_release(arguments[1]);
  kiln_executable_release(executable);
}

static void test_devices(void) {
  Counter counter = {0};
  kiln_context* context = context_of(0);
  OK(kiln_context_register_call(context, "both", 4, product_and_sum, &counter, destroy));
  runs_on(context, "CPU:0", &counter);
  runs_on(context, "XLA_CPU:0", &counter);
  runs_on(context, "REFERENCE:0", &counter);
  runs_on(context, "GPU:0", &counter);
  CHECK(counter.destroyed == 0);
  kiln_context_release(context);
  CHECK(counter.destroyed == 1);
}

/* Without leave, the user's functions are called by his own threads only, asynchronous executions
 * or not; and what comes after such an execution finds its results. */
static void test_threads(void) {
  for (int32_t any = 0; any < 2; ++any) {
    Counter counter = {0};
    kiln_context* context = context_of(any);
    OK(kiln_context_register_call(context, "both", 4, product_and_sum, &counter, destroy));
    kiln_device* device = find_device(context, "CPU:0");
    kiln_executable* executable = program(context, device);
    kiln_graph* graph = make_graph(context, "negate");
    kiln_executable* negate =
        compile_result(graph, kiln_op_negate(graph, f32_parameter(graph, "x", 3)), device);
    const float xs[] = {1, 2, 3};
    kiln_buffer* x = f32_buffer(device, xs, 3);
    kiln_event* events[3] = {NULL};
    kiln_buffer *minus = NULL, *results[] = {NULL, NULL}, *last = NULL;
    {
      kiln_buffer* const* arguments[] = {&x};
      kiln_buffer** made[] = {&minus};
      OK(kiln_executable_execute(negate, NULL, arguments, 1, made, 1, 1, &events[0]));
    }
    {
      kiln_buffer* both_of[] = {minus, x};
      kiln_buffer* const* arguments[] = {both_of};
      kiln_buffer** made[] = {results};
      OK(kiln_executable_execute(executable, NULL, arguments, 2, made, 2, 1, &events[1]));
    }
    if (!any) CHECK(counter.calls == 1 && kiln_event_is_ready(events[1]));
    {
      kiln_buffer* const* arguments[] = {&results[0]};
      kiln_buffer** made[] = {&last};
      OK(kiln_executable_execute(negate, NULL, arguments, 1, made, 1, 1, &events[2]));
    }
    OK(kiln_event_wait(events[2], -1));
    CHECK(counter.calls == 1);
    if (!any) CHECK(pthread_equal(counter.last_thread, pthread_self()));
    const float expected[] = {-10, -40, -90};
    expect_f32(last, expected, 3);
    for (int i = 0; i < 3; ++i) kiln_event_release(events[i]);
    kiln_buffer* buffers[] = {x, minus, results[0], results[1], last};
    for (int i = 0; i < 5; ++i) kiln_buffer_release(buffers[i]);
    kiln_executable_release(negate);
    /* What can still call it keeps it. */
    kiln_context_release(context);
    CHECK(counter.destroyed == 0);
    kiln_executable_release(executable);
    CHECK(counter.destroyed == 1);
  }
}

static void test_failures(void) {
  Counter counter = {0};
  kiln_context* context = context_of(0);
  counter.fail_from = 2;
  OK(kiln_context_register_call(context, "both", 4, product_and_sum, &counter, destroy));
  const char* devices[] = {"CPU:0", "REFERENCE:0", "GPU:0"};
  for (int d = 0; d < 3; ++d) {
    counter.calls = 0;
    kiln_device* device = find_device(context, devices[d]);
    kiln_executable* executable = program(context, device);
    const float xs[] = {1, 2, 3};
    kiln_buffer* arguments[] = {f32_buffer(device, xs, 3), f32_buffer(device, xs, 3)};
    kiln_buffer* results[] = {NULL, NULL};
    OK(kiln_executable_run(executable, NULL, arguments, 2, results, 2));
    kiln_buffer_release(results[0]);
    kiln_buffer_release(results[1]);
    results[0] = results[1] = NULL;
    FAILS(KILN_UNAVAILABLE, "of both: no more today",
          kiln_executable_run(executable, NULL, arguments, 2, results, 2));
    CHECK(!results[0] && !results[1]);
    /* An asynchronous execution fails with its event, and so does what it would have made. */
    kiln_buffer* const* all_arguments[] = {arguments};
    kiln_buffer** all_results[] = {results};
    kiln_event* event = NULL;
    OK(kiln_executable_execute(executable, NULL, all_arguments, 2, all_results, 2, 1, &event));
    FAILS(KILN_UNAVAILABLE, "no more today", kiln_event_wait(event, -1));
    float values[3];
    FAILS(KILN_UNAVAILABLE, "no more today",
          kiln_buffer_copy_to_host(results[0], values, sizeof values));
    kiln_event_release(event);
    for (int i = 0; i < 2; ++i) {
      kiln_buffer_release(arguments[i]);
      kiln_buffer_release(results[i]);
    }
    kiln_executable_release(executable);
  }
  kiln_context_release(context);
  CHECK(counter.destroyed == 1);
}

static void test_registration(void) {
  Counter counter = {0}, other = {0};
  kiln_context* context = context_of(0);
  FAILS(KILN_INVALID_ARGUMENT, "function is NULL",
        kiln_context_register_call(context, "both", 4, NULL, NULL, NULL));
  FAILS(KILN_INVALID_ARGUMENT, "is empty",
        kiln_context_register_call(context, "", 0, product_and_sum, &other, destroy));
  FAILS(KILN_INVALID_ARGUMENT, "kiln.mine",
        kiln_context_register_call(context, "kiln.mine", 9, product_and_sum, &other, destroy));
  FAILS(KILN_INVALID_ARGUMENT, "marker",
        kiln_context_register_call(context, "Sharding", 8, product_and_sum, &other, destroy));
  OK(kiln_context_register_call(context, "both", 4, product_and_sum, &counter, destroy));
  FAILS(KILN_ALREADY_EXISTS, "'both'",
        kiln_context_register_call(context, "both", 4, product_and_sum, &other, destroy));
  kiln_graph* graph = make_graph(context, "unknown");
  kiln_value x = f32_parameter(graph, "x", 3);
  kiln_shape shape = KILN_SHAPE_INIT;
  shape.dtype = KILN_F32;
  const kiln_shape* result = &shape;
  kiln_value y = kiln_op_custom_call(graph, "nobody", 6, &x, 1, &result, 1, NULL);
  OK(kiln_graph_set_results(graph, &y, 1));
  kiln_executable* executable = NULL;
  FAILS(KILN_NOT_FOUND, "no function is registered for the target 'nobody'",
        kiln_graph_compile(graph, NULL, &executable));
  kiln_graph_release(graph);
  kiln_context_release(context);
  CHECK(counter.destroyed == 1 && other.destroyed == 0);
}

static void test_builder_mistakes(void) {
  kiln_context* context = context_of(0);
  kiln_shape shape = KILN_SHAPE_INIT;
  shape.dtype = KILN_F32;
  const kiln_shape *result = &shape, *missing = NULL;
  kiln_graph* graph = make_graph(context, "target");
  CHECK(!kiln_op_custom_call(graph, "", 0, NULL, 0, &result, 1, NULL));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "custom_call_target is empty", graph);
  graph = make_graph(context, "results");
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, NULL, 1, NULL));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "results is NULL, with 1 shapes", graph);
  graph = make_graph(context, "result");
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &missing, 1, NULL));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "results[0] is NULL", graph);
  graph = make_graph(context, "type");
  shape.dtype = KILN_TUPLE;
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &result, 1, NULL));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "dtype 13 is not an element type", graph);
  shape.dtype = KILN_F32;
  graph = make_graph(context, "aliases");
  kiln_custom_call_options options = KILN_CUSTOM_CALL_OPTIONS_INIT;
  const int64_t aliases[] = {0, 0};
  options.aliases = aliases;
  options.alias_count = 2;
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &result, 1, &options));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "aliases has 2 numbers; expected one for each of 1", graph);
  graph = make_graph(context, "alias");
  options.alias_count = 1;
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &result, 1, &options));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "names operand 0", graph);
  graph = make_graph(context, "effect");
  options.alias_count = 0;
  options.has_side_effect = 2;
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &result, 1, &options));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "custom_call_has_side_effect is 2", graph);
  kiln_context_release(context);
}

static kiln_error* increment(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  CHECK(call->operands[0]->data == call->results[0]->data);
  ((float*)call->results[0]->data)[0] += 1;
  return NULL;
}

static void test_aliases(void) {
  kiln_context* context = context_of(0);
  OK(kiln_context_register_call(context, "increment", 9, increment, NULL, NULL));
  kiln_graph* graph = make_graph(context, "in_place");
  kiln_value x = f32_parameter(graph, "x", 3);
  kiln_shape shape = KILN_SHAPE_INIT;
  OK(kiln_graph_value_shape(graph, x, &shape));
  const kiln_shape* result = &shape;
  kiln_custom_call_options options = KILN_CUSTOM_CALL_OPTIONS_INIT;
  const int64_t first = 0;
  options.aliases = &first;
  options.alias_count = 1;
  kiln_value y = kiln_op_custom_call(graph, "increment", 9, &x, 1, &result, 1, &options);
  kiln_executable* executable = compile_result(graph, y, NULL);
  const float xs[] = {1, 2, 3}, expected[] = {2, 2, 3};
  kiln_buffer* argument = f32_buffer(find_device(context, "CPU:0"), xs, 3);
  kiln_buffer* made = NULL;
  OK(kiln_executable_run(executable, NULL, &argument, 1, &made, 1));
  expect_f32(made, expected, 3);
  expect_f32(argument, xs, 3);
  kiln_buffer_release(made);
  kiln_buffer_release(argument);
  kiln_executable_release(executable);
  kiln_context_release(context);
}

typedef struct Scaled {
  int states, live, calls;
} Scaled;

/* The factor in the attributes is the state of the call, which is refused without one. */
static kiln_error* instantiate(void* user_data, const kiln_custom_call* call, void** state) {
  Scaled* scaled = user_data;
  CHECK(call->api_version == 4 && call->has_side_effect == 0 && !call->state);
  CHECK(call->operand_count == 1 && !call->operands[0]->data && call->operands[0]->rank == 2);
  for (size_t i = 0; i < call->attribute_count; ++i) {
    const kiln_call_attribute* attribute = call->attributes[i];
    CHECK(attribute->struct_size >= sizeof(kiln_call_attribute));
    if (attribute->name_length != 6 || strncmp(attribute->name, "factor", 6) != 0) continue;
    CHECK(attribute->kind == KILN_CALL_SCALAR && attribute->dtype == KILN_F32);
    ++scaled->states;
    ++scaled->live;
    *state = malloc(sizeof(float));
    *(float*)*state = *(const float*)attribute->data;
    return NULL;
  }
  return kiln_error_create(KILN_INVALID_ARGUMENT, "no factor", 9);
}

static void destroy_state(void* user_data, void* state) {
  --((Scaled*)user_data)->live;
  free(state);
}

/* x in column-major order -> scaled, in row-major order, and turned. */
static kiln_error* scale(void* user_data, const kiln_custom_call* call) {
  ++((Scaled*)user_data)->calls;
  const kiln_call_array *x = call->operands[0], *y = call->results[0];
  CHECK(x->minor_to_major[0] == 0 && x->minor_to_major[1] == 1);
  CHECK(y->minor_to_major[0] == 1 && y->minor_to_major[1] == 0);
  CHECK(call->aliases[0] == -1);
  CHECK(call->attribute_count == 3);
  const kiln_call_attribute *list = call->attributes[1], *more = call->attributes[2];
  CHECK(strcmp(list->name, "list") == 0 && list->kind == KILN_CALL_ARRAY && list->count == 2);
  CHECK(list->dtype == KILN_S64 && ((const int64_t*)list->data)[1] == -5);
  CHECK(strcmp(more->name, "more") == 0 && more->kind == KILN_CALL_DICTIONARY && more->count == 2);
  CHECK(more->members[0]->dtype == KILN_PRED && *(const uint8_t*)more->members[0]->data == 1);
  CHECK(more->members[1]->kind == KILN_CALL_STRING && more->members[1]->count == 4);
  CHECK(strcmp(more->members[1]->data, "text") == 0);
  /* Column-major memory of [2,3] is row-major memory of [3,2]. */
  for (int64_t i = 0; i < 6; ++i) {
    ((float*)y->data)[i] = *(const float*)call->state * ((const float*)x->data)[i];
  }
  return NULL;
}

static kiln_value scaled(kiln_graph* graph, kiln_value x, const char* config) {
  kiln_shape shape = KILN_SHAPE_INIT;
  const int64_t dims[] = {3, 2}, order[] = {0, 1};
  shape.dtype = KILN_F32;
  shape.rank = 2;
  shape.dims = dims;
  const kiln_shape* result = &shape;
  kiln_custom_call_options options = KILN_CUSTOM_CALL_OPTIONS_INIT;
  options.backend_config = config;
  options.backend_config_length = strlen(config);
  options.api_version = 4;
  options.operand_layouts = order;
  options.operand_layout_count = 2;
  return kiln_op_custom_call(graph, "scale", 5, &x, 1, &result, 1, &options);
}

static const int64_t kTwoThree[] = {2, 3};
static const char kConfig[] =
    "{factor = 2.0 : f32, list = dense<[4, -5]> : tensor<2xi64>, more = {a = true, b = \"text\"}}";

static void test_handlers(void) {
  Scaled user = {0};
  kiln_context* context = context_of(1);
  kiln_call_handler handler = KILN_CALL_HANDLER_INIT;
  FAILS(KILN_INVALID_ARGUMENT, "execute is NULL",
        kiln_context_register_call_handler(context, "scale", 5, &handler));
  handler.execute = scale;
  handler.instantiate = instantiate;
  handler.destroy_state = destroy_state;
  handler.user_data = &user;
  OK(kiln_context_register_call_handler(context, "scale", 5, &handler));
  const char* devices[] = {"CPU:0", "XLA_CPU:0", "GPU:0", "REFERENCE:0"};
  for (int d = 0; d < 4; ++d) {
    kiln_device* device = find_device(context, devices[d]);
    kiln_graph* graph = make_graph(context, "scaled");
    kiln_value x = kiln_op_parameter(graph, KILN_F32, kTwoThree, 2, "x", 1);
    /* Two equal calls: each has a state. */
    kiln_value y = kiln_op_add(graph, scaled(graph, kiln_op_negate(graph, x), kConfig),
                               scaled(graph, x, kConfig));
    y = kiln_op_subtract(graph, y, scaled(graph, x, kConfig));
    kiln_executable* executable = compile_result(graph, y, device);
    const int states = user.states, live = user.live;
    if (d < 3) CHECK(live == 3);
    const float xs[] = {1, 2, 3, 4, 5, 6}, expected[] = {-2, -8, -4, -10, -6, -12};
    kiln_buffer *argument = NULL, *made = NULL;
    OK(kiln_buffer_copy_host(device, KILN_F32, kTwoThree, 2, xs, sizeof xs, &argument));
    OK(kiln_executable_run(executable, NULL, &argument, 1, &made, 1));
    expect_f32(made, expected, 6);
    if (d < 3) CHECK(user.states == states);
    kiln_buffer_release(made);
    kiln_buffer_release(argument);
    kiln_executable_release(executable);
    CHECK(user.live == 0);
  }
  CHECK(user.calls == 12);
  kiln_graph* graph = make_graph(context, "refused");
  kiln_value x = kiln_op_parameter(graph, KILN_F32, kTwoThree, 2, "x", 1);
  kiln_value y = scaled(graph, x, "{list = 1 : i32}");
  OK(kiln_graph_set_results(graph, &y, 1));
  kiln_executable* executable = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "no factor", kiln_graph_compile(graph, NULL, &executable));
  kiln_graph_release(graph);
  graph = make_graph(context, "attributes");
  x = kiln_op_parameter(graph, KILN_F32, kTwoThree, 2, "x", 1);
  y = scaled(graph, x, "{factor = @f}");
  OK(kiln_graph_set_results(graph, &y, 1));
  FAILS(KILN_UNIMPLEMENTED, "attribute 'factor'", kiln_graph_compile(graph, NULL, &executable));
  kiln_graph_release(graph);
  kiln_context_release(context);
  context = context_of(0);
  FAILS(KILN_FAILED_PRECONDITION, "callbacks_from_any_thread",
        kiln_context_register_call_handler(context, "scale", 5, &handler));
  kiln_context_release(context);
}

static void test_layout_mistakes(void) {
  kiln_context* context = context_of(0);
  kiln_shape shape = KILN_SHAPE_INIT;
  shape.dtype = KILN_F32;
  const kiln_shape* result = &shape;
  const int64_t order[] = {0, 1, 1, 1};
  kiln_custom_call_options options = KILN_CUSTOM_CALL_OPTIONS_INIT;
  options.operand_layouts = order;
  options.operand_layout_count = 4;
  options.api_version = 4;
  for (int order_of = 0; order_of < 2; ++order_of) {
    kiln_graph* graph = make_graph(context, "layouts");
    kiln_value xs[] = {kiln_op_parameter(graph, KILN_F32, kTwoThree, 2, "x", 1), 0};
    xs[1] = order_of ? kiln_op_parameter(graph, KILN_F32, kTwoThree, 2, "y", 1) : xs[0];
    CHECK(!kiln_op_custom_call(graph, "f", 1, xs, order_of ? 2 : 1, &result, 1, &options));
    BUILD_FAILS(KILN_INVALID_ARGUMENT,
                order_of ? "operand_layouts has no layout of f32[2,3]"
                         : "operand_layouts has 4 numbers; expected 2, the sum of the ranks",
                graph);
  }
  kiln_graph* graph = make_graph(context, "untyped");
  options.api_version = 0;
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &result, 1, &options));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "layouts need", graph);
  graph = make_graph(context, "version");
  options.operand_layout_count = 0;
  options.api_version = 5;
  CHECK(!kiln_op_custom_call(graph, "f", 1, NULL, 0, &result, 1, &options));
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "api_version is 5; expected 0 to 4", graph);
  kiln_context_release(context);
}

static void test_errors(void) {
  CHECK(!kiln_error_create(KILN_OK, "fine", 4));
  kiln_error* error = kiln_error_create(KILN_NOT_FOUND, NULL, 0);
  CHECK(kiln_error_code(error) == KILN_NOT_FOUND);
  CHECK(strcmp(kiln_error_message(error, NULL), "") == 0);
  kiln_error_release(error);
  error = kiln_error_create(12345, "odd", 2);
  CHECK(kiln_error_code(error) == KILN_UNKNOWN);
  CHECK(strcmp(kiln_error_message(error, NULL), "od") == 0);
  kiln_error_release(error);
}

int main(void) {
  test_devices();
  test_threads();
  test_failures();
  test_registration();
  test_builder_mistakes();
  test_aliases();
  test_handlers();
  test_layout_mistakes();
  test_errors();
  return test_result();
}
