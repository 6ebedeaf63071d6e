#include "ir/analysis/effects.h"
#include "ir/host_call.h"
#include "passes/call_layouts.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

Shape RowMajor(Shape shape) {
  if (shape.is_array()) shape.set_minor_to_major({});
  for (Shape& element : shape.mutable_elements()) element = RowMajor(std::move(element));
  return shape;
}

// marker(x) => x
bool DropMarker(Instruction* i) {
  if (!ir::IsMarker(*i)) return false;
  Instruction* x = i->shape() == Shape::Tuple({}) ? MakeTuple(i->parent(), {}, i)
                                                  : WithLayouts(i->operand(0), i->shape(), i);
  i->parent()->ReplaceAllUses(i, x);
  i->parent()->Remove(i);
  return true;
}

// Collectives without an op are calls of their names.
Status RequireNoCollective(const Instruction& i) {
  const std::string_view target = i.attributes().Text(Attr::kCustomCallTarget);
  if (target != "ragged-all-to-all" && target != "collective-permute") return OkStatus();
  return Unimplemented(target, ": '", i.name(), "' of shape ", i.shape(),
                       " needs other processes; compiled code runs as one");
}

// call(x) => copy(call(copy(x)))   where arrays are not row-major, as the functions take them
bool TakeRowMajor(Instruction* i) {
  if (ir::HasCallLayouts(*i)) return false;
  bool differ = !ir::IsRowMajor(i->shape());
  std::vector<Shape> operands;
  for (const Instruction* operand : i->operands()) {
    differ |= !ir::IsRowMajor(operand->shape());
    operands.push_back(RowMajor(operand->shape()));
  }
  if (differ) SetCallLayouts(i, operands, RowMajor(i->shape()));
  return differ;
}

// scatter(x, i, y) => scatter(copy(x), i, y)   where the layouts of x and of the result, which
// share memory, differ
bool TakeInLayout(Instruction* scatter) {
  bool changed = false;
  const Shape& shape = scatter->shape();
  for (int64_t k = 0; k < shape.result_count(); ++k) {
    const Shape& result = shape.is_tuple() ? shape.elements()[static_cast<size_t>(k)] : shape;
    Instruction* operand = WithLayouts(scatter->operand(k), result, scatter);
    if (operand == scatter->operand(k)) continue;
    scatter->parent()->ReplaceOperand(scatter, k, operand);
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> PrepareCalls(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (i->opcode() == Opcode::kScatter) changed |= TakeInLayout(i);
      if (!ir::IsHostCall(*i)) continue;
      KILN_RETURN_IF_ERROR(RequireNoCollective(*i));
      changed |= DropMarker(i) || TakeRowMajor(i);
    }
  }
  return changed;
}

}  // namespace kiln::passes
