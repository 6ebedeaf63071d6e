#include "codegen/lowered_program.h"

#include "base/strings.h"

namespace kiln::codegen {

std::string LoweredProgram::ToString() const {
  std::string out = program.ToString();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const kernel::ScheduledKernel& k = kernels[i];
    out += Cat("kernel k", i, " ", k.kernel.name, ": ");
    if (k.on_gpu) {
      out += Cat(k.gpu, "\n");
    } else {
      out += Cat("items ", k.items, ", tasks ", k.max_tasks, k.finish ? ", finish" : "", "\n");
    }
    if (k.parts.empty()) out += k.kernel.ToString();
    if (k.form == kernel::ScheduledKernel::Form::kChain) {
      out += Cat("  ", k.chain.blocks, " blocks, ", k.chain.per_item, " in an item\n");
      for (const kernel::ScheduledPart& part : k.parts) {
        out += Cat("  k", part.kernel, " with arguments from ", part.first_arg, ", ", part.weight,
                   " items of a block\n");
      }
      for (const kernel::ChainBlocks::Piece& piece : k.chain.pieces) {
        out += Cat("  argument ", piece.arg, " in pieces of ", piece.item_bytes, " bytes, ",
                   piece.block_bytes, " for a block\n");
      }
      continue;
    }
    for (const kernel::ScheduledPart& part : k.parts) {
      out += Cat("  k", part.kernel, " with arguments from ", part.first_arg, ", items from ",
                 part.first_item, ", each of ", part.weight, "\n");
    }
  }
  return out;
}

}  // namespace kiln::codegen
