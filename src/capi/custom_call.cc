// Custom calls: the user's functions by name, and the op that calls them.
#include "kiln/custom_call.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/stack.h"
#include "base/strings.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/op_builder.h"
#include "capi/options.h"
#include "runtime/custom_calls.h"

namespace kiln::capi {
namespace {

// A registered function, alive as long as it can be called.
class UsersFunction {
 public:
  using Pointer = kiln_error* (*)(void*, const kiln_custom_call*);
  UsersFunction(client::Client& client, std::string_view target, Pointer function, void* user_data)
      : client_(client), target_(target), function_(function), user_data_(user_data) {}
  ~UsersFunction() {
    if (destroy_) client_.CallOrDefer(std::move(destroy_));
  }
  UsersFunction(const UsersFunction&) = delete;
  UsersFunction& operator=(const UsersFunction&) = delete;

  void set_destroy(std::unique_ptr<client::Deferred> destroy) { destroy_ = std::move(destroy); }

  Status Call(const CallSignature& signature, const kiln_call_array* const* arrays) const {
    kiln_custom_call call{};
    call.struct_size = sizeof(call);
    call.target = target_.data();
    call.target_length = target_.size();
    call.backend_config = signature.attributes.c_str();
    call.backend_config_length = signature.attributes.size();
    call.operands = arrays;
    call.operand_count = signature.operands.size();
    call.results = arrays + signature.operands.size();
    call.result_count = signature.results.size();
    kiln_error* error = nullptr;
    OnCallersStack([&] { error = function_(user_data_, &call); });
    if (!error) return OkStatus();
    Status status(static_cast<Code>(kiln_error_code(error)), error->message);
    kiln_error_release(error);
    return status;
  }

 private:
  client::Client& client_;  // outlives what is registered with it
  const std::string target_;
  const Pointer function_;
  void* const user_data_;
  std::unique_ptr<client::Deferred> destroy_;
};

// A call of it, with descriptions of its arrays except their addresses.
class UsersCall : public runtime::lib::Function {
 public:
  UsersCall(std::shared_ptr<const UsersFunction> function, const CallSignature& signature)
      : function_(std::move(function)), signature_(signature) {
    for (const std::vector<Shape>* shapes : {&signature_.operands, &signature_.results}) {
      for (const Shape& shape : *shapes) dims_.push_back(shape.dims());
    }
    for (const std::vector<Shape>* shapes : {&signature_.operands, &signature_.results}) {
      for (const Shape& shape : *shapes) {
        const std::vector<int64_t>& dims = dims_[arrays_.size()];
        arrays_.push_back({sizeof(kiln_call_array), static_cast<kiln_dtype>(shape.type()), 0,
                           dims.size(), dims.data(), nullptr, shape.byte_size()});
      }
    }
  }

  bool is_users() const override { return true; }
  Status Run(const kiln_frame*, void* const* args) const override {
    std::vector<kiln_call_array> arrays = arrays_;
    std::vector<const kiln_call_array*> pointers;
    pointers.reserve(arrays.size() + 1);
    for (size_t i = 0; i < arrays.size(); ++i) {
      arrays[i].data = args[i];
      pointers.push_back(&arrays[i]);
    }
    pointers.push_back(nullptr);  // A list that is empty has an address, too.
    return function_->Call(signature_, pointers.data());
  }

