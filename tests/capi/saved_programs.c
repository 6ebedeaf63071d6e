/* Executables as bytes: saved, loaded in this process and in another, refused. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "squares.h"
#include "testing.h"

/* A loop, a call of the user's, a call of the library's, packed weights, an alias. */
static const char kText[] =
    "HloModule saved, input_output_alias={ {0}: (0, {}, may-alias) }\n"
    "cond { s = (s32[], f32[4,4]) parameter(0)\n"
    "  i = s32[] get-tuple-element(s), index=0\n"
    "  x = f32[4,4] get-tuple-element(s), index=1\n"
    "  corner = f32[1,1] slice(x), slice={[0:1],[0:1]}\n"
    "  c = f32[] reshape(corner)\n"
    "  n = s32[] convert(c)\n"
    "  ROOT p = pred[] compare(i, n), direction=LT }\n"
    "body { s = (s32[], f32[4,4]) parameter(0)\n"
    "  i = s32[] get-tuple-element(s), index=0\n"
    "  x = f32[4,4] get-tuple-element(s), index=1\n"
    "  one = s32[] constant(1)\n"
    "  j = s32[] add(i, one)\n"
    "  w = f32[4,4] constant({{1,0,0,0},{0,2,0,0},{0,0,2,1},{0,0,0,2}})\n"
    "  y = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  ROOT t = (s32[], f32[4,4]) tuple(j, y) }\n"
    "ENTRY e { x = f32[4,4] parameter(0)\n"
    "  zero = s32[] constant(0)\n"
    "  s = (s32[], f32[4,4]) tuple(zero, x)\n"
    "  l = (s32[], f32[4,4]) while(s), condition=cond, body=body\n"
    "  y = f32[4,4] get-tuple-element(l), index=1\n"
    "  u = f32[4,4] custom-call(y), custom_call_target=\"test.twice\"\n"
    "  c = f32[4,4] cholesky(x), lower=true\n"
    "  ROOT r = (f32[4,4], f32[4,4]) tuple(u, c) }\n";

static kiln_error* twice(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  const float* from = call->operands[0]->data;
  float* to = call->results[0]->data;
  for (int i = 0; i < 16; ++i) to[i] = 2 * from[i];
  return NULL;
}

static kiln_context* context_with(int with_call) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  kiln_context* context = NULL;
  options.gpu = KILN_GPU_EMULATED;
  OK(kiln_context_create(&options, &context));
  if (with_call) OK(kiln_context_register_call(context, "test.twice", 10, twice, NULL, NULL));
  return context;
}

static kiln_executable* compile(kiln_context* context, kiln_device* device) {
  kiln_graph* graph = NULL;
  kiln_executable* executable = NULL;
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  OK(kiln_graph_from_hlo_text(context, kText, sizeof kText - 1, &graph));
  OK(kiln_graph_compile(graph, &options, &executable));
  kiln_graph_release(graph);
  return executable;
}

static void expect_same_name(const kiln_executable* one, const kiln_executable* other) {
  kiln_text* names[2] = {NULL, NULL};
  OK(kiln_executable_fingerprint(one, &names[0]));
  OK(kiln_executable_fingerprint(other, &names[1]));
  size_t length = 0;
  const char* first = kiln_text_data(names[0], &length);
  CHECK(length == 64 && strcmp(first, kiln_text_data(names[1], NULL)) == 0);
  kiln_text_release(names[0]);
  kiln_text_release(names[1]);
}

/* The same program from its bytes: what it tells of itself, what it computes, and its bytes. */
static void expect_same(kiln_executable* loaded, const char* data, size_t size,
                        float expected[2][16]) {
  float results[2][16];
  int64_t alias = -1;
  kiln_text* again = NULL;
  size_t again_size = 0;
  kiln_program_cost cost = KILN_PROGRAM_COST_INIT;
  run_on_square(loaded, results);
  CHECK(memcmp(results, expected, sizeof results) == 0);
  CHECK(strncmp(kiln_executable_argument_name(loaded, 0, NULL), "x", 1) == 0);
  OK(kiln_executable_result_alias(loaded, 0, &alias));
  CHECK(alias == 0);
  OK(kiln_executable_cost(loaded, &cost));
  CHECK(cost.partial == 1 && cost.flops > 0);
  OK(kiln_executable_serialize(loaded, &again));
  const char* bytes = kiln_text_data(again, &again_size);
  CHECK(again_size == size && memcmp(bytes, data, size) == 0);
  kiln_text_release(again);
}

