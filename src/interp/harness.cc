#include "interp/harness.h"

#include "base/strings.h"
#include "tensor/tolerance.h"

namespace kiln::interp {
namespace {

constexpr std::string_view kProbe = "interpreter.probe";
constexpr std::string_view kPrint = "interpreter.print";
constexpr std::string_view kSerialized = "check.expect_serialized_eq";

}  // namespace

bool Harness::Has(std::string_view target) {
  if (target == kProbe || target == kPrint || target == kSerialized) return true;
  const Result<std::optional<Tolerance>> check = ToleranceOfCheck(target, "");
  return check.ok() && *check;
}

Result<std::vector<Literal>> Harness::Run(const ir::Instruction& call,
                                          std::span<const Literal* const> operands,
                                          const std::function<void(std::string_view)>& print) {
  const std::string_view target = call.attributes().Text(Attr::kCustomCallTarget);
  const std::string_view config = call.attributes().Text(Attr::kBackendConfig);
  auto fail = [&](const Status& status) {
    return status.WithContext(Cat(target, " '", call.name(), "'"));
  };
  const size_t wanted = target == kProbe || target == kPrint || target == kSerialized ? 1 : 2;
  if (operands.size() != wanted) {
    return fail(InvalidArgument("has ", operands.size(), " operands; expected ", wanted));
  }
  std::vector<Literal> results;
  if (target == kProbe) {
    probes_.Keep(config, *operands[0]);
    results.push_back(*operands[0]);
    return results;
  }
  if (target == kPrint) {
    if (print) print(operands[0]->ToString());
    return results;
  }
  if (target == kSerialized) {
    const Status status = probes_.Expect(config, *operands[0]);
    if (!status.ok()) return fail(status);
    return results;
  }
  Result<std::optional<Tolerance>> tolerance = ToleranceOfCheck(target, config);
  if (!tolerance.ok()) return fail(tolerance.status());
  const Status status = CheckClose(*operands[0], *operands[1], **tolerance);
  if (!status.ok()) return fail(status);
  // Older checks return whether they hold.
  const Shape& shape = call.shape();
  if (shape == Shape::Tuple({})) return results;
  if (shape != Shape::Scalar(ElementType::kPred)) {
    return fail(InvalidArgument("gives ", shape, "; expected () or pred[]"));
  }
  results.push_back(Literal::Scalar<bool>(ElementType::kPred, true));
  return results;
}

}  // namespace kiln::interp
