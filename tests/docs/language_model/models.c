/* Models that the test trains, in their three types, and their saved programs. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "language_model/model.h"
#include "language_model/sampling.h"
#include "parts/common.h"
#include "testing.h"

enum { BATCH = 8, LENGTH = 128, STEPS = 600, TEXT = 3072, PROMPT = 32, COMPLETION = 64 };
static const double kRate = 6e-3;
/* In nats: guesses among the bytes of the text have a loss of about 3. */
static const float kMostLoss = 0.25f;

static int32_t* tokens_of(const char* text, size_t count) {
  int32_t* tokens = allocate(count, sizeof(int32_t));
  for (size_t i = 0; i < count; ++i) tokens[i] = (unsigned char)text[i];
  return tokens;
}

static language_model load_model(machine m, const char* folder, kiln_dtype dtype,
                                 const char* programs) {
  const model_config config = read_config(folder);
  weight_list list = list_weights(&config);
  model_weight* weights = load_weights(&list, folder, dtype, m.context, m.device);
  free(list.specs);
  return make_model(&config, weights, dtype, LENGTH, m.context, m.device, programs);
}

/* --- Logits ------------------------------------------------------------------------------------*/

/* The logits after each of LENGTH tokens, by a forward pass without caches. */
static float* full_logits(machine m, const training* t, const char* text) {
  const size_t count = t->list.count;
  kiln_graph* graph =
      training_graph(m.context, &t->config, &t->list, KILN_F32, 1, LENGTH, TRAINING_LOGITS);
  kiln_executable* forward;
  check(kiln_graph_compile(graph, NULL, &forward), "forward");
  kiln_graph_release(graph);
  int32_t* tokens = tokens_of(text, LENGTH + 1);
  kiln_buffer** arguments = allocate(count + 1, sizeof(kiln_buffer*));
  memcpy(arguments, t->state, count * sizeof(kiln_buffer*));
  arguments[count] = s32_buffer(m.device, (int64_t[]){1, LENGTH + 1}, 2, tokens);
  kiln_buffer* result = NULL;
  check(kiln_executable_run(forward, NULL, arguments, count + 1, &result, 1), "forward");
  const size_t bytes = 4 * LENGTH * (size_t)t->config.vocabulary;
  float* logits = allocate(bytes, 1);
  check(kiln_buffer_copy_to_host(result, logits, bytes), "logits");
  kiln_buffer_release(result);
  kiln_buffer_release(arguments[count]);
  kiln_executable_release(forward);
  free(arguments);
  free(tokens);
  return logits;
}

/* The largest difference of a logit from the full pass, in parts of the range of the logits: after
 * a prefill of `prompt` tokens and each step of decode behind it. */
static double logit_difference(language_model* model, const char* text, const float* full,
                               int64_t prompt) {
  int32_t* tokens = tokens_of(text, LENGTH);
  const int64_t vocabulary = model->config.vocabulary;
  float low = INFINITY, high = -INFINITY;
  double worst = 0;
  reset_model(model);
  prefill(model, tokens, prompt);
  for (int64_t last = prompt - 1;; decode(model, tokens[++last])) {
    for (int64_t i = 0; i < vocabulary; ++i) {
      const float expected = full[last * vocabulary + i];
      low = fminf(low, expected);
      high = fmaxf(high, expected);
      const double difference = fabs((double)model->logits[i] - (double)expected);
      worst = difference <= worst ? worst : difference; /* NaN is the worst */
    }
    if (last + 1 == LENGTH) break;
  }
  CHECK(model->length == LENGTH);
  free(tokens);
  return worst / (double)(high - low);
}

/* --- Completions -------------------------------------------------------------------------------*/

/* How many bytes behind the prompt at a place of the text the model gets right, of COMPLETION. */
static int bytes_right(language_model* model, const char* text, size_t from) {
  int32_t* tokens = tokens_of(text + from, PROMPT);
  int right = 0;
  reset_model(model);
  prefill(model, tokens, PROMPT);
  for (; right < COMPLETION; ++right) {
    int32_t token = sample_token(model->logits, model->config.vocabulary, 0, 1, NULL);
    if (token != (unsigned char)text[from + PROMPT + (size_t)right]) break;
    decode(model, token);
  }
  free(tokens);
  return right;
}

