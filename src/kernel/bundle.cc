#include "kernel/bundle.h"

#include <algorithm>
#include <unordered_map>

#include "base/strings.h"
#include "kernel/chain.h"

namespace kiln::kernel {

using ir::Instruction;

bool IsBundle(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kFusion) return false;
  if (!instruction.called(0)->MayHold(Opcode::kFusion)) return false;
  const auto& members = instruction.called(0)->instructions();
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m->opcode() == Opcode::kFusion; }) &&
         !IsChain(instruction);
}

Result<std::vector<BundlePart>> PartsOf(const Instruction& bundle) {
  auto other = [&](const Instruction& i, std::string_view why) {
    return Unimplemented("fusion: in '", bundle.name(), "', which holds fusions, '", i.name(), "' ",
                         why);
  };
  std::vector<BundlePart> parts;
  std::unordered_map<const Instruction*, size_t> part_of;
  for (Instruction* i : bundle.called(0)->instructions()) {
    bool is_root = i == bundle.called(0)->root();
    switch (i->opcode()) {
      case Opcode::kParameter:
        continue;
      case Opcode::kGetTupleElement:
        if (part_of.contains(i->operand(0))) continue;
        break;
      case Opcode::kTuple:
        if (is_root) continue;
        break;
      case Opcode::kFusion: {
        BundlePart part{i, {}, {}};
        for (const Instruction* operand : i->operands()) {
          if (operand->opcode() != Opcode::kParameter) return other(*i, "reads another's results");
          part.operands.push_back(operand->attributes().Int(Attr::kParameterNumber));
        }
        part.results.assign(static_cast<size_t>(i->shape().result_count()), -1);
        part_of[i] = parts.size();
        parts.push_back(std::move(part));
        continue;
      }
      default:
        break;
    }
    return other(*i, "is none");
  }
  const Instruction& root = *bundle.called(0)->root();
  if (root.opcode() != Opcode::kTuple) return other(root, "is not a tuple of all results");
  for (int64_t r = 0; r < root.operand_count(); ++r) {
    const Instruction* value = root.operand(r);
    int64_t element = 0;
    if (value->opcode() == Opcode::kGetTupleElement) {
      element = value->attributes().Int(Attr::kIndex);
      value = value->operand(0);
    }
    auto at = part_of.find(value);
    if (at == part_of.end() || !root.operand(r)->shape().is_array()) {
      return other(root, "has other elements than arrays that fusions make");
    }
    int64_t& result = parts[at->second].results[element];
    if (result >= 0) return other(root, "has an element twice");
    result = r;
  }
  for (const BundlePart& part : parts) {
    if (std::ranges::count(part.results, -1) > 0) return other(*part.kernel, "makes what is lost");
  }
  return parts;
}

}  // namespace kiln::kernel
