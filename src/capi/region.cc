#include "capi/region.h"

#include "base/strings.h"

namespace kiln::capi {

Result<ir::Computation*> TakeTuple(ir::Computation& region, const Shape& argument,
                                   bool gives_state) {
  if (!argument.is_tuple()) return &region;
  auto parameters = region.parameters();
  // A tuple of one element is passed whole or as its element.
  bool nested = argument.elements().size() == 1 && argument.elements()[0].is_tuple();
  if (parameters.size() == 1 && parameters[0]->shape().is_tuple() &&
      !(nested && parameters[0]->shape().SameTypeAndDimensions(argument.elements()[0]))) {
    return &region;
  }
  if (parameters.size() != argument.elements().size()) return &region;  // refused by inference
  ir::Module& module = *region.parent();
  ir::Computation* wrapper = module.AddComputation(Cat(region.name(), ".of_tuple"));
  KILN_ASSIGN_OR_RETURN(ir::Instruction * tuple,
                        wrapper->Add({.opcode = Opcode::kParameter,
                                      .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                                      .shape = argument}));
  std::vector<ir::Instruction*> elements;
  for (size_t i = 0; i < parameters.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(ir::Instruction * element,
                          wrapper->Add({.opcode = Opcode::kGetTupleElement,
                                        .operands = {tuple},
                                        .attributes = {{Attr::kIndex, static_cast<int64_t>(i)}}}));
    elements.push_back(element);
  }
  KILN_ASSIGN_OR_RETURN(
      ir::Instruction * result,
      wrapper->Add({.opcode = Opcode::kCall, .operands = elements, .called = {&region}}));
  if (gives_state && (nested || !result->shape().is_tuple())) {
    KILN_ASSIGN_OR_RETURN(result, wrapper->Add({.opcode = Opcode::kTuple, .operands = {result}}));
  }
  wrapper->set_root(result);
  return wrapper;
}

}  // namespace kiln::capi
