#include "session/marks.h"

#include "ir/frontend_attributes.h"

namespace kiln::session {

JitMark JitMarkOf(const ir::Instruction& instruction) {
  JitMark mark;
  if (const std::string* text = instruction.FindFrontendAttribute(ir::kCompileAttribute)) {
    if (*text == "true" || *text == "false") mark.compile = *text == "true";
  }
  if (const std::string* scope = instruction.FindFrontendAttribute(ir::kScopeAttribute)) {
    mark.scope = *scope;
  }
  const std::string* must = instruction.FindFrontendAttribute(ir::kMustCompileAttribute);
  mark.must_compile = must && *must == "true";
  return mark;
}

std::vector<ControlEdge> ControlEdgesOf(const ir::Computation& computation) {
  std::vector<ControlEdge> edges;
  if (!computation.HasControlDependencies()) return edges;
  for (const ir::Instruction* i : computation.instructions()) {
    for (const ir::Instruction* before : i->control_predecessors()) edges.push_back({before, i});
  }
  return edges;
}

}  // namespace kiln::session
