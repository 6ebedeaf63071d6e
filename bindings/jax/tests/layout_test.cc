// The plugin's declarations of the PJRT C API have the layout of a published header. Built where
// KILN_PJRT_HEADER names one of version 0.112 or later.
#include <cstdio>

#include "tests/layout_values.h"

int main() {
  using kiln_jax_test::kOurs;
  using kiln_jax_test::kPublished;
  int failed = 0;
  size_t count = 0;
  for (; kOurs[count].name != nullptr; ++count) {
    if (kOurs[count].value == kPublished[count].value) continue;
    std::printf("%s: %zu here, %zu in the published header\n", kOurs[count].name,
                kOurs[count].value, kPublished[count].value);
    ++failed;
  }
  std::printf("%zu offsets and numbers compared, %d differ\n", count, failed);
  return failed == 0 && count > 400 ? 0 : 1;
}
