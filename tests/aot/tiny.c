/* A tiny program, x * y + z, in memory of its own: what is measured of such programs. */
#include "axpy.h"

static _Alignas(64) float x[AXPY_x_ELEMENTS], y[AXPY_y_ELEMENTS], z[AXPY_z_ELEMENTS];
static _Alignas(64) float result[AXPY_result_ELEMENTS];
static _Alignas(64) char memory[AXPY_MEMORY_BYTES];

int main(void) {
  kiln_aot_instance* axpy = kiln_aot_place(&axpy_program, memory, sizeof memory, NULL, NULL);
  x[999] = 3;
  y[999] = 4;
  z[999] = 5;
  return !axpy || axpy_run(axpy, x, y, z, result, NULL) != 0 || result[999] != 17;
}