/* In a process of its own, which compiles nothing. */
static void load_elsewhere(const char* device, FILE* file, float expected[2][16]) {
  static char data[1 << 22];
  rewind(file);
  const size_t size = fread(data, 1, sizeof data, file);
  kiln_context* context = context_with(1);
  kiln_executable* loaded = NULL;
  OK(kiln_executable_load(find_device(context, device), data, size, &loaded));
  expect_same(loaded, data, size, expected);
  kiln_executable_release(loaded);
  kiln_context_release(context);
}

static void refused(kiln_context* context, kiln_device* device, const char* name, const char* data,
                    size_t size) {
  kiln_executable* loaded = NULL;
  char* changed = malloc(size);
  FAILS(KILN_INVALID_ARGUMENT, "no saved program",
        kiln_executable_load(device, kText, sizeof kText, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "no saved program", kiln_executable_load(device, data, 0, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "damaged", kiln_executable_load(device, data, size - 1, &loaded));
  memcpy(changed, data, size);
  changed[size / 2] ^= 1;
  FAILS(KILN_INVALID_ARGUMENT, "checksum", kiln_executable_load(device, changed, size, &loaded));
  memcpy(changed, data, size);
  changed[8] = 99;
  FAILS(KILN_FAILED_PRECONDITION, "version 99",
        kiln_executable_load(device, changed, size, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_load(NULL, data, size, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_load(device, NULL, 0, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_serialize(NULL, NULL));
  /* Another device, and a context without the function. */
  const char* other = strcmp(name, "CPU:0") == 0 ? "REFERENCE:0" : "CPU:0";
  FAILS(KILN_FAILED_PRECONDITION, "compiled for",
        kiln_executable_load(find_device(context, other), data, size, &loaded));
  kiln_context* bare = context_with(0);
  FAILS(KILN_NOT_FOUND, "test.twice",
        kiln_executable_load(find_device(bare, name), data, size, &loaded));
  CHECK(loaded == NULL);
  kiln_context_release(bare);
  free(changed);
}

static void round_trip(const char* name, FILE* file, float expected[2][16]) {
  kiln_context* context = context_with(1);
  kiln_device* device = find_device(context, name);
  kiln_executable *executable = compile(context, device), *again = compile(context, device);
  kiln_text *text = NULL, *same = NULL;
  size_t size = 0, same_size = 0;
  run_on_square(executable, expected);
  OK(kiln_executable_serialize(executable, &text));
  OK(kiln_executable_serialize(again, &same));
  const char* data = kiln_text_data(text, &size);
  const char* same_data = kiln_text_data(same, &same_size);
  CHECK(size == same_size && memcmp(data, same_data, size) == 0);
  kiln_executable_release(again);
  again = NULL;
  OK(kiln_executable_load(device, data, size, &again));
  expect_same(again, data, size, expected);
  expect_same_name(executable, again);
  refused(context, device, name, data, size);
  CHECK(fwrite(data, 1, size, file) == size && fflush(file) == 0);
  kiln_text_release(text);
  kiln_text_release(same);
  kiln_executable_release(executable);
  kiln_executable_release(again);
  kiln_context_release(context);
}

/* Each process is a child: none has the other's state. */
static void in_child(const char* device, FILE* file, float expected[2][16], int loads) {
  const pid_t child = fork();
  if (child == 0) {
    if (loads) {
      load_elsewhere(device, file, expected);
    } else {
      round_trip(device, file, expected);
    }
    const int result = test_result();
    fflush(stdout);
    _exit(result);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  static const char* const kDevices[] = {"CPU:0", "GPU:0", "REFERENCE:0"};
  CHECK(strlen(kiln_build_id()) >= 16);
  /* The values of the first process, for the second one. */
  float(*expected)[16] =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 3; ++i) {
    FILE* file = tmpfile();
    in_child(kDevices[i], file, expected, 0);
    CHECK(expected[0][0] == 8);
    in_child(kDevices[i], file, expected, 1);
    fclose(file);
  }
  return test_result();
}
