#include "runtime/lib/checks/checks.h"

#include "tensor/tolerance.h"

namespace kiln::runtime::lib {
namespace {

class Check : public Function {
 public:
  Check(Shape shape, const Tolerance& tolerance, bool has_result)
      : shape_(std::move(shape)), closeness_(tolerance), has_result_(has_result) {}

  Status Run(const kiln_frame* frame, void* const* args) const override {
    KILN_RETURN_IF_ERROR(CheckClose(shape_.type(), shape_.dims(),
                                    static_cast<const std::byte*>(args[0]),
                                    static_cast<const std::byte*>(args[1]), closeness_));
    if (has_result_) *static_cast<bool*>(args[2]) = true;
    return OkStatus();
  }

 private:
  const Shape shape_;
  const Tolerance closeness_;
  const bool has_result_;
};

Result<std::shared_ptr<const Function>> Make(std::string_view target,
                                             const CallSignature& signature) {
  KILN_ASSIGN_OR_RETURN(std::optional<Tolerance> tolerance,
                        ToleranceOfCheck(target, signature.attributes));
  const bool operands = signature.operands.size() == 2 &&
                        signature.operands[0].SameTypeAndDimensions(signature.operands[1]);
  const bool results =
      signature.results.empty() ||
      (signature.results.size() == 1 && signature.results[0] == Shape::Scalar(ElementType::kPred));
  if (!tolerance || !operands || !results) {
    return InvalidArgument(target, ": is called as ", signature,
                           "; expected two arrays of one shape, and () or pred[] of them");
  }
  return std::shared_ptr<const Function>(
      std::make_shared<Check>(signature.operands[0], *tolerance, !signature.results.empty()));
}

}  // namespace

Result<std::shared_ptr<const Function>> MakeExpectEq(const CallSignature& signature) {
  return Make("check.expect_eq", signature);
}
Result<std::shared_ptr<const Function>> MakeExpectAlmostEq(const CallSignature& signature) {
  return Make("check.expect_almost_eq", signature);
}
Result<std::shared_ptr<const Function>> MakeExpectClose(const CallSignature& signature) {
  return Make("check.expect_close", signature);
}
Result<std::shared_ptr<const Function>> MakeEq(const CallSignature& signature) {
  return Make("check.eq", signature);
}

}  // namespace kiln::runtime::lib
