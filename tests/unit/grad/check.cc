#include "unit/grad/check.h"

#include <gtest/gtest.h>

#include <random>

#include "grad/derivative.h"
#include "ir/specialise.h"
#include "support/grad_check.h"
#include "support/hlo.h"

namespace kiln::grad {
namespace {

constexpr std::string_view kComputations = R"(HloModule m
add { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }
mul { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] multiply(a, b) }
max { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] maximum(a, b) }
min { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] minimum(a, b) }
last { a = f64[] parameter(0) ROOT b = f64[] parameter(1) }
sub { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] subtract(a, b) }
cadd { a = c128[] parameter(0) b = c128[] parameter(1) ROOT r = c128[] add(a, b) }
less { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
more { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
)";

std::string TextOf(std::string_view lines) {
  return Cat(kComputations, "ENTRY e {\n", lines, "\n}\n");
}

// Random numbers in place of missing arguments.
std::vector<Literal> Completed(std::vector<Literal> arguments, const ir::Module& module,
                               const SymbolSizes& sizes) {
  std::mt19937 random(20);
  const std::unique_ptr<ir::Module> known = *ir::Specialise(module, sizes);
  for (const ir::Instruction* x : known->entry()->parameters().subspan(arguments.size())) {
    arguments.push_back(testing::NormalLiteral(x->shape(), random));
  }
  return arguments;
}

std::vector<Literal> ValuesAt(Result<std::unique_ptr<ir::Module>> module,
                              const std::vector<Literal>& arguments) {
  EXPECT_TRUE(module.ok()) << module.status().ToString();
  if (!module.ok()) return {};
  auto results = testing::ResultsOf(**module, arguments);
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  return results.ok() ? *std::move(results) : std::vector<Literal>();
}

}  // namespace

Literal Doubles(std::vector<int64_t> dimensions, std::vector<double> values) {
  return Literal::Array<double>(Shape(ElementType::kF64, dimensions), values);
}

void ExpectDerivatives(std::string_view text, std::vector<Literal> arguments,
                       const SymbolSizes& sizes, const Options& options) {
  const std::unique_ptr<ir::Module> module = ir::ParseOrDie(text);
  arguments = Completed(std::move(arguments), *module, sizes);
  testing::DerivativeCounts counts;
  EXPECT_EQ(
      testing::CheckDerivatives(*module, arguments, {.options = options, .sizes = sizes}, &counts),
      "")
      << text;
  EXPECT_GT(counts.compared, 0) << text;
}

void ExpectDerivativesOf(std::string_view lines, std::vector<Literal> arguments,
                         const SymbolSizes& sizes) {
  ExpectDerivatives(TextOf(lines), std::move(arguments), sizes);
}

std::vector<Literal> GradientsAt(const ir::Module& module, const std::vector<Literal>& arguments) {
  std::vector<Literal> all = arguments;
  for (const Literal& value : ValuesAt(testing::ValueModule(module), arguments)) {
    Literal ones(value.shape());
    const size_t step = IsComplex(value.shape().type()) ? 2 : 1;
    for (size_t i = 0; i < ones.values<double>().size(); i += step) ones.values<double>()[i] = 1;
    all.push_back(std::move(ones));
  }
  return ValuesAt(testing::CotangentModule(module), all);
}
std::vector<Literal> GradientsAt(std::string_view lines, const std::vector<Literal>& arguments) {
  return GradientsAt(*ir::ParseOrDie(TextOf(lines)), arguments);
}

std::vector<Literal> TangentsAt(const ir::Module& module, std::vector<Literal> arguments,
                                const std::vector<Literal>& tangents) {
  arguments.insert(arguments.end(), tangents.begin(), tangents.end());
  return ValuesAt(testing::TangentModule(module), arguments);
}

std::string GradientError(std::string_view text) {
  auto gradients = testing::CotangentModule(*ir::ParseOrDie(text));
  return gradients.ok() ? "OK" : gradients.status().ToString();
}

std::vector<ir::Instruction*> FloatParametersOf(const ir::Computation& entry) {
  std::vector<ir::Instruction*> floats;
  for (ir::Instruction* parameter : entry.parameters()) {
    if (IsDifferentiable(parameter->shape())) floats.push_back(parameter);
  }
  return floats;
}

}  // namespace kiln::grad
