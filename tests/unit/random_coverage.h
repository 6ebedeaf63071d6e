// What random programs cover: how often each op was made of each element type.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "random_module.h"

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

}  // namespace kiln::testing
