#include "weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

/* --- Names and shapes --------------------------------------------------------------------------*/

static void add_array(weight_list* list, int64_t layer, const char* name, int64_t rows,
                      int64_t columns, int channel) {
  weight_spec* spec = &list->specs[list->count++];
  if (layer < 0) {
    snprintf(spec->name, sizeof spec->name, "%s", name);
  } else {
    snprintf(spec->name, sizeof spec->name, name, (int)layer);
  }
  spec->dims[0] = rows;
  spec->dims[1] = columns;
  spec->rank = columns ? 2 : 1;
  spec->channel = channel;
}

static void add_vector(weight_list* list, int64_t layer, const char* name, int64_t size) {
  add_array(list, layer, name, size, 0, -1);
}

/* A module of GPT-2 with a weight and a bias. The weight is in by out, transposed from the form of
 * other models. */
static void add_gpt2_dense(weight_list* list, int64_t layer, const char* weight, const char* bias,
                           int64_t in, int64_t out) {
  add_array(list, layer, weight, in, out, 1);
  add_vector(list, layer, bias, out);
}

static void list_gpt2(const model_config* c, weight_list* list) {
  add_array(list, -1, "wte.weight", c->vocabulary, c->width, 0);
  add_array(list, -1, "wpe.weight", c->positions, c->width, -1);
  for (int64_t i = 0; i < c->layers; ++i) {
    add_vector(list, i, "h.%d.ln_1.weight", c->width);
    add_vector(list, i, "h.%d.ln_1.bias", c->width);
    add_gpt2_dense(list, i, "h.%d.attn.c_attn.weight", "h.%d.attn.c_attn.bias", c->width,
                   3 * c->width);
    add_gpt2_dense(list, i, "h.%d.attn.c_proj.weight", "h.%d.attn.c_proj.bias", c->width, c->width);
    add_vector(list, i, "h.%d.ln_2.weight", c->width);
    add_vector(list, i, "h.%d.ln_2.bias", c->width);
    add_gpt2_dense(list, i, "h.%d.mlp.c_fc.weight", "h.%d.mlp.c_fc.bias", c->width, c->inner);
    add_gpt2_dense(list, i, "h.%d.mlp.c_proj.weight", "h.%d.mlp.c_proj.bias", c->inner, c->width);
  }
  add_vector(list, -1, "ln_f.weight", c->width);
  add_vector(list, -1, "ln_f.bias", c->width);
}

static void list_llama(const model_config* c, weight_list* list) {
  int64_t queries = c->heads * c->head_size, keys = c->key_heads * c->head_size;
  add_array(list, -1, "model.embed_tokens.weight", c->vocabulary, c->width, 0);
  for (int64_t i = 0; i < c->layers; ++i) {
    add_vector(list, i, "model.layers.%d.input_layernorm.weight", c->width);
    add_array(list, i, "model.layers.%d.self_attn.q_proj.weight", queries, c->width, 0);
    add_array(list, i, "model.layers.%d.self_attn.k_proj.weight", keys, c->width, 0);
    add_array(list, i, "model.layers.%d.self_attn.v_proj.weight", keys, c->width, 0);
    add_array(list, i, "model.layers.%d.self_attn.o_proj.weight", c->width, queries, 0);
    add_vector(list, i, "model.layers.%d.post_attention_layernorm.weight", c->width);
    add_array(list, i, "model.layers.%d.mlp.gate_proj.weight", c->inner, c->width, 0);
    add_array(list, i, "model.layers.%d.mlp.up_proj.weight", c->inner, c->width, 0);
    add_array(list, i, "model.layers.%d.mlp.down_proj.weight", c->width, c->inner, 0);
  }
  add_vector(list, -1, "model.norm.weight", c->width);
}

weight_list list_weights(const model_config* c) {
  weight_list list = {allocate(16 + 12 * (size_t)c->layers, sizeof(weight_spec)), 0};
  if (c->architecture == GPT2) {
    list_gpt2(c, &list);
  } else {
    list_llama(c, &list);
  }
  if (!c->tied) add_array(&list, -1, "lm_head.weight", c->vocabulary, c->width, 0);
  return list;
}

size_t weight_elements(const weight_spec* spec) {
  return (size_t)(spec->dims[0] * (spec->rank == 2 ? spec->dims[1] : 1));
}

size_t find_weight(const weight_list* list, const char* name) {
  for (size_t i = 0; i < list->count; ++i) {
    if (strcmp(list->specs[i].name, name) == 0) return i;
  }
  fail("the model has no array %s", name);
}

/* --- Conversion --------------------------------------------------------------------------------*/

static float f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float f32_of_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
  if (rest >= 0x7c00) return f32_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  /* As a subnormal f32 it has the right digits and a wrong exponent. */
  return f32_of_bits(sign | bits_of_f32(f32_of_bits(rest << 13) * 0x1p112f));
}

