#include "unit/grad/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "grad/derivative.h"
#include "grad/gradient.h"
#include "interp/interpreter.h"
#include "ir/builder.h"
#include "ir/specialise.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::grad {
namespace {

using ir::Instruction;
using Literals = std::vector<Literal>;
using Instructions = std::vector<Instruction*>;

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

// Real and imaginary parts are numbers of their own.
std::span<double> NumbersOf(Literal& x) { return x.values<double>(); }
std::span<const double> NumbersOf(const Literal& x) { return x.values<double>(); }

Literal Random(const Shape& shape, std::mt19937& random) {
  Literal x(shape);
  std::normal_distribution<double> normal;
  for (double& number : NumbersOf(x)) number = normal(random);
  return x;
}

Literals RandomLike(const Literals& x, std::mt19937& random) {
  Literals like;
  for (const Literal& array : x) like.push_back(Random(array.shape(), random));
  return like;
}

Literals Moved(Literals x, const Literals& direction, double step) {
  for (size_t k = 0; k < x.size(); ++k) {
    std::span<double> numbers = NumbersOf(x[k]);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] += step * NumbersOf(direction[k])[i];
    }
  }
  return x;
}

// Re(sum of x y)
double Product(const Literals& x, const Literals& y) {
  double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const std::span<const double> a = NumbersOf(x[k]), b = NumbersOf(y[k]);
    const bool is_complex = IsComplex(x[k].shape().type());
    for (size_t i = 0; i < a.size(); ++i) {
      sum += is_complex && i % 2 == 1 ? -a[i] * b[i] : a[i] * b[i];
    }
  }
  return sum;
}

double Size(const Literals& x) {
  double largest = 1;
  for (const Literal& array : x) {
    for (double number : NumbersOf(array)) largest = std::max(largest, std::abs(number));
  }
  return largest;
}

// The arrays of a root that have derivatives.
Instructions ValuesOf(ir::Builder& b, Instruction* root) {
  if (root->shape().is_array()) return {root};
  Instructions values;
  for (size_t k = 0; k < root->shape().elements().size(); ++k) {
    if (!IsDifferentiable(root->shape().elements()[k])) continue;
    values.push_back(b.Element(root, static_cast<int64_t>(k)));
  }
  return values;
}

// A module, its values, and what is made of it: results are tuples.
struct Function {
  explicit Function(const ir::Module& from) : module(from.Clone()), b(module->entry()) {
    ir::Computation& entry = *module->entry();
    parameters.assign(entry.parameters().begin(), entry.parameters().end());
    values = ValuesOf(b, entry.root());
  }
  Instructions AddParameters(const Instructions& like) {
    Instructions added;
    for (const Instruction* x : like) added.push_back(b.Parameter(x->shape()));
    return added;
  }
  void Return(Result<Instructions> results) {
    ASSERT_TRUE(results.ok()) << results.status().ToString();
    module->entry()->set_root(b.Tuple(*std::move(results)));
    ASSERT_TRUE(b.ok()) << b.status().ToString();
    module->RemoveUnusedComputations();
    const Status status = ir::Verify(*module);
    ASSERT_TRUE(status.ok()) << status.ToString();
    is_ok = true;
  }

  std::unique_ptr<ir::Module> module;
  ir::Builder b;
  Instructions parameters, values;
  bool is_ok = false;
};

void ExpectNear(const Literals& got, const Literals& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const double size = Size({expected[k]});
    for (size_t i = 0; i < NumbersOf(got[k]).size(); ++i) {
      ASSERT_NEAR(NumbersOf(got[k])[i], NumbersOf(expected[k])[i], tolerance * size)
          << "number " << i << " of value " << k;
    }
  }
}

class Check {
 public:
  Check(const Options& options, SymbolSizes sizes) : options_(options), sizes_(std::move(sizes)) {}

  // Random numbers in place of missing arguments.
  Literals ArgumentsOf(const ir::Module& module, Literals given) {
    const std::unique_ptr<ir::Module> known = *ir::Specialise(module, sizes_);
    for (const Instruction* x : known->entry()->parameters().subspan(given.size())) {
      given.push_back(Random(x->shape(), random_));
    }
    return given;
  }

