// The classes of programs for C++.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "moved.h"
#include "portable.h"
#include "scale.h"
#include "spectrum.h"

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

int main() {
  audio::tools::Spectrum spectrum;
  static_assert(audio::tools::Spectrum::num_args() == 1);
  static_assert(audio::tools::Spectrum::arg0_count() == 64);
  static_assert(audio::tools::Spectrum::result0_size() == 33 * sizeof(float));
  EXPECT(audio::tools::Spectrum::LookupArgIndex("x") == 0);
  EXPECT(audio::tools::Spectrum::LookupArgIndex("y") == -1);
  EXPECT(spectrum.threads() == 2);
  for (int i = 0; i < 64; ++i) spectrum.arg_x_data()[i] = i % 2 == 0 ? 1.0f : -1.0f;
  EXPECT(spectrum.Run());
  EXPECT(spectrum.error_code() == 0 && std::strlen(spectrum.error_msg()) == 0);
  EXPECT(std::fabs(spectrum.result0_data()[32] - 64) < 1e-3f);
  EXPECT(std::fabs(spectrum.result0(0)) < 1e-3f);
  const audio::tools::Spectrum& constant = spectrum;
  EXPECT(constant.arg_x(1) == -1 && constant.arg0(2) == 1);
  EXPECT(constant.arg_x_data() == spectrum.arg0_data());

  // Arguments and results in other memory.
  scale program(1);
  alignas(64) double x[4] = {1, 2, 3, 4}, factor[1] = {3}, scaled[4];
  program.set_arg0_data(x);
  program.set_arg1_data(factor);
  program.set_result0_data(scaled);
  EXPECT(program.Run());
  EXPECT(scaled[3] == 12 && program.result1_data()[0] == -3);
  program.set_arg0_data(nullptr);
  EXPECT(!program.Run());
  EXPECT(program.threads() == 1);
  EXPECT(program.error_code() == 3 && std::strstr(program.error_msg(), "argument 0") != nullptr);

  // A pool that programs share.
  kiln_aot_pool* pool = kiln_aot_pool_create(3);
  {
    scale shared(2);
    shared.set_thread_pool(pool);
    EXPECT(shared.threads() == 3);
    shared.arg0(3) = 5;
    shared.arg1() = 2;
    EXPECT(shared.Run() && shared.result0(3) == 10 && shared.result1() == -2);
    shared.set_thread_pool(nullptr);
    EXPECT(shared.threads() == 1 && shared.Run());
  }
  kiln_aot_pool_destroy(pool);

  // Elements by their indices, in the order of dimensions that the program has in memory.
  moved columns(1);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t k = 0; k < 3; ++k) columns.arg_x(i, k) = static_cast<int32_t>(10 * i + k);
  }
  EXPECT(columns.arg_x_data()[1] == 10 && columns.Run());
  EXPECT(columns.result0(1, 2) == -12 && columns.result0_data()[2] == -2);

  // From bytecode of JAX's, with the names of its arguments.
  portable jax(1);
  jax.arg_x(2) = 4;
  jax.arg_factor() = 0.5f;
  EXPECT(jax.Run() && jax.result0(2) == 2 && jax.result1() == -0.5f);
  return 0;
}
