/* Long chains of donations on GPUs of the CUDA driver, by the stand-in for it. */
#include "chains.h"
#include "standin.h"

int main(void) {
  open_standin();
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) return 1;
  expect_no_chains(context, "GPU:0", 4000, 0);
  kiln_context_release(context);
  return test_result();
}
