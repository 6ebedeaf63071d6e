/* The forward pass of a training step, and its gradient by the chain rule, written by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"
#include "training.h"

typedef kiln_value value;

typedef struct {
  kiln_graph* g;
  const model_config* config;
  const weight_list* list;
  kiln_dtype dtype;
  int64_t batch, length, layer;
  value* weights;
  value* gradients;   /* of the loss by each weight; 0 before the first part */
  value seen;         /* pred[length,length]: what a token attends to */
  value cosine, sine; /* Llama: [length,1,head_size/2] */
} builder;

/* A value and what the gradient needs to know of it. */
typedef struct {
  value out;
  value in;      /* what it was made of */
  value normal;  /* of a normalisation: the input divided by its size */
  value inverse; /* of a normalisation: 1 / size of each row */
} layer_value;

static const int64_t kRows[] = {0}, kColumns[] = {1}, kLast[] = {-1};

/* --- Ops ---------------------------------------------------------------------------------------*/

static value add(const builder* b, value x, value y) { return kiln_nn_add(b->g, x, y); }
static value subtract(const builder* b, value x, value y) { return kiln_nn_subtract(b->g, x, y); }
static value multiply(const builder* b, value x, value y) { return kiln_nn_multiply(b->g, x, y); }
static value number(const builder* b, double x) { return kiln_op_scalar(b->g, b->dtype, x); }
static value scale(const builder* b, value x, double factor) {
  return multiply(b, x, number(b, factor));
}
static value plus(const builder* b, value x, double term) { return add(b, x, number(b, term)); }
static value mean(const builder* b, value x) { return kiln_nn_mean(b->g, x, kLast, 1, 1); }
static value sum_rows(const builder* b, value x) {
  return kiln_op_reduce_by(b->g, x, kRows, 1, KILN_REDUCER_SUM);
}

/* The product that contracts one dimension of each. */
static value dot(const builder* b, value x, int64_t x_dim, value y, int64_t y_dim) {
  return kiln_op_dot(b->g, x, y, NULL, 0, NULL, 0, &x_dim, 1, &y_dim, 1, 0);
}

static size_t numbered(const builder* b, const char* name) {
  char full[96];
  snprintf(full, sizeof full, name, (int)b->layer);
  return find_weight(b->list, full);
}

static value weight(const builder* b, const char* name) { return b->weights[numbered(b, name)]; }

/* Adds a part to the gradient of a weight. */
static void contribute(builder* b, const char* name, value part) {
  value* gradient = &b->gradients[numbered(b, name)];
  *gradient = *gradient ? add(b, *gradient, part) : part;
}

/* --- Products ----------------------------------------------------------------------------------*/

static value product(const builder* b, value x, const char* name) {
  return dot(b, x, 1, weight(b, name), 1 - b->list->specs[numbered(b, name)].channel);
}

/* The gradient of a product by x; the one by the matrix is noted. */
static value product_gradient(builder* b, value x, const char* name, value slope) {
  int channel = b->list->specs[numbered(b, name)].channel;
  contribute(b, name, channel == 1 ? dot(b, x, 0, slope, 0) : dot(b, slope, 0, x, 0));
  return dot(b, slope, 1, weight(b, name), channel);
}

static value dense(const builder* b, value x, const char* matrix, const char* bias) {
  return add(b, product(b, x, matrix), weight(b, bias));
}

static value dense_gradient(builder* b, value x, const char* matrix, const char* bias,
                            value slope) {
  contribute(b, bias, sum_rows(b, slope));
  return product_gradient(b, x, matrix, slope);
}

/* --- Normalisations ----------------------------------------------------------------------------*/

/* LayerNorm, or without a bias RMSNorm. */
static layer_value norm(const builder* b, value x, const char* weight_name, const char* bias) {
  layer_value n = {.in = x};
  value centred = bias ? subtract(b, x, mean(b, x)) : x;
  value square = mean(b, multiply(b, centred, centred));
  n.inverse = kiln_op_rsqrt(b->g, plus(b, square, b->config->epsilon));
  n.normal = multiply(b, centred, n.inverse);
  n.out = multiply(b, n.normal, weight(b, weight_name));
  if (bias) n.out = add(b, n.out, weight(b, bias));
  return n;
}

