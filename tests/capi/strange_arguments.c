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
  FAILS(KILN_NOT_FOUND,
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

int main(void) {
  context = make_context(2);
  messages_are_utf8();
  timelines_are_utf8();
  far_processes();
  aliases_of_other_results();
  kiln_context_release(context);
  return test_result();
}
