/* Completes a text with a language model: a decoder-only transformer of GPT-2's or Llama's
 * architecture, as a plain C program.
 *
 *   language_model --weights DIR [--prompt TEXT] [--tokens N] [--dtype f32|bf16|int8]
 *                  [--temperature T] [--top-p P] [--seed N] [--context N] [--programs DIR]
 *                  [--threads N] [--device NAME] [--trace FILE]
 *
 * DIR has a model as on Hugging Face: config.json, model.safetensors (or several files and their
 * index), and tokenizer.json, or vocab.json and merges.txt; without a tokenizer, 256 tokens are
 * bytes. train_language_model.c makes a small one of any text, in seconds.
 *
 * The prompt is read by one program, the prefill, 64 tokens at a time. The other one, a step of
 * decode, makes one token from the one before. Keys and values of past tokens are in caches that
 * both update in place. The programs are saved beside the weights, or in the folder given by
 * --programs, and the next start loads them instead of compiling. Weights are used where the file
 * is mapped, or with --dtype are converted to bf16 or to int8 with a scale for each output channel;
 * the compiled products read them in that type.
 *
 * At the default temperature 0 the likeliest token is taken, otherwise a random one among the
 * likeliest with the probability --top-p together. The text goes to standard output, and tokens per
 * second to standard error. */
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language_model/model.h"
#include "language_model/sampling.h"
#include "language_model/tokenizer.h"
#include "parts/common.h"

/* --- Options -----------------------------------------------------------------------------------*/

typedef struct {
  const char *weights, *prompt, *programs, *device, *trace;
  kiln_dtype dtype;
  int64_t tokens, context;
  double temperature, top_p;
  uint64_t seed;
  int32_t threads;
} options;

static kiln_dtype parse_dtype(const char* text) {
  if (strcmp(text, "f32") == 0) return KILN_F32;
  if (strcmp(text, "bf16") == 0) return KILN_BF16;
  if (strcmp(text, "int8") == 0) return KILN_S8;
  fail("--dtype: %s is none of f32, bf16 and int8", text);
}

static void usage(void) {
  fail(
      "usage: language_model --weights DIR [--prompt TEXT] [--tokens N] [--dtype f32|bf16|int8]\n"
      "    [--temperature T] [--top-p P] [--seed N] [--context N] [--programs DIR]\n"
      "    [--threads N] [--device NAME] [--trace FILE]");
}

static options parse_options(int argc, char** argv) {
  enum {
    WEIGHTS,
    PROMPT,
    TOKENS,
    DTYPE,
    TEMPERATURE,
    TOP_P,
    SEED,
    CONTEXT,
    PROGRAMS,
    THREADS,
    DEVICE,
    TRACE
  };
  static const struct option kOptions[] = {{"weights", 1, NULL, WEIGHTS},
                                           {"prompt", 1, NULL, PROMPT},
                                           {"tokens", 1, NULL, TOKENS},
                                           {"dtype", 1, NULL, DTYPE},
                                           {"temperature", 1, NULL, TEMPERATURE},
                                           {"top-p", 1, NULL, TOP_P},
                                           {"seed", 1, NULL, SEED},
                                           {"context", 1, NULL, CONTEXT},
                                           {"programs", 1, NULL, PROGRAMS},
                                           {"threads", 1, NULL, THREADS},
                                           {"device", 1, NULL, DEVICE},
                                           {"trace", 1, NULL, TRACE},
                                           {NULL, 0, NULL, 0}};
  options o = {.prompt = "Hello", .device = "CPU:0", .dtype = KILN_F32, .tokens = 64, .top_p = 1};
  for (int option; (option = getopt_long(argc, argv, "", kOptions, NULL)) != -1;) {
    switch (option) {
      case WEIGHTS:
        o.weights = optarg;
        break;
      case PROMPT:
        o.prompt = optarg;
        break;
      case TOKENS:
        o.tokens = parse_integer(optarg, 0, 1 << 24, "--tokens");
        break;
      case DTYPE:
        o.dtype = parse_dtype(optarg);
        break;
      case TEMPERATURE:
        o.temperature = parse_real(optarg, 0, 100, "--temperature");
        break;
      case TOP_P:
        o.top_p = parse_real(optarg, 0, 1, "--top-p");
        break;
      case SEED:
        o.seed = (uint64_t)parse_integer(optarg, 0, INT64_MAX, "--seed");
        break;
      case CONTEXT:
        o.context = parse_integer(optarg, 1, 1 << 24, "--context");
        break;
      case PROGRAMS:
        o.programs = optarg;
        break;
      case THREADS:
        o.threads = (int32_t)parse_integer(optarg, 1, 4096, "--threads");
        break;
      case DEVICE:
        o.device = optarg;
        break;
      case TRACE:
        o.trace = optarg;
        break;
      default:
        usage();
    }
  }
  if (!o.weights || optind != argc) usage();
  if (!o.programs) o.programs = o.weights;
  return o;
}

