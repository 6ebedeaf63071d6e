/* The disk cache: found by other processes, with the same results; damaged entries, folders that
 * cannot be used, other options; sessions. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "squares.h"
#include "testing.h"

/* A loop, a call of the library's, packed weights, an alias, a name; all but the last in the key.
 */
static const char kText[] =
    "HloModule %s, input_output_alias={ {0}: (0, {}, may-alias) }\n"
    "cond { s = (s32[], f32[4,4]) parameter(0)\n"
    "  i = s32[] get-tuple-element(s), index=0\n"
    "  n = s32[] constant(%d)\n"
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
    "  c = f32[4,4] cholesky(x), lower=true\n"
    "  ROOT r = (f32[4,4], f32[4,4]) tuple(y, c) }\n";

static char root[] = "/tmp/kiln-disk-cache-XXXXXX";
static char folder[128];

/* The log of the last context. */
static char lines[1 << 14];
static void keep_line(void* user_data, kiln_log_level level, const char* message, size_t length) {
  (void)user_data;
  (void)level;
  const size_t used = strlen(lines);
  if (used + length + 2 > sizeof lines) return;
  memcpy(lines + used, message, length);
  memcpy(lines + used + length, "\n", 2);
}

static kiln_context* context_in(const char* in, int32_t threads, int64_t bytes) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  kiln_context* context = NULL;
  options.threads = threads;
  options.gpu = KILN_GPU_EMULATED;
  options.cache_folder = in;
  options.cache_folder_length = in ? strlen(in) : 0;
  options.cache_bytes = bytes;
  options.log = keep_line;
  options.log_level = KILN_LOG_INFO;
  lines[0] = 0;
  OK(kiln_context_create(&options, &context));
  return context;
}

static kiln_cache_info uses_of(kiln_context* context) {
  kiln_cache_info info = KILN_CACHE_INFO_INIT;
  OK(kiln_context_cache(context, &info));
  return info;
}

static void expect_uses(kiln_context* context, int64_t hits, int64_t misses, int64_t written,
                        int64_t failed, int line) {
  const kiln_cache_info info = uses_of(context);
  if (info.hits == hits && info.misses == misses && info.written == written &&
      info.failed == failed) {
    return;
  }
  printf("line %d: hits %d, misses %d, written %d, failed %d; expected %d, %d, %d, %d\n", line,
         (int)info.hits, (int)info.misses, (int)info.written, (int)info.failed, (int)hits,
         (int)misses, (int)written, (int)failed);
  ++failed_checks;
}
#define USES(context, hits, misses, written, failed) \
  expect_uses(context, hits, misses, written, failed, __LINE__)

static kiln_executable* compile(kiln_context* context, const char* device, const char* name,
                                int turns, kiln_compile_options* options) {
  char text[4096];
  kiln_compile_options plain = KILN_COMPILE_OPTIONS_INIT;
  if (!options) options = &plain;
  kiln_graph* graph = NULL;
  kiln_executable* executable = NULL;
  options->device = find_device(context, device);
  const int length = snprintf(text, sizeof text, kText, name, turns);
  OK(kiln_graph_from_hlo_text(context, text, (size_t)length, &graph));
  OK(kiln_graph_compile(graph, options, &executable));
  kiln_graph_release(graph);
  return executable;
}

/* After three turns; and the whole program compiles and runs. */
static void expect_right(kiln_executable* executable) {
  float results[2][16];
  run_on_square(executable, results);
  CHECK(results[0][0] == 4 && results[0][5] == 24 && results[0][11] == 24 && results[0][15] == 40);
  CHECK(results[1][0] == 2);
}

static void compile_and_run(kiln_context* context) {
  kiln_executable* executable = compile(context, "CPU:0", "m", 3, NULL);
  expect_right(executable);
  kiln_executable_release(executable);
}

/* The path of an entry: the n-th, in no order. The number of entries. */
static int entries(const char* in, char path[512], int n) {
  DIR* open = opendir(in);
  int count = 0;
  for (struct dirent* entry; open && (entry = readdir(open));) {
    const size_t length = strlen(entry->d_name);
    if (length < 64 || strcmp(entry->d_name + length - 5, ".kiln") != 0) continue;
    if (path && count == n) snprintf(path, 512, "%s/%s", in, entry->d_name);
    ++count;
  }
  if (open) closedir(open);
  return count;
}

