/* A training on a GPU comes to the numbers of the processor's. */
#include <math.h>

#include "training.h"

static void expect_close(const char* what, const float* got, const float* expected, int count) {
  for (int i = 0; i < count; ++i) {
    if (!(fabsf(got[i] - expected[i]) <= 1e-6f + 1e-5f * fabsf(expected[i]))) {
      printf("%s %d is %.9g; expected %.9g\n", what, i, (double)got[i], (double)expected[i]);
      ++failed_checks;
    }
  }
}

static int train_on(kiln_context* context, const char* name, int asynchronous, trained* result) {
  kiln_device* device = find_device(context, name);
  kiln_executable* executable = NULL;
  if (!device || !OK(compile_training(context, device, &executable))) return 0;
  int trained_well = OK(train(device, executable, asynchronous, result));
  kiln_executable_release(executable);
  return trained_well;
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.gpu = tested_gpu();
  options.threads = 2;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) return 1;
  trained expected, got;
  if (!train_on(context, "CPU:0", 0, &expected)) return 1;
  CHECK(expected.losses[2] < expected.losses[1] && expected.losses[1] < expected.losses[0]);
  const char* const names[] = {"GPU:0", "XLA_GPU:0", "XLA_CPU:0"};
  for (int i = 0; i < 3; ++i) {
    for (int asynchronous = 0; asynchronous < 2; ++asynchronous) {
      memset(&got, 0xff, sizeof got);
      if (!train_on(context, names[i], asynchronous, &got)) continue;
      expect_close("weight", got.weights, expected.weights, PIXELS * CLASSES);
      expect_close("bias", got.bias, expected.bias, CLASSES);
      expect_close("loss", got.losses, expected.losses, STEPS);
    }
    kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
    OK(kiln_device_memory(find_device(context, names[i]), &memory));
    if (i < 2) CHECK(memory.live_bytes == 0 && memory.peak_bytes > 0);
  }
  kiln_context_release(context);
  return test_result();
}
