// The plugin's declarations of the PJRT C API have the layout of a published header. Built where
// KILN_PJRT_HEADER names one of version 0.90 or later; additions since are compared from 0.112 on.
#include <cstdio>
#include <map>
#include <string_view>

#include "tests/layout_values.h"

int main() {
  using namespace kiln_jax_test;
  std::map<std::string_view, size_t> ours;
  for (const LayoutValue* v = kOurs; v->name != nullptr; ++v) ours[v->name] = v->value;
  int failed = 0;
  size_t count = 0;
  for (const LayoutValue* v = kPublished; v->name != nullptr; ++v, ++count) {
    const auto found = ours.find(v->name);
    if (found != ours.end() && found->second == v->value) continue;
    std::printf("%s: %zu in the published header, not so here\n", v->name, v->value);
    ++failed;
  }
  std::printf("%zu of %zu offsets and numbers compared, %d differ\n", count, ours.size(), failed);
  return failed == 0 && count > 400 ? 0 : 1;
}
