/* What the library writes down of GPUs: lanes of timelines, and what kernels take, in dumps. */
#include <unistd.h>

#include "testing.h"

static kiln_context* make_gpu_context(void) { return make_context_with(2, KILN_GPU_EMULATED); }

static int occurrences(const char* text, const char* part) {
  int count = 0;
  for (; (text = strstr(text, part)); ++text) ++count;
  return count;
}

static void expect_resources(const char* folder) {
  char path[256], text[4096];
  snprintf(path, sizeof path, "%s/module_0001.doubled.resources.txt", folder);
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  if (!file) return;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  CHECK(strstr(text, "registers") && strstr(text, "emulated"));
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
}

static void lanes(kiln_context* context) {
  kiln_device* gpu = find_device(context, "GPU:0");
  char folder[] = "/tmp/kiln-gpu-timeline-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  kiln_graph* g = make_graph(context, "doubled");
  kiln_value x = f32_parameter(g, "x", 3), sum = kiln_op_add(g, x, x);
  OK(kiln_graph_set_op_name(g, sum, "layer/double", 12));
  OK(kiln_graph_set_results(g, &sum, 1));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = gpu;
  options.dump_folder = folder;
  options.dump_folder_length = strlen(folder);
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_graph_release(g);
  expect_resources(folder);

  kiln_trace* trace = NULL;
  OK(kiln_trace_start(context, &trace));
  kiln_buffer *argument = f32_buffer(gpu, (const float[]){1, 2, 3}, 3), *result = NULL;
  kiln_event* done = NULL;
  for (int i = 0; i < 4; ++i) {
    kiln_buffer *const *in = &argument, **out = &result;
    kiln_event_release(done);
    done = NULL;
    OK(kiln_executable_execute(e, NULL, &in, 1, &out, 1, 1, &done));
  }
  OK(kiln_event_wait(done, -1));
  expect_f32(result, (const float[]){2, 4, 6}, 3);
  /* Not waited for before the end of the recording. */
  kiln_buffer* other = f32_buffer(gpu, (const float[]){1, 2, 3}, 3);
  OK(kiln_trace_stop(trace));
  kiln_text* text = NULL;
  OK(kiln_trace_to_json(trace, &text));
  const char* json = kiln_text_data(text, NULL);
  CHECK(occurrences(json, "\"name\": \"GPU:0 kernels\"") == 1);
  CHECK(occurrences(json, "\"name\": \"GPU:0 copies\"") == 1);
  CHECK(occurrences(json, "\"cat\": \"kernel\"") == 4);
  CHECK(occurrences(json, "layer/double") == 4);
  CHECK(occurrences(json, "\"cat\": \"execute\"") == 4);
  CHECK(occurrences(json, "\"name\": \"copy from host\"") == 2);
  CHECK(occurrences(json, "\"name\": \"copy to host\"") == 1);
  CHECK(occurrences(json, "\"bytes\": 12") >= 3);
  CHECK(occurrences(json, "\"registers\": \"emulated\"") == 4);
  kiln_text_release(text);
  kiln_trace_release(trace);
  kiln_event_release(done);
  kiln_buffer_release(other);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

/* What is still under way when the recording ends may be missing, and does no harm. */
static void ends_early(kiln_context* context) {
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_graph* g = make_graph(context, "squared");
  kiln_value x = f32_parameter(g, "x", 3);
  kiln_executable* e = compile_result(g, kiln_op_multiply(g, x, x), gpu);
  kiln_buffer *argument = f32_buffer(gpu, (const float[]){1, 2, 3}, 3), *result = NULL;
  kiln_event* done = NULL;
  for (int i = 0; i < 20; ++i) {
    kiln_trace* trace = NULL;
    OK(kiln_trace_start(context, &trace));
    for (int j = 0; j < 3; ++j) {
      kiln_buffer *const *in = &argument, **out = &result;
      kiln_event_release(done);
      done = NULL;
      OK(kiln_executable_execute(e, NULL, &in, 1, &out, 1, 1, &done));
    }
    kiln_trace_release(trace);
  }
  OK(kiln_event_wait(done, -1));
  expect_f32(result, (const float[]){1, 4, 9}, 3);
  kiln_event_release(done);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(e);
}

int main(void) {
  kiln_context* context = make_gpu_context();
  lanes(context);
  ends_early(context);
  kiln_context_release(context);
  return test_result();
}
