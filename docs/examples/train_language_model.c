/* Trains a small language model on the bytes of a text, and writes it for language_model.c.
 *
 *   train_language_model --text FILE --out DIR [--architecture gpt2|llama] [--bytes N] [--steps N]
 *                        [--width N] [--layers N] [--seed N] [--threads N] [--device NAME]
 *
 * Forward pass, loss, gradient and Adam's update are one graph, built from ops by hand
 * (language_model/gradient.c). By default the model has 2 layers of width 64 and learns the first
 * 3,072 bytes of the text nearly by heart, in seconds. DIR receives config.json and
 * model.safetensors, under the names of Hugging Face.
 *
 * Test: --text DIR/../getting-started.md --out OUT --steps 3 */
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language_model/training.h"
#include "parts/common.h"

enum { BATCH = 8, LENGTH = 128, POSITIONS = 256 };
static const double kRate = 6e-3;

typedef struct {
  const char *text, *out, *device;
  architecture_kind architecture;
  int64_t bytes, steps, width, layers, seed;
  int32_t threads;
} options;

static void usage(void) {
  fail(
      "usage: train_language_model --text FILE --out DIR [--architecture gpt2|llama] [--bytes N]\n"
      "    [--steps N] [--width N] [--layers N] [--seed N] [--threads N] [--device NAME]");
}

static options parse_options(int argc, char** argv) {
  enum { TEXT, OUT, ARCHITECTURE, BYTES, STEPS, WIDTH, LAYERS, SEED, THREADS, DEVICE };
  static const struct option kOptions[] = {{"text", 1, NULL, TEXT},
                                           {"out", 1, NULL, OUT},
                                           {"architecture", 1, NULL, ARCHITECTURE},
                                           {"bytes", 1, NULL, BYTES},
                                           {"steps", 1, NULL, STEPS},
                                           {"width", 1, NULL, WIDTH},
                                           {"layers", 1, NULL, LAYERS},
                                           {"seed", 1, NULL, SEED},
                                           {"threads", 1, NULL, THREADS},
                                           {"device", 1, NULL, DEVICE},
                                           {NULL, 0, NULL, 0}};
  options o = {.device = "CPU:0",
               .architecture = LLAMA,
               .bytes = 3072,
               .steps = 600,
               .width = 64,
               .layers = 2,
               .seed = 1};
  for (int option; (option = getopt_long(argc, argv, "", kOptions, NULL)) != -1;) {
    switch (option) {
      case TEXT:
        o.text = optarg;
        break;
      case OUT:
        o.out = optarg;
        break;
      case ARCHITECTURE:
        if (strcmp(optarg, "gpt2") != 0 && strcmp(optarg, "llama") != 0) usage();
        o.architecture = optarg[0] == 'g' ? GPT2 : LLAMA;
        break;
      case BYTES:
        o.bytes = parse_integer(optarg, 1, 1 << 30, "--bytes");
        break;
      case STEPS:
        o.steps = parse_integer(optarg, 1, 1 << 30, "--steps");
        break;
      case WIDTH:
        o.width = parse_integer(optarg, 1, 4096, "--width");
        break;
      case LAYERS:
        o.layers = parse_integer(optarg, 1, 4096, "--layers");
        break;
      case SEED:
        o.seed = parse_integer(optarg, 0, 1 << 30, "--seed");
        break;
      case THREADS:
        o.threads = (int32_t)parse_integer(optarg, 1, 4096, "--threads");
        break;
      case DEVICE:
        o.device = optarg;
        break;
      default:
        usage();
    }
  }
  if (!o.text || !o.out || optind != argc) usage();
  if (o.width % 16 != 0) fail("--width: %d is no multiple of 16", (int)o.width);
  return o;
}

static void show_progress(int64_t step, float loss) {
  if (step % 50 == 0) printf("step %4d  loss %.3f\n", (int)step, (double)loss);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const options o = parse_options(argc, argv);
  kiln_context* context;
  kiln_device* device = open_device(o.device, o.threads, &context);
  make_folder(o.out);

  size_t size;
  char* text = read_file(o.text, &size);
  if (!text) fail("%s: there is no such file", o.text);
  if (size > (size_t)o.bytes) size = (size_t)o.bytes;
  const model_config config = small_config(o.architecture, o.width, o.layers, POSITIONS);
  training t = make_training(&config, BATCH, LENGTH, (uint64_t)o.seed, context, device);
  float loss = train_on_text(&t, text, size, o.steps, kRate, (uint64_t)o.seed, show_progress);
  printf("loss %.3f nats a byte\n", (double)loss);
  write_config(&config, o.out);
  save_weights(&t.list, t.state, o.out);

  release_training(&t);
  free(text);
  kiln_context_release(context);
  return 0;
}