/* --- A text ------------------------------------------------------------------------------------*/

typedef struct {
  int64_t read, made; /* tokens of the prompt, and after it */
  double prefill_seconds, decode_seconds;
} progress;

static int is_end(const model_config* config, int32_t token) {
  for (int i = 0; i < config->end_count; ++i) {
    if (config->ends[i] == token) return 1;
  }
  return 0;
}

static void print_token(const tokenizer* words, int32_t token) {
  size_t length;
  const char* bytes = token_bytes(words, token, &length);
  fwrite(bytes, 1, length, stdout);
  fflush(stdout);
}

static progress complete(language_model* model, const tokenizer* words, const int32_t* prompt,
                         size_t prompt_count, const options* o) {
  progress p = {.read = (int64_t)prompt_count};
  uint64_t random = o->seed;
  double start = now_in_seconds();
  prefill(model, prompt, p.read);
  p.prefill_seconds = now_in_seconds() - start;
  start = now_in_seconds();
  for (;;) {
    int32_t token =
        sample_token(model->logits, model->config.vocabulary, o->temperature, o->top_p, &random);
    if (p.made == o->tokens || is_end(&model->config, token)) break;
    print_token(words, token);
    ++p.made;
    decode(model, token);
  }
  p.decode_seconds = now_in_seconds() - start;
  return p;
}

/* The tokens of the prompt, at least one. */
static int32_t* read_prompt(const tokenizer* words, const model_config* config, const char* text,
                            size_t* count) {
  int32_t* tokens = encode_text(words, text, strlen(text), count);
  if (config->begin >= 0) {
    int32_t* more = allocate(*count + 1, sizeof(int32_t));
    more[0] = (int32_t)config->begin;
    memcpy(more + 1, tokens, *count * sizeof(int32_t));
    free(tokens);
    tokens = more;
    ++*count;
  }
  if (*count == 0) fail("--prompt is empty");
  return tokens;
}

/* Room for the text in caches, rounded up so that texts of about one length share programs. */
static int64_t choose_context(const options* o, const model_config* config, int64_t length) {
  if (length > config->positions) {
    fail("the text has %" PRId64 " tokens; the model knows %" PRId64 " positions", length,
         config->positions);
  }
  if (o->context) {
    if (length > o->context) fail("--context: the text has %" PRId64 " tokens", length);
    return o->context;
  }
  int64_t context = 128;
  while (context < length) context *= 2;
  return context;
}

static void report(const language_model* model, const progress* p, double load, double programs) {
  fprintf(stderr, "\nweights   %7.3f s to load\n", load);
  fprintf(stderr, "programs  %7.3f s to %s\n", programs,
          model->programs_loaded == 2 ? "load" : "compile and save");
  fprintf(stderr, "prefill   %7.1f tokens/s, %" PRId64 " tokens\n",
          (double)p->read / p->prefill_seconds, p->read);
  if (p->made == 0) return;
  double rate = (double)p->made / p->decode_seconds;
  fprintf(stderr, "decode    %7.1f tokens/s, %" PRId64 " tokens, %.1f GB/s of weights and caches\n",
          rate, p->made, rate * bytes_per_token(model) * 1e-9);
}

static void write_trace(kiln_trace* trace, const char* path) {
  kiln_text* json;
  check(kiln_trace_stop(trace), "trace");
  check(kiln_trace_to_json(trace, &json), "trace");
  size_t size;
  const char* text = kiln_text_data(json, &size);
  int error = write_file(path, text, size);
  if (error) fail("%s: %s", path, strerror(error));
  kiln_text_release(json);
  kiln_trace_release(trace);
}

int main(int argc, char** argv) {
  const options o = parse_options(argc, argv);
  kiln_context* context;
  kiln_device* device = open_device(o.device, o.threads, &context);
  kiln_trace* trace = NULL;
  if (o.trace) check(kiln_trace_start(context, &trace), "trace");

  const model_config config = read_config(o.weights);
  tokenizer* words = read_tokenizer(o.weights, config.vocabulary);
  size_t prompt_count;
  int32_t* prompt = read_prompt(words, &config, o.prompt, &prompt_count);
  int64_t room = choose_context(&o, &config, (int64_t)prompt_count + o.tokens);

  double start = now_in_seconds();
  weight_list list = list_weights(&config);
  model_weight* weights = load_weights(&list, o.weights, o.dtype, context, device);
  free(list.specs);
  double loaded = now_in_seconds();
  language_model model = make_model(&config, weights, o.dtype, room, context, device, o.programs);
  double ready = now_in_seconds();

  fputs(o.prompt, stdout);
  const progress p = complete(&model, words, prompt, prompt_count, &o);
  fputs("\n", stdout);
  fflush(stdout);
  report(&model, &p, loaded - start, ready - loaded);

  if (trace) write_trace(trace, o.trace);
  release_model(&model);
  free(prompt);
  free_tokenizer(words);
  kiln_context_release(context);
  return 0;
}
