// Functions and JAX's derivatives of them.
#pragma once

#include <string_view>
#include <vector>

namespace kiln::grad {

// Arrays as their numbers in row-major order, two for a complex one.
struct JaxValues {
  std::string_view name, program;  // StableHLO
  std::vector<std::vector<double>> arguments;
  std::vector<double> cotangent;                // of the result
  std::vector<std::vector<double>> directions;  // of the arguments
  std::vector<std::vector<double>> gradients;   // by the arguments
  std::vector<std::vector<double>> second;      // the gradients' derivatives in the directions
};
const std::vector<JaxValues>& AllJaxValues();

}  // namespace kiln::grad
