// The gradients of a training step that JAX has differentiated: the program holds its forward
// computation, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "grad/gradient.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::grad {
namespace {

// AdamW's step of a model of recommendations, of this many parameters. From moments that are 0 it
// returns a tenth of each gradient at these places, scaled down to a norm.
constexpr int kParameters = 17;
constexpr int64_t MomentOf(int parameter) { return 21 + 2 * parameter; }
constexpr std::string_view kLoss = "jit__where_.54";

// The only elided constant: the places of the pairs of six features in their products.
std::shared_ptr<const Literal> Pairs() {
  std::vector<int32_t> places;
  for (int32_t i = 0; i < 6; ++i) {
    for (int32_t j = i + 1; j < 6; ++j) places.push_back(6 * i + j);
  }
  return std::make_shared<const Literal>(
      Literal::Array<int32_t>(Shape(ElementType::kS32, {15}), places));
}

TEST(GradCorpus, TrainingStep) {
  const char* root = std::getenv("KILN_WORKLOADS_DIR");
  if (!root || !*root) GTEST_SKIP() << "KILN_WORKLOADS_DIR is not set: 1 file was not looked at";
  std::ifstream file(Cat(root, "/hlo/dlrm_keras_jax_f32_train_step.hlo"), std::ios::binary);
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<std::shared_ptr<const Literal>> elided = {Pairs()};
  auto parsed = ir::ParseHloText(text.str(), {.elided = elided});
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  ir::Module& module = **parsed;
  module.aliases().clear();
  ir::Computation& entry = *module.entry();
  ir::Instruction* loss = ir::FindInstruction(entry, kLoss);
  ASSERT_TRUE(loss);
  const auto parameters = entry.parameters().subspan(0, kParameters);
  ir::Builder b(&entry);
  std::vector<ir::Instruction*> results;
  for (int k = 0; k < kParameters; ++k) {
    results.push_back(b.Element(entry.root(), MomentOf(k)));
  }
  auto gradients = VectorJacobianProduct(entry, {{loss}}, {}, parameters, {});
  ASSERT_TRUE(gradients.ok()) << gradients.status().ToString();
  results.insert(results.end(), gradients->begin(), gradients->end());
  entry.set_root(b.Tuple(results));
  module.RemoveUnusedComputations();
  module.SortComputations();

  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.25F);
  std::vector<Literal> arguments;
  for (const ir::Instruction* parameter : entry.parameters()) {
    Literal& x = arguments.emplace_back(parameter->shape());
    // Moments and counts are 0.
    const auto number = static_cast<int>(arguments.size()) - 1;
    const int64_t moments = kParameters + 2 * kParameters + 6;
    if (number >= kParameters && number < moments) continue;
    if (x.shape().type() == ElementType::kF32) {
      for (float& value : x.values<float>()) value = normal(random);
    } else if (x.shape().type() == ElementType::kS32) {
      for (int32_t& value : x.values<int32_t>()) value = static_cast<int32_t>(random() % 3);
    }
  }
  auto run = testing::RunCompiled(module, arguments, /*fuse=*/true);
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  for (int k = 0; k < kParameters; ++k) {
    const auto moment = std::as_const(run->elements()[static_cast<size_t>(k)]).values<float>();
    const auto gradient =
        std::as_const(run->elements()[static_cast<size_t>(kParameters + k)]).values<float>();
    const auto largest =
        std::ranges::max_element(gradient, {}, [](float number) { return std::abs(number); });
    ASSERT_GT(std::abs(*largest), 0) << "parameter " << k;
    const double scale = moment[static_cast<size_t>(largest - gradient.begin())] / *largest;
    ASSERT_GT(scale, 0);
    ASSERT_LT(scale, 0.1001);
    for (size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(gradient[i] * scale, moment[i], 1e-4 * std::abs(*largest * scale))
          << "number " << i << " of parameter " << k;
    }
  }
}

KILN_LABEL(corpus, "GradCorpus");

}  // namespace
}  // namespace kiln::grad
