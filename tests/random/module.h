// Random valid modules over the op table, for tests that compare two ways to evaluate them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ir/ir.h"

namespace kiln::testing {

struct RandomModuleOptions {
  int ops = 24;  // about so many, helpers of theirs apart
  int max_rank = 6;
  int64_t max_elements = 20000;
  bool control_flow = true;
  bool rare_types = false;  // mostly complex numbers, small integers and small floats, and layouts
  bool smooth = false;      // f64, c128 and integers, and functions with derivatives
};

// For what is about these types.
inline constexpr RandomModuleOptions kRareTypesOptions{
    .ops = 32, .max_rank = 4, .max_elements = 2000, .rare_types = true};

// For derivatives, which are held against differences.
inline constexpr RandomModuleOptions kSmoothOptions{
    .ops = 14, .max_rank = 3, .max_elements = 60, .smooth = true};

// The same module for the same seed. Values stay small, and ops that are not continuous (compare,
// floor, float to integer, ...) get operands that are computed exactly, so that evaluators that
// round differently agree.
std::unique_ptr<ir::Module> RandomModule(uint64_t seed, const RandomModuleOptions& options = {});

// The seeds of a test: KILN_RANDOM_SEEDS of them from KILN_RANDOM_FIRST_SEED on, where set.
struct Seeds {
  int first = 0, count = 0;
};
Seeds RandomSeeds(int default_count);

}  // namespace kiln::testing
