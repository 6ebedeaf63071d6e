/* The loop of a training with the two graphs of kiln/train.h, and its checkpoints. */
#ifndef PARTS_LOOP_H_
#define PARTS_LOOP_H_

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled step and the values that it changes: parameters, the optimiser's state and others. */
typedef struct {
  kiln_device* device;
  kiln_executable* step;
  kiln_buffer** values; /* `count`; the first arguments and the first results of the step */
  size_t count;
  int from_file; /* whether the values are a file's memory, which no execution may write */
} training_loop;

/* Compiles both graphs, takes the results of `initial`, `count` of them, as the first values, and
 * releases the graphs. */
training_loop start_loop(kiln_device* device, kiln_graph* initial, kiln_graph* step, size_t count);
void end_loop(training_loop* loop);

/* Runs a step on a batch, the arguments after the values, which it releases. `figures` receives the
 * results after the values, `figure_count` scalars of f32. */
void run_loop(training_loop* loop, kiln_buffer* const* batch, size_t batch_count, float* figures,
              size_t figure_count);

/* Compiles a graph, releases it, and runs it on the first `count` values and a batch, which
 * it releases, too; returns its result, a scalar of f32. */
float evaluate_loop(const training_loop* loop, kiln_graph* graph, size_t count,
                    kiln_buffer* const* batch, size_t batch_count);

/* Writes the values to a safetensors file under the names of the step's arguments. */
void save_loop(const training_loop* loop, const char* path);

/* Reads the values from such a file; returns 0 if there is none. */
int load_loop(training_loop* loop, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* PARTS_LOOP_H_ */
