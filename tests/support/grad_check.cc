#include "support/grad_check.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/strings.h"
#include "device/reference/custom_calls.h"
#include "grad/derivative.h"
#include "grad/gradient.h"
#include "interp/interpreter.h"
#include "ir/builder.h"
#include "ir/specialise.h"
#include "ir/verifier.h"

namespace kiln::testing {
namespace {

using ir::Instruction;
using Literals = std::vector<Literal>;
using Instructions = std::vector<Instruction*>;

// A copy of a module, to which results are added.
struct Function {
  explicit Function(const ir::Module& from) : module(from.Clone()), b(module->entry()) {
    ir::Computation& entry = *module->entry();
    for (Instruction* x : entry.parameters()) {
      if (grad::IsDifferentiable(x->shape())) parameters.push_back(x);
    }
    Instruction* root = entry.root();
    if (root->shape().is_array()) {
      if (grad::IsDifferentiable(root->shape())) values.push_back(root);
      return;
    }
    for (size_t k = 0; k < root->shape().elements().size(); ++k) {
      const Shape& shape = root->shape().elements()[k];
      if (!shape.is_array() || !grad::IsDifferentiable(shape)) continue;
      values.push_back(b.Element(root, static_cast<int64_t>(k)));
    }
  }

  Instructions AddParameters(const Instructions& like) {
    Instructions added;
    for (const Instruction* x : like) added.push_back(b.Parameter(x->shape()));
    return added;
  }

  Result<std::unique_ptr<ir::Module>> Return(Instructions results) {
    module->entry()->set_root(b.Tuple(std::move(results)));
    KILN_RETURN_IF_ERROR(b.status());
    module->RemoveUnusedComputations();
    module->SortComputations();
    KILN_RETURN_IF_ERROR(ir::Verify(*module));
    return std::move(module);
  }

  std::unique_ptr<ir::Module> module;
  ir::Builder b;
  Instructions parameters, values;
};

// Real and imaginary parts are numbers of their own.
std::span<double> NumbersOf(Literal& x) { return x.values<double>(); }
std::span<const double> NumbersOf(const Literal& x) { return x.values<double>(); }

// The arguments of a module that have derivatives.
Literals MovableOf(const Literals& arguments) {
  Literals movable;
  for (const Literal& x : arguments) {
    if (grad::IsDifferentiable(x.shape())) movable.push_back(x);
  }
  return movable;
}

// arguments + step * direction
Literals Moved(Literals arguments, const Literals& direction, double step) {
  auto along = direction.begin();
  for (Literal& x : arguments) {
    if (!grad::IsDifferentiable(x.shape())) continue;
    std::span<double> numbers = NumbersOf(x);
    const std::span<const double> by = NumbersOf(*along++);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += step * by[i];
  }
  return arguments;
}

// Re(sum of x y), and the sum of the absolute values of its terms.
struct Product {
  double sum = 0, size = 0;
};
Product ProductOf(const Literals& x, const Literals& y) {
  Product product;
  for (size_t k = 0; k < x.size(); ++k) {
    const std::span<const double> a = NumbersOf(x[k]), b = NumbersOf(y[k]);
    const bool is_complex = IsComplex(x[k].shape().type());
    for (size_t i = 0; i < a.size(); ++i) {
      product.sum += is_complex && i % 2 == 1 ? -a[i] * b[i] : a[i] * b[i];
      product.size += std::abs(a[i] * b[i]);
    }
  }
  return product;
}

bool IsFinite(const Literals& x) {
  return std::ranges::all_of(x, [](const Literal& array) {
    return std::ranges::all_of(NumbersOf(array),
                               [](double number) { return std::isfinite(number); });
  });
}

double LargestOf(const Literal& x) {
  double largest = 0;
  for (double number : NumbersOf(x)) largest = std::max(largest, std::abs(number));
  return largest;
}

class Checker {
 public:
  Checker(const DerivativeCheck& how, DerivativeCounts& counts) : how_(how), counts_(counts) {}