/* Places of the text whose completions are tried: most of them must be right for 40 bytes. A few
 * may be cut short, where the text has the same words twice. */
static void test_completions(language_model* model, const char* text, const char* dtype) {
  enum { PLACES = 8 };
  int good = 0, right[PLACES];
  for (int i = 0; i < PLACES; ++i) {
    right[i] = bytes_right(model, text, 100 + 350 * (size_t)i);
    good += right[i] >= 40;
  }
  printf("  %s: bytes right", dtype);
  for (int i = 0; i < PLACES; ++i) printf(" %d", right[i]);
  printf("\n");
  CHECK(good >= PLACES - 2);
}

/* --- Saved programs ----------------------------------------------------------------------------*/

static void remove_programs(const char* folder) {
  DIR* directory = opendir(folder);
  for (struct dirent* entry; directory && (entry = readdir(directory)) != NULL;) {
    if (!strstr(entry->d_name, ".kiln")) continue;
    char* path = format_text("%s/%s", folder, entry->d_name);
    unlink(path);
    free(path);
  }
  if (directory) closedir(directory);
}

/* Replaces the saved decode by bytes that are no program. */
static void damage_decode(const char* folder) {
  DIR* directory = opendir(folder);
  int found = 0;
  for (struct dirent* entry; directory && (entry = readdir(directory)) != NULL;) {
    if (strncmp(entry->d_name, "decode-", 7) != 0) continue;
    char* path = format_text("%s/%s", folder, entry->d_name);
    found += write_file(path, "no program", 10) == 0;
    free(path);
  }
  if (directory) closedir(directory);
  CHECK(found > 0);
}

/* A start of the model, traced: the logits after a token are the same, and it compiles, which has
 * passes, only if it must. */
static void expect_start(const char* folder, int loaded, float* logits) {
  machine m = make_machine();
  kiln_trace* trace;
  check(kiln_trace_start(m.context, &trace), "trace");
  language_model model = load_model(m, folder, KILN_F32, folder);
  decode(&model, 'K');
  check(kiln_trace_stop(trace), "trace");
  kiln_text* json;
  check(kiln_trace_to_json(trace, &json), "trace");
  const int compiled = strstr(kiln_text_data(json, NULL), "\"pass\"") != NULL;
  CHECK(model.programs_loaded == loaded);
  CHECK(compiled == (loaded < 2));
  const size_t bytes = 4 * (size_t)model.config.vocabulary;
  if (loaded == 0) memcpy(logits, model.logits, bytes);
  CHECK(memcmp(logits, model.logits, bytes) == 0);
  kiln_text_release(json);
  kiln_trace_release(trace);
  release_model(&model);
  release_machine(m);
}

static void test_starts(const char* folder) {
  float logits[256];
  remove_programs(folder);
  expect_start(folder, 0, logits);
  expect_start(folder, 2, logits);
  damage_decode(folder);
  expect_start(folder, 1, logits);
  expect_start(folder, 2, logits);
}

/* The program itself prints the prompt and what follows it. */
static void test_example(const char* example, const char* folder, const char* text) {
  char prompt[PROMPT + 1] = "", *quoted = allocate(4 * PROMPT + 1, 1), *to = quoted;
  memcpy(prompt, text + 450, PROMPT);
  for (const char* p = prompt; *p; ++p) {
    if (*p == '\'') {
      to += sprintf(to, "'\\''");
    } else {
      *to++ = *p;
    }
  }
  char* command = format_text(
      "'%s' --weights '%s' --prompt '%s' --tokens 40 --threads 2 "
      "--trace '%s/trace.json'",
      example, folder, quoted, folder);
  char* trace = format_text("%s/trace.json", folder);
  for (int start = 0; start < 2; ++start) {
    char* printed = run_command(command);
    CHECK(strncmp(printed, text + 450, PROMPT + 40) == 0);
    CHECK(strstr(printed, "tokens/s, 32 tokens") && strstr(printed, "tokens/s, 40 tokens"));
    free(printed);
    char* json = read_file(trace, NULL);
    CHECK(json && strstr(json, "layer0/"));
    free(json);
  }
  /* On other devices, the evaluator and an emulated GPU, the text is the same. */
  static const char* const kDevices[] = {"REFERENCE:0", "GPU:0"};
  for (int i = 0; i < 2; ++i) {
    char* elsewhere = format_text(
        "KILN_EMULATE_GPU=1 '%s' --weights '%s' --prompt '%s' "
        "--tokens 12 --dtype int8 --device %s",
        example, folder, quoted, kDevices[i]);
    char* printed = run_command(elsewhere);
    CHECK(strncmp(printed, text + 450, PROMPT + 12) == 0);
    free(printed);
    free(elsewhere);
  }
  free(trace);
  free(command);
  free(quoted);
}

