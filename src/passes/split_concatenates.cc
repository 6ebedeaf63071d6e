#include "passes/split_concatenates.h"

#include <algorithm>

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// A kernel asks of each element which operand it is from, one after the other.
constexpr int64_t kMostOperands = 128;
constexpr int64_t kPart = 64;

Instruction* Part(Instruction* i, int64_t first, int64_t end) {
  if (end - first == 1) return i->operand(first);
  const int64_t along = i->dimensions()[0];
  std::vector<Instruction*> operands;
  int64_t size = 0;
  for (int64_t o = first; o < end; ++o) {
    operands.push_back(i->operand(o));
    size += i->operand(o)->shape().dim(along);
  }
  ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
  std::vector<Dimension> dimensions = i->shape().dimensions();
  dimensions[static_cast<size_t>(along)] = size;
  Shape shape(i->shape().type(), std::move(dimensions));
  shape.set_minor_to_major(i->shape().minor_to_major());
  spec.shape = std::move(shape);
  spec.name.clear();
  return i->parent()->Create(std::move(spec), i);
}

}  // namespace

// concatenate(x, ...) => concatenate(concatenate(x, ...), ...)   where there are very many operands
Result<bool> SplitConcatenates(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    if (!c->MayHold(Opcode::kConcatenate)) continue;
    std::vector<Instruction*> found;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kConcatenate && i->operand_count() > kMostOperands) {
        found.push_back(i);
      }
    }
    for (Instruction* i : found) {
      while (i->operand_count() > kMostOperands) {
        std::vector<Instruction*> parts;
        for (int64_t first = 0; first < i->operand_count(); first += kPart) {
          parts.push_back(Part(i, first, std::min(first + kPart, i->operand_count())));
        }
        i = c->Replace(i, ir::CopySpec(*i, std::move(parts)));
      }
    }
    changed |= !found.empty();
  }
  return changed;
}

}  // namespace kiln::passes
