// Derivatives against JAX's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/grad_check.h"
#include "support/stablehlo_import.h"
#include "unit/grad/check.h"
#include "unit/grad/jax_values.h"

namespace kiln::grad {
namespace {

using Numbers = std::vector<std::vector<double>>;

void ExpectNumbers(std::span<const Literal> actual, const Numbers& expected,
                   std::string_view what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < actual.size(); ++k) {
    const std::span<const double> numbers = actual[k].values<double>();
    ASSERT_EQ(numbers.size(), expected[k].size());
    double size = 1;
    for (double number : expected[k]) size = std::max(size, std::abs(number));
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_NEAR(numbers[i], expected[k][i], 1e-12 * size)
          << what << ", number " << i << " by argument " << k;
    }
  }
}

TEST(GradJax, FirstAndSecondDerivatives) {
  for (const JaxValues& jax : AllJaxValues()) {
    SCOPED_TRACE(jax.name);
    auto imported = stablehlo::ImportText(jax.program);
    ASSERT_TRUE(imported.ok()) << imported.status().ToString();
    auto reverse = testing::CotangentModule(**imported);
    ASSERT_TRUE(reverse.ok()) << reverse.status().ToString();
    const auto parameters = (*reverse)->entry()->parameters();
    std::vector<Literal> arguments, directions;
    for (size_t k = 0; k < parameters.size(); ++k) {
      const bool is_cotangent = k == jax.arguments.size();
      const std::vector<double>& at = is_cotangent ? jax.cotangent : jax.arguments[k];
      const std::vector<double> along =
          is_cotangent ? std::vector<double>(at.size()) : jax.directions[k];
      arguments.push_back(Literal::Array<double>(parameters[k]->shape(), at));
      directions.push_back(Literal::Array<double>(parameters[k]->shape(), along));
    }
    auto gradients = testing::ResultsOf(**reverse, arguments);
    ASSERT_TRUE(gradients.ok()) << gradients.status().ToString();
    ExpectNumbers(*gradients, jax.gradients, "gradient");
    ExpectNumbers(TangentsAt(**reverse, arguments, directions), jax.second, "second derivative");
  }
}

}  // namespace
}  // namespace kiln::grad
