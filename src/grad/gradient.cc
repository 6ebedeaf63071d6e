#include "grad/gradient.h"

#include <algorithm>

#include "grad/forward.h"
#include "grad/reverse.h"

namespace kiln::grad {
namespace {

using ir::Instruction;

Status CheckDifferentiable(std::string_view role, const Instruction& x) {
  const Shape& shape = x.shape();
  if (shape.is_array() && IsDifferentiable(shape.type())) return OkStatus();
  return InvalidArgument(role, " '", x.name(), "' has the shape ", shape,
                         "; only arrays of floats and complex numbers have derivatives");
}

Status CheckLike(std::string_view role, const Instruction& derivative, const Instruction& x) {
  if (derivative.shape().SameTypeAndDimensions(x.shape())) return OkStatus();
  return InvalidArgument("the ", role, " of '", x.name(), "' has the shape ", derivative.shape(),
                         "; expected ", x.shape());
}

Status CheckValue(const Instruction& value, const Instruction* cotangent) {
  KILN_RETURN_IF_ERROR(CheckDifferentiable("the value", value));
  if (cotangent) return CheckLike("cotangent", *cotangent, value);
  if (value.shape().is_scalar() && IsFloat(value.shape().type())) return OkStatus();
  return InvalidArgument("the value '", value.name(), "' has the shape ", value.shape(),
                         "; without a cotangent it must be a scalar of a float type");
}

// Removes what was built for a rule and is not used, behind `last`.
void RemoveUnused(ir::Computation& computation, const Instruction* last,
                  std::span<Instruction* const> results) {
  std::vector<Instruction*> behind = InstructionsBehind(last);
  for (Instruction* x : std::ranges::reverse_view(behind)) {
    if (!x->users().empty() || x->IsRoot() || std::ranges::count(results, x)) continue;
    if (HasTrait(x->opcode(), kSideEffect)) continue;
    computation.Remove(x);
  }
}

std::vector<Instruction*> All(const ir::Computation& computation) {
  return {computation.instructions().begin(), computation.instructions().end()};
}

}  // namespace

Result<std::vector<Instruction*>> VectorJacobianProduct(
    ir::Computation& computation, std::span<Instruction* const> values,
    std::span<Instruction* const> cotangents, std::span<Instruction* const> with_respect_to,
    const Options& options) {
  for (size_t k = 0; k < values.size(); ++k) {
    KILN_RETURN_IF_ERROR(CheckValue(*values[k], k < cotangents.size() ? cotangents[k] : nullptr));
  }
  for (const Instruction* x : with_respect_to) {
    KILN_RETURN_IF_ERROR(CheckDifferentiable("with respect to", *x));
  }
  std::vector<Instruction*> results;
  if (computation.instructions().empty()) return results;
  const Instruction* last = computation.instructions().back();
  Builder builder(&computation);
  Reverse reverse(builder, options, with_respect_to, All(computation));
  for (size_t k = 0; k < values.size(); ++k) {
    if (!reverse.IsActive(values[k])) continue;
    Instruction* cotangent = k < cotangents.size() ? cotangents[k] : nullptr;
    reverse.Add(values[k], cotangent ? cotangent : builder.Number(values[k], 1));
  }
  reverse.Run();
  for (Instruction* x : with_respect_to) {
    results.push_back(builder.Whole(reverse.CotangentOf(x), x));
  }
  RemoveUnused(computation, last, results);
  KILN_RETURN_IF_ERROR(builder.status());
  return results;
}

Result<std::vector<Instruction*>> JacobianVectorProduct(
    ir::Computation& computation, std::span<Instruction* const> values,
    std::span<Instruction* const> with_respect_to, std::span<Instruction* const> tangents,
    const Options& options) {
  for (const Instruction* x : values) KILN_RETURN_IF_ERROR(CheckDifferentiable("the value", *x));
  for (size_t k = 0; k < with_respect_to.size(); ++k) {
    KILN_RETURN_IF_ERROR(CheckDifferentiable("with respect to", *with_respect_to[k]));
    KILN_RETURN_IF_ERROR(CheckLike("tangent", *tangents[k], *with_respect_to[k]));
  }
  std::vector<Instruction*> results;
  if (computation.instructions().empty()) return results;
  const Instruction* last = computation.instructions().back();
  Builder builder(&computation);
  Forward forward(builder, options);
  for (size_t k = 0; k < with_respect_to.size(); ++k) {
    forward.SetTangent(with_respect_to[k], {tangents[k]});
  }
  forward.Run(All(computation));
  for (Instruction* x : values) {
    results.push_back(builder.Whole(forward.TangentOf(x), x));
  }
  RemoveUnused(computation, last, results);
  KILN_RETURN_IF_ERROR(builder.status());
  return results;
}

}  // namespace kiln::grad
