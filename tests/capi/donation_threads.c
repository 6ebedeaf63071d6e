/* One thread donates a buffer while others execute with it, and copy it: these get its value, or
 * are told that it has been donated. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "testing.h"

enum { kReaders = 3, kMost = 40000 };

static kiln_context* context;
static kiln_device* cpu;
static kiln_executable *doubled, *negated;
static kiln_buffer* shared;
static int64_t size;
static int is_synchronous;
static atomic_int ready, wrong;

/* 0 once the buffer has been donated. */
static int went_well(kiln_error* error) {
  if (!error) return 1;
  if (kiln_error_code(error) != KILN_FAILED_PRECONDITION) ++wrong;
  kiln_error_release(error);
  return 0;
}

static kiln_error* execute(kiln_executable* e, int donate, kiln_buffer** result) {
  const size_t first = 0;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = &first;
  options.donated_count = donate ? 1 : 0;
  if (is_synchronous) return kiln_executable_run(e, &options, &shared, 1, result, 1);
  kiln_buffer* const* arguments = &shared;
  return kiln_executable_execute(e, &options, &arguments, 1, &result, 1, 1, NULL);
}

static void expect_all(const float* values, float expected) {
  for (int64_t i = 0; i < size; ++i) {
    if (values[i] == expected) continue;
    ++wrong;
    return;
  }
}

static void* read_it(void* argument) {
  float* values = malloc(kMost * sizeof *values);
  const size_t bytes = (size_t)size * sizeof *values;
  const int copies = argument != NULL;
  ++ready;
  while (1) {
    kiln_buffer* result = NULL;
    if (copies ? !went_well(kiln_buffer_copy_to_host(shared, values, bytes))
               : !went_well(execute(doubled, 0, &result))) {
      break;
    }
    if (!copies) OK(kiln_buffer_copy_to_host(result, values, bytes));
    kiln_buffer_release(result);
    expect_all(values, copies ? 1 : 2);
  }
  free(values);
  return NULL;
}

static void test(int64_t count, int rounds) {
  size = count;
  kiln_alias alias = {.result = 0, .argument = 0};
  kiln_graph* g = make_graph(context, "negated");
  kiln_value x = f32_parameter(g, "x", size);
  negated = compile_with_aliases(g, kiln_op_negate(g, x), cpu, &alias, 1);
  g = make_graph(context, "doubled");
  x = f32_parameter(g, "x", size);
  doubled = compile_result(g, kiln_op_add(g, x, x), cpu);
  float* values = malloc(kMost * sizeof *values);
  for (int round = 0; round < rounds; ++round) {
    for (int64_t i = 0; i < size; ++i) values[i] = 1;
    shared = f32_buffer(cpu, values, size);
    ready = 0;
    pthread_t readers[kReaders];
    for (int i = 0; i < kReaders; ++i) {
      pthread_create(&readers[i], NULL, read_it, i == 0 ? &ready : NULL);
    }
    while (ready < kReaders) sched_yield();
    kiln_buffer* result = NULL;
    OK(execute(negated, 1, &result));
    OK(kiln_buffer_copy_to_host(result, values, (size_t)size * sizeof *values));
    expect_all(values, -1);
    for (int i = 0; i < kReaders; ++i) pthread_join(readers[i], NULL);
    kiln_buffer_release(result);
    kiln_buffer_release(shared);
  }
  free(values);
  kiln_executable_release(doubled);
  kiln_executable_release(negated);
}

int main(void) {
  context = make_context(2);
  cpu = find_device(context, "CPU:0");
  for (is_synchronous = 0; is_synchronous < 2; ++is_synchronous) {
    test(64, 60);
    test(kMost, 60);
  }
  kiln_context_release(context);
  CHECK(wrong == 0);
  return test_result();
}