static value norm_gradient(builder* b, const layer_value* n, const char* weight_name,
                           const char* bias, value slope) {
  contribute(b, weight_name, sum_rows(b, multiply(b, slope, n->normal)));
  if (bias) contribute(b, bias, sum_rows(b, slope));
  value by_normal = multiply(b, slope, weight(b, weight_name));
  value along = mean(b, multiply(b, by_normal, n->normal));
  value rest = subtract(b, by_normal, multiply(b, n->normal, along));
  if (bias) rest = subtract(b, rest, mean(b, by_normal));
  return multiply(b, rest, n->inverse);
}

/* --- Activations -------------------------------------------------------------------------------*/

static const double kGeluScale = 0.7978845608028654; /* sqrt(2 / pi) */
static const double kGeluCube = 0.044715;

static value gelu_tanh(const builder* b, value x) {
  value inner = plus(b, scale(b, multiply(b, x, x), kGeluCube), 1);
  return kiln_op_tanh(b->g, scale(b, multiply(b, x, inner), kGeluScale));
}

static value gelu(const builder* b, value x) {
  return multiply(b, scale(b, x, 0.5), plus(b, gelu_tanh(b, x), 1));
}

static value gelu_gradient(const builder* b, value x, value slope) {
  value t = gelu_tanh(b, x);
  value by_tanh = subtract(b, number(b, 1), multiply(b, t, t));
  value inner = plus(b, scale(b, multiply(b, x, x), 3 * kGeluCube), 1);
  value second = multiply(b, scale(b, x, 0.5 * kGeluScale), multiply(b, by_tanh, inner));
  return multiply(b, slope, add(b, scale(b, plus(b, t, 1), 0.5), second));
}

static value silu_gradient(const builder* b, value x, value slope) {
  value s = kiln_op_logistic(b->g, x);
  value rest = multiply(b, x, subtract(b, number(b, 1), s));
  return multiply(b, slope, multiply(b, s, plus(b, rest, 1)));
}

/* --- Attention ---------------------------------------------------------------------------------*/

static value to_heads(const builder* b, value x, int64_t heads) {
  const int64_t dims[] = {b->batch, b->length, heads, b->config->head_size};
  return kiln_op_reshape(b->g, x, dims, 4);
}

static value to_rows(const builder* b, value x, int64_t width) {
  const int64_t dims[] = {b->batch * b->length, width};
  return kiln_op_reshape(b->g, x, dims, 2);
}

/* Rotates pairs of elements of [batch,length,heads,head_size] by the positions; `back` by their
 * negatives, which is the gradient of the rotation. */
static value rotate(const builder* b, value x, int64_t heads, int back) {
  if (b->config->architecture == GPT2) return x;
  const int64_t size = b->config->head_size, half = size / 2, last = 3;
  const int64_t start[] = {0, 0, 0, 0}, middle[] = {0, 0, 0, half}, stride[] = {1, 1, 1, 1};
  const int64_t limit[] = {b->batch, b->length, heads, half};
  const int64_t end[] = {b->batch, b->length, heads, size};
  value x1 = kiln_op_slice(b->g, x, start, limit, stride, 4);
  value x2 = kiln_op_slice(b->g, x, middle, end, stride, 4);
  value sine = back ? scale(b, b->sine, -1) : b->sine;
  const value halves[] = {subtract(b, multiply(b, x1, b->cosine), multiply(b, x2, sine)),
                          add(b, multiply(b, x2, b->cosine), multiply(b, x1, sine))};
  return kiln_op_concatenate(b->g, halves, 2, &last, 1);
}

/* Queries are seen as [batch,length,key_heads,group,head_size], keys and values as
 * [batch,length,key_heads,head_size], and the weights of the attention as
 * [batch,key_heads,length,group,length]. */
typedef struct {
  value queries, keys, values, weights, out;
} attention_value;

static const int64_t kSequence[] = {0, 2}, kAttention[] = {0, 1};

static value grouped(const builder* b, value x) {
  const model_config* c = b->config;
  const int64_t dims[] = {b->batch, b->length, c->key_heads, c->heads / c->key_heads, c->head_size};
  return kiln_op_reshape(b->g, x, dims, 5);
}

/* Swaps dimensions 1 and 2: between the orders of heads first and positions first. */
static value swap_heads(const builder* b, value x, size_t rank) {
  const int64_t order[] = {0, 2, 1, 3, 4};
  return kiln_op_transpose(b->g, x, order, rank);
}

