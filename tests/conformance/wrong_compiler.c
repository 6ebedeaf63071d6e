// A compiler with a mistake, for the tests of kiln-run: in the place of the library's functions,
// loaded before it (LD_PRELOAD). Programs in HLO text that are compiled for a CPU have, in the
// place of the text in the environment variable WRONG_OP, that in WRONG_AS; with WRONG_AS=abort the
// process ends, and with WRONG_AS=hang compiling does not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <kiln/kiln.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The last graph that was read.
static kiln_graph* last_graph;
static kiln_context* last_context;
static char* last_text;

static char* wrong_text(void) {
  const char *op = getenv("WRONG_OP"), *as = getenv("WRONG_AS");
  if (!op || !as || !last_text || !strstr(last_text, op)) return NULL;
  if (strcmp(as, "abort") == 0) abort();
  while (strcmp(as, "hang") == 0) pause();
  char* text = malloc(strlen(last_text) * (strlen(as) + 1) + 1);
  char* end = text;
  const char* from = last_text;
  for (const char* at; (at = strstr(from, op)) != NULL; from = at + strlen(op)) {
    memcpy(end, from, (size_t)(at - from));
    end = stpcpy(end + (at - from), as);
  }
  strcpy(end, from);
  return text;
}

kiln_error* kiln_graph_from_hlo_text(kiln_context* context, const char* text, size_t length,
                                     kiln_graph** graph) {
  kiln_error* (*next)(kiln_context*, const char*, size_t, kiln_graph**) =
      dlsym(RTLD_NEXT, "kiln_graph_from_hlo_text");
  kiln_error* error = next(context, text, length, graph);
  if (error) return error;
  free(last_text);
  last_text = strndup(text, length);
  last_graph = *graph;
  last_context = context;
  return NULL;
}

kiln_error* kiln_graph_compile(const kiln_graph* graph, const kiln_compile_options* options,
                               kiln_executable** executable) {
  kiln_error* (*next)(const kiln_graph*, const kiln_compile_options*, kiln_executable**) =
      dlsym(RTLD_NEXT, "kiln_graph_compile");
  const int is_cpu = strncmp(kiln_device_name(options->device, NULL), "CPU", 3) == 0;
  char* text = is_cpu && graph == last_graph ? wrong_text() : NULL;
  if (!text) return next(graph, options, executable);
  kiln_graph* wrong = NULL;
  kiln_error* error = kiln_graph_from_hlo_text(last_context, text, strlen(text), &wrong);
  free(text);
  if (error) return error;
  error = next(wrong, options, executable);
  kiln_graph_release(wrong);
  return error;
}
