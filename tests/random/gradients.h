// Random programs that have derivatives, and what of the op table these go through.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "support/grad_check.h"

namespace kiln::testing {

// RandomModule with kSmoothOptions.
std::unique_ptr<ir::Module> RandomSmoothModule(uint64_t seed);

// Holds the derivatives of a module against differences of its values in the evaluator, and those
// of compiled code, on the CPU and on the emulated GPU, against the evaluator's; for every fourth
// seed second derivatives, too. "" or what is wrong.
std::string CheckRandomDerivatives(const ir::Module& module, uint64_t seed);
std::string CheckRandomDerivatives(const ir::Module& module, uint64_t seed,
                                   DerivativeCounts& counts);

// How often a result depends, with a derivative, on a parameter by way of each op; in how many of
// them second derivatives are looked at.
struct GradientCount {
  int first = 0, second = 0;
};
using GradientCoverage = std::map<Opcode, GradientCount>;
void AddGradientCoverage(const ir::Module& module, uint64_t seed, GradientCoverage& coverage);

// Ops with a derivative that users can make and that are not there; collectives and what only
// sessions run apart.
std::vector<Opcode> MissingFrom(const GradientCoverage& coverage);
std::string CoverageTable(const GradientCoverage& coverage);

// The seeds below `count`, and those after them that have an op for the first time.
std::vector<int> CoveringGradientSeeds(int count);

}  // namespace kiln::testing
