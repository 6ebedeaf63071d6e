/* What the library writes down: dumps of every stage, and timelines. */
#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

static int has_file(const char* folder, const char* name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  struct stat info;
  return stat(path, &info) == 0 && info.st_size > 0;
}

/* How many names hold the text. All files are removed. */
static int count_and_clear(const char* folder, const char* text) {
  int count = 0;
  char path[1024];
  DIR* files = opendir(folder);
  CHECK(files != NULL);
  if (!files) return 0;
  for (struct dirent* file; (file = readdir(files));) {
    if (file->d_name[0] == '.') continue;
    if (strstr(file->d_name, text)) ++count;
    CHECK(!strstr(file->d_name, ".part"));
    snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
    unlink(path);
  }
  closedir(files);
  rmdir(folder);
  return count;
}

static kiln_graph* softmax(kiln_context* context) {
  kiln_graph* g = make_graph(context, "soft max/1"); /* no name for a file as it is */
  int64_t dims[2] = {4, 6}, row = 1, rows = 0;
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  kiln_value top = kiln_op_reduce_by(g, x, &row, 1, KILN_REDUCER_MAX);
  kiln_value e =
      kiln_op_exponential(g, kiln_op_subtract(g, x, kiln_op_broadcast_like(g, top, x, &rows, 1)));
  OK(kiln_graph_set_op_name(g, e, "softmax/exp", 11));
  kiln_value sum = kiln_op_reduce_by(g, e, &row, 1, KILN_REDUCER_SUM);
  kiln_value y = kiln_op_divide(g, e, kiln_op_broadcast_like(g, sum, x, &rows, 1));
  OK(kiln_graph_set_results(g, &y, 1));
  return g;
}

static void dumps(kiln_context* context) {
  char folder[] = "/tmp/kiln-records-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  char inside[64];
  snprintf(inside, sizeof inside, "%s/a", folder);
  kiln_graph* g = softmax(context);
  kiln_compile_options options;
  kiln_compile_options_init(&options, sizeof options);
  options.dump_folder = inside; /* made where it is missing */
  options.dump_folder_length = strlen(inside);
  options.dump_ptx_sm = 80;
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, &options, &e));
  CHECK(has_file(inside, "module_0001.soft_max_1.before_optimizations.txt"));
  CHECK(has_file(inside, "module_0001.soft_max_1.cpu_after_optimizations.txt"));
  CHECK(has_file(inside, "module_0001.soft_max_1.cpu_after_optimizations-buffer-assignment.txt"));
  CHECK(has_file(inside, "module_0001.soft_max_1.plan.txt"));
  CHECK(count_and_clear(inside, ".dot") >= 5);
  kiln_executable_release(e);
  e = NULL;
  OK(kiln_graph_compile(g, &options, &e));
  CHECK(has_file(inside, "module_0002.soft_max_1.plan.txt"));
  CHECK(count_and_clear(inside, ".ptx") >= 1);
  kiln_executable_release(e);
  e = NULL;
  /* Other forms of modules, and a page of all of them. */
  options.dump_forms = KILN_DUMP_HTML | KILN_DUMP_SVG;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_executable_release(e);
  e = NULL;
  CHECK(has_file(inside, "module_0003.soft_max_1.before_optimizations.svg"));
  CHECK(has_file(inside, "module_0003.soft_max_1.cpu_after_optimizations.html"));
  CHECK(has_file(inside, "module_0003.soft_max_1.passes.html"));
  CHECK(!has_file(inside, "module_0003.soft_max_1.before_optimizations.txt"));
  CHECK(count_and_clear(inside, ".dot") == 0);
  options.dump_forms = KILN_DUMP_TEXT;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_executable_release(e);
  e = NULL;
  CHECK(has_file(inside, "module_0004.soft_max_1.before_optimizations.txt"));
  CHECK(count_and_clear(inside, ".before_dce.txt") >= 1);
  options.dump_forms = 16;
  kiln_error* unknown = kiln_graph_compile(g, &options, &e);
  CHECK(unknown && strstr(kiln_error_message(unknown, NULL), "dump_forms is 16") && !e);
  kiln_error_release(unknown);
  options.dump_forms = 0;
  /* A folder that cannot be one. */
  FILE* file = fopen(inside, "w");
  if (file) fclose(file);
  kiln_error* error = kiln_graph_compile(g, &options, &e);
  CHECK(error && strstr(kiln_error_message(error, NULL), inside) && !e);
  kiln_error_release(error);
  unlink(inside);
  rmdir(folder);
  if (has_file("/dev", "full")) {
    /* A name that cannot be written, as its folder is a device's. */
    options.dump_folder = "/dev/full";
    options.dump_folder_length = 9;
    error = kiln_graph_compile(g, &options, &e);
    CHECK(error && strstr(kiln_error_message(error, NULL), "/dev/full") && !e);
    kiln_error_release(error);
  }
  kiln_graph_release(g);
}

static int occurrences(const char* text, const char* part) {
  int count = 0;
  for (; (text = strstr(text, part)); ++text) ++count;
  return count;
}

