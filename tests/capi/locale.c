/* A process whose numbers have a comma: texts are as in C's locale, in and out. */
#include <locale.h>

#include "testing.h"

int main(void) {
  const char* wanted = getenv("KILN_TEST_LOCALE");
  if (!wanted || !setlocale(LC_ALL, "")) {
    printf("no locale with a decimal comma\n");
    return 77;
  }
  char number[16];
  snprintf(number, sizeof number, "%.1f", 1.5);
  CHECK(strcmp(number, "1,5") == 0);
  kiln_context* context = make_context(1);
  kiln_graph* g = make_graph(context, "comma");
  kiln_value x = f32_parameter(g, "x", 4);
  kiln_value y = kiln_op_multiply(g, x, kiln_op_scalar(g, KILN_F32, 1234.5));
  OK(kiln_graph_set_results(g, &y, 1));
  kiln_text* text = NULL;
  OK(kiln_graph_to_hlo_text(g, &text));
  CHECK(strstr(kiln_text_data(text, NULL), "constant(1234.5)") != NULL);
  kiln_graph_release(g);
  size_t length = 0;
  const char* hlo = kiln_text_data(text, &length);
  OK(kiln_graph_from_hlo_text(context, hlo, length, &g));
  kiln_text_release(text);
  kiln_trace* trace = NULL;
  OK(kiln_trace_start(context, &trace));
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, NULL, &e));
  kiln_buffer* argument =
      f32_buffer(kiln_context_device(context, 0), (const float[]){1, 2, 0, -1}, 4);
  kiln_buffer* result = NULL;
  OK(kiln_executable_run(e, NULL, &argument, 1, &result, 1));
  expect_f32(result, (const float[]){1234.5f, 2469, 0, -1234.5f}, 4);
  OK(kiln_trace_stop(trace));
  OK(kiln_trace_to_json(trace, &text));
  const char* times = strstr(kiln_text_data(text, NULL), "\"ts\":");
  CHECK(times != NULL);
  for (; times; times = strstr(times + 1, "\"ts\":")) {
    const char* end = times + 5;
    while (strchr(" 0123456789.", *end)) ++end;
    CHECK(end[0] == ',' && end[1] != 0 && !strchr("0123456789", end[1]));
  }
  kiln_text_release(text);
  kiln_trace_release(trace);
  kiln_graph_release(g);
  kiln_executable_release(e);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_context_release(context);
  return test_result();
}
