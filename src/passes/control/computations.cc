#include "passes/control/computations.h"

#include <iterator>
#include <unordered_map>

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

Instruction* MakeTuple(Computation* c, std::vector<Instruction*> elements, Instruction* at) {
  std::vector<Shape> shapes;
  for (const Instruction* element : elements) shapes.push_back(element->shape());
  return c->Create({.opcode = Opcode::kTuple,
                    .operands = std::move(elements),
                    .shape = Shape::Tuple(std::move(shapes))},
                   at);
}

namespace {

// A value without users.
Instruction* MakeZeros(Computation* c, const Shape& shape, Instruction* at) {
  if (shape.is_tuple()) {
    std::vector<Instruction*> elements;
    for (const Shape& element : shape.elements()) elements.push_back(MakeZeros(c, element, at));
    return MakeTuple(c, std::move(elements), at);
  }
  Shape scalar = Shape::Scalar(shape.type());
  Instruction* zero = at->parent()->Create({.opcode = Opcode::kConstant,
                                            .shape = scalar,
                                            .literal = std::make_shared<const Literal>(scalar)},
                                           at);
  if (shape.rank() == 0) return zero;
  return c->Create({.opcode = Opcode::kBroadcast,
                    .operands = {zero},
                    .attributes = {{Attr::kDimensions, Ints{}}},
                    .shape = shape},
                   at);
}

}  // namespace

Instruction* CopyBody(Instruction* at, const Computation& computation,
                      std::span<Instruction* const> arguments) {
  std::unordered_map<const Instruction*, Instruction*> map;
  for (size_t p = 0; p < arguments.size(); ++p) {
    map[computation.parameter(static_cast<int64_t>(p))] = arguments[p];
  }
  for (Instruction* i : computation.instructions()) {
    if (i->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(map.at(operand));
    map[i] = at->parent()->Create(ir::CopySpec(*i, std::move(operands)), at);
  }
  return map.at(computation.root());
}

bool IsSameComputation(const Computation& a, const Computation& b) {
  if (&a == &b) return true;
  if (a.instruction_count() != b.instruction_count()) return false;
  std::unordered_map<const Instruction*, const Instruction*> map;
  auto ib = b.instructions().begin();
  for (Instruction* x : a.instructions()) {
    const Instruction* y = *ib++;
    if (x->opcode() != y->opcode() || !(x->shape() == y->shape()) ||
        !(x->attributes() == y->attributes()) || x->operand_count() != y->operand_count() ||
        x->called().size() != y->called().size()) {
      return false;
    }
    for (int64_t o = 0; o < x->operand_count(); ++o) {
      if (map.at(x->operand(o)) != y->operand(o)) return false;
    }
    for (size_t c = 0; c < x->called().size(); ++c) {
      if (!IsSameComputation(*x->called(c), *y->called(c))) return false;
    }
    if (x->IsConstant() && !(x->literal() == y->literal())) return false;
    map[x] = y;
  }
  return map.at(a.root()) == b.root();
}

Computation* OwnCallee(Instruction* caller, int64_t k) {
  Computation* callee = caller->called(k);
  if (callee->call_count() > 1) {
    callee = callee->parent()->CloneComputation(*callee, callee->name());
    caller->set_called(k, callee);
  }
  return callee;
}

bool DropUncalled(Computation* c) {
  if (c->call_count() > 0 || c == c->parent()->entry()) return false;
  std::vector<Computation*> callees;
  for (Instruction* i : c->instructions()) {
    callees.insert(callees.end(), i->called().begin(), i->called().end());
  }
  c->Clear();
  for (Computation* callee : callees) DropUncalled(callee);
  return true;
}

void RemoveWithCallees(Instruction* caller) {
  const std::vector<Computation*> callees(caller->called().begin(), caller->called().end());
  caller->parent()->Remove(caller);
  for (Computation* callee : callees) DropUncalled(callee);
}

bool IsMadeOfConstant(const Instruction* x) {
  if (!x->shape().is_array()) return false;
  return x->IsConstant() || x->opcode() == Opcode::kIota ||
         (x->opcode() == Opcode::kBroadcast && x->operand(0)->IsConstant());
}

Instruction* CopyOfConstant(const Instruction* value, Instruction* at) {
  std::vector<Instruction*> operands;
  for (const Instruction* operand : value->operands()) {
    operands.push_back(at->parent()->Create(ir::CopySpec(*operand, {}), at));
  }
  return at->parent()->Create(ir::CopySpec(*value, std::move(operands)), at);
}

Instruction* KeptElements(Instruction* tuple, const std::vector<bool>& keep, Instruction* at) {
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < keep.size(); ++k) {
    if (keep[k]) elements.push_back(ElementOf(tuple, static_cast<int64_t>(k), at));
  }
  return MakeTuple(tuple->parent(), std::move(elements), at);
}

Instruction* WholeTuple(Instruction* kept, const Shape& shape, const std::vector<bool>& keep,
                        Instruction* at) {
  std::vector<Instruction*> elements;
  int64_t next = 0;
  for (size_t k = 0; k < keep.size(); ++k) {
    elements.push_back(keep[k] ? ElementOf(kept, next++, at)
                               : MakeZeros(kept->parent(), shape.elements()[k], at));
  }
  return MakeTuple(kept->parent(), std::move(elements), at);
}

void ShrinkParameter(Computation* computation, const std::vector<bool>& keep) {
  Instruction* parameter = computation->parameter(0);
  Shape whole = parameter->shape();
  std::vector<Shape> shapes;
  for (size_t k = 0; k < keep.size(); ++k) {
    if (keep[k]) shapes.push_back(whole.elements()[k]);
  }
  std::vector<Instruction*> users(parameter->users().begin(), parameter->users().end());
  bool was_root = parameter->IsRoot();
  parameter->set_shape(Shape::Tuple(std::move(shapes)));
  // The parameter comes first, so that values made of it come before its users.
  computation->Move(parameter, computation->instructions().front());
  auto second = std::next(computation->instructions().begin());
  Instruction* at = second == computation->instructions().end() ? nullptr : *second;
  if (!at) return;  // It is its own root, and nobody reads an element.
  Instruction* tuple = WholeTuple(parameter, whole, keep, at);
  for (Instruction* user : users) {
    for (int64_t o = 0; o < user->operand_count(); ++o) {
      if (user->operand(o) == parameter) computation->ReplaceOperand(user, o, tuple);
    }
  }
  if (was_root) computation->set_root(tuple);
}

std::vector<bool> ElementsRead(const Instruction* tuple) {
  size_t count = tuple->shape().elements().size();
  std::vector<bool> read(count);
  if (tuple->IsRoot()) return std::vector<bool>(count, true);
  for (const Instruction* user : tuple->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) return std::vector<bool>(count, true);
    if (!user->users().empty() || user->IsRoot()) {
      read[static_cast<size_t>(user->attributes().Int(Attr::kIndex))] = true;
    }
  }
  return read;
}

}  // namespace kiln::passes
