/* Where the system lets no memory become executable, loading says so, and the evaluator runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

/* <linux/prctl.h> of Linux 6.3. */
#define SET_MDWE 65
#define MDWE_REFUSE_EXEC_GAIN 1

static const char kText[] =
    "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)\n}\n";

static int refuse_by_mdwe(void) { return prctl(SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0; }

/* mprotect with PROT_EXEC, which is in the low half of its third argument. */
static int refuse_by_seccomp(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void try_devices(void) {
  kiln_context* context = NULL;
  kiln_graph* graph = NULL;
  kiln_context_options options;
  kiln_context_options_init(&options, sizeof options);
  options.gpu = KILN_GPU_EMULATED;
  OK(kiln_context_create(&options, &context));
  OK(kiln_graph_from_hlo_text(context, kText, sizeof kText - 1, &graph));
  static const char* const kDevices[] = {"CPU:0", "GPU:0", "REFERENCE:0"};
  for (int i = 0; i < 3; ++i) {
    kiln_compile_options compile;
    kiln_executable* executable = NULL;
    kiln_compile_options_init(&compile, sizeof compile);
    OK(kiln_context_find_device(context, kDevices[i], strlen(kDevices[i]), &compile.device));
    kiln_error* error = kiln_graph_compile(graph, &compile, &executable);
    if (i < 2) {
      FAILS(KILN_PERMISSION_DENIED, "REFERENCE:0", error);
      continue;
    }
    if (!OK(error)) continue;
    float values[4] = {1, 2, 3, 4};
    const int64_t dims[] = {4};
    kiln_buffer *argument = NULL, *result = NULL;
    OK(kiln_buffer_copy_host(compile.device, KILN_F32, dims, 1, values, sizeof values, &argument));
    OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1));
    OK(kiln_buffer_copy_to_host(result, values, sizeof values));
    CHECK(values[3] == -4);
    kiln_buffer_release(argument);
    kiln_buffer_release(result);
    kiln_executable_release(executable);
  }
  kiln_graph_release(graph);
  kiln_context_release(context);
}

/* In a child, which cannot undo it. Whether the kernel has it. */
static int check(const char* name, int (*refuse)(void)) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (!refuse()) _exit(77);
    try_devices();
    fflush(stdout);
    _exit(test_result());
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    printf("%s: the kernel has none\n", name);
    return 0;
  }
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 1;
}

int main(void) {
  int tried = check("MDWE", refuse_by_mdwe);
  tried += check("seccomp", refuse_by_seccomp);
  if (!tried) return 77;
  return test_result();
}
