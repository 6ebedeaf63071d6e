// Derivatives of scalar functions in f64, checked against differences of their values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grad/derivative.h"
#include "grad/gradient.h"
#include "interp/interpreter.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::grad {

// Numbers in (-1, 1), the same each time.
class Numbers {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<int64_t>(state_) >> 11) * 0x1p-52;
  }
  Literal Array(const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(shape.num_elements()));
    for (double& value : values) value = Next();
    return Literal::Array<double>(shape, values);
  }

 private:
  uint64_t state_ = 7;
};

// The entry's values; none, with a failure, for a module that is wrong or fails.
inline std::vector<Literal> ValuesOf(ir::Module& module, const std::vector<Literal>& arguments) {
  module.RemoveUnusedComputations();
  module.SortComputations();
  const Status valid = ir::Verify(module);
  EXPECT_TRUE(valid.ok()) << valid.message() << "\n" << ir::ToHloText(module);
  if (!valid.ok()) return {};
  Result<Literal> result = interp::Evaluate(module, arguments);
  EXPECT_TRUE(result.ok()) << result.status().message() << "\n" << ir::ToHloText(module);
  if (!result.ok()) return {};
  if (result->shape().is_array()) return {*std::move(result)};
  return {result->elements().begin(), result->elements().end()};
}

inline std::vector<ir::Instruction*> FloatParametersOf(const ir::Computation& entry) {
  std::vector<ir::Instruction*> floats;
  for (ir::Instruction* parameter : entry.parameters()) {
    if (IsDifferentiable(parameter->shape())) floats.push_back(parameter);
  }
  return floats;
}

// The function's derivatives by its float parameters, for tests: of reverse mode, which also become
// the entry's root, and of forward mode in the direction of `direction`.
inline std::vector<Literal> ReverseOf(const ir::Module& function,
                                      const std::vector<Literal>& arguments,
                                      const Options& options = {}) {
  std::unique_ptr<ir::Module> module = function.Clone();
  ir::Computation& entry = *module->entry();
  auto gradients =
      VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), options);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return {};
  entry.set_root(ir::Builder(&entry).Tuple(*gradients));
  return ValuesOf(*module, arguments);
}

inline double ForwardOf(const ir::Module& function, const std::vector<Literal>& arguments,
                        const std::vector<Literal>& direction) {
  std::unique_ptr<ir::Module> module = function.Clone();
  ir::Computation& entry = *module->entry();
  ir::Builder b(&entry);
  std::vector<ir::Instruction*> tangents;
  for (const Literal& t : direction) tangents.push_back(b.Constant(t));
  auto derivatives =
      JacobianVectorProduct(entry, {{entry.root()}}, FloatParametersOf(entry), tangents, {});
  EXPECT_TRUE(derivatives.ok()) << derivatives.status().message();
  if (!derivatives.ok()) return std::nan("");
  entry.set_root((*derivatives)[0]);
  const std::vector<Literal> values = ValuesOf(*module, arguments);
  return values.empty() ? std::nan("") : values[0].values<double>()[0];
}

// The gradient's product with the direction, a scalar function again.
inline std::unique_ptr<ir::Module> AlongGradient(const ir::Module& function,
                                                 const std::vector<Literal>& direction,
                                                 const Options& options = {}) {
  std::unique_ptr<ir::Module> module = function.Clone();
  ir::Computation& entry = *module->entry();
  auto gradients =
      VectorJacobianProduct(entry, {{entry.root()}}, {}, FloatParametersOf(entry), options);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return nullptr;
  ir::Builder b(&entry);
  ir::Instruction* sum = b.Scalar(ElementType::kF64, 0);
  for (size_t k = 0; k < direction.size(); ++k) {
    ir::Instruction* product = b.Times((*gradients)[k], b.Constant(direction[k]));
    const Ints dims = product->shape().dims();
    product = b.Reshape(product, {Dimension(product->shape().num_elements())});
    sum = b.Plus(
        sum, b.Add(Opcode::kDot, {product, b.Number(product, 1)},
                   {{Attr::kLhsContractingDims, Ints{0}}, {Attr::kRhsContractingDims, Ints{0}}}));
  }
  entry.set_root(sum);
  return module;
}

// Reverse and forward mode against central differences along `order` directions; reverse mode of
// reverse mode with an order of 2.
inline void ExpectDerivatives(const ir::Module& function, const std::vector<Literal>& arguments,
                              int order = 2, const Options& options = {}) {
  Numbers numbers;
  std::vector<Literal> direction;
  const auto floats = FloatParametersOf(*function.entry());
  for (const ir::Instruction* x : floats) direction.push_back(numbers.Array(x->shape()));
  constexpr double kStep = 1e-5;
  double ends[2];
  std::unique_ptr<ir::Module> plain = function.Clone();
  for (int side : {0, 1}) {
    std::vector<Literal> moved = arguments;
    for (size_t k = 0; k < floats.size(); ++k) {
      Literal& x = moved[static_cast<size_t>(floats[k]->attributes().Int(Attr::kParameterNumber))];
      for (int64_t i = 0; i < x.shape().num_elements(); ++i) {
        x.values<double>()[i] += (side == 0 ? -kStep : kStep) * direction[k].values<double>()[i];
      }
    }
    const std::vector<Literal> values = ValuesOf(*plain, moved);
    ASSERT_EQ(values.size(), 1u);
    ends[side] = values[0].values<double>()[0];
  }
  const double difference = (ends[1] - ends[0]) / (2 * kStep);
  const double tolerance = 1e-7 * std::max(1.0, std::abs(difference));
  EXPECT_NEAR(ForwardOf(function, arguments, direction), difference, tolerance);
  const std::vector<Literal> gradients = ReverseOf(function, arguments, options);
  ASSERT_EQ(gradients.size(), floats.size());
  double along = 0;
  for (size_t k = 0; k < floats.size(); ++k) {
    for (int64_t i = 0; i < direction[k].shape().num_elements(); ++i) {
      along += gradients[k].values<double>()[i] * direction[k].values<double>()[i];
    }
  }
  EXPECT_NEAR(along, difference, tolerance);
  if (order < 2) return;
  std::unique_ptr<ir::Module> gradient = AlongGradient(function, direction, options);
  ASSERT_TRUE(gradient);
  ExpectDerivatives(*gradient, arguments, order - 1, options);
}
inline void ExpectDerivatives(std::string_view text, const std::vector<Literal>& arguments,
                              int order = 2, const Options& options = {}) {
  ExpectDerivatives(*ir::ParseOrDie(text), arguments, order, options);
}

}  // namespace kiln::grad
