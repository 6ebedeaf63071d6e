// The classes of programs for C++.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
  EXPECT(audio::tools::Spectrum::LookupArgument("x") == 0);
  EXPECT(audio::tools::Spectrum::LookupArgument("y") == -1);
  for (int i = 0; i < 64; ++i) spectrum.arg_x_data()[i] = i % 2 == 0 ? 1.0f : -1.0f;
  EXPECT(spectrum.Run());
  EXPECT(spectrum.error_code() == 0 && std::strlen(spectrum.error_msg()) == 0);
  EXPECT(std::fabs(spectrum.result0_data()[32] - 64) < 1e-3f);
  EXPECT(std::fabs(spectrum.result0_data()[0]) < 1e-3f);

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
  EXPECT(program.error_code() == 3 && std::strstr(program.error_msg(), "argument 0") != nullptr);
  return 0;
}
