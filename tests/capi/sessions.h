/* What tests of sessions share: a log that is kept, sessions by their JIT level, explanations. */
#ifndef KILN_TESTS_CAPI_SESSIONS_H_
#define KILN_TESTS_CAPI_SESSIONS_H_

#include "testing.h"

/* The log of contexts with keep_line; a test empties it by a 0 in front. */
static char log_lines[1 << 16];

static inline void keep_line(void* user_data, kiln_log_level level, const char* message,
                             size_t length) {
  (void)user_data;
  (void)level;
  size_t used = strlen(log_lines);
  if (used + length + 2 > sizeof log_lines) return;
  memcpy(log_lines + used, message, length);
  memcpy(log_lines + used + length, "\n", 2);
}

static inline kiln_session* session_with(kiln_graph* graph, kiln_jit jit) {
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  kiln_session* session = NULL;
  OK(kiln_session_create(graph, &options, &session));
  return session;
}

/* The explanation of a run has the text. */
static inline void explains(kiln_session* session, kiln_value feed, kiln_value fetch,
                            const char* text) {
  kiln_text* explanation = NULL;
  if (!OK(kiln_session_explain(session, &feed, 1, &fetch, 1, NULL, 0, &explanation))) return;
  const char* data = kiln_text_data(explanation, NULL);
  CHECK(strstr(data, text) != NULL);
  if (!strstr(data, text)) printf("no '%s' in:\n%s", text, data);
  kiln_text_release(explanation);
}

#endif /* KILN_TESTS_CAPI_SESSIONS_H_ */
