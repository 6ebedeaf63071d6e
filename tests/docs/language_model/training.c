/* The gradient against finite differences, and files of weights. */
#define _POSIX_C_SOURCE 200809L
#include "language_model/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language_model/model.h"
#include "parts/common.h"
#include "testing.h"

/* --- The gradient ------------------------------------------------------------------------------*/

enum { ROWS = 2, LENGTH = 6, MAX_WEIGHTS = 64 };

/* A tiny model in f64, and its loss and gradient on some tokens. */
typedef struct {
  machine m;
  weight_list list;
  kiln_executable* executable;
  double* weights[MAX_WEIGHTS];
  kiln_buffer* tokens;
} differentiated;

/* Returns the loss; `gradients`, unless NULL, receive copies of the gradient's arrays. */
static double loss_of(const differentiated* d, double** gradients) {
  const size_t count = d->list.count;
  kiln_buffer *arguments[MAX_WEIGHTS + 1], *results[MAX_WEIGHTS + 1] = {NULL};
  for (size_t i = 0; i < count; ++i) {
    const weight_spec* spec = &d->list.specs[i];
    check(kiln_buffer_copy_host(d->m.device, KILN_F64, spec->dims, spec->rank, d->weights[i],
                                8 * weight_elements(spec), &arguments[i]),
          spec->name);
  }
  arguments[count] = d->tokens;
  check(kiln_executable_run(d->executable, NULL, arguments, count + 1, results, count + 1),
        "gradient");
  double loss;
  check(kiln_buffer_copy_to_host(results[0], &loss, sizeof loss), "loss");
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = 8 * weight_elements(&d->list.specs[i]);
    if (gradients) {
      gradients[i] = allocate(bytes, 1);
      check(kiln_buffer_copy_to_host(results[1 + i], gradients[i], bytes), "gradient");
    }
    kiln_buffer_release(arguments[i]);
    kiln_buffer_release(results[1 + i]);
  }
  kiln_buffer_release(results[0]);
  return loss;
}

/* The largest difference of a derivative from (f(x+h) - f(x-h)) / 2h, whose own error is about
 * 1e-10, at some elements of an array. */
static double worst_difference(const differentiated* d, size_t i, const double* gradient,
                               uint64_t* random) {
  const double step = 1e-5;
  double worst = 0;
  for (int sample = 0; sample < 5; ++sample) {
    double* x = &d->weights[i][random_bits(random) % weight_elements(&d->list.specs[i])];
    const double there = *x;
    *x = there + step;
    double difference = loss_of(d, NULL);
    *x = there - step;
    difference = (difference - loss_of(d, NULL)) / (2 * step);
    *x = there;
    worst = fmax(worst, fabs(difference - gradient[x - d->weights[i]]));
  }
  return worst;
}

void test_gradient(architecture_kind architecture) {
  model_config config = small_config(architecture, 16, 2, 9);
  config.vocabulary = 11;
  config.tied = architecture == GPT2; /* both cases of the output matrix */
  differentiated d = {.m = make_machine(), .list = list_weights(&config)};
  kiln_graph* graph =
      training_graph(d.m.context, &config, &d.list, KILN_F64, ROWS, LENGTH, TRAINING_GRADIENT);
  check(kiln_graph_compile(graph, NULL, &d.executable), "gradient");
  kiln_graph_release(graph);
  uint64_t random = 7;
  for (size_t i = 0; i < d.list.count; ++i) {
    const weight_spec* spec = &d.list.specs[i];
    const int scale = spec->rank == 1 && !strstr(spec->name, "bias");
    d.weights[i] = allocate(weight_elements(spec), sizeof(double));
    for (size_t j = 0; j < weight_elements(spec); ++j) {
      d.weights[i][j] = 0.4 * random_normal(&random) + scale;
    }
  }
  int32_t tokens[ROWS * (LENGTH + 1)];
  for (int i = 0; i < ROWS * (LENGTH + 1); ++i) tokens[i] = (int32_t)(random_bits(&random) % 11);
  d.tokens = s32_buffer(d.m.device, (int64_t[]){ROWS, LENGTH + 1}, 2, tokens);
  double* gradients[MAX_WEIGHTS];
  loss_of(&d, gradients);
  for (size_t i = 0; i < d.list.count; ++i) {
    double largest = 0, worst = worst_difference(&d, i, gradients[i], &random);
    for (size_t j = 0; j < weight_elements(&d.list.specs[i]); ++j) {
      largest = fmax(largest, fabs(gradients[i][j]));
    }
    if (!(largest > 1e-4) || !(worst <= 1e-8)) {
      printf("%s: the gradient is up to %g, and %g from the differences\n", d.list.specs[i].name,
             largest, worst);
      ++failed_checks;
    }
    free(gradients[i]);
  }
  for (size_t i = 0; i < d.list.count; ++i) free(d.weights[i]);
  kiln_buffer_release(d.tokens);
  kiln_executable_release(d.executable);
  free(d.list.specs);
  release_machine(d.m);
}

