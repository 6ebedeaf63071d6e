#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

json_value* read_json(const char* path, char** text) {
  size_t size = 0, position = 0;
  const char* error = NULL;
  *text = read_file(path, &size);
  if (!*text) return NULL;
  json_value* value = json_parse(*text, size, &error, &position);
  if (!value) fail("%s: byte %zu: %s", path, position, error);
  return value;
}

static int64_t size_of(const json_value* json, const char* key, int64_t absent) {
  double value = json_number(json, key, (double)absent);
  if (!(value >= 1 && value <= 1 << 30) || value != (double)(int64_t)value) {
    fail("config.json: \"%s\" must be a size", key);
  }
  return (int64_t)value;
}

/* A token, or a list of tokens. */
static void read_ends(const json_value* json, model_config* c) {
  const json_value* end = json_member(json, "eos_token_id");
  if (end && end->kind == JSON_ARRAY) end = end->first;
  for (; end && c->end_count < 4; end = end->next) {
    if (end->kind == JSON_NUMBER) c->ends[c->end_count++] = (int64_t)end->number;
    if (end->key) return; /* the token was no list */
  }
}

static void read_gpt2(const json_value* json, model_config* c) {
  c->width = size_of(json, "n_embd", 768);
  c->layers = size_of(json, "n_layer", 12);
  c->heads = c->key_heads = size_of(json, "n_head", 12);
  c->head_size = c->width / c->heads;
  c->inner = size_of(json, "n_inner", 4 * c->width);
  c->positions = size_of(json, "n_positions", 1024);
  c->epsilon = json_number(json, "layer_norm_epsilon", 1e-5);
  c->tied = json_bool(json, "tie_word_embeddings", 1);
  const char* activation = json_text(json, "activation_function", "gelu_new");
  if (strcmp(activation, "gelu_new") != 0 && strcmp(activation, "gelu_pytorch_tanh") != 0) {
    fail("config.json: activation_function \"%s\" is not supported", activation);
  }
}

static void read_rope_scaling(const json_value* scaling, model_config* c) {
  const char* type = json_text(scaling, "rope_type", json_text(scaling, "type", ""));
  if (strcmp(type, "llama3") != 0) fail("config.json: rope_scaling \"%s\" is not supported", type);
  c->rope_factor = json_number(scaling, "factor", 8);
  c->rope_low = json_number(scaling, "low_freq_factor", 1);
  c->rope_high = json_number(scaling, "high_freq_factor", 4);
  c->rope_positions = json_number(scaling, "original_max_position_embeddings", 8192);
  if (!(c->rope_factor > 0 && c->rope_low > 0 && c->rope_high > c->rope_low)) {
    fail("config.json: the factors of rope_scaling do not fit");
  }
}

double rope_frequency(const model_config* c, int64_t i) {
  const double pi = 3.141592653589793;
  const double frequency = pow(c->rope_theta, -2 * (double)i / (double)c->head_size);
  if (c->rope_factor == 0) return frequency;
  /* From 0, for long wavelengths, to 1. */
  const double turns = c->rope_positions * frequency / (2 * pi);
  const double kept = fmin(fmax((turns - c->rope_low) / (c->rope_high - c->rope_low), 0), 1);
  return frequency * (kept + (1 - kept) / c->rope_factor);
}

static void read_llama(const json_value* json, model_config* c) {
  c->width = size_of(json, "hidden_size", 4096);
  c->layers = size_of(json, "num_hidden_layers", 32);
  c->heads = size_of(json, "num_attention_heads", 32);
  c->key_heads = size_of(json, "num_key_value_heads", c->heads);
  c->head_size = size_of(json, "head_dim", c->width / c->heads);
  c->inner = size_of(json, "intermediate_size", 11008);
  c->positions = size_of(json, "max_position_embeddings", 2048);
  c->epsilon = json_number(json, "rms_norm_eps", 1e-6);
  c->rope_theta = json_number(json, "rope_theta", 10000);
  c->tied = json_bool(json, "tie_word_embeddings", 0);
  c->begin = (int64_t)json_number(json, "bos_token_id", -1);
  const char* activation = json_text(json, "hidden_act", "silu");
  if (strcmp(activation, "silu") != 0) {
    fail("config.json: hidden_act \"%s\" is not supported", activation);
  }
  const json_value* scaling = json_member(json, "rope_scaling");
  if (scaling && scaling->kind != JSON_NULL) read_rope_scaling(scaling, c);
  if (json_bool(json, "attention_bias", 0) || json_bool(json, "mlp_bias", 0)) {
    fail("config.json: biases are not supported in a Llama");
  }
}

model_config read_config(const char* folder) {
  char *path = format_text("%s/config.json", folder), *text;
  json_value* json = read_json(path, &text);
  if (!json) fail("%s: there is no such file", path);
  model_config c = {.begin = -1};
  const char* type = json_text(json, "model_type", "");
  c.vocabulary = size_of(json, "vocab_size", 50257);
  if (strcmp(type, "gpt2") == 0) {
    c.architecture = GPT2;
    read_gpt2(json, &c);
  } else if (strcmp(type, "llama") == 0) {
    c.architecture = LLAMA;
    read_llama(json, &c);
  } else {
    fail("%s: model_type \"%s\" is neither gpt2 nor llama", path, type);
  }
  read_ends(json, &c);
  if (c.heads % c.key_heads != 0 || c.head_size % 2 != 0 ||
      (c.architecture == GPT2 && c.heads * c.head_size != c.width)) {
    fail("%s: the sizes of the heads do not fit", path);
  }
  json_free(json);
  free(text);
  free(path);
  return c;
}

void write_config(const model_config* c, const char* folder) {
  char* text;
  if (c->architecture == GPT2) {
    text = format_text(
        "{\n  \"model_type\": \"gpt2\",\n  \"vocab_size\": %" PRId64 ",\n  \"n_embd\": %" PRId64
        ",\n  \"n_layer\": %" PRId64 ",\n  \"n_head\": %" PRId64 ",\n  \"n_inner\": %" PRId64
        ",\n  \"n_positions\": %" PRId64
        ",\n  \"layer_norm_epsilon\": %g,\n  \"activation_function\": \"gelu_new\",\n"
        "  \"tie_word_embeddings\": %s\n}\n",
        c->vocabulary, c->width, c->layers, c->heads, c->inner, c->positions, c->epsilon,
        c->tied ? "true" : "false");
  } else {
    text = format_text(
        "{\n  \"model_type\": \"llama\",\n  \"vocab_size\": %" PRId64
        ",\n  \"hidden_size\": %" PRId64 ",\n  \"num_hidden_layers\": %" PRId64
        ",\n  \"num_attention_heads\": %" PRId64 ",\n  \"num_key_value_heads\": %" PRId64
        ",\n  \"head_dim\": %" PRId64 ",\n  \"intermediate_size\": %" PRId64
        ",\n  \"max_position_embeddings\": %" PRId64
        ",\n  \"rms_norm_eps\": %g,\n  \"rope_theta\": %g,\n  \"hidden_act\": \"silu\",\n"
        "  \"tie_word_embeddings\": %s\n}\n",
        c->vocabulary, c->width, c->layers, c->heads, c->key_heads, c->head_size, c->inner,
        c->positions, c->epsilon, c->rope_theta, c->tied ? "true" : "false");
  }
  char* path = format_text("%s/config.json", folder);
  int error = write_file(path, text, strlen(text));
  if (error) fail("%s: %s", path, strerror(error));
  free(path);
  free(text);
}
