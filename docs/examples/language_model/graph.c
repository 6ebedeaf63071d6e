#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

/* Builder functions need no checks of their own: after an error they return 0, and the functions
 * that take the graph return the first error. */

typedef struct {
  kiln_graph* g;
  const model_config* config;
  const weight_list* list;
  kiln_dtype dtype;             /* of the matrices */
  kiln_value *weights, *scales; /* of each array of the list; a scale may be 0 */
  int64_t layer;
  int64_t tokens, capacity;
  kiln_value position;
  kiln_value seen;         /* pred[tokens,capacity]: what a token attends to */
  kiln_value cosine, sine; /* Llama: f32[tokens,head_size/2] */
  kiln_value* caches;      /* keys and values of each layer */
} builder;

static const int64_t kFirst[] = {0}, kLast[] = {-1};

/* --- Weights -----------------------------------------------------------------------------------*/

static kiln_value parameter(builder* b, const char* name, kiln_dtype dtype, const int64_t* dims,
                            size_t rank) {
  return kiln_op_parameter(b->g, dtype, dims, rank, name, strlen(name));
}

static void add_weights(builder* b) {
  const kiln_dtype dtype = b->dtype;
  for (size_t i = 0; i < b->list->count; ++i) {
    const weight_spec* spec = &b->list->specs[i];
    if (dtype == KILN_F32 || spec->channel < 0) {
      b->weights[i] = parameter(b, spec->name, KILN_F32, spec->dims, spec->rank);
      continue;
    }
    const int64_t out_in[] = {spec->dims[spec->channel], spec->dims[1 - spec->channel]};
    b->weights[i] = parameter(b, spec->name, dtype, out_in, 2);
    if (dtype == KILN_S8) {
      char* name = format_text("%s.scale", spec->name);
      b->scales[i] = parameter(b, name, KILN_F32, out_in, 1);
      free(name);
    }
  }
}

/* The number of an array of the current layer, if the name has a "%d". */
static size_t numbered(const builder* b, const char* name) {
  char full[96];
  snprintf(full, sizeof full, name, (int)b->layer);
  return find_weight(b->list, full);
}

static kiln_value vector(const builder* b, const char* name) {
  return b->weights[numbered(b, name)];
}

static kiln_value to_f32(const builder* b, kiln_value value) {
  return kiln_op_convert(b->g, value, KILN_F32);
}

/* x by a matrix. The compiler converts a narrow one on the way from memory to the product. */
static kiln_value product(const builder* b, kiln_value x, const char* name) {
  size_t i = numbered(b, name);
  const int64_t x_dim = 1, w_dim = b->dtype == KILN_F32 ? 1 - b->list->specs[i].channel : 1;
  kiln_value y =
      kiln_op_dot(b->g, x, to_f32(b, b->weights[i]), NULL, 0, NULL, 0, &x_dim, 1, &w_dim, 1, 0);
  return b->scales[i] ? kiln_nn_multiply(b->g, y, b->scales[i]) : y;
}

/* The rows of a table at the tokens. */
static kiln_value rows(const builder* b, const char* name, kiln_value tokens) {
  size_t i = numbered(b, name);
  kiln_value values = to_f32(b, kiln_nn_take(b->g, b->weights[i], tokens, 0, KILN_TAKE_CLIP));
  if (!b->scales[i]) return values;
  kiln_value scales = kiln_nn_take(b->g, b->scales[i], tokens, 0, KILN_TAKE_CLIP);
  return kiln_op_multiply(b->g, values, kiln_op_broadcast_like(b->g, scales, values, kFirst, 1));
}

/* --- Attention ---------------------------------------------------------------------------------*/

static kiln_value reshape3(const builder* b, kiln_value x, int64_t heads) {
  const int64_t dims[] = {b->tokens, heads, b->config->head_size};
  return kiln_op_reshape(b->g, x, dims, 3);
}

/* The values of x from a column on. */
static kiln_value columns(const builder* b, kiln_value x, int64_t from, int64_t count) {
  const int64_t start[] = {0, from}, limit[] = {b->tokens, from + count}, stride[] = {1, 1};
  return kiln_op_slice(b->g, x, start, limit, stride, 2);
}

/* Puts the rows into a cache, which is updated in its place. */
static kiln_value remember(builder* b, int which, kiln_value rows_of_heads) {
  kiln_value* cache = &b->caches[2 * b->layer + which];
  kiln_value zero = kiln_op_scalar(b->g, KILN_S32, 0);
  const kiln_value at[] = {b->position, zero, zero};
  *cache = kiln_op_dynamic_update_slice(b->g, *cache, rows_of_heads, at, 3);
  return *cache;
}

/* The attention of the tokens, whose queries, keys and values are f32[tokens, heads, head_size], to
 * themselves and all before them. */
