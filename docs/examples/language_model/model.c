#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

/* --- Programs ----------------------------------------------------------------------------------*/

static uint64_t hash_text(uint64_t hash, const char* text) {
  return hash_bytes(hash, text, strlen(text));
}

/* A program is kept under a name by its graph and device: another model, type or capacity has
 * another file. */
static char* program_path(const char* folder, const char* kind, const kiln_graph* graph,
                          kiln_device* device) {
  kiln_text* text;
  check(kiln_graph_to_hlo_text(graph, &text), "graph");
  uint64_t hash = hash_text(HASH_START, kiln_text_data(text, NULL));
  hash = hash_text(hash, kiln_device_name(device, NULL));
  hash = hash_text(hash, kiln_device_description(device, NULL));
  kiln_text_release(text);
  hash = hash_text(hash, "decode: frozen weights"); /* not in the graph */
  return format_text("%s/%s-%016" PRIx64 ".kiln", folder, kind, hash);
}

/* NULL if there is no file, or if it does not fit the library or the device. */
static kiln_executable* load_program(const char* path, kiln_device* device) {
  kiln_executable* executable = NULL;
  kiln_error_release(kiln_executable_load_file(device, path, strlen(path), &executable));
  return executable;
}

/* A folder that cannot be written, as that of the weights may be, is no reason to end. */
static void save_program(const char* path, const kiln_executable* executable) {
  kiln_error* error = kiln_executable_save(executable, path, strlen(path));
  if (error) fprintf(stderr, "%s: not saved: %s\n", path, kiln_error_message(error, NULL));
  kiln_error_release(error);
}

/* The number of the first weight among the arguments of a program. */
static size_t first_weight(const language_model* m) {
  return STEP_CACHES + 2 * (size_t)m->config.layers;
}

/* The numbers of the weights. */
static size_t* weight_numbers(const language_model* m) {
  size_t* numbers = allocate(m->argument_count, sizeof(size_t));
  for (size_t i = 0; i < m->argument_count; ++i) numbers[i] = first_weight(m) + i;
  return numbers;
}

/* The caches are results in the memory of the arguments. */
static kiln_executable* compile_program(const language_model* m, kiln_graph* graph,
                                        int frozen_weights) {
  size_t count = 2 * (size_t)m->config.layers, *weights = weight_numbers(m);
  kiln_alias* aliases = allocate(count, sizeof(kiln_alias));
  for (size_t i = 0; i < count; ++i) {
    aliases[i] = (kiln_alias){STEP_NEW_CACHES + i, STEP_CACHES + i, 1, 0};
  }
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = m->device;
  options.aliases = aliases;
  options.alias_count = count;
  options.frozen = weights;
  options.frozen_count = frozen_weights ? m->argument_count : 0;
  kiln_executable* executable;
  check(kiln_graph_compile(graph, &options, &executable), "compile");
  free(aliases);
  free(weights);
  return executable;
}

static kiln_executable* make_program(language_model* m, kiln_dtype dtype, int64_t tokens,
                                     const char* folder) {
  kiln_graph* graph = step_graph(m->context, &m->config, &m->list, dtype, tokens, m->capacity);
  const char* kind = tokens == 1 ? "decode" : "prefill";
  char* path = folder ? program_path(folder, kind, graph, m->device) : NULL;
  kiln_executable* executable = path ? load_program(path, m->device) : NULL;
  if (executable) {
    ++m->programs_loaded;
  } else {
    executable = compile_program(m, graph, tokens == 1);
    if (path) save_program(path, executable);
  }
  kiln_graph_release(graph);
  free(path);
  return executable;
}

/* --- Models ------------------------------------------------------------------------------------*/

/* In the order of the programs' parameters. */
static void add_weight_arguments(language_model* m) {
  m->arguments = allocate(2 * m->list.count, sizeof(kiln_buffer*));
  for (size_t i = 0; i < m->list.count; ++i) {
    m->arguments[m->argument_count++] = m->weights[i].values;
    if (m->weights[i].scales) m->arguments[m->argument_count++] = m->weights[i].scales;
  }
}