/* --- A trained model ---------------------------------------------------------------------------*/

/* All caches are results in their own memory, and the values of a step have no room for a copy. */
static void test_in_place(machine m, const char* folder) {
  const model_config config = read_config(folder);
  const int64_t capacity = 1024;
  weight_list list = list_weights(&config);
  model_weight* weights = load_weights(&list, folder, KILN_F32, m.context, m.device);
  free(list.specs);
  language_model model =
      make_model(&config, weights, KILN_F32, capacity, m.context, m.device, NULL);
  const int64_t cache = 4 * capacity * config.key_heads * config.head_size;
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  check(kiln_executable_memory(model.decode, &memory), "memory");
  CHECK(memory.alias_bytes == 2 * config.layers * cache);
  CHECK(memory.temporary_bytes - memory.scratch_bytes < cache / 4);
  release_model(&model);
}

static void test_types(machine m, const char* folder, const char* text, const float* full) {
  /* Bounds of the differences: f32 rounds in another order; the others round weights to 8 bits of
   * mantissa, and to 255 steps of a channel. */
  static const struct {
    kiln_dtype dtype;
    const char* name;
    double most;
  } kTypes[] = {{KILN_F32, "f32", 1e-5}, {KILN_BF16, "bf16", 0.02}, {KILN_S8, "int8", 0.05}};
  for (size_t i = 0; i < 3; ++i) {
    language_model model = load_model(m, folder, kTypes[i].dtype, NULL);
    CHECK(model.capacity == LENGTH);
    /* In one step of prefill, and in two of which the second is padded. */
    const double short_prompt = logit_difference(&model, text, full, 5);
    const double long_prompt = logit_difference(&model, text, full, PREFILL_TOKENS + 9);
    printf("  %s: logits differ by %.2g and %.2g of their range\n", kTypes[i].name, short_prompt,
           long_prompt);
    CHECK(short_prompt <= kTypes[i].most && long_prompt <= kTypes[i].most);
    test_completions(&model, text, kTypes[i].name);
    release_model(&model);
  }
}

void test_trained_model(architecture_kind architecture, const char* text_file, const char* out,
                        const char* example) {
  machine m = make_machine();
  size_t size;
  char* text = read_file(text_file, &size);
  if (!text || size < TEXT) fail("%s: no text of %d bytes", text_file, TEXT);
  char* folder = make_test_folder(out, architecture == GPT2 ? "gpt2" : "llama");
  const model_config config = small_config(architecture, 64, 2, 256);
  const double start = now_in_seconds();
  training t = make_training(&config, BATCH, LENGTH, 1, m.context, m.device);
  const float loss = train_on_text(&t, text, TEXT, STEPS, kRate, 1, NULL);
  printf("%s: loss %.3f after %.1f s\n", architecture == GPT2 ? "GPT-2" : "Llama", (double)loss,
         now_in_seconds() - start);
  CHECK(loss <= kMostLoss);
  write_config(&config, folder);
  save_weights(&t.list, t.state, folder);
  float* full = full_logits(m, &t, text + 200);
  test_types(m, folder, text + 200, full);
  test_in_place(m, folder);
  test_starts(folder);
  test_example(example, folder, text);
  free(full);
  release_training(&t);
  free(folder);
  free(text);
  release_machine(m);
}
