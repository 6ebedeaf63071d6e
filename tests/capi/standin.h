/* The stand-in for the CUDA driver (tests/support/cuda/control.h says what its functions do), in
 * the place of the driver in tests whose environment names it. */
#ifndef KILN_TESTS_CAPI_STANDIN_H_
#define KILN_TESTS_CAPI_STANDIN_H_

#include <dlfcn.h>

#include "testing.h"

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700, UNKNOWN = 999 };

static struct {
  void* library;
  int (*configure)(const char* settings);
  void (*reset)(void);
  void (*fail)(const char* symbol, long long first, long long times, int error);
  void (*fail_work)(int error);
  void (*forget)(void);
  long long (*count)(const char* what);
  void* (*make_context)(int device);
  void (*destroy_context)(void* context);
  void* (*make_stream)(void* context, int device);
  void (*destroy_stream)(void* stream);
  long long (*stream_work)(void* stream, int waits);
} standin;

/* Any function of the stand-in's, into a pointer to it. */
#define STANDIN_FIND(pointer, name)                                      \
  do {                                                                   \
    *(void**)&(pointer) = dlsym(standin.library, name);                  \
    if (!(pointer)) exit((printf("the stand-in has no " name "\n"), 1)); \
  } while (0)

/* The test is skipped where there is none. */
static inline void open_standin(void) {
  const char* path = getenv("KILN_CUDA_LIBRARY");
  if (!path) {
    printf("KILN_CUDA_LIBRARY names no driver to test with\n");
    exit(77);
  }
  standin.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!standin.library) {
    printf("%s\n", dlerror());
    exit(1);
  }
  STANDIN_FIND(standin.configure, "kiln_test_cuda_configure");
  STANDIN_FIND(standin.reset, "kiln_test_cuda_reset");
  STANDIN_FIND(standin.fail, "kiln_test_cuda_fail");
  STANDIN_FIND(standin.fail_work, "kiln_test_cuda_fail_work");
  STANDIN_FIND(standin.forget, "kiln_test_cuda_forget");
  STANDIN_FIND(standin.count, "kiln_test_cuda_count");
  STANDIN_FIND(standin.make_context, "kiln_test_cuda_make_context");
  STANDIN_FIND(standin.destroy_context, "kiln_test_cuda_destroy_context");
  STANDIN_FIND(standin.make_stream, "kiln_test_cuda_make_stream");
  STANDIN_FIND(standin.destroy_stream, "kiln_test_cuda_destroy_stream");
  STANDIN_FIND(standin.stream_work, "kiln_test_cuda_stream_work");
}

/* Nothing of the driver's is left, and nobody has asked it for what cannot be. */
static inline void expect_nothing_left(const char* when, long long call) {
  static const char* const counts[] = {"live", "leaked", "misuse", "depth"};
  for (int i = 0; i < 4; ++i) {
    if (standin.count(counts[i]) == 0) continue;
    printf("%s, call %lld: %lld %s\n", when, call, standin.count(counts[i]), counts[i]);
    ++failed_checks;
  }
}

static inline int mentions(const kiln_error* error, const char* text) {
  return strstr(kiln_error_message(error, NULL), text) != NULL;
}

#endif /* KILN_TESTS_CAPI_STANDIN_H_ */
