#include "passes/expand/tokens.h"

#include "base/strings.h"
#include "passes/expand/type_legalisation.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using ir::Instruction;

class TokenExpansion : public expand::TypeLegalisation {
 public:
  using TypeLegalisation::TypeLegalisation;

 protected:
  bool Maps(const Shape& leaf) const override { return leaf.is_token(); }
  Shape Mapped(const Shape& leaf) const override { return Shape::Scalar(ElementType::kPred); }

  // Nothing precedes the program, and its end is awaited as a whole, not by the tokens of its
  // results.
  Instruction* FromMemory(Builder& b, Instruction* token) override {
    return b.Constant(Literal::Scalar(ElementType::kPred, false));
  }
  Instruction* ToMemory(Builder& b, Instruction* mapped, const Shape& leaf) override {
    return b.Add(Opcode::kAfterAll, {});
  }

  Result<Instruction*> ValueOf(Builder& b, Instruction* i, const Shape& shape) override {
    switch (i->opcode()) {
      // after-all(a, b) => or(a, b)
      case Opcode::kAfterAll: {
        Instruction* all = b.Constant(Literal::Scalar(ElementType::kPred, false));
        for (Instruction* operand : i->operands()) all = b.Or(all, operand);
        return all;
      }
      // Calls keep their order by themselves where they have side effects.
      case Opcode::kCustomCall:
        return Called(b, i);
      default:
        return Unimplemented(OpcodeName(i->opcode()), ": '", i->name(), "' of shape ", shape,
                             " has no compiled code: tokens");
    }
  }
};

}  // namespace

Result<bool> ExpandTokens(ir::Module& module, const PassContext& context) {
  return TokenExpansion(module).Run(context);
}

}  // namespace kiln::passes
