// Derivatives of modules against differences of their values, in double precision.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "grad/options.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::testing {

// Functions as modules. Their results are tuples: of the values of the entry that have derivatives,
// which are its root's or, of a tuple, its arrays'; of the tangents of these, with the tangents
// of all parameters that have derivatives as further parameters; and of the cotangents of these
// parameters, with the cotangents of the values as further ones.
Result<std::unique_ptr<ir::Module>> ValueModule(const ir::Module& module);
Result<std::unique_ptr<ir::Module>> TangentModule(const ir::Module& module,
                                                  const grad::Options& options = {});
Result<std::unique_ptr<ir::Module>> CotangentModule(const ir::Module& module,
                                                    const grad::Options& options = {});

// The results of such a module, in the evaluator with the library's functions of matrices.
Result<std::vector<Literal>> ResultsOf(const ir::Module& module,
                                       const std::vector<Literal>& arguments);

// Normally distributed numbers.
Literal NormalLiteral(const Shape& shape, std::mt19937& random);

struct DerivativeCheck {
  grad::Options options = {};
  SymbolSizes sizes = {};                // set after differentiation
  int orders = 2;                        // 2: the derivatives of the cotangents, too
  double step = 5e-4, tolerance = 2e-7;  // of differences; the latter of the array's largest number
  // The function may have kinks and jumps: where differences of two steps disagree, they say
  // nothing.
  bool has_kinks = false;
  // Looks at the modules of tangents and cotangents, with their arguments and results too, and
  // returns "" or what is wrong.
  std::function<std::string(const ir::Module& module, const std::vector<Literal>& arguments,
                            const std::vector<Literal>& results)>
      also = nullptr;
};

// Numbers of tangents that were held against differences, and those next to kinks; modules whose
// values are not finite.
struct DerivativeCounts {
  int64_t compared = 0, skipped = 0, undefined = 0;
};

// Differentiates a module of f64 and c128 by its parameters, of which those of other types are held
// constant, in random directions:
//   tangents are what differences say;
//   <cotangent, tangent(direction)> = <cotangents(cotangent), direction>;
// and the same of the cotangents as a function of parameters and cotangents. Of complex numbers the
// products are real parts, without conjugation. Returns "" or what is wrong; also "" where values
// are not finite.
std::string CheckDerivatives(const ir::Module& module, std::vector<Literal> arguments,
                             const DerivativeCheck& how = {}, DerivativeCounts* counts = nullptr);

}  // namespace kiln::testing
