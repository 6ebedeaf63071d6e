/* Calls with arguments that nobody would mean: each is an error, or what it says, and no end of the
 * process. Most were found by random calls (tests/fuzz/calls.cc). */
#include <limits.h>
#include <stdint.h>

#include "testing.h"

static kiln_context* context;

/* Messages quote what they are about, and are UTF-8 all the same. */
static void messages_are_utf8(void) {
  const char name[] = "a\xff\xc0\x80z\xed\xa0\x80\xf0\x9f\x98\x80";
  kiln_device* device = NULL;
  /* One U+FFFD for each byte that is none: FF, C0, 80, ED, A0, 80; what is right stays. */
  FAILS(KILN_INVALID_ARGUMENT,
        "'a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
        "\xf0\x9f\x98\x80'",
        kiln_context_find_device(context, name, sizeof name - 1, &device));
  kiln_graph* g = make_graph(context, "g");
  kiln_value x = f32_parameter(g, "x", 3);
  CHECK(kiln_op_fft(g, x, "\x80", 1, NULL, 0) == 0);
  BUILD_FAILS(KILN_INVALID_ARGUMENT, "'\xef\xbf\xbd'", g);
}

/* So is the JSON of a timeline, in which ops have the names that the user has given them. */
static void timelines_are_utf8(void) {
  kiln_trace* trace = NULL;
  OK(kiln_trace_start(context, &trace));
  kiln_graph* g = make_graph(context, "timeline");
  kiln_value y = kiln_op_tanh(g, f32_parameter(g, "x", 3));
  OK(kiln_graph_set_op_name(g, y, "layer\xff", 6));
  kiln_device* cpu = find_device(context, "CPU:0");
  kiln_executable* e = compile_result(g, y, cpu);
  const float values[3] = {0};
  kiln_buffer *argument = f32_buffer(cpu, values, 3), *result = NULL;
  OK(kiln_executable_run(e, NULL, &argument, 1, &result, 1));
  kiln_text* text = NULL;
  OK(kiln_trace_to_json(trace, &text));
  const char* json = kiln_text_data(text, NULL);
  CHECK(strstr(json, "layer\xef\xbf\xbd") && !strchr(json, '\xff'));
  kiln_text_release(text);
  kiln_trace_release(trace);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

/* A process whose number is the largest that there is. */
static void far_processes(void) {
  kiln_graph* g = make_graph(context, "g");
  kiln_value x = f32_parameter(g, "x", 3);
  const int64_t pair[2] = {INT64_MAX, 0}, two = 2;
  kiln_value y = kiln_op_collective_permute(g, x, pair, &two, 1, 0);
  kiln_device* device = find_device(context, "REFERENCE:0");
  kiln_executable* e = compile_result(g, y, device);
  const float values[3] = {1, 2, 3};
  kiln_buffer *argument = f32_buffer(device, values, 3), *result = NULL;
  FAILS(KILN_UNIMPLEMENTED, "other processes",
        kiln_executable_run(e, NULL, &argument, 1, &result, 1));
  kiln_buffer_release(argument);
  kiln_executable_release(e);
}

/* Aliases that a text tells are of the text's results. */
static void aliases_of_other_results(void) {
  const char text[] =
      "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
      "ENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} negate(p)\n}\n";
  kiln_graph* g = NULL;
  OK(kiln_graph_from_hlo_text(context, text, sizeof text - 1, &g));
  kiln_executable* e = NULL;
  int64_t argument = -2;
  OK(kiln_graph_compile(g, NULL, &e));
  OK(kiln_executable_result_alias(e, 0, &argument));
  CHECK(argument == 0);
  kiln_executable_release(e);
  /* The same results, set anew, keep theirs. */
  kiln_value result = kiln_graph_result(g);
  OK(kiln_graph_set_results(g, &result, 1));
  OK(kiln_graph_compile(g, NULL, &e));
  OK(kiln_executable_result_alias(e, 0, &argument));
  CHECK(argument == 0);
  kiln_executable_release(e);
  const int64_t size = 4;
  kiln_value other = kiln_op_iota(g, 0, KILN_S64, &size, 1);
  OK(kiln_graph_set_results(g, &other, 1));
  OK(kiln_graph_compile(g, NULL, &e));
  OK(kiln_executable_result_alias(e, 0, &argument));
  CHECK(argument == -1);
  kiln_executable_release(e);
  kiln_graph_release(g);
}

/* Tokens have their places among arguments and results, as arrays in tuples have. */
static void tokens(kiln_device* device, int aliases_by_text) {
  const char text[] =
      "HloModule m, input_output_alias={ {2}: (2, {}, may-alias), {1, 1}: (0, {1}, may-alias) }\n"
      "ENTRY e {\n"
      "  p = (token[], f32[3]{0}) parameter(0)\n"
      "  t = token[] parameter(1)\n"
      "  q = f32[2]{0} parameter(2)\n"
      "  u = token[] get-tuple-element(p), index=0\n"
      "  x = f32[3]{0} get-tuple-element(p), index=1\n"
      "  y = f32[3]{0} add(x, x)\n"
      "  v = token[] after-all(t, u)\n"
      "  i = (token[], f32[3]{0}) tuple(u, y)\n"
      "  n = f32[2]{0} negate(q)\n"
      "  ROOT r = (token[], (token[], f32[3]{0}), f32[2]{0}, token[]) tuple(v, i, n, t)\n}\n";
  const char* without = "HloModule m\n";
  char other[sizeof text];
  strcpy(other, without);
  strcat(other, strchr(text, '\n') + 1);
  const char* chosen = aliases_by_text ? text : other;
  kiln_graph* g = NULL;
  OK(kiln_graph_from_hlo_text(context, chosen, strlen(chosen), &g));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  kiln_alias aliases[2] = {{2, 1, 0, 0}, {3, 3, 0, 0}};
  options.device = device;
  kiln_executable* e = NULL;
  if (!aliases_by_text) {
    options.aliases = aliases;
    options.alias_count = 2;
    aliases[0] = (kiln_alias){0, 0, 0, 0};
    FAILS(KILN_INVALID_ARGUMENT, "token[]", kiln_graph_compile(g, &options, &e));
    aliases[0] = (kiln_alias){2, 1, 0, 0};
  }
  OK(kiln_graph_compile(g, &options, &e));
  kiln_graph_release(g);
  const kiln_dtype arguments_are[4] = {KILN_TOKEN, KILN_F32, KILN_TOKEN, KILN_F32};
  const kiln_dtype results_are[5] = {KILN_TOKEN, KILN_TOKEN, KILN_F32, KILN_F32, KILN_TOKEN};
  CHECK(kiln_executable_argument_count(e) == 4 && kiln_executable_result_count(e) == 5);
  for (size_t i = 0; i < 9; ++i) {
    kiln_shape shape = KILN_SHAPE_INIT;
    if (i < 4) {
      OK(kiln_executable_argument_shape(e, i, &shape));
    } else {
      OK(kiln_executable_result_shape(e, i - 4, &shape));
    }
    CHECK(shape.dtype == (i < 4 ? arguments_are[i] : results_are[i - 4]));
    CHECK(shape.dtype != KILN_TOKEN || (shape.rank == 0 && shape.byte_size == 0));
  }
  CHECK(strcmp(kiln_executable_argument_name(e, 1, NULL), "p.1") == 0);
  CHECK(strcmp(kiln_executable_argument_name(e, 2, NULL), "t") == 0);
  CHECK(!kiln_executable_argument_name(e, 4, NULL));
  const int64_t aliased[5] = {-1, -1, 1, 3, -1};
  for (size_t r = 0; r < 5; ++r) {
    int64_t argument = -2;
    OK(kiln_executable_result_alias(e, r, &argument));
    CHECK(argument == aliased[r]);
  }
  const int64_t three = 3, two = 2;
  const float xs[3] = {1, 2, 3}, qs[2] = {4, -5};
  for (int donate = 0; donate < 2; ++donate) {
    kiln_buffer *arguments[4] = {NULL}, *results[5] = {NULL};
    OK(kiln_buffer_create(device, KILN_TOKEN, NULL, 0, &arguments[0]));
    OK(kiln_buffer_copy_host(device, KILN_F32, &three, 1, xs, sizeof xs, &arguments[1]));
    OK(kiln_buffer_create(device, KILN_TOKEN, NULL, 0, &arguments[2]));
    OK(kiln_buffer_copy_host(device, KILN_F32, &two, 1, qs, sizeof qs, &arguments[3]));
    kiln_execute_options run = KILN_EXECUTE_OPTIONS_INIT;
    run.donate_aliased = donate;
    kiln_buffer* wrong[4] = {arguments[0], arguments[1], arguments[3], arguments[2]};
    FAILS(KILN_INVALID_ARGUMENT, "argument 2 't' is f32[2]; expected token[]",
          kiln_executable_run(e, &run, wrong, 4, results, 5));
    OK(kiln_executable_run(e, &run, arguments, 4, results, 5));
    expect_f32(results[2], (const float[]){2, 4, 6}, 3);
    expect_f32(results[3], (const float[]){-4, 5}, 2);
    for (int i = 0; i < 4; ++i) kiln_buffer_release(arguments[i]);
    /* A token that an execution gives is an argument of the next one. */
    kiln_buffer* token = results[4];
    kiln_shape shape = KILN_SHAPE_INIT;
    OK(kiln_buffer_shape(token, &shape));
    CHECK(shape.dtype == KILN_TOKEN && shape.byte_size == 0 && shape.rank == 0);
    OK(kiln_buffer_copy_to_host(token, NULL, 0));
    FAILS(KILN_INVALID_ARGUMENT, "token[] takes 0",
          kiln_buffer_copy_to_host(token, &shape, sizeof shape));
    kiln_buffer* copy = NULL;
    OK(kiln_buffer_copy_to_device(token, device, &copy));
    kiln_buffer_release(copy);
    struct DLManagedTensorVersioned* tensor = NULL;
    FAILS(KILN_INVALID_ARGUMENT, "token", kiln_buffer_to_dlpack(token, &tensor));
    for (int i = 0; i < 5; ++i) kiln_buffer_release(results[i]);
  }
  kiln_executable_release(e);
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.gpu = tested_gpu();
  if (!OK(kiln_context_create(&options, &context))) return 1;
  messages_are_utf8();
  timelines_are_utf8();
  far_processes();
  aliases_of_other_results();
  CHECK(strcmp(kiln_dtype_name(KILN_TOKEN), "token") == 0 && kiln_dtype_bits(KILN_TOKEN) == 0);
  const int64_t one = 1;
  kiln_buffer* none = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "17",
        kiln_buffer_create(kiln_context_device(context, 0), KILN_TOKEN, &one, 1, &none));
  for (size_t d = 0; d < kiln_context_device_count(context); ++d) {
    tokens(kiln_context_device(context, d), 0);
    tokens(kiln_context_device(context, d), 1);
  }
  kiln_context_release(context);
  return test_result();
}