static void remove_entries(const char* in) {
  char path[512];
  while (entries(in, path, 0) > 0 && unlink(path) == 0) continue;
}

static long read_bytes(const char* path, char* bytes, size_t most) {
  FILE* file = fopen(path, "rb");
  if (!file) return -1;
  const size_t got = fread(bytes, 1, most, file);
  fclose(file);
  return (long)got;
}

static void write_bytes(const char* path, const char* bytes, size_t size) {
  FILE* file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, size, file) == size);
  if (file) fclose(file);
}

/* Does it in a process of its own. */
static void in_child(void (*what)(void)) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    failed_checks = 0;
    what();
    const int result = test_result();
    fflush(stdout);
    _exit(result);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One executable for each device, with its bytes written to a file or held against it. */
static const char* const kDevices[] = {"CPU:0", "GPU:0", "XLA_CPU:0"};
static void compile_all(int again) {
  static char saved[1 << 21];
  kiln_context* context = context_in(folder, 2, 0);
  for (int d = 0; d < 3; ++d) {
    char path[256];
    size_t size = 0;
    kiln_text* bytes = NULL;
    kiln_executable* executable = compile(context, kDevices[d], "m", 3, NULL);
    expect_right(executable);
    OK(kiln_executable_serialize(executable, &bytes));
    const char* data = kiln_text_data(bytes, &size);
    snprintf(path, sizeof path, "%s/saved%d", root, d);
    if (again) {
      CHECK(read_bytes(path, saved, sizeof saved) == (long)size);
      CHECK(memcmp(saved, data, size) == 0);
    } else {
      write_bytes(path, data, size);
    }
    kiln_text_release(bytes);
    kiln_executable_release(executable);
  }
  /* CPU:0 and XLA_CPU:0 have one target. */
  if (again) {
    USES(context, 3, 0, 0, 0);
  } else {
    USES(context, 1, 2, 2, 0);
  }
  CHECK(strstr(lines, "loaded from the cache 'm' for XLA_CPU:0") != NULL);
  const kiln_cache_info info = uses_of(context);
  CHECK(info.limit_bytes == 1 << 30 && info.folder_bytes > 10000 && info.evicted == 0);
  CHECK(again ? info.read_bytes > 10000 && info.written_bytes == 0
              : info.written_bytes == info.folder_bytes);
  kiln_context_release(context);
}
static void first_process(void) { compile_all(0); }
static void second_process(void) { compile_all(1); }

/* It has the fingerprint of the same program of that name that was compiled. */
static void expect_compiled_alike(kiln_executable* found, const char* name) {
  kiln_context* context = context_in(NULL, 2, KILN_CACHE_OFF);
  kiln_executable* compiled = compile(context, "CPU:0", name, 3, NULL);
  kiln_text *one = NULL, *other = NULL;
  OK(kiln_executable_fingerprint(found, &one));
  OK(kiln_executable_fingerprint(compiled, &other));
  CHECK(strcmp(kiln_text_data(one, NULL), kiln_text_data(other, NULL)) == 0);
  kiln_text_release(one);
  kiln_text_release(other);
  kiln_executable_release(compiled);
  kiln_context_release(context);
}

