/* Trains a transformer to predict the next character of a text, with the gradients of
 * kiln/gradient.h and the losses and optimisers of kiln/train.h.
 *
 *   character_transformer TEXT DIR STEPS [STOP]
 *
 * DIR receives the curve of the loss, loss.csv and loss.svg, and every 100 steps and at the end a
 * checkpoint, training.safetensors. With one in DIR the training goes on from there, to the same
 * bits as without an interruption. STOP ends this run of STEPS early, for another to go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"
#include "parts/curve.h"
#include "parts/loop.h"

enum { BATCH = 16, LENGTH = 64, ROWS = BATCH * LENGTH, CHARACTERS = 256 };
enum { WIDTH = 64, HEADS = 4, LAYERS = 2, EVERY = 100 };
enum { EMBEDDING, POSITIONS, NORM, OUTPUT, LAYER };                 /* parameters, */
enum { NORM1, QUERIES, ATTENDED, NORM2, INNER, OUTER, LAYER_SIZE }; /* and those of a layer */
enum { PARAMETERS = LAYER + LAYERS * LAYER_SIZE, STATES = KILN_OPTIMIZER_STATE_MAX(PARAMETERS) };

/* A first value: a matrix by Glorot's rule, or ones. */
static kiln_value initial_value(kiln_graph* g, const char* name, int64_t rows, int64_t columns) {
  const kiln_initializer kind = rows ? KILN_INITIALIZER_GLOROT_NORMAL : KILN_INITIALIZER_ONES;
  const kiln_initializer_options random = {sizeof random, .kind = kind};
  const int64_t both[] = {rows, columns}, *dims = rows ? both : both + 1;
  return kiln_train_initialize(g, &random, KILN_F32, dims, rows ? 2 : 1, name, strlen(name));
}

static void initial_parameters(kiln_graph* g, kiln_value* p) {
  static const char* const kNames[] = {"norm1", "queries", "attended", "norm2", "inner", "outer"};
  static const int64_t kDims[][2] = {{0, WIDTH}, {WIDTH, 3 * WIDTH}, {WIDTH, WIDTH},
                                     {0, WIDTH}, {WIDTH, 4 * WIDTH}, {4 * WIDTH, WIDTH}};
  p[EMBEDDING] = initial_value(g, "embedding", CHARACTERS, WIDTH);
  p[POSITIONS] = initial_value(g, "positions", LENGTH, WIDTH);
  p[NORM] = initial_value(g, "norm", 0, WIDTH);
  p[OUTPUT] = initial_value(g, "output", WIDTH, CHARACTERS);
  for (int i = 0; i < LAYERS * LAYER_SIZE; ++i) {
    char name[32];
    snprintf(name, sizeof name, "layer%d.%s", i / LAYER_SIZE, kNames[i % LAYER_SIZE]);
    const int64_t* dims = kDims[i % LAYER_SIZE];
    p[LAYER + i] = initial_value(g, name, dims[0], dims[1]);
  }
}

/* Builder functions need no checks of their own: after an error they return 0, and the functions
 * that take the graph return the first error. */
static kiln_value norm(kiln_graph* g, kiln_value x, kiln_value scale) {
  return kiln_nn_rms_norm(g, x, scale, (const int64_t[]){-1}, 1, 1e-5);
}

static kiln_value columns(kiln_graph* g, kiln_value x, int64_t rows, int64_t from, int64_t to) {
  const int64_t start[] = {0, from}, limit[] = {rows, to}, stride[] = {1, 1};
  return kiln_op_slice(g, x, start, limit, stride, 2);
}

/* Attention to the characters so far, and a perceptron; x is [ROWS, WIDTH]. */
static kiln_value layer(kiln_graph* g, const kiln_value* p, kiln_value x) {
  const int64_t heads[] = {BATCH, LENGTH, HEADS, WIDTH / HEADS}, rows[] = {ROWS, WIDTH};
  kiln_value all = kiln_op_matmul(g, norm(g, x, p[NORM1]), p[QUERIES]), parts[3];
  for (int i = 0; i < 3; ++i) {
    kiln_value part = columns(g, all, ROWS, i * WIDTH, (i + 1) * WIDTH);
    parts[i] = kiln_op_reshape(g, part, heads, 4);
  }
  kiln_attention_options causal = {sizeof causal, .causal = 1};
  kiln_value attended = kiln_nn_attention(g, parts[0], parts[1], parts[2], &causal);
  attended = kiln_op_matmul(g, kiln_op_reshape(g, attended, rows, 2), p[ATTENDED]);
  x = kiln_op_add(g, x, attended);
  kiln_value inner = kiln_op_matmul(g, norm(g, x, p[NORM2]), p[INNER]);
  return kiln_op_add(g, x, kiln_op_matmul(g, kiln_nn_gelu(g, inner, 1), p[OUTER]));
}

