#include "kernel/fusion_analysis.h"

#include <algorithm>
#include <utility>

#include "ir/digest.h"
#include "kernel/build.h"

namespace kiln::kernel {
namespace {

// Of a computation with all that it calls.
int64_t VersionOf(const ir::Computation& c) {
  int64_t version = c.version();
  if (!c.MayCall()) return version;
  for (const ir::Instruction* i : c.instructions()) {
    for (const ir::Computation* callee : i->called()) {
      version = std::max(version, VersionOf(*callee));
    }
  }
  return version;
}

}  // namespace

FusionAnalysis::FusionAnalysis() = default;
FusionAnalysis::~FusionAnalysis() = default;

FusionAnalysis::Entry& FusionAnalysis::EntryOf(const ir::Instruction& fusion) {
  const ir::Computation& fused = *fusion.called(0);
  Entry& entry = entries_[&fused];
  const int64_t version = VersionOf(fused);
  if (entry.version != version) entry = {.version = version};
  return entry;
}

const Result<Kernel>& FusionAnalysis::KernelOf(const ir::Instruction& instruction) {
  if (instruction.opcode() != Opcode::kFusion) {
    return single_.emplace(BuildKernel(GroupOf(instruction), instruction.name()));
  }
  Entry& entry = EntryOf(instruction);
  if (entry.kernel) return *entry.kernel;
  entry.form = &forms_[ir::FormOf(*instruction.called(0))];
  std::optional<Kernel>& known = entry.form->kernel;
  if (known) {
    Kernel& kernel = *entry.kernel.emplace(*known);
    kernel.name = instruction.name();
    kernel.op_names = OpNamesOf(MembersOf(GroupOf(instruction)));
  } else {
    entry.kernel.emplace(BuildKernel(GroupOf(instruction), instruction.name()));
    if (entry.kernel->ok()) known = **entry.kernel;
  }
  return *entry.kernel;
}

const std::string& FusionAnalysis::TextOf(const ir::Instruction& instruction) {
  const Kernel& kernel = *KernelOf(instruction);
  if (instruction.opcode() != Opcode::kFusion) return single_text_ = kernel.ToString();
  std::string& text = EntryOf(instruction).form->text;
  if (text.empty()) text = kernel.ToString();
  return text;
}

void FusionAnalysis::KeepSchedule(const ir::Instruction& chain, CpuChainSchedule schedule,
                                  std::vector<bool> constants) {
  Entry& entry = EntryOf(chain);
  entry.schedule = std::move(schedule);
  entry.constants = std::move(constants);
}

const CpuChainSchedule* FusionAnalysis::ScheduleOf(const ir::Instruction& chain,
                                                   const std::vector<bool>& constants) const {
  auto it = entries_.find(chain.called(0));
  if (it == entries_.end()) return nullptr;
  const Entry& entry = it->second;
  const bool is_same = entry.version == VersionOf(*chain.called(0)) && entry.constants == constants;
  return is_same && entry.schedule ? &*entry.schedule : nullptr;
}

}  // namespace kiln::kernel