  // The elements of the module's value.
  Literals Evaluate(const ir::Module& module, Literals arguments, const Literals& more = {}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    Result<std::unique_ptr<ir::Module>> known = ir::Specialise(module, sizes_);
    EXPECT_TRUE(known.ok()) << known.status().ToString();
    if (!known.ok()) return {};
    Result<Literal> result = interp::Evaluate(**known, arguments);
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? result->elements() : Literals();
  }

  // `order` more orders of derivatives follow.
  void Expect(const ir::Module& module, const Literals& x, int order) {
    constexpr double kTolerance = 2e-7;
    Function value(module), forward(module), reverse(module);
    value.Return(value.values);
    const Instructions tangents = forward.AddParameters(forward.parameters);
    forward.Return(JacobianVectorProduct(*forward.module->entry(), forward.values,
                                         forward.parameters, tangents, options_));
    const Instructions cotangents = reverse.AddParameters(reverse.values);
    reverse.Return(VectorJacobianProduct(*reverse.module->entry(), reverse.values, cotangents,
                                         reverse.parameters, options_));
    ASSERT_TRUE(value.is_ok && forward.is_ok && reverse.is_ok);
    const Literals direction = RandomLike(x, random_);
    const Literals tangent = Evaluate(*forward.module, x, direction);
    ExpectNear(tangent, Difference(*value.module, x, direction), kTolerance);
    if (::testing::Test::HasFatalFailure()) return;
    Literals cotangent = RandomLike(tangent, random_);
    const Literals gradient = Evaluate(*reverse.module, x, cotangent);
    ASSERT_EQ(gradient.size(), x.size());
    ASSERT_NEAR(Product(gradient, direction), Product(cotangent, tangent),
                1e-10 * Size(gradient) * Size(tangent) * Size(cotangent));
    if (order == 0) return;
    cotangent.insert(cotangent.begin(), x.begin(), x.end());
    SCOPED_TRACE("second order");
    Expect(*reverse.module, cotangent, order - 1);
  }

 private:
  // Central differences of fourth order.
  Literals Difference(const ir::Module& f, const Literals& x, const Literals& direction) {
    constexpr double kStep = 5e-4;
    Literals sum;
    for (const auto& [steps, weight] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
      Literals value = Evaluate(f, Moved(x, direction, steps * kStep));
      if (sum.empty()) {
        for (const Literal& array : value) sum.emplace_back(array.shape());
      }
      sum = Moved(std::move(sum), value, weight / (12 * kStep));
    }
    return sum;
  }

  const Options options_;
  const SymbolSizes sizes_;
  std::mt19937 random_{20};
};

}  // namespace

Literal Doubles(std::vector<int64_t> dimensions, std::vector<double> values) {
  return Literal::Array<double>(Shape(ElementType::kF64, dimensions), values);
}

void ExpectDerivatives(std::string_view text, std::vector<Literal> arguments,
                       const SymbolSizes& sizes, const Options& options) {
  SCOPED_TRACE(text);
  std::unique_ptr<ir::Module> module = ir::ParseOrDie(text);
  Check check(options, sizes);
  const Literals x = check.ArgumentsOf(*module, std::move(arguments));
  check.Expect(*module, x, 1);
}

void ExpectDerivativesOf(std::string_view lines, std::vector<Literal> arguments,
                         const SymbolSizes& sizes) {
  ExpectDerivatives(TextOf(lines), std::move(arguments), sizes);
}

std::vector<Literal> GradientsAt(std::string_view lines, const std::vector<Literal>& arguments) {
  Function f(*ir::ParseOrDie(TextOf(lines)));
  Instructions ones;
  for (const Instruction* x : f.values) ones.push_back(f.b.Number(x, 1));
  f.Return(VectorJacobianProduct(*f.module->entry(), f.values, ones, f.parameters, {}));
  return f.is_ok ? Check({}, {}).Evaluate(*f.module, arguments) : Literals();
}

std::string GradientError(std::string_view text) {
  Function f(*ir::ParseOrDie(text));
  Instructions ones;
  for (const Instruction* x : f.values) ones.push_back(f.b.Number(x, 1));
  auto gradients = VectorJacobianProduct(*f.module->entry(), f.values, ones, f.parameters, {});
  return gradients.ok() ? "OK" : gradients.status().ToString();
}

}  // namespace kiln::grad