/* The mean loss of predicting each character but the first one of s32[BATCH, LENGTH + 1]. */
static kiln_value loss_of(kiln_graph* g, const kiln_value* p, kiln_value characters) {
  const int64_t all = ROWS, rows[] = {ROWS, WIDTH};
  kiln_value inputs = columns(g, characters, BATCH, 0, LENGTH);
  kiln_value labels = kiln_op_reshape(g, columns(g, characters, BATCH, 1, LENGTH + 1), &all, 1);
  kiln_value x = kiln_nn_take(g, p[EMBEDDING], inputs, 0, KILN_TAKE_CLIP);
  x = kiln_op_reshape(g, kiln_nn_add(g, x, p[POSITIONS]), rows, 2);
  for (int i = 0; i < LAYERS; ++i) x = layer(g, p + LAYER + i * LAYER_SIZE, x);
  kiln_value logits = kiln_op_matmul(g, norm(g, x, p[NORM]), p[OUTPUT]);
  return kiln_train_softmax_cross_entropy(g, logits, labels, 0, KILN_REDUCTION_MEAN);
}

static training_loop make_loop(kiln_context* context, int64_t steps) {
  kiln_graph *initial = new_graph(context, "initial"), *g = new_graph(context, "step");
  kiln_value values[PARAMETERS + STATES + 1], gradients[PARAMETERS], *state = values + PARAMETERS;
  kiln_optimizer_options adamw;
  kiln_optimizer_options_init(&adamw, sizeof adamw, KILN_OPTIMIZER_ADAMW);
  initial_parameters(initial, values);
  size_t states;
  check(kiln_train_state(initial, &adamw, values, PARAMETERS, state, STATES, &states), "state");
  const size_t count = PARAMETERS + states;
  check(kiln_graph_set_results(initial, values, count), "initial");
  check(kiln_train_parameters(g, initial, values, count, values), "parameters");
  const int64_t dims[] = {BATCH, LENGTH + 1};
  kiln_value characters = kiln_op_parameter(g, KILN_S32, dims, 2, "characters", 10);
  values[count] = loss_of(g, values, characters);
  check(kiln_graph_gradient(g, values[count], values, PARAMETERS, NULL, gradients), "gradient");
  check(kiln_train_clip_by_norm(g, 1, gradients, PARAMETERS, gradients, NULL), "clip");
  const kiln_schedule_options schedule = {sizeof schedule, KILN_SCHEDULE_COSINE, .peak = 5e-3,
                                          .warmup_steps = 10, .steps = steps};
  kiln_value rate = kiln_train_schedule(g, &schedule, state[0]); /* the number of updates */
  check(kiln_train_update(g, &adamw, rate, 0, values, gradients, PARAMETERS, state, states, values,
                          state),
        "update");
  check(kiln_graph_set_results(g, values, count + 1), "step");
  return start_loop(kiln_context_device(context, 0), initial, g, count);
}

/* The steps from `step` to `stop`. */
static void train(training_loop* loop, const char* text, size_t size, const char* folder,
                  const char* file, size_t step, size_t stop) {
  if (step >= stop) return;
  float* losses = allocate(stop, sizeof *losses);
  read_curve(folder, losses, step);
  progress shown = {now_in_seconds(), step, stop, ROWS};
  while (step < stop) { /* a step's pieces of the text depend on its number alone */
    kiln_buffer* batch = text_pieces(loop->device, text, size, BATCH, LENGTH + 1, step);
    run_loop(loop, &batch, 1, &losses[step++], 1);
    show_tokens(&shown, step, losses[step - 1]);
    if (step % EVERY && step < stop) continue;
    write_curve(folder, losses, step);
    save_loop(loop, file);
  }
  free(losses);
}

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: character_transformer TEXT DIR STEPS [STOP]");
  const size_t steps = (size_t)parse_integer(argv[3], 1, 1000000, "STEPS");
  const size_t stop = argc > 4 ? (size_t)parse_integer(argv[4], 1, (int64_t)steps, "STOP") : steps;
  size_t size;
  char *text = read_file(argv[1], &size), *file = format_text("%s/training.safetensors", argv[2]);
  if (!text || size <= LENGTH) fail("%s: no text of more than %d characters", argv[1], LENGTH);
  make_folder(argv[2]);
  kiln_context* context;
  check(kiln_context_create(NULL, &context), "context");
  training_loop loop = make_loop(context, (int64_t)steps);
  if (load_loop(&loop, file)) printf("%s: goes on\n", file);
  int32_t step; /* the first value of the optimiser's state */
  check(kiln_buffer_copy_to_host(loop.values[PARAMETERS], &step, sizeof step), "step");
  train(&loop, text, size, argv[2], file, (size_t)step, stop);
  end_loop(&loop);
  kiln_context_release(context);
  free(text);
  free(file);
  return 0;
}
