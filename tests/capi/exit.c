/* The end of the process while executions are queued and other threads are inside of calls: at
 * once, and well. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

static kiln_graph* graph;
static kiln_executable* executable;
static kiln_buffer* argument;

static void* compile_on(void* user_data) {
  (void)user_data;
  while (1) {
    kiln_executable* made = NULL;
    OK(kiln_graph_compile(graph, NULL, &made));
    kiln_executable_release(made);
  }
  return NULL;
}

static void* run_on(void* user_data) {
  (void)user_data;
  while (1) {
    kiln_buffer* result = NULL;
    OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1));
    kiln_buffer_release(result);
  }
  return NULL;
}

static void be_busy(void) {
  kiln_context* context = make_context(3);
  const int64_t dims[] = {200, 200};
  graph = make_graph(context, "products");
  kiln_value x = kiln_op_parameter(graph, KILN_F32, dims, 2, "x", 1), y = x;
  for (int i = 0; i < 8; ++i) y = kiln_op_tanh(graph, kiln_op_matmul(graph, y, x));
  OK(kiln_graph_set_results(graph, &y, 1));
  OK(kiln_graph_compile(graph, NULL, &executable));
  OK(kiln_buffer_create(find_device(context, "CPU:0"), KILN_F32, dims, 2, &argument));
  for (int i = 0; i < 50; ++i) {
    kiln_buffer* made = NULL;
    kiln_buffer* const* arguments = &argument;
    kiln_buffer** results = &made;
    kiln_event* event = NULL;
    OK(kiln_executable_execute(executable, NULL, &arguments, 1, &results, 1, 1, &event));
  }
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) {
    CHECK(pthread_create(&threads[i], NULL, i == 0 ? run_on : compile_on, NULL) == 0);
  }
}

static void* exit_here(void* user_data) {
  (void)user_data;
  exit(failed_checks != 0);
}

int main(void) {
  enum { CHILDREN = 40 };
  for (int i = 0; i < CHILDREN; ++i) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      failed_checks = 0;
      be_busy();
      usleep(3000 * (useconds_t)(i % 8));
      if (i % 4 == 0) quick_exit(failed_checks != 0);
      if (i % 4 == 1) return test_result();
      if (i % 4 == 2) exit(failed_checks != 0);
      pthread_t thread;
      CHECK(pthread_create(&thread, NULL, exit_here, NULL) == 0);
      pthread_join(thread, NULL);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0) {
      printf("child %d ended with %x\n", i, (unsigned)status);
      ++failed_checks;
    }
  }
  return test_result();
}