/* What has no part in the key, and what has one. */
static void keys(void) {
  kiln_context* context = context_in(folder, 2, 0);
  kiln_executable* executable = compile(context, "CPU:0", "m.5", 3, NULL);
  USES(context, 1, 0, 0, 0);
  CHECK(strstr(lines, "loaded from the cache 'm.5'") != NULL);
  expect_compiled_alike(executable, "m.5");
  kiln_executable_release(executable);
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.verify = 1;
  executable = compile(context, "CPU:0", "m", 3, &options);
  USES(context, 2, 0, 0, 0);
  kiln_executable_release(executable);
  options.optimization = KILN_OPTIMIZATION_FULL;
  executable = compile(context, "CPU:0", "m", 3, &options);
  expect_right(executable);
  USES(context, 2, 1, 1, 0);
  kiln_executable_release(executable);
  kiln_compile_options_init(&options, sizeof options);
  options.disabled_passes = "cse";
  options.disabled_passes_length = 3;
  kiln_executable_release(compile(context, "CPU:0", "m", 3, &options));
  USES(context, 2, 2, 2, 0);
  const kiln_alias alias = {.result = 1, .argument = 0};
  kiln_compile_options_init(&options, sizeof options);
  options.aliases = &alias;
  options.alias_count = 1;
  kiln_graph* graph = make_graph(context, "doubled");
  kiln_value x = f32_parameter(graph, "x", 8), two[2] = {kiln_op_add(graph, x, x), x};
  OK(kiln_graph_set_results(graph, two, 2));
  OK(kiln_graph_compile(graph, NULL, &executable));
  kiln_executable_release(executable);
  OK(kiln_graph_compile(graph, &options, &executable));
  int64_t aliased = -1;
  OK(kiln_executable_result_alias(executable, 1, &aliased));
  CHECK(aliased == 0);
  kiln_executable_release(executable);
  OK(kiln_graph_compile(graph, NULL, &executable));
  OK(kiln_executable_result_alias(executable, 1, &aliased));
  CHECK(aliased == -1);
  kiln_executable_release(executable);
  kiln_graph_release(graph);
  USES(context, 3, 4, 4, 0);
  executable = compile(context, "CPU:0", "m", 4, NULL);
  float results[2][16];
  run_on_square(executable, results);
  CHECK(results[0][5] == 48);
  kiln_executable_release(executable);
  USES(context, 3, 5, 5, 0);
  /* The evaluator compiles nothing. */
  kiln_executable_release(compile(context, "REFERENCE:0", "m", 3, NULL));
  USES(context, 3, 5, 5, 0);
  kiln_context_release(context);
  context = context_in(folder, 1, 0);
  compile_and_run(context);
  USES(context, 1, 0, 0, 0);
  /* A dump shows a compilation. */
  kiln_compile_options_init(&options, sizeof options);
  options.dump_folder = root;
  options.dump_folder_length = strlen(root);
  kiln_executable_release(compile(context, "CPU:0", "m", 3, &options));
  USES(context, 1, 0, 0, 0);
  kiln_context_release(context);
}

/* The entry of one program is damaged in many ways. */
static void damage(void) {
  static char whole[1 << 21], changed[1 << 21];
  char path[512];
  remove_entries(folder);
  kiln_context* context = context_in(folder, 1, 0);
  compile_and_run(context);
  CHECK(entries(folder, path, 0) == 1);
  const long size = read_bytes(path, whole, sizeof whole);
  CHECK(size > 5000 && size < (long)sizeof whole);
  int64_t failed = 0;
  for (int i = 0; i < 24; ++i) {
    memcpy(changed, whole, (size_t)size);
    const long at = i < 8 ? i * 9 : i == 23 ? size - 1 : 4096 + (i - 8) * (size - 4096) / 15;
    changed[at] ^= 16;
    write_bytes(path, changed, i % 3 == 2 ? (size_t)at : (size_t)size);
    compile_and_run(context);
    USES(context, 0, 1 + failed + 1, 1 + failed + 1, failed + 1);
    ++failed;
    CHECK(read_bytes(path, changed, sizeof changed) == size);
    CHECK(memcmp(whole, changed, (size_t)size) == 0);
  }
  CHECK(strstr(lines, "an entry is not used") != NULL);
  compile_and_run(context);
  USES(context, 1, 1 + failed, 1 + failed, failed);
  kiln_context_release(context);
}

/* Nothing is kept there, and that is no error. */
static void not_kept_in(const char* in, const char* reason, int64_t failed) {
  kiln_context* context = context_in(in, 1, 0);
  for (int i = 0; i < 2; ++i) compile_and_run(context);
  USES(context, 0, 2, 0, failed);
  CHECK(strstr(lines, reason) != NULL);
  if (!strstr(lines, reason)) printf("no '%s' in %s: %s", reason, in, lines);
  kiln_context_release(context);
}

