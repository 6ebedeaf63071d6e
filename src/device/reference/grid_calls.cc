#include "device/reference/grid_calls.h"

#include <cstring>
#include <utility>

#include "base/strings.h"
#include "device/reference/custom_calls.h"
#include "interp/evaluator.h"
#include "interp/harness.h"
#include "runtime/host.h"

namespace kiln::device {
namespace {

class GridCall : public runtime::lib::Function {
 public:
  GridCall(std::unique_ptr<const interp::Evaluator> program,
           const runtime::CustomCallRegistry& functions, bool calls_users)
      : program_(std::move(program)), functions_(functions), calls_users_(calls_users) {}

  bool is_users() const override { return calls_users_; }

  Status Run(const kiln_frame* frame, void* const* args) const override {
    std::vector<Literal> arguments;
    for (const Shape& shape : program_->parameters()) {
      arguments.emplace_back(shape);
      Transfer(arguments.back(), args, false);
    }
    const auto* run = static_cast<const runtime::HostRun*>(frame->host);
    KILN_ASSIGN_OR_RETURN(
        Literal result,
        program_->Run(arguments, {.custom_call = CustomCallBy({&functions_, run->pool}),
                                  .probes = run->probes}));
    Transfer(result, args, true);
    return OkStatus();
  }

 private:
  // Copies arrays, and those of tuples one by one, from or to memory; tokens have none.
  static void Transfer(Literal& literal, void* const*& args, bool to_memory) {
    if (literal.shape().is_token()) return;
    for (Literal& element : literal.elements()) Transfer(element, args, to_memory);
    if (literal.shape().is_tuple()) return;
    void* memory = *args++;
    if (literal.byte_size() == 0) return;
    std::memcpy(to_memory ? memory : literal.data(), to_memory ? literal.data() : memory,
                static_cast<size_t>(literal.byte_size()));
  }

  const std::unique_ptr<const interp::Evaluator> program_;
  const runtime::CustomCallRegistry& functions_;
  const bool calls_users_;
};

void AppendArrays(const Shape& shape, std::vector<Shape>& arrays) {
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
    if (leaf.is_array()) arrays.push_back(leaf);
  });
}

bool AreSame(const std::vector<Shape>& x, const std::vector<Shape>& y) {
  return std::ranges::equal(
      x, y, [](const Shape& a, const Shape& b) { return a.SameTypeAndDimensions(b); });
}

}  // namespace

Status AddGridCalls(runtime::CustomCallRegistry& registry,
                    const runtime::CustomCallRegistry& functions) {
  runtime::CustomCallRegistry::Maker make =
      [&functions](
          const CallSignature& signature) -> Result<std::shared_ptr<const runtime::lib::Function>> {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<const interp::Evaluator> program,
                          interp::Evaluator::Read(signature.attributes));
    CallSignature own;
    for (const Shape& shape : program->parameters()) AppendArrays(shape, own.operands);
    AppendArrays(program->result(), own.results);
    if (!AreSame(own.operands, signature.operands) || !AreSame(own.results, signature.results)) {
      return InvalidArgument("is called as ", signature, "; its module is ", own);
    }
    KILN_ASSIGN_OR_RETURN(bool calls_users, CheckCustomCalls(*program, {&functions}));
    return std::shared_ptr<const runtime::lib::Function>(
        std::make_shared<GridCall>(std::move(program), functions, calls_users));
  };
  return registry.Add(interp::kRunParallel, make);
}

}  // namespace kiln::device
