#include <unordered_map>

#include "kernel/region.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// The shape of a scalar, spread over the map's elements.
Shape Spread(const Instruction& map, const Shape& scalar) {
  Shape shape(scalar.type(), map.shape().dimensions());
  shape.set_minor_to_major(map.shape().minor_to_major());
  return shape;
}

}  // namespace

// Copies the function's instructions to before the map:
// map(f, x) => f(x)   with each op on all elements at once
void InlineMap(Instruction* map) {
  Computation& c = *map->parent();
  const Computation& function = *map->called(0);
  std::unordered_map<const Instruction*, Instruction*> inlined;
  for (Instruction* i : function.instructions()) {
    if (i->opcode() == Opcode::kParameter) {
      inlined[i] = map->operand(i->attributes().Int(Attr::kParameterNumber));
      continue;
    }
    if (kernel::IsSameScalar(*i)) {
      inlined[i] = inlined.at(i->operand(0));
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(inlined.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    Instruction*& copy = inlined[i];
    if (i->IsConstant()) {
      copy = c.Create(std::move(spec), map);
      copy = c.Create({.opcode = Opcode::kBroadcast,
                       .operands = {copy},
                       .attributes = {{Attr::kDimensions, Ints()}},
                       .shape = Spread(*map, i->shape()),
                       .op_name = map->op_name()},
                      map);
      continue;
    }
    spec.shape = Spread(*map, i->shape());
    copy = c.Create(std::move(spec), map);
  }
  Instruction* result = inlined.at(function.root());
  // The function may hand a parameter through, which has a layout of its own.
  if (!(result->shape() == map->shape())) {
    result = c.Create({.opcode = Opcode::kCopy, .operands = {result}, .shape = map->shape()}, map);
  }
  c.ReplaceAllUses(map, result);
  c.Remove(map);
}

Result<bool> InlineMaps(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Functions first: copied computations have no maps any more.
  for (Computation* c : module.CalleesFirst()) {
    std::vector<Instruction*> maps;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kMap && kernel::IsScalarRegion(*i->called(0))) {
        maps.push_back(i);
      }
    }
    for (Instruction* map : maps) InlineMap(map);
    changed |= !maps.empty();
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