/* --- Configurations ----------------------------------------------------------------------------*/

/* Llama 3.2's, with its wavelengths. */
static void test_llama_config(const char* out) {
  static const char kConfig[] =
      "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 2048,\n"
      " \"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,\n"
      " \"head_dim\": 64, \"intermediate_size\": 8192, \"max_position_embeddings\": 131072,\n"
      " \"rms_norm_eps\": 1e-05, \"rope_theta\": 500000.0, \"hidden_act\": \"silu\",\n"
      " \"tie_word_embeddings\": true, \"bos_token_id\": 128000, \"eos_token_id\": [1, 2],\n"
      " \"attention_bias\": false, \"mlp_bias\": false, \"rope_scaling\": {\"factor\": 32.0,\n"
      " \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0, \"rope_type\": \"llama3\",\n"
      " \"original_max_position_embeddings\": 8192}}";
  char* folder = make_test_folder(out, "llama_config");
  char* path = format_text("%s/config.json", folder);
  CHECK(write_file(path, kConfig, strlen(kConfig)) == 0);
  const model_config c = read_config(folder);
  CHECK(c.architecture == LLAMA && c.layers == 16 && c.heads == 32 && c.key_heads == 8);
  CHECK(c.inner == 8192 && c.tied && c.begin == 128000 && c.end_count == 2 && c.ends[1] == 2);
  /* Pairs of short, middle and long wavelengths: 2 pi, 4728, 3.4 million. */
  CHECK(rope_frequency(&c, 0) == 1);
  const double middle = pow(500000, -16.0 / 32), turns = 8192 * middle / (2 * 3.141592653589793);
  const double kept = (turns - 1) / 3;
  CHECK(kept > 0 && kept < 1);
  CHECK(fabs(rope_frequency(&c, 16) / middle - (kept + (1 - kept) / 32)) < 1e-12);
  CHECK(fabs(rope_frequency(&c, 31) / pow(500000, -31.0 / 32) - 1.0 / 32) < 1e-12);
  free(path);
  free(folder);
}

/* --- Types and files ---------------------------------------------------------------------------*/

