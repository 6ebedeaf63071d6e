#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

model_config small_config(architecture_kind architecture, int64_t width, int64_t layers,
                          int64_t positions) {
  const int llama = architecture == LLAMA;
  return (model_config){.architecture = architecture,
                        .vocabulary = 256,
                        .width = width,
                        .layers = layers,
                        .heads = 4,
                        .key_heads = llama ? 2 : 4,
                        .head_size = width / 4,
                        .inner = llama ? 5 * width / 2 : 4 * width,
                        .positions = positions,
                        .epsilon = 1e-5,
                        .rope_theta = 10000,
                        .tied = 1,
                        .begin = -1};
}

/* Results of TRAINING_STEP are in the memory of the parameters. */
static kiln_executable* compile_step(const training* t, kiln_context* context) {
  kiln_graph* graph =
      training_graph(context, &t->config, &t->list, KILN_F32, t->batch, t->length, TRAINING_STEP);
  const size_t count = t->list.count;
  kiln_alias* aliases = allocate(3 * count, sizeof(kiln_alias));
  for (size_t i = 0; i < 3 * count; ++i) {
    /* The tokens are between the weights and the moments. */
    aliases[i] = (kiln_alias){1 + i, i < count ? i : i + 1, 1, 0};
  }
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = t->device;
  options.aliases = aliases;
  options.alias_count = 3 * count;
  kiln_executable* step;
  check(kiln_graph_compile(graph, &options, &step), "training");
  kiln_graph_release(graph);
  free(aliases);
  return step;
}

void initial_weight(const weight_spec* spec, const model_config* config, uint64_t* random,
                    float* numbers) {
  const char* name = spec->name;
  /* Ones for the scales of normalisations, zeros for what is added. Products that are added to the
   * tokens' vectors begin small, and so do positions, so that nearness is learned first. */
  double size = 1 / sqrt((double)config->width);
  if (strstr(name, "c_proj") || strstr(name, "o_proj") || strstr(name, "down_proj")) {
    size /= sqrt(2 * (double)config->layers);
  }
  if (strstr(name, "wpe")) size = 0.02;
  for (size_t i = 0; i < weight_elements(spec); ++i) {
    numbers[i] = spec->rank == 2         ? (float)(size * random_normal(random))
                 : strstr(name, ".bias") ? 0.0f
                                         : 1.0f;
  }
}

training make_training(const model_config* config, int64_t batch, int64_t length, uint64_t seed,
                       kiln_context* context, kiln_device* device) {
  training t = {.config = *config,
                .list = list_weights(config),
                .batch = batch,
                .length = length,
                .device = device};
  t.step = compile_step(&t, context);
  t.state = allocate(3 * t.list.count, sizeof(kiln_buffer*));
  for (size_t i = 0; i < t.list.count; ++i) {
    const weight_spec* spec = &t.list.specs[i];
    float* numbers = allocate(weight_elements(spec), sizeof(float));
    initial_weight(spec, config, &seed, numbers);
    t.state[i] = f32_buffer(device, spec->dims, spec->rank, numbers);
    free(numbers);
    for (size_t moment = 1; moment <= 2; ++moment) {
      check(kiln_buffer_create(device, KILN_F32, spec->dims, spec->rank,
                               &t.state[moment * t.list.count + i]),
            "moments");
    }
  }
  return t;
}

void release_training(training* t) {
  for (size_t i = 0; i < 3 * t->list.count; ++i) kiln_buffer_release(t->state[i]);
  kiln_executable_release(t->step);
  free(t->state);
  free(t->list.specs);
}

float train_step(training* t, const int32_t* tokens, double rate) {
  const size_t count = t->list.count, states = 3 * count;
  const double steps = (double)++t->steps;
  const float corrected = (float)(rate * sqrt(1 - pow(0.99, steps)) / (1 - pow(0.9, steps)));
  const int64_t dims[] = {t->batch, t->length + 1};
  kiln_buffer** arguments = allocate(states + 2, sizeof(kiln_buffer*));
  kiln_buffer** results = allocate(states + 1, sizeof(kiln_buffer*));
  size_t* donated = allocate(states, sizeof(size_t));
  for (size_t i = 0; i < states; ++i) {
    donated[i] = i < count ? i : i + 1;
    arguments[donated[i]] = t->state[i];
  }
  arguments[count] = s32_buffer(t->device, dims, 2, tokens);
  arguments[states + 1] = f32_buffer(t->device, NULL, 0, &corrected);
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = donated;
  options.donated_count = states;
  check(kiln_executable_run(t->step, &options, arguments, states + 2, results, states + 1), "step");
  for (size_t i = 0; i < states; ++i) {
    kiln_buffer_release(t->state[i]);
    t->state[i] = results[1 + i];
  }
  kiln_buffer_release(arguments[count]);
  kiln_buffer_release(arguments[states + 1]);
  float loss;
  check(kiln_buffer_copy_to_host(results[0], &loss, sizeof loss), "loss");
  kiln_buffer_release(results[0]);
  free(arguments);
  free(results);
  free(donated);
  return loss;
}

static double rate_at(int64_t step, int64_t steps, double rate) {
  const double warm = (double)steps / 20, done = (double)step / (double)steps;
  if ((double)step < warm) return rate * (double)(step + 1) / warm;
  return rate * (0.1 + 0.9 * 0.5 * (1 + cos(3.141592653589793 * done)));
}

float train_on_text(training* t, const char* text, size_t size, int64_t steps, double rate,
                    uint64_t seed, void (*progress)(int64_t step, float loss)) {
  const size_t row = (size_t)t->length + 1;
  if (size < row) fail("the text is too short: %zu bytes", size);
  int32_t* tokens = allocate((size_t)t->batch * row, sizeof(int32_t));
  double sum = 0;
  const int64_t counted = steps / 10 ? steps / 10 : 1;
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < t->batch; ++i) {
      size_t from = random_bits(&seed) % (size - row + 1);
      for (size_t j = 0; j < row; ++j) {
        tokens[(size_t)i * row + j] = (unsigned char)text[from + j];
      }
    }
    float loss = train_step(t, tokens, rate_at(step, steps, rate));
    if (!isfinite(loss)) fail("step %d: the loss is %g", (int)step, (double)loss);
    if (step >= steps - counted) sum += (double)loss;
    if (progress) progress(step, loss);
  }
  free(tokens);
  return (float)(sum / (double)counted);
}
