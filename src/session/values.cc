#include "session/values.h"

#include <utility>

namespace kiln::session {

bool Fits(const Shape& actual, const Shape& declared) {
  if (actual.type() != declared.type() || actual.rank() != declared.rank()) return false;
  for (int64_t d = 0; d < actual.rank(); ++d) {
    const Dimension& wanted = declared.dimension(d);
    if (wanted.is_constant() && actual.dim(d) != wanted.size()) return false;
    if (wanted.is_bounded() && actual.dim(d) > wanted.size()) return false;
  }
  return true;
}

ir::Instruction* CopyOf(ir::Instruction* value, ir::Instruction* before, std::string name) {
  return value->parent()->Create({.opcode = Opcode::kCopy,
                                  .operands = {value},
                                  .shape = value->shape(),
                                  .name = std::move(name),
                                  .op_name = value->op_name(),
                                  .frontend_attributes = value->frontend_attributes()},
                                 before);
}

}  // namespace kiln::session
