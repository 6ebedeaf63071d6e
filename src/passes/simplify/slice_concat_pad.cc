#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* SliceConcatenatePad(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kSlice: {
      Instruction* x = i->operand(0);
      // slice(x) => x   where it takes everything
      if (x->shape() == i->shape()) return x;
      // slice(slice(x)) => slice(x)
      if (x->opcode() == Opcode::kSlice) {
        std::vector<SliceDimension> both = i->attributes().Slices(Attr::kSlice);
        const auto& inner = x->attributes().Slices(Attr::kSlice);
        for (size_t d = 0; d < both.size(); ++d) {
          int64_t start = inner[d].start + both[d].start * inner[d].stride;
          int64_t stride = both[d].stride * inner[d].stride;
          int64_t size = i->shape().dim(d);
          both[d] = {start, size == 0 ? start : start + (size - 1) * stride + 1, stride};
        }
        return Make(i, Opcode::kSlice, {x->operand(0)}, {{Attr::kSlice, std::move(both)}});
      }
      return nullptr;
    }
    case Opcode::kConcatenate:
      // concatenate(x) => x
      if (i->operand_count() == 1) return i->operand(0);
      return nullptr;
    case Opcode::kPad: {
      // pad(x) => x   where nothing is added or cut off
      for (const PaddingDimension& p : i->attributes().Padding(Attr::kPadding)) {
        if (!(p == PaddingDimension{})) return nullptr;
      }
      return i->operand(0);
    }
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
