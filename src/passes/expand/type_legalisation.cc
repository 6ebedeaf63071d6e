#include "passes/expand/type_legalisation.h"

#include <algorithm>

#include "passes/growth.h"

namespace kiln::passes::expand {
namespace {

using ir::Computation;
using ir::Instruction;

// f((a, b), c) => f(a, b, c), and of a sort, whose parameters are pairs of elements,
// f((a, b), (c, d)) => f(a, c, b, d)
void FlattenParameters(Computation& c, size_t group) {
  std::vector<Instruction*> before(c.parameters().begin(), c.parameters().end());
  std::vector<Instruction*> after, gone;
  for (size_t first = 0; first < before.size(); first += group) {
    std::vector<std::vector<Instruction*>> leaves;
    for (size_t k = first; k < std::min(first + group, before.size()); ++k) {
      Instruction* p = before[k];
      if (!p->shape().is_tuple()) {
        leaves.push_back({p});
        continue;
      }
      std::vector<Instruction*> parts;
      for (const Shape& shape : p->shape().elements()) {
        int64_t number = static_cast<int64_t>(c.parameters().size());
        parts.push_back(c.Create({.opcode = Opcode::kParameter,
                                  .attributes = {{Attr::kParameterNumber, number}},
                                  .shape = shape},
                                 p));
      }
      std::vector<Instruction*> users(p->users().begin(), p->users().end());
      for (Instruction* user : users) {
        if (user->opcode() != Opcode::kGetTupleElement) continue;
        c.ReplaceAllUses(user, parts[static_cast<size_t>(user->attributes().Int(Attr::kIndex))]);
        c.Remove(user);
      }
      Shape shape = p->shape();
      c.ReplaceAllUses(p,
                       c.Create({.opcode = Opcode::kTuple, .operands = parts, .shape = shape}, p));
      gone.push_back(p);
      leaves.push_back(std::move(parts));
    }
    for (size_t k = 0; k < leaves[0].size(); ++k) {
      for (const auto& parts : leaves) after.push_back(parts[k]);
    }
  }
  for (Instruction* p : gone) c.Remove(p);
  c.SetParameters(std::move(after));
}

// ((a, b), c) => (a, b, c)
void FlattenRoot(Computation& c) {
  if (!c.root()->shape().is_tuple()) return;
  Builder b(&c, nullptr, c.root());
  std::vector<Instruction*> leaves;
  auto visit = [&](auto&& self, Instruction* x) -> void {
    if (!x->shape().is_tuple()) {
      leaves.push_back(x);
      return;
    }
    for (size_t k = 0; k < x->shape().elements().size(); ++k) {
      self(self, b.Element(x, static_cast<int64_t>(k)));
    }
  };
  visit(visit, c.root());
  c.set_root(b.Tuple(std::move(leaves)));
}

// The next elements of a flat tuple, in the shape of a nested one.
Instruction* Nested(Builder& b, Instruction* flat, const Shape& shape, int64_t& next) {
  if (!shape.is_tuple()) return b.Element(flat, next++);
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) {
    elements.push_back(Nested(b, flat, element, next));
  }
  return b.Tuple(std::move(elements));
}

}  // namespace

bool TypeLegalisation::HasMapped(const Shape& shape) const {
  if (!shape.is_tuple()) return Maps(shape);
  return std::ranges::any_of(shape.elements(), [&](const Shape& s) { return HasMapped(s); });
}

Shape TypeLegalisation::MappedAll(const Shape& shape) const {
  if (!shape.is_tuple()) return Maps(shape) ? Mapped(shape) : shape;
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements()) elements.push_back(MappedAll(element));
  return Shape::Tuple(std::move(elements));
}

Instruction* TypeLegalisation::FromMemoryAll(Builder& b, Instruction* value) {
  if (!HasMapped(value->shape())) return value;
  if (!value->shape().is_tuple()) return FromMemory(b, value);
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < value->shape().elements().size(); ++k) {
    elements.push_back(FromMemoryAll(b, b.Element(value, static_cast<int64_t>(k))));
  }
  return b.Tuple(std::move(elements));
}

Instruction* TypeLegalisation::ToMemoryAll(Builder& b, Instruction* value, const Shape& shape) {
  if (!HasMapped(shape)) return value;
  if (!shape.is_tuple()) return ToMemory(b, value, shape);
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    elements.push_back(
        ToMemoryAll(b, b.Element(value, static_cast<int64_t>(k)), shape.elements()[k]));
  }
  return b.Tuple(std::move(elements));
}

Result<bool> TypeLegalisation::Run(const PassContext& context) {
  const bool any = std::ranges::any_of(module_.computations(), [&](const auto& c) {
    return std::ranges::any_of(c->instructions(),
                               [&](const Instruction* i) { return HasMapped(i->shape()); });
  });
  if (!any) return false;
  KILN_RETURN_IF_ERROR(Prepare());
  // Callees first: callers see their legalised forms.
  for (Computation* c : module_.CalleesFirst()) {
    KILN_RETURN_IF_ERROR(Expand(*c, context));
  }
  module_.RemoveUnusedComputations();
  return true;
}