static value head_dot(const builder* b, value x, const int64_t* x_batch, const int64_t* x_dims,
                      value y, const int64_t* y_dims, size_t count) {
  return kiln_op_dot(b->g, x, y, x_batch, 2, kSequence, 2, x_dims, count, y_dims, count, 0);
}

static attention_value attend(const builder* b, value queries, value keys, value values) {
  attention_value a = {grouped(b, queries), keys, values, 0, 0};
  const int64_t four[] = {4}, three[] = {3}, one[] = {1};
  value logits = head_dot(b, a.queries, kSequence, four, keys, three, 1);
  logits = scale(b, logits, 1 / sqrt((double)b->config->head_size));
  logits = kiln_nn_where(b->g, b->seen, logits, number(b, -1e30));
  a.weights = kiln_nn_softmax(b->g, logits, kLast, 1);
  value mixed = head_dot(b, a.weights, kAttention, four, values, one, 1);
  a.out = to_rows(b, swap_heads(b, mixed, 5), b->config->heads * b->config->head_size);
  return a;
}

/* The gradients of an attention by its queries, keys and values. */
static void attention_gradient(const builder* b, const attention_value* a, value slope,
                               value* by_queries, value* by_keys, value* by_values) {
  const int64_t four[] = {4}, three[] = {3}, one[] = {1}, from[] = {2, 3}, to[] = {1, 3};
  slope = grouped(b, slope);
  value by_weights = head_dot(b, slope, kSequence, four, a->values, three, 1);
  *by_values = swap_heads(b, head_dot(b, a->weights, kAttention, from, slope, to, 2), 4);
  value product = multiply(b, by_weights, a->weights);
  value sum = kiln_op_reduce_by(b->g, product, four, 1, KILN_REDUCER_SUM);
  const int64_t dims[] = {0, 1, 2, 3};
  value sums = kiln_op_broadcast_like(b->g, sum, product, dims, 4);
  value by_logits = subtract(b, product, multiply(b, a->weights, sums));
  by_logits = scale(b, by_logits, 1 / sqrt((double)b->config->head_size));
  value queries = head_dot(b, by_logits, kAttention, four, a->keys, one, 1);
  *by_queries = kiln_op_reshape_like(b->g, swap_heads(b, queries, 5), a->queries);
  *by_keys = swap_heads(b, head_dot(b, by_logits, kAttention, from, a->queries, to, 2), 4);
}

/* --- Layers ------------------------------------------------------------------------------------*/

/* What the gradient needs of a layer. */
typedef struct {
  layer_value first, second; /* the normalisations */
  attention_value attention;
  value gate, up, inner; /* of the perceptron; GPT-2 has no `up` */
} layer;

static value columns(const builder* b, value x, int64_t from, int64_t count) {
  const int64_t start[] = {0, from}, limit[] = {b->batch * b->length, from + count};
  const int64_t stride[] = {1, 1};
  return kiln_op_slice(b->g, x, start, limit, stride, 2);
}

static value gpt2_forward(const builder* b, layer* l, value x) {
  const int64_t width = b->config->width, heads = b->config->heads;
  l->first = norm(b, x, "h.%d.ln_1.weight", "h.%d.ln_1.bias");
  value all = dense(b, l->first.out, "h.%d.attn.c_attn.weight", "h.%d.attn.c_attn.bias");
  value parts[3];
  for (int i = 0; i < 3; ++i) parts[i] = to_heads(b, columns(b, all, i * width, width), heads);
  l->attention = attend(b, parts[0], parts[1], parts[2]);
  x = add(b, x, dense(b, l->attention.out, "h.%d.attn.c_proj.weight", "h.%d.attn.c_proj.bias"));
  l->second = norm(b, x, "h.%d.ln_2.weight", "h.%d.ln_2.bias");
  l->gate = dense(b, l->second.out, "h.%d.mlp.c_fc.weight", "h.%d.mlp.c_fc.bias");
  l->inner = gelu(b, l->gate);
  return add(b, x, dense(b, l->inner, "h.%d.mlp.c_proj.weight", "h.%d.mlp.c_proj.bias"));
}

