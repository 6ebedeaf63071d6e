// What random programs cover: how often each op was made of each element type, and where results
// are there several times.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "random/module.h"

namespace kiln::testing {

// By the type of an op's data: its first operand's that is no index, predicate or bound; of tuples
// each element's, of leaves the result's.
using Coverage = std::map<std::pair<Opcode, ElementType>, int>;

void AddCoverage(const ir::Module& module, Coverage& coverage);

// The pairs that the op table allows and that are not there, of the types that modules of such
// options are about. What only the compiler or a session makes does not count.
std::vector<std::pair<Opcode, ElementType>> MissingFrom(const Coverage& coverage,
                                                        const RandomModuleOptions& options = {});

// A row for each op, a column for each type; '-' where the op table does not allow the pair.
std::string CoverageTable(const Coverage& coverage, const RandomModuleOptions& options = {});

// The seeds below `count`, and those after them that make a pair for the first time.
std::vector<int> CoveringSeeds(int count, const RandomModuleOptions& options = {});

// What there may be among the results of a computation, each an operand of the tuple that is its
// root.
enum class Repeat : uint8_t {
  kTwice,          // a value twice
  kThreeTimes,     // a value three times or more
  kMadeAgain,      // two that are the same op of the same operands
  kSubgraphAgain,  // two that are the same op of operands that are the same op of the same
  kParameter,      // a parameter, or an element of one
  kConstant,
  kConstantTwice,
  kUsedInside,  // a value that others use, too
  kCount
};

// Whose results they are: those of fusions by their kinds, and of fusions in fusions.
enum class Place : uint8_t {
  kEntry,
  kLoop,
  kBranch,
  kCall,
  kLoopFusion,
  kInputFusion,
  kOutputFusion,
  kCustomFusion,
  kInnerFusion,
  kCount
};

using RepeatCoverage = std::map<std::pair<Repeat, Place>, int>;

void AddRepeatCoverage(const ir::Module& module, RepeatCoverage& coverage);

// The pairs that are not there, in words.
std::vector<std::string> MissingFrom(const RepeatCoverage& coverage);

// The seeds of RandomRepeatsModule below `count`, and those after them that make a pair for the
// first time.
std::vector<int> CoveringRepeatSeeds(int count);

// A row for each place, a column for each kind of repeat.
std::string CoverageTable(const RepeatCoverage& coverage);

}  // namespace kiln::testing