static void bad_folders(void) {
  char path[256], below[512];
  snprintf(path, sizeof path, "%s/file", root);
  write_bytes(path, "x", 1);
  not_kept_in(path, "Not a directory", 2);
  snprintf(path, sizeof path, "%s/new/folders/below", root);
  kiln_context* context = context_in(path, 1, 0);
  compile_and_run(context);
  USES(context, 0, 1, 1, 0);
  kiln_context_release(context);
  CHECK(entries(path, below, 0) == 1);
  /* Neither read nor written. */
  if (geteuid() == 0 && seteuid(65534) != 0) return;
  CHECK(chmod(path, 0) == 0 || geteuid() == 65534);
  not_kept_in(path, "Permission denied", 4);
}

static void read_only_folder(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/open", root);
  kiln_context* context = context_in(path, 1, 0);
  compile_and_run(context);
  kiln_context_release(context);
  CHECK(chmod(root, 0755) == 0 && chmod(path, 0555) == 0);
  if (geteuid() == 0 && seteuid(65534) != 0) return;
  context = context_in(path, 1, 0);
  compile_and_run(context);
  USES(context, 1, 0, 0, 0);
  kiln_executable_release(compile(context, "CPU:0", "m", 2, NULL));
  USES(context, 1, 1, 0, 1);
  CHECK(strstr(lines, "Permission denied") != NULL);
  kiln_context_release(context);
}

static void limited_files(void) {
  const struct rlimit limit = {6000, RLIM_INFINITY};
  char path[256];
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  snprintf(path, sizeof path, "%s/limited", root);
  not_kept_in(path, "File too large", 2);
}

/* A file system of 64 KiB, where this process may make one. */
static void full_disk(void) {
  char path[256];
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return;
  snprintf(path, sizeof path, "%s/small", root);
  CHECK(mkdir(path, 0755) == 0);
  if (mount("none", path, "tmpfs", 0, "size=64k") != 0) return;
  kiln_context* context = context_in(path, 1, 0);
  for (int turns = 1; turns < 20; ++turns) {
    kiln_executable* executable = compile(context, "CPU:0", "m", turns, NULL);
    float results[2][16];
    run_on_square(executable, results);
    CHECK(results[0][5] == 3.0f * (float)(1 << turns));
    kiln_executable_release(executable);
  }
  kiln_cache_info info = uses_of(context);
  CHECK(info.hits == 0 && info.failed > 0 && info.written > 0 && info.written + info.failed == 19);
  CHECK(strstr(lines, "No space left on device") != NULL);
  kiln_context_release(context);
  /* With a bound below the disk's size all are kept in turn. */
  context = context_in(path, 1, 48000);
  for (int turns = 1; turns < 20; ++turns) {
    kiln_executable_release(compile(context, "CPU:0", "m", turns, NULL));
  }
  info = uses_of(context);
  CHECK(info.failed == 0 && info.evicted > 0 && info.folder_bytes <= 48000);
  kiln_context_release(context);
}

/* The options and the environment. */
static void environment(void) {
  char flags[512], path[256];
  kiln_context* context = context_in(NULL, 1, 0);
  compile_and_run(context);
  USES(context, 0, 0, 0, 0);
  CHECK(uses_of(context).limit_bytes == 0);
  kiln_context_release(context);
  snprintf(path, sizeof path, "%s/by_variable", root);
  setenv("KILN_CACHE", path, 1);
  for (int i = 0; i < 2; ++i) {
    context = context_in(NULL, 1, 0);
    compile_and_run(context);
    USES(context, i, 1 - i, 1 - i, 0);
    kiln_context_release(context);
  }
  context = context_in(NULL, 1, KILN_CACHE_OFF);
  compile_and_run(context);
  CHECK(uses_of(context).limit_bytes == 0);
  kiln_context_release(context);
  /* Flags go before the variable, options before the flags. */
  snprintf(flags, sizeof flags, "--cache_folder=%s/by_flag --cache_bytes=100000", root);
  setenv("KILN_FLAGS", flags, 1);
  context = context_in(NULL, 1, 0);
  compile_and_run(context);
  USES(context, 0, 1, 1, 0);
  CHECK(uses_of(context).limit_bytes == 100000);
  kiln_context_release(context);
  context = context_in(folder, 1, 200000);
  CHECK(uses_of(context).limit_bytes == 200000);
  kiln_context_release(context);
  snprintf(path, sizeof path, "%s/by_flag", root);
  CHECK(entries(path, NULL, 0) == 1);
  unsetenv("KILN_FLAGS");
  unsetenv("KILN_CACHE");
  /* A relative folder stays where it was. */
  CHECK(chdir(root) == 0);
  context = context_in("relative", 1, 0);
  CHECK(chdir("/") == 0);
  compile_and_run(context);
  kiln_context_release(context);
  snprintf(path, sizeof path, "%s/relative", root);
  CHECK(entries(path, NULL, 0) == 1);

  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.cache_bytes = -2;
  FAILS(KILN_INVALID_ARGUMENT, "cache_bytes", kiln_context_create(&options, &context));
  kiln_cache_info info = {0};
  context = make_context(1);
  FAILS(KILN_INVALID_ARGUMENT, "struct_size", kiln_context_cache(context, &info));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_context_cache(NULL, &info));
  kiln_context_release(context);
}