static kiln_value attention(builder* b, kiln_value queries, kiln_value keys, kiln_value values) {
  const model_config* c = b->config;
  kiln_attention_options options = KILN_ATTENTION_OPTIONS_INIT;
  options.mask = b->seen;
  kiln_value all_keys = remember(b, 0, keys), all_values = remember(b, 1, values);
  kiln_value mixed = kiln_nn_attention(b->g, queries, all_keys, all_values, &options);
  const int64_t dims[] = {b->tokens, c->heads * c->head_size};
  return kiln_op_reshape(b->g, mixed, dims, 2);
}

/* A token attends to the positions up to its own. */
static void add_mask(builder* b) {
  const int64_t dims[] = {b->tokens, b->capacity};
  kiln_value key = kiln_op_iota(b->g, 1, KILN_S32, dims, 2);
  kiln_value query = kiln_op_iota(b->g, 0, KILN_S32, dims, 2);
  b->seen = kiln_op_compare(b->g, key, kiln_nn_add(b->g, query, b->position), KILN_LE);
}

/* The rotations of Llama's heads: the position times a frequency for each pair of elements. */
static void add_rotations(builder* b) {
  int64_t pairs = b->config->head_size / 2;
  float* frequencies = allocate((size_t)pairs, sizeof(float));
  for (int64_t i = 0; i < pairs; ++i) {
    frequencies[i] = (float)rope_frequency(b->config, i);
  }
  kiln_value frequency =
      kiln_op_constant(b->g, KILN_F32, &pairs, 1, frequencies, 4 * (size_t)pairs);
  free(frequencies);
  const int64_t dims[] = {b->tokens, pairs};
  kiln_value row = kiln_op_iota(b->g, 0, KILN_S32, dims, 2);
  kiln_value position = to_f32(b, kiln_nn_add(b->g, row, b->position));
  kiln_value angle = kiln_nn_multiply(b->g, position, frequency);
  b->cosine = kiln_op_cosine(b->g, angle);
  b->sine = kiln_op_sine(b->g, angle);
}

/* Rotates element i of each head with element i + head_size / 2. */
static kiln_value rotate(const builder* b, kiln_value x, int64_t heads) {
  const int64_t size = b->config->head_size, start[] = {0, 0, 0}, middle[] = {0, 0, size / 2};
  const int64_t limit[] = {b->tokens, heads, size / 2}, end[] = {b->tokens, heads, size};
  const int64_t stride[] = {1, 1, 1}, along[] = {0, 2}, last = 2;
  x = reshape3(b, x, heads);
  kiln_value x1 = kiln_op_slice(b->g, x, start, limit, stride, 3);
  kiln_value x2 = kiln_op_slice(b->g, x, middle, end, stride, 3);
  kiln_value cosine = kiln_op_broadcast_like(b->g, b->cosine, x1, along, 2);
  kiln_value sine = kiln_op_broadcast_like(b->g, b->sine, x1, along, 2);
  const kiln_value halves[] = {
      kiln_op_subtract(b->g, kiln_op_multiply(b->g, x1, cosine), kiln_op_multiply(b->g, x2, sine)),
      kiln_op_add(b->g, kiln_op_multiply(b->g, x2, cosine), kiln_op_multiply(b->g, x1, sine))};
  return kiln_op_concatenate(b->g, halves, 2, &last, 1);
}

/* --- Layers ------------------------------------------------------------------------------------*/

static kiln_value layer_norm(const builder* b, kiln_value x, const char* weight, const char* bias) {
  return kiln_nn_layer_norm(b->g, x, vector(b, weight), vector(b, bias), kLast, 1,
                            b->config->epsilon);
}

static kiln_value rms_norm(const builder* b, kiln_value x, const char* weight) {
  return kiln_nn_rms_norm(b->g, x, vector(b, weight), kLast, 1, b->config->epsilon);
}

static kiln_value dense(const builder* b, kiln_value x, const char* weight, const char* bias) {
  return kiln_nn_add(b->g, product(b, x, weight), vector(b, bias));
}

static kiln_value gpt2_layer(builder* b, kiln_value x) {
  const int64_t width = b->config->width, heads = b->config->heads;
  kiln_value normal = layer_norm(b, x, "h.%d.ln_1.weight", "h.%d.ln_1.bias");
  kiln_value all = dense(b, normal, "h.%d.attn.c_attn.weight", "h.%d.attn.c_attn.bias");
  kiln_value parts[3];
  for (int i = 0; i < 3; ++i) parts[i] = reshape3(b, columns(b, all, i * width, width), heads);
  kiln_value mixed = attention(b, parts[0], parts[1], parts[2]);
  x = kiln_op_add(b->g, x, dense(b, mixed, "h.%d.attn.c_proj.weight", "h.%d.attn.c_proj.bias"));
  normal = layer_norm(b, x, "h.%d.ln_2.weight", "h.%d.ln_2.bias");
  kiln_value inner = dense(b, normal, "h.%d.mlp.c_fc.weight", "h.%d.mlp.c_fc.bias");
  inner = kiln_nn_gelu(b->g, inner, 1);
  return kiln_op_add(b->g, x, dense(b, inner, "h.%d.mlp.c_proj.weight", "h.%d.mlp.c_proj.bias"));
}