static value gpt2_backward(builder* b, const layer* l, value slope) {
  const int64_t width = b->config->width, last = 1;
  value inner =
      dense_gradient(b, l->inner, "h.%d.mlp.c_proj.weight", "h.%d.mlp.c_proj.bias", slope);
  inner = gelu_gradient(b, l->gate, inner);
  inner = dense_gradient(b, l->second.out, "h.%d.mlp.c_fc.weight", "h.%d.mlp.c_fc.bias", inner);
  inner = norm_gradient(b, &l->second, "h.%d.ln_2.weight", "h.%d.ln_2.bias", inner);
  slope = add(b, slope, inner);
  value mixed = dense_gradient(b, l->attention.out, "h.%d.attn.c_proj.weight",
                               "h.%d.attn.c_proj.bias", slope);
  value parts[3];
  attention_gradient(b, &l->attention, mixed, &parts[0], &parts[1], &parts[2]);
  for (int i = 0; i < 3; ++i) parts[i] = to_rows(b, parts[i], width);
  value all = kiln_op_concatenate(b->g, parts, 3, &last, 1);
  all = dense_gradient(b, l->first.out, "h.%d.attn.c_attn.weight", "h.%d.attn.c_attn.bias", all);
  return add(b, slope, norm_gradient(b, &l->first, "h.%d.ln_1.weight", "h.%d.ln_1.bias", all));
}

static value llama_forward(const builder* b, layer* l, value x) {
  const int64_t heads = b->config->heads, key_heads = b->config->key_heads;
  l->first = norm(b, x, "model.layers.%d.input_layernorm.weight", NULL);
  value in = l->first.out;
  value q = to_heads(b, product(b, in, "model.layers.%d.self_attn.q_proj.weight"), heads);
  value k = to_heads(b, product(b, in, "model.layers.%d.self_attn.k_proj.weight"), key_heads);
  value v = to_heads(b, product(b, in, "model.layers.%d.self_attn.v_proj.weight"), key_heads);
  l->attention = attend(b, rotate(b, q, heads, 0), rotate(b, k, key_heads, 0), v);
  x = add(b, x, product(b, l->attention.out, "model.layers.%d.self_attn.o_proj.weight"));
  l->second = norm(b, x, "model.layers.%d.post_attention_layernorm.weight", NULL);
  l->gate = product(b, l->second.out, "model.layers.%d.mlp.gate_proj.weight");
  l->up = product(b, l->second.out, "model.layers.%d.mlp.up_proj.weight");
  l->inner = multiply(b, kiln_nn_silu(b->g, l->gate), l->up);
  return add(b, x, product(b, l->inner, "model.layers.%d.mlp.down_proj.weight"));
}

static value llama_backward(builder* b, const layer* l, value slope) {
  const int64_t heads = b->config->heads, key_heads = b->config->key_heads;
  const int64_t size = b->config->head_size;
  value inner = product_gradient(b, l->inner, "model.layers.%d.mlp.down_proj.weight", slope);
  value by_gate = silu_gradient(b, l->gate, multiply(b, inner, l->up));
  value by_up = multiply(b, inner, kiln_nn_silu(b->g, l->gate));
  value in = l->second.out;
  value gate = product_gradient(b, in, "model.layers.%d.mlp.gate_proj.weight", by_gate);
  value up = product_gradient(b, in, "model.layers.%d.mlp.up_proj.weight", by_up);
  slope = add(b, slope,
              norm_gradient(b, &l->second, "model.layers.%d.post_attention_layernorm.weight", NULL,
                            add(b, gate, up)));
  value mixed =
      product_gradient(b, l->attention.out, "model.layers.%d.self_attn.o_proj.weight", slope);
  value q, k, v;
  attention_gradient(b, &l->attention, mixed, &q, &k, &v);
  q = kiln_op_reshape(b->g, q, (int64_t[]){b->batch, b->length, heads, size}, 4);
  q = to_rows(b, rotate(b, q, heads, 1), heads * size);
  k = to_rows(b, rotate(b, k, key_heads, 1), key_heads * size);
  v = to_rows(b, v, key_heads * size);
  in = l->first.out;
  q = product_gradient(b, in, "model.layers.%d.self_attn.q_proj.weight", q);
  k = product_gradient(b, in, "model.layers.%d.self_attn.k_proj.weight", k);
  v = product_gradient(b, in, "model.layers.%d.self_attn.v_proj.weight", v);
  return add(b, slope,
             norm_gradient(b, &l->first, "model.layers.%d.input_layernorm.weight", NULL,
                           add(b, q, add(b, k, v))));
}