  // `orders` more orders of derivatives follow.
  Status Run(const ir::Module& module, const Literals& x, int orders) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> value, ValueModule(module));
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> forward, TangentModule(module, how_.options));
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> reverse,
                          CotangentModule(module, how_.options));
    KILN_ASSIGN_OR_RETURN(value, ir::Specialise(*value, how_.sizes));
    KILN_ASSIGN_OR_RETURN(Literals values, ResultsOf(*value, x));
    if (!IsFinite(values)) {
      ++counts_.undefined;
      return OkStatus();
    }
    const Literals direction = RandomLike(MovableOf(x));
    KILN_ASSIGN_OR_RETURN(Literals tangent, EvaluateDerivative(*forward, x, direction));
    KILN_RETURN_IF_ERROR(Compare(*value, x, values, direction, tangent));
    Literals cotangent = RandomLike(tangent);
    KILN_ASSIGN_OR_RETURN(Literals gradient, EvaluateDerivative(*reverse, x, cotangent));
    const Product by_reverse = ProductOf(gradient, direction);
    const Product by_forward = ProductOf(cotangent, tangent);
    const double size = 1 + by_reverse.size + by_forward.size;
    if (!(std::abs(by_reverse.sum - by_forward.sum) <= 1e-10 * size)) {
      return Internal("reverse mode has ", by_reverse.sum, ", forward mode ", by_forward.sum);
    }
    if (orders == 0) return OkStatus();
    cotangent.insert(cotangent.begin(), x.begin(), x.end());
    const Status second = Run(*reverse, cotangent, orders - 1);
    return second.ok() ? second : second.WithContext("derivatives of reverse mode");
  }

 private:
  Literals RandomLike(const Literals& x) {
    Literals like;
    for (const Literal& array : x) like.push_back(NormalLiteral(array.shape(), random_));
    return like;
  }

  Result<Literals> EvaluateDerivative(const ir::Module& module, Literals arguments,
                                      const Literals& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> known, ir::Specialise(module, how_.sizes));
    KILN_ASSIGN_OR_RETURN(Literals results, ResultsOf(*known, arguments));
    if (how_.also) {
      const std::string problem = how_.also(*known, arguments, results);
      if (!problem.empty()) return Internal(problem);
    }
    return results;
  }

  // f(x + step d) - f(x - step d)
  Result<Literals> Across(const ir::Module& f, const Literals& x, const Literals& direction,
                          double step) {
    KILN_ASSIGN_OR_RETURN(Literals high, ResultsOf(f, Moved(x, direction, step)));
    KILN_ASSIGN_OR_RETURN(Literals low, ResultsOf(f, Moved(x, direction, -step)));
    return Moved(std::move(high), low, -1);
  }

  // Tangents against central differences of fourth order.
  Status Compare(const ir::Module& f, const Literals& x, const Literals& values,
                 const Literals& direction, const Literals& tangent) {
    const double step = how_.step;
    KILN_ASSIGN_OR_RETURN(Literals near, Across(f, x, direction, step));
    KILN_ASSIGN_OR_RETURN(Literals far, Across(f, x, direction, 2 * step));
    Literals nearest;
    if (how_.has_kinks) {
      KILN_ASSIGN_OR_RETURN(nearest, Across(f, x, direction, step / 2));
    }
    const auto difference = [](double inner, double outer, double step) {
      return (8 * inner - outer) / (12 * step);
    };
    for (size_t k = 0; k < tangent.size(); ++k) {
      if (!grad::IsDifferentiable(tangent[k].shape())) continue;
      const double bound = how_.tolerance * std::max(1.0, LargestOf(tangent[k])) +
                           1e-14 / step * LargestOf(values[k]);
      for (size_t i = 0; i < NumbersOf(tangent[k]).size(); ++i) {
        const double inner = NumbersOf(near[k])[i], got = NumbersOf(tangent[k])[i];
        const double expected = difference(inner, NumbersOf(far[k])[i], step);
        const bool is_kink =
            how_.has_kinks &&
            !(std::abs(expected - difference(NumbersOf(nearest[k])[i], inner, step / 2)) <= bound);
        ++(is_kink ? counts_.skipped : counts_.compared);
        if (is_kink || std::abs(got - expected) <= bound) continue;
        return Internal("number ", i, " of tangent ", k, " is ", got, "; by differences ",
                        expected);
      }
    }
    return OkStatus();
  }

  const DerivativeCheck& how_;
  DerivativeCounts& counts_;
  std::mt19937 random_{20};
};

}  // namespace

Result<std::unique_ptr<ir::Module>> ValueModule(const ir::Module& module) {
  Function f(module);
  return f.Return(f.values);
}

Result<std::unique_ptr<ir::Module>> TangentModule(const ir::Module& module,
                                                  const grad::Options& options) {
  Function f(module);
  const Instructions tangents = f.AddParameters(f.parameters);
  KILN_ASSIGN_OR_RETURN(
      Instructions derivatives,
      grad::JacobianVectorProduct(*f.module->entry(), f.values, f.parameters, tangents, options));
  return f.Return(std::move(derivatives));
}

Result<std::unique_ptr<ir::Module>> CotangentModule(const ir::Module& module,
                                                    const grad::Options& options) {
  Function f(module);
  const Instructions cotangents = f.AddParameters(f.values);
  KILN_ASSIGN_OR_RETURN(
      Instructions derivatives,
      grad::VectorJacobianProduct(*f.module->entry(), f.values, cotangents, f.parameters, options));
  return f.Return(std::move(derivatives));
}

Result<Literals> ResultsOf(const ir::Module& module, const Literals& arguments) {
  KILN_ASSIGN_OR_RETURN(
      Literal result,
      interp::Evaluate(module, arguments, {.custom_call = device::CustomCallBy({})}));
  return std::move(result.elements());
}

Literal NormalLiteral(const Shape& shape, std::mt19937& random) {
  Literal x(shape);
  std::normal_distribution<double> normal;
  for (double& number : NumbersOf(x)) number = normal(random);
  return x;
}

std::string CheckDerivatives(const ir::Module& module, std::vector<Literal> arguments,
                             const DerivativeCheck& how, DerivativeCounts* counts) {
  DerivativeCounts own;
  Checker check(how, counts ? *counts : own);
  const Status status = check.Run(module, arguments, how.orders - 1);
  return status.ok() ? "" : status.ToString();
}

}  // namespace kiln::testing