static kiln_error* twice(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  ((float*)call->results[0]->data)[0] = 2 * ((const float*)call->operands[0]->data)[0];
  return NULL;
}

/* A program that calls a function of the user's, in contexts with the function and without. */
static void calls(void) {
  static const char text[] =
      "HloModule c\nENTRY e { x = f32[1] parameter(0)\n"
      "  ROOT y = f32[1] custom-call(x), custom_call_target=\"test.twice\" }\n";
  for (int i = 0; i < 4; ++i) {
    kiln_context* context = context_in(folder, 1, 0);
    kiln_graph* graph = NULL;
    kiln_executable* executable = NULL;
    OK(kiln_graph_from_hlo_text(context, text, sizeof text - 1, &graph));
    if (i % 2 == 1) {
      FAILS(KILN_NOT_FOUND, "test.twice", kiln_graph_compile(graph, NULL, &executable));
    } else {
      OK(kiln_context_register_call(context, "test.twice", 10, twice, NULL, NULL));
      OK(kiln_graph_compile(graph, NULL, &executable));
      USES(context, i / 2, 1 - i / 2, 1 - i / 2, 0);
      const float three = 3, six = 6;
      kiln_buffer *argument = f32_buffer(kiln_executable_device(executable), &three, 1),
                  *result = NULL;
      OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1));
      expect_f32(result, &six, 1);
      kiln_buffer_release(argument);
      kiln_buffer_release(result);
      kiln_executable_release(executable);
    }
    kiln_graph_release(graph);
    kiln_context_release(context);
  }
}

/* A session's clusters, and its ops one by one. */
static void session(kiln_jit jit, int64_t hits, int64_t misses) {
  kiln_context* context = context_in(folder, 1, 0);
  kiln_graph* graph = make_graph(context, "session");
  kiln_value x = f32_parameter(graph, "x", 4), y = kiln_op_exponential(graph, x);
  for (int i = 0; i < 6; ++i) y = kiln_op_add(graph, kiln_op_multiply(graph, y, x), x);
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  kiln_session* made = NULL;
  OK(kiln_session_create(graph, &options, &made));
  const float zeros[4] = {0, 0, 0, 0};
  kiln_buffer *feed = f32_buffer(kiln_context_device(context, 0), zeros, 4), *fetched = NULL;
  OK(kiln_session_run(made, NULL, &x, &feed, 1, &y, &fetched, 1, NULL, 0));
  expect_f32(fetched, zeros, 4);
  USES(context, hits, misses, misses, 0);
  kiln_buffer_release(feed);
  kiln_buffer_release(fetched);
  kiln_session_release(made);
  kiln_graph_release(graph);
  kiln_context_release(context);
}
static void sessions(void) {
  session(KILN_JIT_ON, 0, 1);
  session(KILN_JIT_ON, 1, 0);
  /* Three kinds of ops. */
  session(KILN_JIT_OFF, 0, 3);
  session(KILN_JIT_OFF, 3, 0);
}