/* --- The model ---------------------------------------------------------------------------------*/

static void add_constants(builder* b) {
  const int64_t square[] = {b->length, 1, b->length}, pairs = b->config->head_size / 2;
  b->seen = kiln_op_compare(b->g, kiln_op_iota(b->g, 2, KILN_S32, square, 3),
                            kiln_op_iota(b->g, 0, KILN_S32, square, 3), KILN_LE);
  if (b->config->architecture == GPT2) return;
  const int64_t dims[] = {b->length, 1, pairs};
  size_t count = (size_t)(b->length * pairs);
  double* angles = allocate(count, sizeof(double));
  for (size_t i = 0; i < count; ++i) {
    angles[i] = (double)((int64_t)i / pairs) * rope_frequency(b->config, (int64_t)i % pairs);
  }
  value angle = kiln_op_constant(b->g, KILN_F64, dims, 3, angles, 8 * count);
  free(angles);
  b->cosine = kiln_op_convert(b->g, kiln_op_cosine(b->g, angle), b->dtype);
  b->sine = kiln_op_convert(b->g, kiln_op_sine(b->g, angle), b->dtype);
}

/* Columns of the tokens, as s32[batch * length]. */
static value token_columns(const builder* b, value tokens, int64_t from) {
  const int64_t start[] = {0, from}, limit[] = {b->batch, from + b->length}, stride[] = {1, 1};
  const int64_t rows = b->batch * b->length;
  return kiln_op_reshape(b->g, kiln_op_slice(b->g, tokens, start, limit, stride, 2), &rows, 1);
}

/* The first rows of GPT-2's table of positions, as [1,length,width]. */
static value position_rows(const builder* b) {
  const int64_t start[] = {0, 0}, limit[] = {b->length, b->config->width}, stride[] = {1, 1};
  const int64_t dims[] = {1, b->length, b->config->width};
  value rows = kiln_op_slice(b->g, weight(b, "wpe.weight"), start, limit, stride, 2);
  return kiln_op_reshape(b->g, rows, dims, 3);
}

static value add_positions(const builder* b, value x) {
  const int64_t dims[] = {b->batch, b->length, b->config->width};
  value sum = add(b, kiln_op_reshape(b->g, x, dims, 3), position_rows(b));
  return to_rows(b, sum, b->config->width);
}

static void position_gradient(builder* b, value slope) {
  const int64_t dims[] = {b->batch, b->length, b->config->width};
  const int64_t none[] = {0, 0}, more[] = {b->config->positions - b->length, 0};
  value sum = sum_rows(b, kiln_op_reshape(b->g, slope, dims, 3));
  contribute(b, "wpe.weight", kiln_op_pad(b->g, sum, number(b, 0), none, more, none, 2));
}

typedef struct {
  const char *table, *norm, *bias, *matrix;
} model_names;

static model_names names_of(const model_config* c) {
  model_names n = {"wte.weight", "ln_f.weight", "ln_f.bias", "wte.weight"};
  if (c->architecture == LLAMA) {
    n = (model_names){"model.embed_tokens.weight", "model.norm.weight", NULL,
                      "model.embed_tokens.weight"};
  }
  if (!c->tied) n.matrix = "lm_head.weight";
  return n;
}

/* The mean of -log(probability of the next token), and its gradient by the logits. */
static value cross_entropy(const builder* b, value logits, value targets, value* slope) {
  const double rows = (double)(b->batch * b->length);
  value hits = kiln_nn_one_hot(b->g, targets, b->config->vocabulary, -1, b->dtype);
  value logs = kiln_nn_log_softmax(b->g, logits, kColumns, 1);
  const int64_t both[] = {0, 1};
  value sum = kiln_op_reduce_by(b->g, multiply(b, hits, logs), both, 2, KILN_REDUCER_SUM);
  *slope = scale(b, subtract(b, kiln_op_exponential(b->g, logs), hits), 1 / rows);
  return scale(b, sum, -1 / rows);
}

