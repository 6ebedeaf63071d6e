#include "interp/evaluator.h"

#include "interp/called_function.h"
#include "interp/interpreter.h"
#include "ir/analysis/cost.h"
#include "ir/text.h"

namespace kiln::interp {

Evaluator::Evaluator(std::unique_ptr<const ir::Module> module)
    : module_(std::move(module)),
      result_(module_->entry()->root()->shape()),
      constant_bytes_(ir::ConstantBytes(*module_)),
      called_(CalledFunctionsOf(*module_)) {
  for (const ir::Instruction* p : module_->entry()->parameters()) {
    parameters_.push_back(p->shape());
  }
}

Evaluator::~Evaluator() = default;

Result<std::unique_ptr<const Evaluator>> Evaluator::Read(
    std::string_view text, std::span<const std::shared_ptr<const Literal>> constants) {
  int64_t made_up = 0;
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module,
                        ir::ParseHloText(text, {.elided = constants, .made_up = &made_up}));
  if (made_up > 0) return InvalidArgument("values of {...} or of infeeds are missing");
  return std::unique_ptr<const Evaluator>(new Evaluator(std::move(module)));
}

Result<Literal> Evaluator::Run(std::span<const Literal> arguments, const Options& options) const {
  return Evaluate(*module_, arguments, options);
}

}  // namespace kiln::interp