/* To nearest even. */
static uint16_t bf16_of_f32(float value) {
  uint32_t bits = bits_of_f32(value);
  if (value != value) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A matrix as out by in, whatever it is in the file. The numbers are freed. Large buffers of the
 * library are in huge pages, so this is better than memory of malloc(). */
static kiln_buffer* narrow_buffer(const weight_spec* spec, kiln_dtype dtype, void* numbers,
                                  kiln_device* device) {
  const int64_t dims[] = {spec->dims[spec->channel], spec->dims[1 - spec->channel]};
  const size_t bytes = weight_elements(spec) * (size_t)kiln_dtype_bits(dtype) / 8;
  kiln_buffer* buffer;
  check(kiln_buffer_copy_host(device, dtype, dims, 2, numbers, bytes, &buffer), spec->name);
  free(numbers);
  return buffer;
}

/* Each element is rounded to a multiple of its row's scale, a 127th of the largest. */
static model_weight quantize(const weight_spec* spec, const float* numbers, kiln_device* device) {
  const int64_t rows = spec->dims[spec->channel];
  const size_t columns = (size_t)spec->dims[1 - spec->channel];
  float* scales = allocate((size_t)rows, sizeof(float));
  int8_t* narrow = allocate((size_t)rows * columns, 1);
  for (size_t i = 0; i < (size_t)rows; ++i) {
    const float* row = numbers + i * columns;
    float most = 0;
    for (size_t j = 0; j < columns; ++j) most = fmaxf(most, fabsf(row[j]));
    const float factor = most > 0 ? 127 / most : 0;
    for (size_t j = 0; j < columns; ++j) {
      const float value = row[j] * factor;
      narrow[i * columns + j] = (int8_t)(value + (value < 0 ? -0.5f : 0.5f));
    }
    scales[i] = most / 127;
  }
  model_weight weight = {narrow_buffer(spec, KILN_S8, narrow, device),
                         f32_buffer(device, &rows, 1, scales)};
  free(scales);
  return weight;
}

static model_weight to_bf16(const weight_spec* spec, const float* numbers, kiln_device* device) {
  const size_t count = weight_elements(spec);
  uint16_t* narrow = allocate(count, sizeof(uint16_t));
  for (size_t i = 0; i < count; ++i) narrow[i] = bf16_of_f32(numbers[i]);
  return (model_weight){narrow_buffer(spec, KILN_BF16, narrow, device), NULL};
}

/* In squares, whose rows and columns fit the caches. */
static float* transposed(const float* numbers, size_t rows, size_t columns) {
  enum { SIDE = 32 };
  float* result = allocate(rows * columns, sizeof(float));
  for (size_t i0 = 0; i0 < rows; i0 += SIDE) {
    for (size_t j0 = 0; j0 < columns; j0 += SIDE) {
      for (size_t i = i0; i < i0 + SIDE && i < rows; ++i) {
        for (size_t j = j0; j < j0 + SIDE && j < columns; ++j) {
          result[j * rows + i] = numbers[i * columns + j];
        }
      }
    }
  }
  return result;
}

model_weight make_weight(const weight_spec* spec, const float* numbers, kiln_dtype dtype,
                         kiln_device* device) {
  if (dtype == KILN_F32 || spec->channel < 0) {
    return (model_weight){f32_buffer(device, spec->dims, spec->rank, numbers), NULL};
  }
  float* other = NULL;
  if (spec->channel == 1) {
    other = transposed(numbers, (size_t)spec->dims[0], (size_t)spec->dims[1]);
    numbers = other;
  }
  model_weight weight =
      dtype == KILN_S8 ? quantize(spec, numbers, device) : to_bf16(spec, numbers, device);
  free(other);
  return weight;
}

/* --- Files -------------------------------------------------------------------------------------*/

enum { MAX_FILES = 256 };

typedef struct {
  kiln_safetensors* files[MAX_FILES];
  size_t count;
} weight_files;

static void open_file(weight_files* files, const char* folder, const char* name) {
  char* path = format_text("%s/%s", folder, name);
  if (files->count == MAX_FILES) fail("%s: too many files", folder);
  check(kiln_safetensors_open(path, strlen(path), &files->files[files->count++]), path);
  free(path);
}

static int compare_texts(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

/* Opens model.safetensors, or each of the files of the index once. */
static weight_files open_files(const char* folder) {
  weight_files files = {{NULL}, 0};
  char* path = format_text("%s/model.safetensors.index.json", folder);
  char* text;
  json_value* index = read_json(path, &text);
  if (index) {
    const json_value* map = json_member(index, "weight_map");
    size_t count = 0;
    for (const json_value* m = map ? map->first : NULL; m; m = m->next) ++count;
    const char** names = allocate(count, sizeof(char*));
    count = 0;
    for (const json_value* m = map ? map->first : NULL; m; m = m->next) {
      if (m->kind != JSON_STRING || strchr(m->text, '/')) fail("%s: no name of a file", path);
      names[count++] = m->text;
    }
    qsort(names, count, sizeof(char*), compare_texts);
    for (size_t i = 0; i < count; ++i) {
      if (i == 0 || strcmp(names[i - 1], names[i]) != 0) open_file(&files, folder, names[i]);
    }
    free(names);
    json_free(index);
    free(text);
  } else {
    open_file(&files, folder, "model.safetensors");
  }
  free(path);
  return files;
}

/* The file that has an array, under its name or with "transformer." before it, as in files of
 * whole GPT-2 models. */
static const kiln_safetensors* find_array(const weight_files* files, const char* name, char* found,
                                          size_t* index) {
  static const char* const kPrefixes[] = {"", "transformer."};
  for (size_t p = 0; p < 2; ++p) {
    snprintf(found, 128, "%s%s", kPrefixes[p], name);
    for (size_t f = 0; f < files->count; ++f) {
      kiln_error* error = kiln_safetensors_find(files->files[f], found, strlen(found), index);
      if (!error) return files->files[f];
      kiln_error_release(error);
    }
  }
  fail("the files have no array %s", name);
}

static float* numbers_of(const weight_spec* spec, kiln_dtype dtype, const void* data) {
  size_t count = weight_elements(spec);
  float* numbers = allocate(count, sizeof(float));
  const uint16_t* halves = data;
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = dtype == KILN_F32    ? ((const float*)data)[i]
                 : dtype == KILN_BF16 ? f32_of_bits((uint32_t)halves[i] << 16)
                                      : f32_of_f16(halves[i]);
  }
  return numbers;
}

static model_weight load_weight(const weight_spec* spec, const weight_files* files,
                                kiln_dtype dtype, kiln_device* device, kiln_device* host) {
  char name[128];
  size_t index;
  const kiln_safetensors* file = find_array(files, spec->name, name, &index);
  kiln_shape shape = KILN_SHAPE_INIT;
  check(kiln_safetensors_shape(file, index, &shape), name);
  if (shape.rank != spec->rank || memcmp(shape.dims, spec->dims, 8 * spec->rank) != 0) {
    fail("%s is not of the sizes that config.json demands", name);
  }
  if (shape.dtype != KILN_F32 && shape.dtype != KILN_BF16 && shape.dtype != KILN_F16) {
    fail("%s is of type %s", name, kiln_dtype_name(shape.dtype));
  }
  model_weight weight = {NULL, NULL};
  kiln_dtype wanted = spec->channel < 0 ? KILN_F32 : dtype;
  /* Narrow matrices are held as out by in. */
  const int as_it_is = shape.dtype == wanted && (wanted == KILN_F32 || spec->channel == 0);
  check(kiln_safetensors_buffer(file, name, strlen(name), as_it_is ? device : host, &weight.values),
        name);
  if (as_it_is) return weight;
  const void* data;
  check(kiln_buffer_data(weight.values, &data), name);
  float* numbers = shape.dtype == KILN_F32 ? NULL : numbers_of(spec, shape.dtype, data);
  model_weight made = make_weight(spec, numbers ? numbers : data, dtype, device);
  free(numbers);
  kiln_buffer_release(weight.values);
  return made;
}

model_weight* load_weights(const weight_list* list, const char* folder, kiln_dtype dtype,
                           kiln_context* context, kiln_device* device) {
  weight_files files = open_files(folder);
  model_weight* weights = allocate(list->count, sizeof(model_weight));
  kiln_device* host = kiln_context_device(context, 0);
  for (size_t i = 0; i < list->count; ++i) {
    weights[i] = load_weight(&list->specs[i], &files, dtype, device, host);
  }
  for (size_t f = 0; f < files.count; ++f) kiln_safetensors_release(files.files[f]);
  return weights;
}

void save_weights(const weight_list* list, kiln_buffer* const* arrays, const char* folder) {
  kiln_named_buffer* named = allocate(list->count, sizeof(kiln_named_buffer));
  for (size_t i = 0; i < list->count; ++i) {
    const char* name = list->specs[i].name;
    named[i] = (kiln_named_buffer){name, strlen(name), arrays[i]};
  }
  char* path = format_text("%s/model.safetensors", folder);
  check(kiln_safetensors_save(path, strlen(path), named, list->count, NULL), path);
  free(path);
  free(named);
}

void release_weights(model_weight* weights, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    kiln_buffer_release(weights[i].values);
    kiln_buffer_release(weights[i].scales);
  }
  free(weights);
}

double bytes_read(const weight_spec* spec, const model_weight* weight) {
  kiln_shape shape = KILN_SHAPE_INIT;
  check(kiln_buffer_shape(weight->values, &shape), spec->name);
  double bytes = (double)shape.byte_size;
  if (spec->channel < 0 && spec->rank == 2) bytes /= (double)spec->dims[0];
  return weight->scales ? bytes + 4 * (double)spec->dims[spec->channel] : bytes;
}
