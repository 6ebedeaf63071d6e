#include "passes/expand/builder.h"

namespace kiln::passes::expand {

ir::Instruction* Builder::InLayout(ir::Instruction* value, const Shape& shape) {
  if (value->shape() == shape) return value;
  if (!shape.is_tuple()) return AddShaped(shape, Opcode::kCopy, {value});
  std::vector<ir::Instruction*> elements;
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    elements.push_back(InLayout(Element(value, static_cast<int64_t>(k)), shape.elements()[k]));
  }
  return Tuple(std::move(elements));
}

}  // namespace kiln::passes::expand