/* Constants of a program that is found stay in the mapped entry. */
static void constants(void) {
  enum { SIZE = 1 << 20 };
  static float values[SIZE];
  const int64_t size = SIZE;
  for (int i = 0; i < SIZE; ++i) values[i] = (float)i;
  for (int again = 0; again < 2; ++again) {
    kiln_context* context = context_in(folder, 1, 0);
    kiln_graph* graph = make_graph(context, "constants");
    kiln_value x = f32_parameter(graph, "x", SIZE);
    kiln_value c = kiln_op_constant(graph, KILN_F32, &size, 1, values, sizeof values);
    kiln_value y = kiln_op_add(graph, x, c);
    kiln_executable* executable = compile_result(graph, y, kiln_context_device(context, 0));
    kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
    OK(kiln_context_memory(context, &memory));
    CHECK(again ? memory.live_bytes < (int64_t)sizeof values / 4
                : memory.live_bytes >= (int64_t)sizeof values);
    USES(context, again, 1 - again, 1 - again, 0);
    /* The entry may go: the executable has it. */
    if (again) remove_entries(folder);
    kiln_buffer* argument = f32_buffer(kiln_context_device(context, 0), values, SIZE);
    kiln_buffer* sum = NULL;
    static float sums[SIZE];
    OK(kiln_executable_run(executable, NULL, &argument, 1, &sum, 1));
    OK(kiln_buffer_copy_to_host(sum, sums, sizeof sums));
    CHECK(sums[1] == 2 && sums[SIZE - 1] == 2 * (float)(SIZE - 1));
    kiln_buffer_release(argument);
    kiln_buffer_release(sum);
    kiln_executable_release(executable);
    kiln_context_release(context);
  }
}

/* Arguments that are frozen are part of the key, and bound of a program that is found. */
static void frozen(void) {
  const size_t number = 1;
  const int64_t dims[2] = {16, 16};
  float weights[256], row[256], product[256];
  for (int i = 0; i < 256; ++i) weights[i] = row[i] = (float)(i % 7);
  for (int turn = 0; turn < 3; ++turn) {
    kiln_context* context = context_in(folder, 1, 0);
    kiln_graph* graph = make_graph(context, "frozen");
    kiln_value x = kiln_op_parameter(graph, KILN_F32, dims, 2, "x", 1);
    kiln_value w = kiln_op_parameter(graph, KILN_F32, dims, 2, "w", 1);
    kiln_value y = kiln_op_matmul(graph, x, w);
    OK(kiln_graph_set_results(graph, &y, 1));
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.frozen = turn == 0 ? NULL : &number;
    options.frozen_count = turn == 0 ? 0 : 1;
    kiln_executable* executable = NULL;
    OK(kiln_graph_compile(graph, &options, &executable));
    kiln_graph_release(graph);
    USES(context, turn / 2, 1 - turn / 2, 1 - turn / 2, 0);
    CHECK(kiln_executable_argument_is_frozen(executable, 1) == (turn > 0));
    kiln_device* cpu = kiln_context_device(context, 0);
    kiln_buffer *arguments[2] = {NULL, NULL}, *result = NULL;
    OK(kiln_buffer_copy_host(cpu, KILN_F32, dims, 2, row, sizeof row, &arguments[0]));
    OK(kiln_buffer_copy_host(cpu, KILN_F32, dims, 2, weights, sizeof weights, &arguments[1]));
    if (turn > 0) OK(kiln_executable_bind(executable, &number, &arguments[1], 1));
    OK(kiln_executable_run(executable, NULL, arguments, turn > 0 ? 1 : 2, &result, 1));
    OK(kiln_buffer_copy_to_host(result, product, sizeof product));
    float expected = 0;
    for (int k = 0; k < 16; ++k) expected += row[16 + k] * weights[16 * k + 3];
    CHECK(product[16 + 3] == expected);
    for (int i = 0; i < 2; ++i) kiln_buffer_release(arguments[i]);
    kiln_buffer_release(result);
    kiln_executable_release(executable);
    kiln_context_release(context);
  }
}

int main(void) {
  unsetenv("KILN_CACHE");
  unsetenv("KILN_FLAGS");
  if (!mkdtemp(root)) return 1;
  snprintf(folder, sizeof folder, "%s/cache", root);
  in_child(first_process);
  in_child(second_process);
  in_child(keys);
  in_child(damage);
  in_child(calls);
  in_child(sessions);
  in_child(constants);
  in_child(frozen);
  in_child(bad_folders);
  in_child(read_only_folder);
  in_child(limited_files);
  in_child(full_disk);
  in_child(environment);
  char command[256];
  snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", root, root);
  CHECK(system(command) == 0);
  return test_result();
}
