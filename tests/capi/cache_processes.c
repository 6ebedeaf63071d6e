/* Many processes on one folder of the disk cache, some of them killed: every result is right, and
 * the folder holds whole entries within its bound. The argument is the number of processes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"

enum { GROUP = 8, PROGRAMS = 24, SIZE = 64 };
/* Of about half of the programs. */
static const int64_t kBound = 150000;

static char folder[] = "/tmp/kiln-cache-processes-XXXXXX";

static kiln_context* context_in(const char* in) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  kiln_context* context = NULL;
  options.threads = 1;
  options.gpu = KILN_GPU_OFF;
  options.cache_folder = in;
  options.cache_folder_length = strlen(in);
  options.cache_bytes = kBound;
  OK(kiln_context_create(&options, &context));
  return context;
}

/* x * a + b + x, for numbers of the program. */
static void compile_and_run(kiln_context* context, int program) {
  float values[SIZE], expected[SIZE];
  const int64_t size = SIZE;
  kiln_graph* graph = make_graph(context, "program");
  kiln_value x = f32_parameter(graph, "x", SIZE);
  for (int i = 0; i < SIZE; ++i) values[i] = (float)i;
  kiln_value a = kiln_op_constant(graph, KILN_F32, &size, 1, values, sizeof values);
  const float number = (float)program;
  kiln_value b = kiln_op_constant(graph, KILN_F32, NULL, 0, &number, sizeof number);
  b = kiln_op_broadcast(graph, b, NULL, 0, &size, 1);
  kiln_value y = kiln_op_add(graph, kiln_op_add(graph, kiln_op_multiply(graph, x, a), b), x);
  kiln_executable* executable = compile_result(graph, y, kiln_context_device(context, 0));
  for (int i = 0; i < SIZE; ++i) expected[i] = (float)(i * i + program + i);
  kiln_buffer *argument = f32_buffer(kiln_context_device(context, 0), values, SIZE), *result = NULL;
  if (OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1))) {
    expect_f32(result, expected, SIZE);
  }
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  kiln_executable_release(executable);
}

/* The work of a process: a few programs. The cache must not have failed. */
static int work(const char* in, int seed) {
  kiln_context* context = context_in(in);
  kiln_cache_info info = KILN_CACHE_INFO_INIT;
  for (int i = 0; i < 3; ++i) {
    compile_and_run(context,
                    (int)(((unsigned)seed * 2654435761u >> 7) + (unsigned)i * 5) % PROGRAMS);
  }
  OK(kiln_context_cache(context, &info));
  CHECK(info.failed == 0 && info.hits + info.misses == 3);
  CHECK(info.folder_bytes <= kBound);
  kiln_context_release(context);
  return test_result();
}

/* The bytes of all entries; counts files that are neither entries nor the folder's own. */
static int64_t bytes_in(const char* in, int* entries, int* others) {
  int64_t bytes = 0;
  *entries = *others = 0;
  DIR* open = opendir(in);
  for (struct dirent* entry; open && (entry = readdir(open));) {
    char path[512];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", in, entry->d_name);
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (strlen(entry->d_name) == 69) {
      bytes += info.st_size;
      ++*entries;
    } else if (strcmp(entry->d_name, "kiln.cache") != 0) {
      ++*others;
    }
  }
  if (open) closedir(open);
  return bytes;
}

/* Whether files without a name can be made there: then nothing is left of a killed process. */
static int has_unnamed_files(void) {
  const int file = open(folder, O_TMPFILE | O_WRONLY, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "--work") == 0) return work(argv[2], atoi(argv[3]));
  const int processes = argc > 1 ? atoi(argv[1]) : 64;
  int killed = 0, finished = 0, entries = 0, others = 0;
  int64_t most = 0;
  unsetenv("KILN_CACHE");
  if (!mkdtemp(folder)) return 1;
  srand(1);
  for (int first = 0; first < processes; first += GROUP) {
    pid_t children[GROUP];
    int victims[GROUP] = {0};
    fflush(stdout);
    for (int i = 0; i < GROUP; ++i) {
      char seed[16];
      snprintf(seed, sizeof seed, "%d", first + i);
      children[i] = fork();
      if (children[i] == 0) {
        execl("/proc/self/exe", argv[0], "--work", folder, seed, (char*)NULL);
        _exit(127);
      }
    }
    /* At any time of their work. */
    for (int i = 0; i < GROUP; ++i) {
      if (rand() % 3 != 0) continue;
      const struct timespec pause = {0, 1000000L * (rand() % 30)};
      nanosleep(&pause, NULL);
      victims[i] = 1;
      kill(children[i], SIGKILL);
    }
    for (int i = 0; i < GROUP; ++i) {
      int status = -1;
      CHECK(waitpid(children[i], &status, 0) == children[i]);
      if (victims[i] && WIFSIGNALED(status)) {
        CHECK(WTERMSIG(status) == SIGKILL);
        ++killed;
      } else {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ++finished;
      }
    }
    const int64_t bytes = bytes_in(folder, &entries, &others);
    CHECK(bytes <= kBound);
    if (bytes > most) most = bytes;
    if (has_unnamed_files()) CHECK(others == 0);
  }
  /* What is there is whole. */
  kiln_cache_info info = KILN_CACHE_INFO_INIT;
  kiln_context* context = context_in(folder);
  for (int program = PROGRAMS - 1; program >= 0; --program) compile_and_run(context, program);
  OK(kiln_context_cache(context, &info));
  CHECK(info.failed == 0 && info.hits > 0);
  kiln_context_release(context);
  CHECK(killed > 0 && finished > 0 && most > kBound / 2);
  printf("%d finished, %d killed; %d entries, at most %d bytes\n", finished, killed, entries,
         (int)most);
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK(system(command) == 0);
  return test_result();
}