static float element(kiln_buffer* buffer, kiln_dtype dtype, size_t i) {
  const void* data;
  check(kiln_buffer_data(buffer, &data), "data");
  if (dtype == KILN_S8) return ((const int8_t*)data)[i];
  if (dtype == KILN_F32) return ((const float*)data)[i];
  uint32_t bits = (uint32_t)((const uint16_t*)data)[i] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Each number is within half a step of its type: of s8 a 127th of the largest in the channel. */
static void test_rounding(machine m, int channel) {
  enum { R = 12, C = 40 };
  const weight_spec spec = {"matrix", {R, C}, 2, channel};
  float numbers[R * C];
  uint64_t random = 3;
  for (int i = 0; i < R * C; ++i) {
    const int c = channel == 0 ? i / C : i % C;
    numbers[i] = c == 2 ? 0 : (float)(random_normal(&random) * (1 << c % 9));
  }
  numbers[5 * C + 7] = 0x1.01p-3f; /* halfway between two of bf16; to even */
  model_weight wide = make_weight(&spec, numbers, KILN_F32, m.device);
  model_weight half = make_weight(&spec, numbers, KILN_BF16, m.device);
  model_weight narrow = make_weight(&spec, numbers, KILN_S8, m.device);
  CHECK(element(half.values, KILN_BF16, channel == 0 ? 5 * C + 7 : 7 * R + 5) == 0x1p-3f);
  for (size_t i = 0; i < R * C; ++i) {
    const float x = numbers[i];
    /* Narrow ones are out by in. */
    const size_t at = channel == 0 ? i : i % C * R + i / C;
    CHECK(element(wide.values, KILN_F32, i) == x);
    CHECK(fabsf(element(half.values, KILN_BF16, at) - x) <= fabsf(x) / 256);
    const float scale = element(narrow.scales, KILN_F32, channel == 0 ? i / C : i % C);
    const float q = element(narrow.values, KILN_S8, at);
    CHECK(fabsf(q) <= 127 && fabsf(q * scale - x) <= 0.5001f * scale);
  }
  model_weight weights[] = {wide, half, narrow};
  for (int i = 0; i < 3; ++i) {
    kiln_buffer_release(weights[i].values);
    kiln_buffer_release(weights[i].scales);
  }
}

/* An array of a file in f16: 1, -2, the smallest subnormal, the largest number, and +inf. */
static const uint16_t kHalves[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00};
static const float kHalfValues[] = {1, -2, 0x1p-24f, 65504, INFINITY};

static void write_array(machine m, const char* folder, const char* file, const char* name,
                        kiln_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                        size_t bytes) {
  kiln_buffer* buffer;
  check(kiln_buffer_copy_host(m.device, dtype, dims, rank, data, bytes, &buffer), name);
  const kiln_named_buffer array = {name, strlen(name), buffer};
  char* path = format_text("%s/%s", folder, file);
  check(kiln_safetensors_save(path, strlen(path), &array, 1, NULL), path);
  kiln_buffer_release(buffer);
  free(path);
}

/* Two files by an index, with f16 and with the names of whole GPT-2 models; an array that has its
 * type already is not copied. */
static void test_files(machine m, const char* out) {
  char* folder = make_test_folder(out, "files");
  const int64_t five[] = {5}, square[] = {2, 2};
  const float numbers[] = {1, 2, 3, 4};
  write_array(m, folder, "one.safetensors", "transformer.ln_f.bias", KILN_F16, five, 1, kHalves,
              sizeof kHalves);
  write_array(m, folder, "two.safetensors", "wte.weight", KILN_F32, square, 2, numbers,
              sizeof numbers);
  static const char kIndex[] =
      "{\"metadata\": {}, \"weight_map\": {\"transformer.ln_f.bias\": \"one.safetensors\", "
      "\"wte.weight\": \"two.safetensors\"}}";
  char* path = format_text("%s/model.safetensors.index.json", folder);
  CHECK(write_file(path, kIndex, strlen(kIndex)) == 0);
  weight_spec specs[] = {{"ln_f.bias", {5, 0}, 1, -1}, {"wte.weight", {2, 2}, 2, 0}};
  const weight_list list = {specs, 2};
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, after = KILN_MEMORY_INFO_INIT;
  check(kiln_context_memory(m.context, &before), "memory");
  model_weight* weights = load_weights(&list, folder, KILN_F32, m.context, m.device);
  check(kiln_context_memory(m.context, &after), "memory");
  CHECK(after.live_bytes - before.live_bytes < 256); /* the f16 array alone */
  for (size_t i = 0; i < 5; ++i) {
    CHECK(element(weights[0].values, KILN_F32, i) == kHalfValues[i]);
  }
  for (size_t i = 0; i < 4; ++i) CHECK(element(weights[1].values, KILN_F32, i) == numbers[i]);
  release_weights(weights, 2);
  weights = load_weights(&list, folder, KILN_S8, m.context, m.device);
  CHECK(element(weights[1].values, KILN_S8, 3) == 127);
  CHECK(fabsf(element(weights[1].scales, KILN_F32, 1) * 127 - 4) < 1e-6f);
  release_weights(weights, 2);
  free(path);
  free(folder);
}

void test_conversions(const char* out) {
  machine m = make_machine();
  test_llama_config(out);
  test_rounding(m, 0);
  test_rounding(m, 1);
  test_files(m, out);
  release_machine(m);
}
