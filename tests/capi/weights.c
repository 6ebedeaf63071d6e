/* A model's weights as constants are in memory once, in the form in which kernels read them, and
 * kiln_executable_memory() counts them. */
#include <stdint.h>
#include <unistd.h>

#include "testing.h"

enum { kLayers = 12, kWidth = 1024, kRows = 8 };

static int64_t resident(void) {
  long pages = 0, all = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (file) fclose(file);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* Products with constants, which are packed, or sums, which read them as they are. */
static kiln_executable* model(kiln_context* context, kiln_device* device, int products,
                              int layers) {
  static float weights[kWidth * kWidth];
  const int64_t square[] = {kWidth, kWidth}, wide[] = {kRows, kWidth};
  kiln_graph* g = make_graph(context, "model");
  kiln_value x = products ? kiln_op_parameter(g, KILN_F32, wide, 2, "x", 1)
                          : kiln_op_parameter(g, KILN_F32, square, 2, "x", 1);
  for (int layer = 0; layer < layers; ++layer) {
    for (int i = 0; i < kWidth * kWidth; ++i) weights[i] = (float)((i * 7 + layer) % 1000) / 1000;
    kiln_value w = kiln_op_constant(g, KILN_F32, square, 2, weights, sizeof weights);
    if (products) {
      const int64_t one = 1, zero = 0;
      x = kiln_op_tanh(g, kiln_op_dot(g, x, w, NULL, 0, NULL, 0, &one, 1, &zero, 1, KILN_F32));
    } else {
      x = kiln_op_maximum(g, w, kiln_op_sine(g, x));
    }
  }
  OK(kiln_graph_set_results(g, &x, 1));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  kiln_executable* e = NULL;
  OK(kiln_graph_compile(g, &options, &e));
  kiln_graph_release(g);
  return e;
}

static void on(kiln_context* context, const char* name, int products) {
  kiln_device* device = NULL;
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, after = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_find_device(context, name, strlen(name), &device));
  /* The compiler and its memory are there from here on. */
  kiln_executable_release(model(context, device, products, 1));
  OK(kiln_context_memory(context, &before));
  const int64_t bytes = (int64_t)kLayers * kWidth * kWidth * 4;
  const int64_t start = resident();
  kiln_executable* e = model(context, device, products, kLayers);
  if (!e) return;
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  OK(kiln_executable_memory(e, &memory));
  OK(kiln_context_memory(context, &after));
  const int64_t grown = resident() - start;
  /* Panels are padded to whole tiles. */
  CHECK(memory.constant_bytes >= bytes && memory.constant_bytes <= bytes + bytes / 16);
  if (strcmp(name, "CPU:0") == 0) {
    CHECK(after.live_bytes - before.live_bytes == memory.constant_bytes);
  }
  /* Code, and what the C library keeps of what it was given back. */
  CHECK(grown <= bytes + bytes / 4);
  kiln_executable_release(e);
}

int main(void) {
  kiln_context* context = make_context_with(1, KILN_GPU_EMULATED);
  for (int products = 0; products < 2; ++products) {
    on(context, "CPU:0", products);
    on(context, "REFERENCE:0", products);
    on(context, "GPU:0", products);
  }
  kiln_context_release(context);
  return test_result();
}
