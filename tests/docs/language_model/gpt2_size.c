/* A model of GPT-2's size with random numbers, in files as Hugging Face's: the program reads and
 * runs it. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts/common.h"
#include "testing.h"

enum { VOCABULARY = 50257 };

static char* file_in(const char* folder, const char* name) {
  return format_text("%s/%s", folder, name);
}

static void write_model(machine m, const char* folder) {
  static const char kConfig[] =
      "{\n  \"activation_function\": \"gelu_new\",\n  \"architectures\": [\"GPT2LMHeadModel\"],\n"
      "  \"bos_token_id\": 50256,\n  \"eos_token_id\": 50256,\n  \"layer_norm_epsilon\": 1e-05,\n"
      "  \"model_type\": \"gpt2\",\n  \"n_ctx\": 1024,\n  \"n_embd\": 768,\n  \"n_head\": 12,\n"
      "  \"n_inner\": null,\n  \"n_layer\": 12,\n  \"n_positions\": 1024,\n"
      "  \"vocab_size\": 50257\n}\n";
  char* path = file_in(folder, "config.json");
  CHECK(write_file(path, kConfig, strlen(kConfig)) == 0);
  free(path);
  const model_config config = read_config(folder);
  weight_list list = list_weights(&config);
  CHECK(list.count == 148);
  kiln_buffer** arrays = allocate(list.count, sizeof(kiln_buffer*));
  double numbers_in_all = 0;
  for (size_t i = 0; i < list.count; ++i) {
    const weight_spec* spec = &list.specs[i];
    const size_t count = weight_elements(spec);
    const float scale = strstr(spec->name, "wte") ? 1e-3f : 1e-5f; /* up to 0.06, or 0.0006 */
    const int gain = spec->rank == 1 && strstr(spec->name, "weight");
    float* numbers = allocate(count, sizeof(float));
    for (size_t j = 0; j < count; ++j) {
      numbers[j] = (float)((int)(j * 2654435761u >> 16 & 127) - 64) * scale + (float)gain;
    }
    arrays[i] = f32_buffer(m.device, spec->dims, spec->rank, numbers);
    numbers_in_all += (double)count;
    free(numbers);
  }
  CHECK(numbers_in_all == 124439808); /* as GPT-2 has */
  save_weights(&list, arrays, folder);
  for (size_t i = 0; i < list.count; ++i) kiln_buffer_release(arrays[i]);
  free(arrays);
  free(list.specs);
}

/* The names of the 256 bytes, tokens of two bytes by merges, and made-up names. */
static void write_tokenizer(const char* folder) {
  char* vocabulary = allocate(2 << 20, 1);
  *vocabulary = '{';
  char* at = write_byte_names(vocabulary + 1);
  at += sprintf(at, ", \"th\": 256, \"the\": 257");
  for (int i = 258; i < VOCABULARY - 1; ++i) at += sprintf(at, ", \"<%d>\": %d", i, i);
  at += sprintf(at, ", \"<|endoftext|>\": %d}", VOCABULARY - 1);
  static const char kMerges[] = "#version: 0.2\nt h\nth e\n";
  char* names = file_in(folder, "vocab.json");
  char* merges = file_in(folder, "merges.txt");
  CHECK(write_file(names, vocabulary, (size_t)(at - vocabulary)) == 0);
  CHECK(write_file(merges, kMerges, strlen(kMerges)) == 0);
  free(merges);
  free(names);
  free(vocabulary);
}

void test_gpt2_size(const char* out, const char* example) {
  machine m = make_machine();
  char* folder = make_test_folder(out, "gpt2_size");
  write_model(m, folder);
  release_machine(m);
  write_tokenizer(folder);
  static const char* const kTypes[] = {"f32", "bf16", "int8"};
  char* texts[3];
  for (int i = 0; i < 3; ++i) {
    char* command = format_text(
        "'%s' --weights '%s' --prompt 'over the hill' --tokens 24 --dtype %s 2>'%s/figures.txt'",
        example, folder, kTypes[i], folder);
    char* path = file_in(folder, "figures.txt");
    texts[i] = run_command(command);
    char* figures = read_file(path, NULL);
    printf("%s:%s", kTypes[i], figures);
    CHECK(strncmp(texts[i], "over the hill", 13) == 0 && strlen(texts[i]) > 14);
    CHECK(strstr(figures, ", 11 tokens") && strstr(figures, ", 24 tokens"));
    free(figures);
    free(path);
    free(command);
  }
  /* The logits of random numbers are near each other, but the first token is the same. */
  CHECK(strncmp(texts[0], texts[1], 14) == 0 && strncmp(texts[0], texts[2], 14) == 0);
  for (int i = 0; i < 3; ++i) free(texts[i]);
  char* weights = file_in(folder, "model.safetensors");
  unlink(weights);
  free(weights);
  free(folder);
}
