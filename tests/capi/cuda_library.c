/* Gemms by cuBLASLt, whose stand-in is loaded in its place: what the environment
 * forces, what the log and timelines say, and what is kept in the folder. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "standin.h"

enum { SIZE = 32 };

static struct {
  void (*reset)(void);
  int (*configure)(const char* settings);
  long long (*count)(const char* what);
} library;

static void open_library(void) {
  const char* path = getenv("KILN_CUBLASLT_LIBRARY");
  void* handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!handle) {
    printf("KILN_CUBLASLT_LIBRARY names no library to test with\n");
    exit(77);
  }
  *(void**)&library.reset = dlsym(handle, "kiln_test_cublaslt_reset");
  *(void**)&library.configure = dlsym(handle, "kiln_test_cublaslt_configure");
  *(void**)&library.count = dlsym(handle, "kiln_test_cublaslt_count");
}

static char messages[4096];

static void keep_message(void* user_data, kiln_log_level level, const char* message,
                         size_t length) {
  (void)user_data;
  (void)level;
  const size_t used = strlen(messages);
  if (used + length + 2 < sizeof messages) {
    memcpy(messages + used, message, length);
    strcpy(messages + used + length, "\n");
  }
}

static kiln_gpu_library use = KILN_GPU_LIBRARY_DEFAULT;

static kiln_error* make(const char* folder, kiln_context** context) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  options.log = keep_message;
  options.log_level = KILN_LOG_INFO;
  options.gpu_library = use;
  if (folder) {
    options.cache_folder = folder;
    options.cache_folder_length = strlen(folder);
  }
  messages[0] = 0;
  return kiln_context_create(&options, context);
}

/* The square of a matrix of ones, or where `trace` is given its timeline. */
static void square(const char* folder, kiln_text** json, float* first) {
  kiln_context* context = NULL;
  kiln_device* gpu = NULL;
  if (!OK(make(folder, &context))) return;
  OK(kiln_context_find_device(context, "GPU:0", 5, &gpu));
  const int64_t dims[] = {SIZE, SIZE};
  kiln_graph* g = NULL;
  OK(kiln_graph_create(context, "square", 6, &g));
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  kiln_value gemm = kiln_op_matmul(g, x, x);
  OK(kiln_graph_set_results(g, &gemm, 1));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = gpu;
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_graph_release(g);
  float values[SIZE * SIZE];
  for (int i = 0; i < SIZE * SIZE; ++i) values[i] = 1;
  kiln_buffer *argument = NULL, *result = NULL;
  OK(kiln_buffer_copy_host(gpu, KILN_F32, dims, 2, values, sizeof values, &argument));
  kiln_trace* trace = NULL;
  if (json) OK(kiln_trace_start(context, &trace));
  OK(kiln_executable_run(e, NULL, &argument, 1, &result, 1));
  if (json) {
    OK(kiln_trace_stop(trace));
    OK(kiln_trace_to_json(trace, json));
    kiln_trace_release(trace);
  }
  OK(kiln_buffer_copy_to_host(result, values, sizeof values));
  *first = values[0];
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(e);
  kiln_context_release(context);
  CHECK(library.count("live") == 0);
  CHECK(library.count("misuse") == 0);
  expect_nothing_left(folder ? folder : "square", 0);
}

static void test_forced(void) {
  float first = 0;
  kiln_text* json = NULL;
  setenv("KILN_GPU_LIBRARY", "always", 1);
  square(NULL, &json, &first);
  CHECK(library.count("gemms") == 1);
  CHECK(first == SIZE);
  CHECK(strstr(messages, "the gemm 32 x 32 x 32, f32 in f32 to f32, "));
  CHECK(strstr(messages, "goes by cuBLASLt 13.1.0: as every one that it takes"));
  if (json) CHECK(strstr(kiln_text_data(json, NULL), "\"by\": \"cuBLASLt 13.1.0\""));
  kiln_text_release(json);

  setenv("KILN_GPU_LIBRARY", "never", 1);
  const long long versions = library.count("cublasLtGetVersion");
  square(NULL, NULL, &first);
  CHECK(library.count("gemms") == 1);
  CHECK(library.count("cublasLtGetVersion") == versions);
  CHECK(!strstr(messages, "cuBLASLt"));

  setenv("KILN_GPU_LIBRARY", "perhaps", 1);
  kiln_context* context = NULL;
  FAILS(KILN_INVALID_ARGUMENT, "KILN_GPU_LIBRARY is 'perhaps'; expected auto, never or always",
        make(NULL, &context));

  /* The option goes before the environment. */
  use = KILN_GPU_LIBRARY_ALWAYS;
  setenv("KILN_GPU_LIBRARY", "never", 1);
  square(NULL, NULL, &first);
  CHECK(library.count("gemms") == 2);
  use = KILN_GPU_LIBRARY_NEVER;
  setenv("KILN_GPU_LIBRARY", "always", 1);
  square(NULL, NULL, &first);
  CHECK(library.count("gemms") == 2);
  unsetenv("KILN_GPU_LIBRARY");
  for (kiln_gpu_library none = -1; none <= 4; none += 5) {
    use = none;
    FAILS(KILN_INVALID_ARGUMENT, "kiln_context_options.gpu_library is ", make(NULL, &context));
  }
  use = KILN_GPU_LIBRARY_DEFAULT;
}

static void test_measured(void) {
  char folder[64], file[128], line[1024] = "";
  snprintf(folder, sizeof folder, "/tmp/kiln_library_%d", (int)getpid());
  snprintf(file, sizeof file, "%s/gpu_gemms.txt", folder);
  float first = 0;
  standin.configure("launch_time=10");
  square(folder, NULL, &first);
  CHECK(first == SIZE);
  CHECK(strstr(messages, "goes by cuBLASLt 13.1.0: 2000 us, our kernel 11000 us"));
  FILE* record = fopen(file, "r");
  CHECK(record != NULL);
  while (record && fgets(line, sizeof line, record)) continue;
  if (record) fclose(record);
  CHECK(strstr(line, " | ours 11000.0 us | library 2000.0 us | library\n"));
  /* Followed, though by now it would be measured otherwise. */
  const long long gemms = library.count("gemms");
  library.configure("time=100");
  square(folder, NULL, &first);
  CHECK(library.count("gemms") == gemms + 1);
  /* Assembled code is in the folder, too. */
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
}

int main(void) {
  open_standin();
  open_library();
  library.reset();
  test_forced();
  test_measured();
  return test_result();
}
