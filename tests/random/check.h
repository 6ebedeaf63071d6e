// The checks that random programs go through, by name: for the tests, for `make fuzz`, and for the
// test that plants mistakes and looks whether they are found.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/ir.h"

namespace kiln::testing {

struct RandomCheck {
  std::string_view name;
  std::string_view what;  // is held against what
  // The same module for the same seed.
  std::unique_ptr<ir::Module> (*make)(uint64_t seed);
  // "", or what went wrong. Also of modules that were made smaller: one that the evaluator cannot
  // run is no failure.
  std::string (*run)(const ir::Module& module, uint64_t seed);
};

std::span<const RandomCheck> RandomChecks();
const RandomCheck& RandomCheckByName(std::string_view name);

// What to print of a failure: how to run it again, what went wrong, and the smallest module that
// was found to fail, as HLO text.
std::string Report(const RandomCheck& check, uint64_t seed, const std::string& problem);

}  // namespace kiln::testing
