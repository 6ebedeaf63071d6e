#include "codegen/lowered_program.h"

#include "base/overloaded.h"
#include "base/strings.h"

namespace kiln::codegen {
namespace {

std::string PartText(const kernel::KernelPart& part) {
  return Cat("  k", part.kernel, " with arguments from ", part.first_arg, ", ");
}

std::string PartsText(const kernel::CpuBundle& bundle) {
  std::string out;
  for (const kernel::CpuBundle::Part& part : bundle.parts) {
    out += Cat(PartText(part), "items from ", part.first_item, ", each of ", part.weight, "\n");
  }
  return out;
}

std::string PartsText(const kernel::GpuBundle& bundle) {
  std::string out;
  for (const kernel::GpuBundle::Part& part : bundle.parts) {
    out += Cat(PartText(part), "items from 0, each of 1\n");
  }
  return out;
}

std::string PartsText(const kernel::CpuChain& chain) {
  std::string out = Cat("  ", chain.blocks, " blocks, ", chain.blocks_per_item, " in an item\n");
  for (const kernel::CpuChain::Part& part : chain.parts) {
    out += Cat(PartText(part), part.block_items, " items of a block\n");
  }
  for (const kernel::CpuChain::Piece& piece : chain.pieces) {
    out += Cat("  argument ", piece.arg, " in pieces of ", piece.item_bytes, " bytes, ",
               piece.block_bytes, " for a block\n");
  }
  return out;
}

}  // namespace

std::string LoweredProgram::ToString() const {
  std::string out = program.ToString();
  for (program::KernelId id : kernels.ids()) {
    const kernel::ScheduledKernel& k = kernels[id];
    out += Cat("kernel k", id, " ", k.kernel.name, ": ");
    if (auto items = kernel::ItemsOf(k.schedule)) {
      out += Cat("items ", items->count, ", tasks ", items->max_tasks,
                 items->finish ? ", finish" : "", "\n");
    }
    if (const auto* grids = kernel::GridsOf(k.schedule)) out += Cat(*grids, "\n");
    std::visit(Overloaded{
                   [&](const kernel::CpuBundle& s) { out += PartsText(s); },
                   [&](const kernel::CpuChain& s) { out += PartsText(s); },
                   [&](const kernel::GpuBundle& s) { out += PartsText(s); },
                   [&](const auto&) { out += k.kernel.ToString(); },
               },
               k.schedule);
  }
  return out;
}

}  // namespace kiln::codegen
