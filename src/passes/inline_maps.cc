#include <unordered_map>

#include "kernel/region.h"
#include "passes/call_layouts.h"
#include "passes/inline_region.h"
#include "passes/passes.h"

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

std::vector<Instruction*> InlineRegion(const Computation& region,
                                       std::span<Instruction* const> operands, const Shape& like,
                                       Instruction* at) {
  auto spread = [&](const Instruction& scalar) {
    Shape shape(scalar.shape().type(), like.dimensions());
    shape.set_minor_to_major(like.minor_to_major());
    return shape;
  };
  Computation& c = *at->parent();
  std::unordered_map<const Instruction*, Instruction*> inlined;
  for (Instruction* i : region.instructions()) {
    if (i->opcode() == Opcode::kTuple) continue;
    if (i->opcode() == Opcode::kParameter) {
      inlined[i] = operands[static_cast<size_t>(i->attributes().Int(Attr::kParameterNumber))];
      continue;
    }
    if (kernel::IsSameScalar(*i)) {
      inlined[i] = inlined.at(i->operand(0));
      continue;
    }
    std::vector<Instruction*> copies;
    for (const Instruction* operand : i->operands()) copies.push_back(inlined.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(copies));
    Instruction*& copy = inlined[i];
    if (i->IsConstant()) {
      copy = c.Create(std::move(spec), at);
      if (like.rank() == 0) continue;
      copy = c.Create({.opcode = Opcode::kBroadcast,
                       .operands = {copy},
                       .attributes = {{Attr::kDimensions, Ints()}},
                       .shape = spread(*i),
                       .op_name = at->op_name()},
                      at);
      continue;
    }
    spec.shape = spread(*i);
    copy = c.Create(std::move(spec), at);
  }
  if (region.root()->opcode() != Opcode::kTuple) return {inlined.at(region.root())};
  std::vector<Instruction*> results;
  for (const Instruction* result : region.root()->operands()) {
    results.push_back(inlined.at(result));
  }
  return results;
}

// Copies the function's instructions to before the map:
// map(f, x) => f(x)   with each op on all elements at once
void InlineMap(Instruction* map) {
  Computation& c = *map->parent();
  Instruction* result = InlineRegion(*map->called(0), map->operands(), map->shape(), map)[0];
  // The function may hand a parameter through, which has a layout of its own.
  c.ReplaceAllUses(map, WithLayouts(result, map->shape(), map));
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
