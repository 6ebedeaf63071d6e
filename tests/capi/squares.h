/* A run of a program of one 4x4 array of floats with two of them as results. */
#ifndef KILN_TESTS_CAPI_SQUARES_H_
#define KILN_TESTS_CAPI_SQUARES_H_

#include "testing.h"

/* Runs it on a matrix that is symmetric and positive definite. */
static inline void run_on_square(kiln_executable* executable, float results[2][16]) {
  const int64_t dims[2] = {4, 4};
  static const float kArgument[16] = {4, 1, 0, 0, 1, 3, 0, 0, 0, 0, 2, 0, 0, 0, 0, 5};
  kiln_buffer *argument = NULL, *made[2] = {NULL, NULL};
  OK(kiln_buffer_copy_host(kiln_executable_device(executable), KILN_F32, dims, 2, kArgument,
                           sizeof kArgument, &argument));
  OK(kiln_executable_run(executable, NULL, &argument, 1, made, 2));
  for (int i = 0; i < 2; ++i) {
    OK(kiln_buffer_copy_to_host(made[i], results[i], sizeof results[i]));
    kiln_buffer_release(made[i]);
  }
  kiln_buffer_release(argument);
}

#endif /* KILN_TESTS_CAPI_SQUARES_H_ */