language_model make_model(const model_config* config, model_weight* weights, kiln_dtype dtype,
                          int64_t capacity, kiln_context* context, kiln_device* device,
                          const char* programs) {
  int64_t steps = (capacity + PREFILL_TOKENS - 1) / PREFILL_TOKENS;
  language_model m = {.config = *config,
                      .list = list_weights(config),
                      .weights = weights,
                      .context = context,
                      .device = device,
                      .capacity = steps * PREFILL_TOKENS};
  add_weight_arguments(&m);
  m.prefill = make_program(&m, dtype, PREFILL_TOKENS, programs);
  m.decode = make_program(&m, dtype, 1, programs);
  size_t* weight_arguments = weight_numbers(&m);
  check(kiln_executable_bind(m.decode, weight_arguments, m.arguments, m.argument_count), "bind");
  free(weight_arguments);
  m.caches = allocate(2 * (size_t)config->layers, sizeof(kiln_buffer*));
  const int64_t dims[] = {m.capacity, config->key_heads, config->head_size};
  for (int64_t i = 0; i < 2 * config->layers; ++i) {
    check(kiln_buffer_create(device, KILN_F32, dims, 3, &m.caches[i]), "cache");
  }
  check(kiln_buffer_create(device, KILN_F32, &config->vocabulary, 1, &m.logits_buffer), "logits");
  m.logits = allocate((size_t)config->vocabulary, sizeof(float));
  return m;
}

void release_model(language_model* m) {
  for (int64_t i = 0; i < 2 * m->config.layers; ++i) kiln_buffer_release(m->caches[i]);
  kiln_buffer_release(m->logits_buffer);
  kiln_executable_release(m->prefill);
  kiln_executable_release(m->decode);
  release_weights(m->weights, m->list.count);
  free(m->arguments);
  free(m->caches);
  free(m->logits);
  free(m->list.specs);
}

void reset_model(language_model* m) { m->length = 0; }

/* `count` tokens, of which the program has room for `room`. */
static void run_step(language_model* m, kiln_executable* program, const int32_t* tokens,
                     int64_t room, int64_t count) {
  size_t caches = 2 * (size_t)m->config.layers;
  const int32_t position = (int32_t)m->length, last = (int32_t)count - 1;
  kiln_buffer** arguments = allocate(first_weight(m) + m->argument_count, sizeof(kiln_buffer*));
  kiln_buffer** results = allocate(STEP_NEW_CACHES + caches, sizeof(kiln_buffer*));
  size_t* donated = allocate(caches, sizeof(size_t));
  arguments[STEP_TOKENS] = s32_buffer(m->device, &room, 1, tokens);
  arguments[STEP_POSITION] = s32_buffer(m->device, NULL, 0, &position);
  arguments[STEP_LAST] = s32_buffer(m->device, NULL, 0, &last);
  size_t argument_count = STEP_CACHES;
  for (size_t i = 0; i < caches; ++i) {
    donated[i] = argument_count;
    arguments[argument_count++] = m->caches[i];
  }
  if (program == m->prefill) {
    memcpy(arguments + argument_count, m->arguments, m->argument_count * sizeof(kiln_buffer*));
    argument_count += m->argument_count;
  }
  results[STEP_LOGITS] = m->logits_buffer;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = donated;
  options.donated_count = caches;
  check(kiln_executable_run(program, &options, arguments, argument_count, results,
                            STEP_NEW_CACHES + caches),
        "step");
  for (size_t i = 0; i < caches; ++i) {
    kiln_buffer_release(m->caches[i]);
    m->caches[i] = results[STEP_NEW_CACHES + i];
  }
  for (size_t i = 0; i < STEP_CACHES; ++i) kiln_buffer_release(arguments[i]);
  check(kiln_buffer_copy_to_host(m->logits_buffer, m->logits, 4 * (size_t)m->config.vocabulary),
        "logits");
  m->length += count;
  free(arguments);
  free(results);
  free(donated);
}

void decode(language_model* m, int32_t token) {
  if (m->length == m->capacity) fail("the text is longer than the caches");
  run_step(m, m->decode, &token, 1, 1);
}

void prefill(language_model* m, const int32_t* tokens, int64_t count) {
  while (count > 0) {
    int32_t step[PREFILL_TOKENS] = {0};
    /* A step writes caches for the padding, too; later tokens replace it. */
    int64_t taken = count < PREFILL_TOKENS ? count : PREFILL_TOKENS;
    if (m->length + PREFILL_TOKENS > m->capacity) {
      decode(m, *tokens);
      taken = 1;
    } else {
      memcpy(step, tokens, (size_t)taken * sizeof(int32_t));
      run_step(m, m->prefill, step, PREFILL_TOKENS, taken);
    }
    tokens += taken;
    count -= taken;
  }
}

double bytes_per_token(const language_model* m) {
  const model_config* c = &m->config;
  double bytes = 8.0 * (double)(c->layers * m->capacity * c->key_heads * c->head_size);
  for (size_t i = 0; i < m->list.count; ++i) {
    /* An embedding that is no output matrix is read by rows. */
    int table = i == 0 && !c->tied;
    double all = bytes_read(&m->list.specs[i], &m->weights[i]);
    bytes += table ? all / (double)c->vocabulary : all;
  }
  return bytes;
}