void TypeLegalisation::Legalise(Instruction* i, const Shape& was) {
  if (!HasMapped(was)) return;
  Shape before = was;
  i->set_shape(MappedAll(before));
  shapes_[i] = std::move(before);
}

// A parameter of the entry stays, and its users take the converted value.
Status TypeLegalisation::ExpandParameter(Computation& c, Instruction* p) {
  std::vector<Instruction*> users(p->users().begin(), p->users().end());
  auto next = c.instructions().begin();
  while (*next != p) ++next;
  ++next;
  Builder b(&c, next == c.instructions().end() ? nullptr : *next, p);
  Instruction* value = b.InLayout(FromMemoryAll(b, p), MappedAll(p->shape()));
  shapes_[value] = p->shape();
  for (Instruction* user : users) {
    for (int64_t o = 0; o < user->operand_count(); ++o) {
      if (user->operand(o) == p) c.ReplaceOperand(user, o, value);
    }
  }
  return b.status();
}

Status TypeLegalisation::Expand(Computation& c, const PassContext& context) {
  const bool entry = &c == module_.entry();
  std::vector<Instruction*> all(c.instructions().begin(), c.instructions().end()), dead;
  for (Instruction* i : all) {
    const Shape shape = i->shape();
    const bool has = HasMapped(shape);
    if (!has && std::ranges::none_of(i->operands(),
                                     [&](const Instruction* o) { return shapes_.contains(o); })) {
      continue;
    }
    switch (i->opcode()) {
      case Opcode::kParameter:
        if (entry) {
          KILN_RETURN_IF_ERROR(ExpandParameter(c, i));
          continue;
        }
        [[fallthrough]];
      case Opcode::kTuple:
      case Opcode::kGetTupleElement:
      case Opcode::kWhile:
      case Opcode::kConditional:
      case Opcode::kCall:
      case Opcode::kOptBarrier:
        Legalise(i, shape);
        continue;
      default:
        break;
    }
    KILN_RETURN_IF_ERROR(CheckGrowth(c, context));
    Builder b(i);
    KILN_ASSIGN_OR_RETURN(Instruction * value, ValueOf(b, i, shape));
    KILN_RETURN_IF_ERROR(b.status());
    value = b.InLayout(value, MappedAll(shape));
    // Values replaced already are skipped.
    const Shape* before = Before(value);
    const bool is_operand = std::ranges::find(i->operands(), value) != i->operands().end();
    if (before ? !(has && before->SameTypeAndDimensions(shape)) : has && is_operand) {
      value = b.Unary(Opcode::kCopy, value);
    }
    value = b.InLayout(value, MappedAll(shape));
    if (has) shapes_[value] = shape;
    c.ReplaceAllUses(i, value);
    dead.push_back(i);
  }
  if (entry) {
    if (const Shape* before = Before(c.root())) {
      const Shape shape = *before;
      Builder b(&c, nullptr, c.root());
      c.set_root(ToMemoryAll(b, c.root(), shape));
      KILN_RETURN_IF_ERROR(b.status());
    }
  }
  // Users stand behind what they use.
  for (auto it = dead.rbegin(); it != dead.rend(); ++it) c.Remove(*it);
  return OkStatus();
}

Result<Instruction*> TypeLegalisation::Folded(Builder& b, Instruction* i, const Shape& shape) {
  std::vector<Instruction*> operands;
  for (Instruction* operand : i->operands()) {
    if (!operand->shape().is_tuple()) {
      operands.push_back(operand);
      continue;
    }
    for (size_t k = 0; k < operand->shape().elements().size(); ++k) {
      operands.push_back(b.Element(operand, static_cast<int64_t>(k)));
    }
  }
  ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
  for (Computation*& called : spec.called) {
    called = module_.CloneComputation(*called, called->name());
    FlattenParameters(*called, i->opcode() == Opcode::kSort ? 2 : 1);
    FlattenRoot(*called);
  }
  const Shape mapped = MappedAll(shape);
  std::vector<Shape> leaves;
  ForEachLeaf(mapped, [&](const Shape& leaf, auto) { leaves.push_back(leaf); });
  const bool one = leaves.size() == 1;
  spec.name.clear();
  spec.shape = one ? leaves[0] : Shape::Tuple(leaves);
  Instruction* folded = b.computation()->Create(std::move(spec), b.before());
  if (one && !mapped.is_tuple()) return folded;
  if (one) return b.Tuple({folded});
  int64_t next = 0;
  return Nested(b, folded, mapped, next);
}

Result<Instruction*> TypeLegalisation::Called(Builder& b, Instruction* i) {
  std::vector<Instruction*> operands;
  for (Instruction* operand : i->operands()) {
    const Shape* before = Before(operand);
    const Shape shape = before ? *before : Shape();
    operands.push_back(before ? ToMemoryAll(b, operand, shape) : operand);
  }
  ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
  spec.name.clear();
  return FromMemoryAll(b, b.computation()->Create(std::move(spec), b.before()));
}

}  // namespace kiln::passes::expand
