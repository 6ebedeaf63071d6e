// Bounded dimensions of the entry's parameters and results.
#include <algorithm>

#include "passes/expand/bounded.h"
#include "passes/expand/sized.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using ir::Instruction;

bool HasBound(const Shape& shape) {
  return std::ranges::any_of(shape.dimensions(), &Dimension::is_bounded) ||
         std::ranges::any_of(shape.elements(), HasBound);
}

// Arrays of the bounds as a value of bounded dimensions that is as large.
Instruction* Whole(Builder& b, Instruction* x, const Shape& bounded) {
  if (!HasBound(bounded)) return x;
  if (bounded.is_tuple()) {
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < bounded.elements().size(); ++k) {
      elements.push_back(Whole(b, b.Element(x, static_cast<int64_t>(k)), bounded.elements()[k]));
    }
    return b.Tuple(std::move(elements));
  }
  for (int64_t d = 0; d < bounded.rank(); ++d) {
    if (!bounded.dimension(d).is_bounded()) continue;
    x = b.Add(Opcode::kSetDimensionSize, {x, expand::S32(b, bounded.dim(d))},
              {{Attr::kDimensions, Ints{d}}});
  }
  return b.InLayout(x, bounded);
}

// Values of bounded dimensions as arrays of the bounds, with zeros behind the sizes.
Instruction* Filled(Builder& b, Instruction* x) {
  const Shape bounded = x->shape();
  if (!HasBound(bounded)) return x;
  if (bounded.is_tuple()) {
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < bounded.elements().size(); ++k) {
      elements.push_back(Filled(b, b.Element(x, static_cast<int64_t>(k))));
    }
    return b.Tuple(std::move(elements));
  }
  Shape shape = bounded;
  for (int64_t d = 0; d < bounded.rank(); ++d) {
    if (!bounded.dimension(d).is_bounded()) continue;
    shape.set_dimension(d, bounded.dim(d));
    x = b.WithSize(x, d, expand::S32(b, bounded.dim(d)), bounded.dim(d));
  }
  return b.InLayout(x, shape);
}

}  // namespace

Status PrepareBounded(ir::Module& module) {
  ir::Computation& entry = *module.entry();
  if (Instruction* root = entry.root(); HasBound(root->shape())) {
    Builder b(&entry, nullptr, root);
    entry.set_root(Filled(b, root));
    KILN_RETURN_IF_ERROR(b.status());
  }
  const std::vector<Instruction*> parameters(entry.parameters().begin(), entry.parameters().end());
  for (Instruction* p : parameters) {
    if (!HasBound(p->shape())) continue;
    const Shape bounded = p->shape();
    const std::vector<Instruction*> users(p->users().begin(), p->users().end());
    p->set_shape(expand::WithBounds(bounded));
    auto next = entry.instructions().begin();
    while (*next != p) ++next;
    ++next;
    Builder b(&entry, next == entry.instructions().end() ? nullptr : *next, p);
    Instruction* whole = Whole(b, p, bounded);
    for (Instruction* user : users) {
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == p) entry.ReplaceOperand(user, o, whole);
      }
    }
    KILN_RETURN_IF_ERROR(b.status());
  }
  return OkStatus();
}

}  // namespace kiln::passes
