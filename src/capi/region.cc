#include "capi/region.h"

#include "base/strings.h"
#include "ir/builder.h"

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
  ir::Builder b(wrapper);
  ir::Instruction* tuple = b.Parameter(argument);
  std::vector<ir::Instruction*> elements;
  for (size_t i = 0; i < parameters.size(); ++i) {
    elements.push_back(b.Element(tuple, static_cast<int64_t>(i)));
  }
  ir::Instruction* result = b.Add(Opcode::kCall, std::move(elements), {}, std::nullopt, {&region});
  if (result && gives_state && (nested || !result->shape().is_tuple())) result = b.Tuple({result});
  KILN_RETURN_IF_ERROR(b.status());
  wrapper->set_root(result);
  return wrapper;
}

}  // namespace kiln::capi