/* Reads one field of a protocol buffer, and moves on behind it. Its number; the value is `size`, or
 * `size` bytes at `data`. */
static int next_field(const char** at, const char** data, uint64_t* size) {
  uint64_t tag = 0;
  for (int i = 0; i < 2; ++i) {
    uint64_t* into = i == 0 ? &tag : size;
    *into = 0;
    if (i == 1 && (tag & 7) == 1) {
      *at += 8;
      return (int)(tag >> 3);
    }
    for (int shift = 0;; shift += 7) {
      const uint64_t byte = (unsigned char)*(*at)++;
      *into |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
  }
  *data = *at;
  if ((tag & 7) == 2) *at += *size;
  return (int)(tag >> 3);
}

/* An XSpace has a plane for each device, with the events of its lines (xplane.proto). */
static void xspace(const kiln_trace* trace, int expected_events) {
  kiln_text* bytes = NULL;
  OK(kiln_trace_to_xspace(trace, &bytes));
  size_t length = 0;
  const char *at = kiln_text_data(bytes, &length), *end = at + length;
  int planes = 0, events = 0, named = 0;
  while (at < end) {
    const char *plane = NULL, *data = NULL;
    uint64_t plane_size = 0, size = 0;
    CHECK(next_field(&at, &plane, &plane_size) == 1);
    ++planes;
    for (const char* in = plane; in < plane + plane_size;) {
      const int number = next_field(&in, &data, &size);
      if (number == 2) named += memcmp(data, "/device:CUSTOM:Kiln ", 20) == 0;
      if (number != 3) continue;
      const char *line = data, *line_end = data + size;
      while (line < line_end) events += next_field(&line, &data, &size) == 4;
    }
  }
  CHECK(at == end);
  CHECK(planes == 2 && named == 2); /* the host and CPU:0 */
  CHECK(events == expected_events);
  kiln_text_release(bytes);
  FAILS(KILN_INVALID_ARGUMENT, "trace is NULL", kiln_trace_to_xspace(NULL, &bytes));
}

static void timelines(kiln_context* context) {
  kiln_device* cpu = kiln_context_device(context, 0);
  kiln_trace *trace = NULL, *second = NULL;
  OK(kiln_trace_start(context, &trace));
  FAILS(KILN_FAILED_PRECONDITION, "another trace", kiln_trace_start(context, &second));
  CHECK(second == NULL);
  kiln_graph* g = softmax(context);
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, NULL, &e));
  int64_t dims[2] = {4, 6};
  kiln_buffer *x = NULL, *y = NULL;
  OK(kiln_buffer_create(cpu, KILN_F32, dims, 2, &x));
  for (int i = 0; i < 3; ++i) OK(kiln_executable_run(e, NULL, &x, 1, &y, 1));
  kiln_session* session = NULL;
  OK(kiln_session_create(g, NULL, &session));
  kiln_value input = kiln_graph_parameter(g, 0), result = kiln_graph_result(g);
  OK(kiln_session_run(session, NULL, &input, &x, 1, &result, &y, 1, NULL, 0));
  OK(kiln_trace_stop(trace));
  OK(kiln_trace_stop(trace));
  OK(kiln_executable_run(e, NULL, &x, 1, &y, 1)); /* no longer recorded */
  kiln_text* text = NULL;
  OK(kiln_trace_to_json(trace, &text));
  const char* json = kiln_text_data(text, NULL);
  kiln_program_info compiled = KILN_PROGRAM_INFO_INIT, by_op = KILN_PROGRAM_INFO_INIT;
  OK(kiln_executable_info(e, &compiled));
  OK(kiln_session_prepare(session, &input, 1, &result, 1, NULL, 0, &by_op));
  CHECK(occurrences(json, "\"cat\": \"kernel\"") == 3 * compiled.kernels + by_op.kernels);
  CHECK(occurrences(json, "\"cat\": \"execute\"") == 4);
  CHECK(occurrences(json, "\"cat\": \"compile\"") == 1);
  CHECK(occurrences(json, "\"cat\": \"pass\"") >= 5);
  CHECK(strstr(json, "softmax/exp") != NULL);
  xspace(trace, occurrences(json, "\"ph\": \"X\""));
  kiln_text_release(text);
  /* Giving back the trace ends its recording. */
  kiln_trace_retain(trace);
  kiln_trace_release(trace);
  kiln_trace_release(trace);
  OK(kiln_trace_start(context, &trace));
  kiln_trace_release(trace);
  OK(kiln_trace_start(context, &trace));
  kiln_trace_release(trace);
  FAILS(KILN_INVALID_ARGUMENT, "context is NULL", kiln_trace_start(NULL, &trace));
  FAILS(KILN_INVALID_ARGUMENT, "trace is NULL", kiln_trace_stop(NULL));
  kiln_buffer_release(x);
  kiln_buffer_release(y);
  kiln_session_release(session);
  kiln_executable_release(e);
  kiln_graph_release(g);
}

int main(void) {
  kiln_context* context = make_context(2);
  dumps(context);
  timelines(context);
  kiln_context_release(context);
  return test_result();
}
