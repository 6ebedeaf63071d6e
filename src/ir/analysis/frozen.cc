#include "ir/analysis/frozen.h"

#include <optional>
#include <string>

#include "ir/analysis/alias.h"

namespace kiln::ir {

void MarkFrozen(Module& module, const std::vector<size_t>& leaves) {
  size_t first = 0;
  for (Instruction* parameter : module.entry()->parameters()) {
    std::string marks(static_cast<size_t>(LeafCount(parameter->shape())), '0');
    for (const size_t leaf : leaves) {
      if (leaf >= first && leaf - first < marks.size()) marks[leaf - first] = '1';
    }
    first += marks.size();
    const bool any = marks.find('1') != std::string::npos;
    if (!any && !parameter->FindFrontendAttribute(kFrozenAttribute)) continue;
    parameter->set_frontend_attributes(
        WithFrontendAttribute(parameter->frontend_attributes(), kFrozenAttribute,
                              any ? std::optional<std::string_view>(marks) : std::nullopt));
  }
}

std::vector<bool> FrozenLeaves(const Module& module) {
  std::vector<bool> leaves;
  bool any = false;
  for (const Instruction* parameter : module.entry()->parameters()) {
    const std::string* marks = parameter->FindFrontendAttribute(kFrozenAttribute);
    any |= marks != nullptr;
    const auto count = static_cast<size_t>(LeafCount(parameter->shape()));
    for (size_t leaf = 0; leaf < count; ++leaf) {
      leaves.push_back(marks && leaf < marks->size() && (*marks)[leaf] == '1');
    }
  }
  if (!any) leaves.clear();
  return leaves;
}

bool IsFrozen(const Instruction& value) {
  if (!value.shape().is_array()) return false;
  const Leaf origin = OriginOf({&value, 0});
  const Instruction& parameter = *origin.instruction;
  if (parameter.opcode() != Opcode::kParameter) return false;
  const std::string* marks = parameter.FindFrontendAttribute(kFrozenAttribute);
  return marks && parameter.parent() == parameter.parent()->parent()->entry() &&
         static_cast<size_t>(origin.index) < marks->size() &&
         (*marks)[static_cast<size_t>(origin.index)] == '1';
}

}  // namespace kiln::ir
