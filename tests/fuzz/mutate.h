// Programs that are almost others: with other types, sizes, attributes, ops, operands, constants,
// results and called computations.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace kiln::fuzz {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // A module with one thing changed, made anew with all checks of inference: what does not fit any
  // more is zeros of the shape that it had. Null where nothing could be changed.
  std::unique_ptr<ir::Module> Module(const ir::Module& module);

  // HLO text, or StableHLO's, with one thing changed; `other` is a program to take lines from. What
  // comes out need not be valid.
  std::string Text(const std::string& text, const std::string& other, bool is_hlo);

  // So many numbers below n, and whether something of so many in a hundred happens.
  size_t Below(size_t n) { return n > 0 ? random_() % n : 0; }
  bool Chance(size_t percent) { return Below(100) < percent; }

 private:
  std::mt19937_64 random_;
};

// The module, and arguments, with floats some steps of their type away: what rounding may do.
std::unique_ptr<ir::Module> Shaken(const ir::Module& module, uint64_t seed);
std::vector<Literal> Shaken(std::vector<Literal> literals, uint64_t seed);

// The module with NaNs of the other sign wherever bits of floats are looked at: which NaN an op
// gives is not said.
std::unique_ptr<ir::Module> WithOtherNans(const ir::Module& module);

}  // namespace kiln::fuzz