static kiln_value llama_layer(builder* b, kiln_value x) {
  const int64_t heads = b->config->heads, key_heads = b->config->key_heads;
  kiln_value normal = rms_norm(b, x, "model.layers.%d.input_layernorm.weight");
  kiln_value q = product(b, normal, "model.layers.%d.self_attn.q_proj.weight");
  kiln_value k = product(b, normal, "model.layers.%d.self_attn.k_proj.weight");
  kiln_value v = product(b, normal, "model.layers.%d.self_attn.v_proj.weight");
  kiln_value mixed =
      attention(b, rotate(b, q, heads), rotate(b, k, key_heads), reshape3(b, v, key_heads));
  x = kiln_op_add(b->g, x, product(b, mixed, "model.layers.%d.self_attn.o_proj.weight"));
  normal = rms_norm(b, x, "model.layers.%d.post_attention_layernorm.weight");
  kiln_value gate = product(b, normal, "model.layers.%d.mlp.gate_proj.weight");
  kiln_value up = product(b, normal, "model.layers.%d.mlp.up_proj.weight");
  kiln_value inner = kiln_op_multiply(b->g, kiln_nn_silu(b->g, gate), up);
  return kiln_op_add(b->g, x, product(b, inner, "model.layers.%d.mlp.down_proj.weight"));
}

/* --- Steps -------------------------------------------------------------------------------------*/

/* The vectors of the tokens before the first layer. */
static kiln_value embedded(builder* b, kiln_value tokens) {
  if (b->config->architecture == LLAMA) return rows(b, "model.embed_tokens.weight", tokens);
  kiln_value number = kiln_op_iota(b->g, 0, KILN_S32, &b->tokens, 1);
  kiln_value positions = kiln_nn_add(b->g, number, b->position);
  return kiln_op_add(b->g, rows(b, "wte.weight", tokens), rows(b, "wpe.weight", positions));
}

/* The logits of the next token after token `last`. */
static kiln_value logits_of(builder* b, kiln_value x, kiln_value last) {
  const kiln_value at[] = {last, kiln_op_scalar(b->g, KILN_S32, 0)};
  const int64_t row[] = {1, b->config->width};
  x = kiln_op_dynamic_slice(b->g, x, at, 2, row, 2);
  int gpt2 = b->config->architecture == GPT2;
  x = gpt2 ? layer_norm(b, x, "ln_f.weight", "ln_f.bias") : rms_norm(b, x, "model.norm.weight");
  const char* matrix = !b->config->tied ? "lm_head.weight"
                       : gpt2           ? "wte.weight"
                                        : "model.embed_tokens.weight";
  return kiln_op_reshape(b->g, product(b, x, matrix), &b->config->vocabulary, 1);
}

static void set_results(builder* b, kiln_value logits) {
  size_t count = STEP_NEW_CACHES + 2 * (size_t)b->config->layers;
  kiln_value* results = allocate(count, sizeof(kiln_value));
  results[STEP_LOGITS] = logits;
  memcpy(results + STEP_NEW_CACHES, b->caches, 2 * (size_t)b->config->layers * sizeof(kiln_value));
  check(kiln_graph_set_results(b->g, results, count), "graph");
  free(results);
}

kiln_graph* step_graph(kiln_context* context, const model_config* config, const weight_list* list,
                       kiln_dtype dtype, int64_t tokens, int64_t capacity) {
  builder b = {
      .config = config, .list = list, .dtype = dtype, .tokens = tokens, .capacity = capacity};
  const char* name = tokens == 1 ? "decode" : "prefill";
  check(kiln_graph_create(context, name, strlen(name), &b.g), "graph");
  kiln_value ids = parameter(&b, "tokens", KILN_S32, &tokens, 1);
  b.position = parameter(&b, "position", KILN_S32, NULL, 0);
  kiln_value last = parameter(&b, "last", KILN_S32, NULL, 0);
  const int64_t cache[] = {capacity, config->key_heads, config->head_size};
  b.caches = allocate(2 * (size_t)config->layers, sizeof(kiln_value));
  for (int64_t i = 0; i < 2 * config->layers; ++i) {
    b.caches[i] = parameter(&b, i % 2 ? "values" : "keys", KILN_F32, cache, 3);
  }
  b.weights = allocate(list->count, sizeof(kiln_value));
  b.scales = allocate(list->count, sizeof(kiln_value));
  add_weights(&b);

  add_mask(&b);
  if (config->architecture == LLAMA) add_rotations(&b);
  kiln_value x = embedded(&b, ids);
  for (b.layer = 0; b.layer < config->layers; ++b.layer) {
    char scope[32];
    int length = snprintf(scope, sizeof scope, "layer%d", (int)b.layer);
    check(kiln_graph_push_name_scope(b.g, scope, (size_t)length), scope);
    x = config->architecture == GPT2 ? gpt2_layer(&b, x) : llama_layer(&b, x);
    check(kiln_graph_pop_name_scope(b.g), scope);
  }
  set_results(&b, logits_of(&b, x, last));
  free(b.caches);
  free(b.weights);
  free(b.scales);
  return b.g;
}