/* The logits, or the loss and the gradients. */
static value run_model(builder* b, value tokens, int with_gradient) {
  const model_config* c = b->config;
  const model_names n = names_of(c);
  const int gpt2 = c->architecture == GPT2;
  layer* layers = allocate((size_t)c->layers, sizeof(layer));
  value inputs = kiln_nn_one_hot(b->g, token_columns(b, tokens, 0), c->vocabulary, -1, b->dtype);
  value x = dot(b, inputs, 1, weight(b, n.table), 0);
  if (gpt2) x = add_positions(b, x);
  for (b->layer = 0; b->layer < c->layers; ++b->layer) {
    layer* l = &layers[b->layer];
    x = gpt2 ? gpt2_forward(b, l, x) : llama_forward(b, l, x);
  }
  layer_value last = norm(b, x, n.norm, n.bias);
  value result = product(b, last.out, n.matrix);
  if (with_gradient) {
    value slope;
    value logits = result;
    result = cross_entropy(b, logits, token_columns(b, tokens, 1), &slope);
    slope = product_gradient(b, last.out, n.matrix, slope);
    slope = norm_gradient(b, &last, n.norm, n.bias, slope);
    while (b->layer-- > 0) {
      const layer* l = &layers[b->layer];
      slope = gpt2 ? gpt2_backward(b, l, slope) : llama_backward(b, l, slope);
    }
    if (gpt2) position_gradient(b, slope);
    contribute(b, n.table, dot(b, inputs, 0, slope, 0));
  }
  free(layers);
  return result;
}

/* --- Graphs ------------------------------------------------------------------------------------*/

static value parameter(const builder* b, const weight_spec* spec, const char* of) {
  char* name = format_text("%s%s", spec->name, of);
  value v = kiln_op_parameter(b->g, b->dtype, spec->dims, spec->rank, name, strlen(name));
  free(name);
  return v;
}

/* Adam (Kingma and Ba, arXiv:1412.6980). The rate has the corrections of the moments in it. */
static void adam(const builder* b, size_t i, value first, value second, value rate,
                 value* results) {
  const double keep_first = 0.9, keep_second = 0.99, epsilon = 1e-8;
  size_t count = b->list->count;
  value g = b->gradients[i];
  first = add(b, scale(b, first, keep_first), scale(b, g, 1 - keep_first));
  second = add(b, scale(b, second, keep_second), scale(b, multiply(b, g, g), 1 - keep_second));
  value step = kiln_nn_divide(b->g, first, plus(b, kiln_op_sqrt(b->g, second), epsilon));
  results[i] = subtract(b, b->weights[i], multiply(b, step, rate));
  results[count + i] = first;
  results[2 * count + i] = second;
}

kiln_graph* training_graph(kiln_context* context, const model_config* config,
                           const weight_list* list, kiln_dtype dtype, int64_t batch, int64_t length,
                           training_results results) {
  builder b = {.config = config, .list = list, .dtype = dtype, .batch = batch, .length = length};
  size_t count = list->count;
  check(kiln_graph_create(context, "training", 8, &b.g), "graph");
  b.weights = allocate(count, sizeof(value));
  b.gradients = allocate(count, sizeof(value));
  value* moments = allocate(2 * count, sizeof(value));
  value* all = allocate(1 + 3 * count, sizeof(value));
  const int64_t dims[] = {batch, length + 1};
  for (size_t i = 0; i < count; ++i) b.weights[i] = parameter(&b, &list->specs[i], "");
  value tokens = kiln_op_parameter(b.g, KILN_S32, dims, 2, "tokens", 6);
  add_constants(&b);
  all[0] = run_model(&b, tokens, results != TRAINING_LOGITS);
  size_t result_count = 1;
  if (results == TRAINING_GRADIENT) {
    memcpy(all + 1, b.gradients, count * sizeof(value));
    result_count += count;
  } else if (results == TRAINING_STEP) {
    for (size_t i = 0; i < 2 * count; ++i) {
      moments[i] = parameter(&b, &list->specs[i % count], i < count ? ".first" : ".second");
    }
    value rate = kiln_op_parameter(b.g, dtype, NULL, 0, "rate", 4);
    for (size_t i = 0; i < count; ++i) {
      adam(&b, i, moments[i], moments[count + i], rate, all + 1);
    }
    result_count += 3 * count;
  }
  check(kiln_graph_set_results(b.g, all, result_count), "training");
  free(all);
  free(moments);
  free(b.gradients);
  free(b.weights);
  return b.g;
}
