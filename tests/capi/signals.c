/* Threads of the library's own leave the signals that are sent to the process to the program's, and
 * have stacks of their own size, whatever the program's threads have. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

enum { SIZE = 160, RUNS = 24, THREADS = 4 };
static const int64_t kDims[] = {SIZE, SIZE};

static atomic_int handled, handled_elsewhere;
static pthread_t main_thread;

static void on_signal(int signal) {
  (void)signal;
  atomic_fetch_add(&handled, 1);
  if (!pthread_equal(pthread_self(), main_thread)) atomic_fetch_add(&handled_elsewhere, 1);
}

typedef struct {
  kiln_context* context;
  kiln_executable* executable;
  kiln_buffer* x;
  kiln_buffer* results[RUNS];
  kiln_event* events[RUNS];
} work;

/* Products that several threads are worth, one after the other. */
static void begin(work* w) {
  memset(w, 0, sizeof *w);
  w->context = make_context(THREADS);
  kiln_graph* g = make_graph(w->context, "products");
  kiln_value x = kiln_op_parameter(g, KILN_F32, kDims, 2, "x", 1), y = x;
  for (int i = 0; i < 4; ++i) y = kiln_op_tanh(g, kiln_op_matmul(g, y, x));
  w->executable = compile_result(g, y, NULL);
  OK(kiln_buffer_create(find_device(w->context, "CPU:0"), KILN_F32, kDims, 2, &w->x));
}

static void start_runs(work* w) {
  for (int i = 0; i < RUNS; ++i) {
    kiln_buffer* const* arguments = &w->x;
    kiln_buffer** results = &w->results[i];
    OK(kiln_executable_execute(w->executable, NULL, &arguments, 1, &results, 1, 1, &w->events[i]));
  }
}

static void finish_runs(work* w) {
  for (int i = 0; i < RUNS; ++i) {
    OK(kiln_event_wait(w->events[i], -1));
    kiln_event_release(w->events[i]);
    kiln_buffer_release(w->results[i]);
  }
}

static void end(work* w) {
  kiln_buffer_release(w->x);
  kiln_executable_release(w->executable);
  kiln_context_release(w->context);
}

/* A line "SigBlk:" of a thread's status, and whether the thread is the library's. */
static int read_thread(const char* id, uint64_t* blocked) {
  char path[300], line[200];
  int is_ours = 0;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
  FILE* file = fopen(path, "r");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    unsigned long long mask = 0;
    if (strncmp(line, "Name:\tkiln ", 11) == 0) is_ours = 1;
    if (sscanf(line, "SigBlk: %llx", &mask) == 1) *blocked = mask;
  }
  fclose(file);
  return is_ours;
}

static int blocks(uint64_t mask, int signal) { return (int)(mask >> (signal - 1) & 1); }

/* How many threads are the library's; checks what they block. */
static int check_masks(void) {
  static const int kFromElsewhere[] = {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGCHLD, SIGUSR1};
  static const int kOwn[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  int found = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
    uint64_t blocked = 0;
    if (task->d_name[0] == '.' || !read_thread(task->d_name, &blocked)) continue;
    ++found;
    for (size_t i = 0; i < sizeof kFromElsewhere / sizeof *kFromElsewhere; ++i) {
      CHECK(blocks(blocked, kFromElsewhere[i]));
    }
    for (size_t i = 0; i < sizeof kOwn / sizeof *kOwn; ++i) CHECK(!blocks(blocked, kOwn[i]));
  }
  closedir(tasks);
  return found;
}

static void signals_are_the_programs(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, NULL);
  main_thread = pthread_self();
  sigset_t before, after, usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, NULL, &before);
  work w;
  begin(&w);
  start_runs(&w);
  pthread_sigmask(SIG_BLOCK, NULL, &after);
  for (int s = 1; s < 32; ++s) CHECK(sigismember(&before, s) == sigismember(&after, s));
  /* Blocked here, it would be for any thread that does not block it. */
  pthread_sigmask(SIG_BLOCK, &usr1, NULL);
  kill(getpid(), SIGUSR1);
  finish_runs(&w);
  CHECK(atomic_load(&handled) == 0);
  pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
  CHECK(atomic_load(&handled) == 1);
  CHECK(atomic_load(&handled_elsewhere) == 0);
  /* A thread has its name as soon as it runs. The caller is one of THREADS; the queue has one. */
  int found = 0;
  for (int tries = 0; tries < 1000 && found != THREADS; ++tries) {
    found = check_masks();
    if (found < 0) break;
    if (found != THREADS) usleep(10000);
  }
  CHECK(found == THREADS || found < 0);
  end(&w);
}

static void stacks_are_the_librarys(size_t default_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setstacksize(&attributes, default_bytes) == 0);
  CHECK(pthread_setattr_default_np(&attributes) == 0);
  work w;
  begin(&w);
  start_runs(&w);
  finish_runs(&w);
  /* Where a thread cannot be had, a context does without. */
  int found = 0;
  for (int tries = 0; tries < 1000 && found >= 0 && found != THREADS; ++tries) {
    found = check_masks();
    if (found != THREADS) usleep(10000);
  }
  CHECK(found == THREADS || found < 0);
  end(&w);
}

static void in_child(size_t default_bytes, int64_t address_space) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    struct rlimit limit = {(rlim_t)address_space, (rlim_t)address_space};
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld", &pages) == 1 && address_space > 0) {
      limit.rlim_cur = limit.rlim_max += (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
      setrlimit(RLIMIT_AS, &limit);
    }
    stacks_are_the_librarys(default_bytes);
    fflush(stdout);
    _exit(test_result());
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  in_child((size_t)1 << 30, (int64_t)1 << 30); /* more than there is for two */
  in_child((size_t)1 << 17, 0);
#endif
  signals_are_the_programs();
  return test_result();
}
