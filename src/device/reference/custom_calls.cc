#include "device/reference/custom_calls.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "base/strings.h"
#include "interp/narrow.h"
#include "program/program.h"
#include "tensor/layouts.h"

namespace kiln::device {
namespace {

// Memory of one call's arrays, in the form of compiled code.
class Arrays {
 public:
  void* New(int64_t bytes) {
    constexpr auto kAlignment = static_cast<std::align_val_t>(program::kAlignment);
    size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    memory_.emplace_back(::operator new(size, kAlignment), Free{});
    return memory_.back().get();
  }

 private:
  struct Free {
    void operator()(void* memory) const {
      ::operator delete(memory, static_cast<std::align_val_t>(program::kAlignment));
    }
  };
  std::vector<std::unique_ptr<void, Free>> memory_;
};

Result<std::shared_ptr<const runtime::lib::Function>> FunctionOf(
    const interp::CalledFunction& called, const runtime::CallHost& host) {
  static const runtime::CustomCallRegistry& own = *new runtime::CustomCallRegistry;
  const runtime::CustomCallRegistry& registry = host.registry ? *host.registry : own;
  auto function = registry.Make(called.target, called.signature);
  if (function.ok()) return function;
  return function.status().WithContext(Cat("custom-call '", called.name, "'"));
}

}  // namespace

interp::CustomCall CustomCallBy(const runtime::CallHost& host) {
  return [host](const interp::CalledFunction& called,
                std::span<const Literal* const> operands) -> Result<std::vector<Literal>> {
    const CallSignature& signature = called.signature;
    KILN_ASSIGN_OR_RETURN(auto function, FunctionOf(called, host));
    Arrays arrays;
    std::vector<void*> args;
    for (size_t o = 0; o < operands.size(); ++o) {
      args.push_back(arrays.New(operands[o]->byte_size()));
      // A host callback's operands can have other sizes than its signature.
      Shape shape = operands[o]->shape();
      shape.set_minor_to_major(signature.operands[o].minor_to_major());
      CopyToLayout(shape, operands[o]->data(), static_cast<std::byte*>(args.back()));
    }
    std::vector<Literal> results;
    for (const Shape& shape : signature.results) {
      results.emplace_back(shape);
      args.push_back(arrays.New(results.back().byte_size()));
    }
    // Parts of the result in operands' memory: the function gets one address.
    size_t first_result = operands.size();
    for (auto [result, operand] : called.aliases) {
      args[first_result + result] = args[operand];
    }
    if (signature.scratch_bytes > 0) args.push_back(arrays.New(signature.scratch_bytes));
    Status status = runtime::RunFunction(*function, args.data(), host.pool);
    if (!status.ok()) {
      return status.WithContext(Cat("custom-call '", called.name, "' of ", called.target));
    }
    for (size_t r = 0; r < results.size(); ++r) {
      if (results[r].byte_size() == 0) continue;
      CopyFromLayout(signature.results[r], static_cast<const std::byte*>(args[first_result + r]),
                     results[r].data());
      const Shape& shape = results[r].shape();
      interp::Normalise(shape.type(), results[r].data(), shape.num_elements());
    }
    return results;
  };
}

Result<bool> CheckCustomCalls(const interp::Evaluator& program, const runtime::CallHost& host) {
  bool has_users = false;
  for (const interp::CalledFunction& called : program.called()) {
    KILN_ASSIGN_OR_RETURN(auto function, FunctionOf(called, host));
    has_users |= function->is_users();
  }
  return has_users;
}

}  // namespace kiln::device
