// Reverse and forward mode of small computations, against differences.
#include "grad/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "interp/interpreter.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::grad {
namespace {

using ir::Instruction;

// The entry's scalar root, differentiated by its parameters: values at `arguments`.
std::vector<Literal> GradientsAt(std::string_view text, const std::vector<Literal>& arguments) {
  std::unique_ptr<ir::Module> module = ir::ParseOrDie(text);
  ir::Computation& entry = *module->entry();
  std::vector<Instruction*> parameters(entry.parameters().begin(), entry.parameters().end());
  Instruction* value = entry.root();
  auto gradients = VectorJacobianProduct(entry, {{value}}, {}, parameters, {});
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return {};
  ir::Builder b(&entry);
  entry.set_root(b.Tuple(*gradients));
  EXPECT_TRUE(ir::Verify(*module).ok());
  Result<Literal> result = interp::Evaluate(*module, arguments);
  EXPECT_TRUE(result.ok()) << result.status().message();
  std::vector<Literal> values;
  for (const Literal& element : result->elements()) values.push_back(element);
  return values;
}

Literal F64(double x) { return Literal::Scalar<double>(ElementType::kF64, x); }

TEST(Gradient, OfAProductOfFunctions) {
  const auto g = GradientsAt(R"(HloModule m
ENTRY e {
  x = f64[] parameter(0)
  y = f64[] parameter(1)
  s = f64[] sine(x)
  p = f64[] multiply(s, y)
  ROOT r = f64[] add(p, x)
})",
                             {F64(0.5), F64(3)});
  ASSERT_EQ(g.size(), 2u);
  EXPECT_DOUBLE_EQ(g[0].values<double>()[0], 3 * std::cos(0.5) + 1);
  EXPECT_DOUBLE_EQ(g[1].values<double>()[0], std::sin(0.5));
}

}  // namespace
}  // namespace kiln::grad
