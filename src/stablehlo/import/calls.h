// Custom calls of functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// A custom call with the results of the operation; their shapes are the declared ones, or `results`
// unless that is empty. `config` is its backend_config.
Result<Values> CallTo(Op& op, std::string_view target, Values operands, std::string config,
                      bool side_effect, Attributes attributes = {},
                      std::vector<ir::Computation*> called = {}, std::vector<Shape> results = {});

}  // namespace kiln::stablehlo
