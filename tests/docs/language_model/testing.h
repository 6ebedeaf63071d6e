/* What the tests of the language model share. */
#ifndef KILN_TESTS_DOCS_LANGUAGE_MODEL_TESTING_H_
#define KILN_TESTS_DOCS_LANGUAGE_MODEL_TESTING_H_

#include "language_model/training.h"

extern int failed_checks;

/* A check that fails prints and is counted. */
#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failed_checks;                                               \
    }                                                                \
  } while (0)

/* A context and its CPU. */
typedef struct {
  kiln_context* context;
  kiln_device* device;
} machine;

machine make_machine(void);
void release_machine(machine m);

void test_json(void);
void test_tokenizers(const char* out);
void test_sampling(void);
void test_conversions(const char* out);
void test_gradient(architecture_kind architecture);
/* Trains a model on the text, and checks what `example`, a program, and the parts make of it. */
void test_trained_model(architecture_kind architecture, const char* text, const char* out,
                        const char* example);
/* A model of GPT-2's size and names with random numbers, in a file. */
void test_gpt2_size(const char* out, const char* example);

/* Writes the members of a vocabulary for the 256 bytes, `"name": number` with commas between them,
 * by the names that tokenizers' files have for them. Returns the end of the text. */
char* write_byte_names(char* to);

/* OUT/NAME, a folder that is there and empty but for what an earlier run of the test left. */
char* make_test_folder(const char* out, const char* name);

/* Runs a command of the shell and returns what it prints on both outputs, to be freed. */
char* run_command(const char* command);

#endif /* KILN_TESTS_DOCS_LANGUAGE_MODEL_TESTING_H_ */
