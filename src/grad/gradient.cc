#include "grad/gradient.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "grad/body.h"
#include "grad/forward.h"
#include "grad/reverse.h"
#include "ir/analysis/effects.h"

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

// Each call of a computation gets copies of its own: fails where these would fill the memory.
Status CheckCopies(const ir::Computation& computation) {
  constexpr int64_t kMost = int64_t{1} << 22;
  if (!computation.MayCall()) return OkStatus();
  std::unordered_map<const ir::Computation*, int64_t> sizes;
  for (const ir::Computation* c : computation.parent()->CalleesFirst()) {
    int64_t& size = sizes[c] = c->instruction_count();
    if (!c->MayCall()) continue;
    for (const Instruction* i : c->instructions()) {
      for (const ir::Computation* callee : i->called()) {
        size = std::min(size + sizes.at(callee), kMost + 1);
      }
    }
  }
  if (sizes.at(&computation) <= kMost) return OkStatus();
  return ResourceExhausted("'", computation.name(), "' has more than ", kMost,
                           " instructions with a copy of each computation for each of its calls");
}

// Ends the derivative, whose instructions are those behind `last`: ops with more results take their
// places, and what was built for a rule and is not used is removed. On failure all is as it was.
Result<std::vector<Instruction*>> Finish(Builder& builder, const Instruction* last,
                                         const Options& options,
                                         std::vector<Instruction*> results) {
  ir::Computation& computation = *builder.computation();
  Replacements& replacements = builder.replacements();
  std::vector<Instruction*> added = InstructionsBehind(last);
  if (!builder.ok()) {
    const std::unordered_set<const Instruction*> behind(added.begin(), added.end());
    std::vector<Instruction*> early = replacements.early();
    std::erase_if(early, [&](const Instruction* x) { return behind.contains(x); });
    for (auto* list : {&added, &early}) {
      for (Instruction* x : std::ranges::reverse_view(*list)) computation.Remove(x);
    }
    return builder.status();
  }
  std::erase_if(added, [&](Instruction* x) { return replacements.Now(x) != x; });
  replacements.Commit();
  for (Instruction*& x : results) x = replacements.Now(x);
  ir::InstructionSet needed;
  for (const Instruction* x : results) needed.Insert(x);
  for (const Replacements::Pair& pair : replacements.pairs()) needed.Insert(pair.value);
  for (Instruction* x : std::ranges::reverse_view(added)) {
    if (!x->users().empty() || x->IsRoot() || needed.contains(x)) continue;
    if (ir::HasSideEffect(*x)) continue;
    computation.Remove(x);
  }
  if (options.replaced) {
    for (const Replacements::Pair& pair : replacements.pairs())
      options.replaced(pair.op, pair.value);
  }
  return results;
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
  KILN_RETURN_IF_ERROR(CheckCopies(computation));
  std::vector<Instruction*> results;
  if (computation.instructions().empty()) return results;
  const Instruction* last = computation.instructions().back();
  Builder builder(&computation);
  Reverse reverse(builder, options, with_respect_to, AllOf(computation));
  for (size_t k = 0; k < values.size(); ++k) {
    if (!reverse.IsActive(values[k])) continue;
    Instruction* cotangent = k < cotangents.size() ? cotangents[k] : nullptr;
    reverse.Add(values[k], cotangent ? cotangent : builder.Number(values[k], 1));
  }
  reverse.Run();
  for (Instruction* x : with_respect_to) {
    results.push_back(builder.Whole(reverse.CotangentOf(x), x));
  }
  return Finish(builder, last, options, std::move(results));
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
  KILN_RETURN_IF_ERROR(CheckCopies(computation));
  std::vector<Instruction*> results;
  if (computation.instructions().empty()) return results;
  const Instruction* last = computation.instructions().back();
  Builder builder(&computation);
  Forward forward(builder, options);
  for (size_t k = 0; k < with_respect_to.size(); ++k) {
    forward.SetTangent(with_respect_to[k], {tangents[k]});
  }
  forward.Run(AllOf(computation));
  for (Instruction* x : values) {
    results.push_back(builder.Whole(forward.TangentOf(x), x));
  }
  return Finish(builder, last, options, std::move(results));
}

}  // namespace kiln::grad