 private:
  const std::shared_ptr<const UsersFunction> function_;
  const CallSignature signature_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<kiln_call_array> arrays_;
};

Status Register(client::Client& client, std::string_view target, UsersFunction::Pointer pointer,
                void* user_data, void (*destroy)(void*)) {
  auto function = std::make_shared<UsersFunction>(client, target, pointer, user_data);
  std::unique_ptr<client::Deferred> when_gone;
  if (destroy) when_gone = std::make_unique<client::DeleterCall>(destroy, user_data);
  runtime::CustomCallRegistry::Maker make =
      [function](
          const CallSignature& signature) -> Result<std::shared_ptr<const runtime::lib::Function>> {
    return std::shared_ptr<const runtime::lib::Function>(
        std::make_shared<UsersCall>(function, signature));
  };
  KILN_RETURN_IF_ERROR(client.RegisterCustomCall(target, make));
  function->set_destroy(std::move(when_gone));
  return OkStatus();
}

Result<Shape> ResultShape(const kiln_graph& graph, const kiln_shape* const* shapes, size_t count) {
  if (!shapes && count > 0) return InvalidArgument("results is NULL, with ", count, " shapes");
  std::vector<Shape> results;
  for (size_t i = 0; i < count; ++i) {
    auto what = [&] { return Cat("results[", i, "]"); };
    if (!shapes[i]) return InvalidArgument(what(), " is NULL");
    KILN_ASSIGN_OR_RETURN(kiln_shape read, ReadOptions(what(), shapes[i]));
    if (!IsElementType(read.dtype)) {
      return InvalidArgument(what(), ": dtype ", read.dtype, " is not an element type");
    }
    auto dimensions = graph.Dimensions(read.dims, read.rank);
    if (!dimensions.ok()) return dimensions.status().WithContext(what());
    results.emplace_back(static_cast<ElementType>(read.dtype), *std::move(dimensions));
  }
  if (count == 1) return std::move(results[0]);
  return Shape::Tuple(std::move(results));
}

Result<std::vector<OperandAlias>> AliasesOf(const kiln_custom_call_options& options,
                                            size_t results) {
  std::vector<OperandAlias> aliases;
  if (options.alias_count == 0) return aliases;
  if (!options.aliases || options.alias_count != results) {
    return InvalidArgument(
        "kiln_custom_call_options.aliases ",
        options.aliases ? Cat("has ", options.alias_count, " numbers") : std::string("is NULL"),
        "; expected one for each of ", results, " results");
  }
  for (size_t i = 0; i < results; ++i) {
    if (options.aliases[i] == -1) continue;
    OperandAlias& alias = aliases.emplace_back();
    if (results != 1) alias.output_index.push_back(static_cast<int64_t>(i));
    alias.operand = options.aliases[i];
  }
  return aliases;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT

kiln_error* kiln_context_register_call(kiln_context* context, const char* target,
                                       size_t target_length,
                                       kiln_error* (*function)(void* user_data,
                                                               const kiln_custom_call* call),
                                       void* user_data, void (*destroy)(void* user_data)) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_context_register_call",
                {{"context", context}, {"function", reinterpret_cast<const void*>(function)}}));
    KILN_ASSIGN_OR_RETURN(std::string_view name, TextOf("target", target, target_length));
    return Register(*Unwrap(context), name, function, user_data, destroy);
  });
}

void kiln_custom_call_options_init(kiln_custom_call_options* options, size_t size) {
  InitOptions(options, size);
}

kiln_value kiln_op_custom_call(kiln_graph* graph, const char* target, size_t target_length,
                               const kiln_value* operands, size_t operand_count,
                               const kiln_shape* const* results, size_t result_count,
                               const kiln_custom_call_options* options) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    OpBuilder op(*graph, Opcode::kCustomCall);
    auto read = ReadOptions("kiln_custom_call_options", options);
    if (!read.ok()) return read.status().WithContext("custom-call");
    if (read->reserved != 0) {
      return InvalidArgument("custom-call: kiln_custom_call_options.reserved is not 0");
    }
    auto shape = ResultShape(*graph, results, result_count);
    if (!shape.ok()) return shape.status().WithContext("custom-call");
    auto aliases = AliasesOf(*read, result_count);
    if (!aliases.ok()) return aliases.status().WithContext("custom-call");
    op.Operands("operands", operands, operand_count);
    op.Text(Attr::kCustomCallTarget, false, target, target_length);
    op.Text(Attr::kBackendConfig, true, read->backend_config, read->backend_config_length);
    op.Bool(Attr::kCustomCallHasSideEffect, true, read->has_side_effect);
    op.Aliases(Attr::kOutputToOperandAliasing, *std::move(aliases));
    op.Declared(*std::move(shape));
    return op.Finish();
  });
}

kiln_value kiln_op_host_callback(kiln_graph* graph, const char* callback, size_t callback_length,
                                 const kiln_value* operands, size_t operand_count,
                                 const kiln_shape* const* results, size_t result_count,
                                 int32_t has_side_effect) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    OpBuilder op(*graph, Opcode::kHostCallback);
    auto shape = ResultShape(*graph, results, result_count);
    if (!shape.ok()) return shape.status().WithContext("kiln.host-callback");
    op.Operands("operands", operands, operand_count);
    op.Text(Attr::kCallback, false, callback, callback_length);
    op.Bool(Attr::kCustomCallHasSideEffect, true, has_side_effect);
    op.Declared(*std::move(shape));
    return op.Finish();
  });
}
