#include "runtime/lib/random/random.h"

#include <cstring>
#include <optional>

#include "base/random_state.h"
#include "base/strings.h"
#include "runtime/lib/attributes.h"

namespace kiln::runtime::lib {
namespace {

class RngState : public Function {
 public:
  explicit RngState(int64_t delta) : delta_(delta) {}

  Status Run(const kiln_frame*, void* const* args) const override {
    const std::array<uint64_t, 2> state = NextRandomState(delta_);
    std::memcpy(args[0], state.data(), sizeof(state));
    return OkStatus();
  }

 private:
  const int64_t delta_;
};

}  // namespace

Result<std::shared_ptr<const Function>> MakeRngGetAndUpdateState(const CallSignature& signature) {
  if (!signature.operands.empty() || signature.results.size() != 1 ||
      signature.results[0] != Shape(ElementType::kU64, {2})) {
    return InvalidArgument("kiln.rng-get-and-update-state is called as ", signature,
                           "; expected u64[2] of nothing");
  }
  const std::optional<int64_t> delta = ParseInt(AttributeOf(signature.attributes, "delta"));
  if (!delta) return InvalidArgument("kiln.rng-get-and-update-state: delta is missing");
  return std::shared_ptr<const Function>(std::make_shared<RngState>(*delta));
}

}  // namespace kiln::runtime::lib
