#include "parts/loop.h"

#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

training_loop start_loop(kiln_device* device, kiln_graph* initial, kiln_graph* step, size_t count) {
  training_loop loop = {.device = device, .count = count};
  loop.values = allocate(count, sizeof(kiln_buffer*));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* start;
  check(kiln_graph_compile(initial, &options, &start), "the initial graph");
  check(kiln_executable_run(start, NULL, NULL, 0, loop.values, count), "the initial values");
  kiln_executable_release(start);

  /* The values of the next step take the memory of the last one's. */
  kiln_alias* aliases = allocate(count, sizeof(kiln_alias));
  for (size_t i = 0; i < count; ++i) {
    const kiln_alias in_place = {.result = i, .argument = i};
    aliases[i] = in_place;
  }
  options.aliases = aliases;
  options.alias_count = count;
  check(kiln_graph_compile(step, &options, &loop.step), "the step's graph");
  free(aliases);
  kiln_graph_release(initial);
  kiln_graph_release(step);
  return loop;
}

void end_loop(training_loop* loop) {
  for (size_t i = 0; i < loop->count; ++i) kiln_buffer_release(loop->values[i]);
  free(loop->values);
  kiln_executable_release(loop->step);
}

void run_loop(training_loop* loop, kiln_buffer* const* batch, size_t batch_count, float* figures,
              size_t figure_count) {
  const size_t count = loop->count, arguments_count = count + batch_count;
  const size_t results_count = count + figure_count;
  kiln_buffer** arguments = allocate(arguments_count, sizeof(kiln_buffer*));
  kiln_buffer** results = allocate(results_count, sizeof(kiln_buffer*));
  memcpy(arguments, loop->values, count * sizeof(kiln_buffer*));
  memcpy(arguments + count, batch, batch_count * sizeof(kiln_buffer*));
  kiln_execute_options donate = KILN_EXECUTE_OPTIONS_INIT;
  donate.donate_aliased = !loop->from_file;
  check(
      kiln_executable_run(loop->step, &donate, arguments, arguments_count, results, results_count),
      "step");
  for (size_t i = 0; i < arguments_count; ++i) kiln_buffer_release(arguments[i]);
  memcpy(loop->values, results, count * sizeof(kiln_buffer*));
  loop->from_file = 0;
  for (size_t i = 0; i < figure_count; ++i) {
    check(kiln_buffer_copy_to_host(results[count + i], &figures[i], sizeof(float)), "figures");
    kiln_buffer_release(results[count + i]);
  }
  free(arguments);
  free(results);
}

float evaluate_loop(const training_loop* loop, kiln_graph* graph, size_t count,
                    kiln_buffer* const* batch, size_t batch_count) {
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = loop->device;
  kiln_executable* program;
  check(kiln_graph_compile(graph, &options, &program), "the graph of an evaluation");
  kiln_graph_release(graph);
  kiln_buffer **arguments = allocate(count + batch_count, sizeof(kiln_buffer*)), *result = NULL;
  memcpy(arguments, loop->values, count * sizeof(kiln_buffer*));
  memcpy(arguments + count, batch, batch_count * sizeof(kiln_buffer*));
  float value;
  check(kiln_executable_run(program, NULL, arguments, count + batch_count, &result, 1), "run");
  check(kiln_buffer_copy_to_host(result, &value, sizeof value), "result");
  for (size_t i = 0; i < batch_count; ++i) kiln_buffer_release(batch[i]);
  kiln_buffer_release(result);
  kiln_executable_release(program);
  free(arguments);
  return value;
}

void save_loop(const training_loop* loop, const char* path) {
  kiln_named_buffer* arrays = allocate(loop->count, sizeof(kiln_named_buffer));
  for (size_t i = 0; i < loop->count; ++i) {
    arrays[i].name = kiln_executable_argument_name(loop->step, i, &arrays[i].name_length);
    arrays[i].buffer = loop->values[i];
  }
  check(kiln_safetensors_save(path, strlen(path), arrays, loop->count, NULL), path);
  free(arrays);
}

int load_loop(training_loop* loop, const char* path) {
  kiln_safetensors* file;
  kiln_error* error = kiln_safetensors_open(path, strlen(path), &file);
  if (error && kiln_error_code(error) == KILN_NOT_FOUND) {
    kiln_error_release(error);
    return 0;
  }
  check(error, path);
  for (size_t i = 0; i < loop->count; ++i) {
    size_t length;
    const char* name = kiln_executable_argument_name(loop->step, i, &length);
    kiln_buffer_release(loop->values[i]);
    check(kiln_safetensors_buffer(file, name, length, loop->device, &loop->values[i]), path);
  }
  kiln_safetensors_release(file);
  loop->from_file = 1;
  return 1;
}
