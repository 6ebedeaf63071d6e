/* Tests of docs/examples/language_model.c and of its parts.
 *   language_model_test TEXT OUT EXAMPLE [gpt2-size] */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parts/common.h"
#include "testing.h"

int failed_checks;

machine make_machine(void) {
  machine m;
  check(kiln_context_create(NULL, &m.context), "context");
  m.device = kiln_context_device(m.context, 0);
  return m;
}

void release_machine(machine m) { kiln_context_release(m.context); }

char* make_test_folder(const char* out, const char* name) {
  char* folder = format_text("%s/%s", out, name);
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) fail("%s: %s", folder, strerror(errno));
  return folder;
}

char* run_command(const char* command) {
  char* both = format_text("{ %s; } 2>&1", command);
  FILE* pipe = popen(both, "r");
  if (!pipe) fail("%s: %s", command, strerror(errno));
  size_t used = 0, room = 1 << 16;
  char* text = allocate(room, 1);
  for (size_t got; used + 1 < room && (got = fread(text + used, 1, room - 1 - used, pipe)) > 0;) {
    used += got;
  }
  int status = pclose(pipe);
  if (status != 0) {
    printf("%s ended with %d:\n%s\n", command, status, text);
    ++failed_checks;
  }
  free(both);
  return text;
}

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: language_model_test TEXT OUT EXAMPLE [gpt2-size]");
  const char *out = argv[2], *example = argv[3];
  if (mkdir(out, 0777) != 0 && errno != EEXIST) fail("%s: %s", out, strerror(errno));
  if (argc > 4) {
    test_gpt2_size(out, example);
  } else {
    test_json();
    test_tokenizers(out);
    test_sampling();
    test_conversions(out);
    for (int a = GPT2; a <= LLAMA; ++a) test_gradient((architecture_kind)a);
    for (int a = GPT2; a <= LLAMA; ++a) {
      test_trained_model((architecture_kind)a, argv[1], out, example);
    }
  }
  if (failed_checks) printf("%d checks failed\n", failed_checks);
  return failed_checks != 0;
}
