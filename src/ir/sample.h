// Seeded arguments for a module by what its ops do with them: indices are in range, sorted or
// distinct where an op promises so, roots and logarithms get positive numbers, and sums of products
// stay about as large as their factors.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "tensor/literal.h"
#include "tensor/sample.h"

namespace kiln::ir {

// The readers of values of a module, which must not change meanwhile.
class Sampler {
 public:
  explicit Sampler(const Module& module);
  // The range of the array at a path in an instruction's value (a parameter's or a constant's) that
  // its readers want. What comes to them by ops that move elements counts; arithmetic does not.
  SampleRange RangeOf(const Instruction& instruction, std::span<const int64_t> path = {}) const;
  // Values of the shape of the instruction, each array in its range. Integers without a range of
  // their own are in [-9, 9] (without a sign in [0, 9]), as scalars in [0, 3].
  Literal Sample(const Instruction& instruction, uint64_t seed) const;

 private:
  // The calls of each computation, in the order of creation.
  std::vector<std::pair<const Computation*, const Instruction*>> calls_;
};

// Of all parameters of the entry computation, by number.
std::vector<Literal> SampleArguments(const Module& module, uint64_t seed);

}  // namespace kiln::ir
