#include "capi/users_call.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/stack.h"
#include "base/strings.h"
#include "capi/error.h"
#include "ir/host_call.h"
#include "runtime/custom_calls.h"
#include "tensor/call_attributes.h"

namespace kiln::capi {
namespace {

// The functions of a target, alive as long as they can be called.
class UsersFunctions {
 public:
  UsersFunctions(client::Client& client, std::string_view target, const kiln_call_handler& handler)
      : client_(client), target_(target), handler_(handler) {}
  ~UsersFunctions() {
    if (destroy_) client_.CallOrDefer(std::move(destroy_));
  }
  UsersFunctions(const UsersFunctions&) = delete;
  UsersFunctions& operator=(const UsersFunctions&) = delete;

  client::Client& client() const { return client_; }
  const std::string& target() const { return target_; }
  const kiln_call_handler& handler() const { return handler_; }
  void set_destroy(std::unique_ptr<client::Deferred> destroy) { destroy_ = std::move(destroy); }

 private:
  client::Client& client_;  // outlives what is registered with it
  const std::string target_;
  const kiln_call_handler handler_;
  std::unique_ptr<client::Deferred> destroy_;
};

// The end of a call's state, before that of its functions.
class StateDeleter : public client::Deferred {
 public:
  StateDeleter(std::shared_ptr<const UsersFunctions> functions, void* state)
      : functions_(std::move(functions)), state_(state) {}
  void Call() noexcept override {
    functions_->handler().destroy_state(functions_->handler().user_data, state_);
  }

 private:
  const std::shared_ptr<const UsersFunctions> functions_;
  void* const state_;
};

// The C form of attributes, which stay where they are.
class Attributes {
 public:
  Status Read(std::string_view text) {
    KILN_ASSIGN_OR_RETURN(attributes_, ParseCallAttributes(text));
    list_ = Describe(attributes_);
    return OkStatus();
  }
  const kiln_call_attribute* const* list() const { return list_; }
  size_t count() const { return attributes_.size(); }

 private:
  const kiln_call_attribute* const* Describe(const std::vector<CallAttribute>& attributes) {
    std::vector<const kiln_call_attribute*>& list = lists_.emplace_back();
    for (const CallAttribute& a : attributes) {
      const bool dictionary = a.kind == CallAttribute::Kind::kDictionary;
      kiln_call_attribute& made = made_.emplace_back();
      made.struct_size = sizeof(made);
      made.name = a.name.c_str();
      made.name_length = a.name.size();
      made.kind = static_cast<kiln_call_attribute_kind>(a.kind) + KILN_CALL_SCALAR;
      made.dtype = static_cast<kiln_dtype>(a.type);
      made.count = dictionary ? a.members.size() : static_cast<size_t>(a.count);
      made.data = dictionary ? nullptr : a.bytes.data();
      made.members = dictionary ? Describe(a.members) : nullptr;
      list.push_back(&made);
    }
    list.push_back(nullptr);  // a list that is empty has an address, too
    return list.data();
  }

  std::vector<CallAttribute> attributes_;
  std::deque<kiln_call_attribute> made_;
  std::deque<std::vector<const kiln_call_attribute*>> lists_;
  const kiln_call_attribute* const* list_ = nullptr;
};

// A call of them, with descriptions of its arrays except their addresses.
class UsersCall : public runtime::lib::Function {
 public:
  UsersCall(std::shared_ptr<const UsersFunctions> functions, const CallSignature& signature)
      : functions_(std::move(functions)), signature_(signature) {}
  ~UsersCall() override {
    if (state_deleter_) functions_->client().CallOrDefer(std::move(state_deleter_));
  }

  Status Prepare();
  bool is_users() const override { return true; }
  Status Run(const kiln_frame*, void* const* args) const override {
    return WithArrays(args, [&](const kiln_custom_call& call) {
      return functions_->handler().execute(functions_->handler().user_data, &call);
    });
  }

 private:
  void DescribeArrays();
  template <typename F>
  Status WithArrays(void* const* args, F function) const;

  const std::shared_ptr<const UsersFunctions> functions_;
  const CallSignature signature_;
  std::deque<std::vector<int64_t>> lists_;
  std::vector<kiln_call_array> arrays_;
  std::vector<int64_t> aliases_;
  Attributes attributes_;
  kiln_custom_call call_{};
  std::unique_ptr<client::Deferred> state_deleter_;
};

void UsersCall::DescribeArrays() {
  for (const std::vector<Shape>* shapes : {&signature_.operands, &signature_.results}) {
    for (const Shape& shape : *shapes) {
      const std::vector<int64_t>& dims = lists_.emplace_back(shape.dims());
      std::vector<int64_t>& order = lists_.emplace_back(shape.minor_to_major());
      for (int64_t d = shape.rank() - 1; shape.is_row_major() && d >= 0; --d) order.push_back(d);
      arrays_.push_back({sizeof(kiln_call_array), static_cast<kiln_dtype>(shape.type()), 0,
                         dims.size(), dims.data(), nullptr, shape.byte_size(), order.data()});
    }
  }
  aliases_.assign(signature_.results.size() + 1, -1);
  for (auto [result, operand] : signature_.aliases) {
    aliases_[result] = static_cast<int64_t>(operand);
  }
}

template <typename F>
Status UsersCall::WithArrays(void* const* args, F function) const {
  std::vector<kiln_call_array> arrays = arrays_;
  std::vector<const kiln_call_array*> pointers;
  pointers.reserve(arrays.size() + 1);
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (args) arrays[i].data = args[i];
    pointers.push_back(&arrays[i]);
  }
  pointers.push_back(nullptr);
  kiln_custom_call call = call_;
  call.operands = pointers.data();
  call.results = pointers.data() + call.operand_count;
  kiln_error* error = nullptr;
  // It may ask for work on this device, and wait for it.
  const client::Queue::InUsersFunction scope;
  OnCallersStack([&] { error = function(call); });
  return TakeError(error);
}

Status UsersCall::Prepare() {
  DescribeArrays();
  // Without a text there are no attributes.
  if (signature_.api_version == kTypedApiVersion && !signature_.attributes.empty()) {
    Status read = attributes_.Read(signature_.attributes);
    if (!read.ok()) return read.WithContext("backend_config");
  }
  call_.struct_size = sizeof(call_);
  call_.target = functions_->target().data();
  call_.target_length = functions_->target().size();
  call_.backend_config = signature_.attributes.c_str();
  call_.backend_config_length = signature_.attributes.size();
  call_.operand_count = signature_.operands.size();
  call_.result_count = signature_.results.size();
  call_.api_version = static_cast<int32_t>(signature_.api_version);
  call_.has_side_effect = signature_.has_side_effect;
  call_.attributes = attributes_.list();
  call_.attribute_count = attributes_.count();
  call_.aliases = aliases_.data();
  const kiln_call_handler& handler = functions_->handler();
  if (!handler.instantiate) return OkStatus();
  void* state = nullptr;
  KILN_RETURN_IF_ERROR(WithArrays(nullptr, [&](const kiln_custom_call& call) {
    return handler.instantiate(handler.user_data, &call, &state);
  }));
  call_.state = state;
  if (state && handler.destroy_state) {
    state_deleter_ = std::make_unique<StateDeleter>(functions_, state);
  }
  return OkStatus();
}

}  // namespace

Status TakeError(kiln_error* error) {
  if (!error) return OkStatus();
  Status status(static_cast<Code>(kiln_error_code(error)), error->message);
  kiln_error_release(error);
  return status;
}

Status RegisterCall(client::Client& client, std::string_view target,
                    const kiln_call_handler& handler) {
  if (handler.instantiate && !client.callbacks_from_any_thread()) {
    return FailedPrecondition(
        "kiln_call_handler.instantiate needs a context with callbacks_from_any_thread");
  }
  auto functions = std::make_shared<UsersFunctions>(client, target, handler);
  std::unique_ptr<client::Deferred> when_gone;
  if (handler.destroy) {
    when_gone = std::make_unique<client::DeleterCall>(handler.destroy, handler.user_data);
  }
  runtime::CustomCallRegistry::Maker make =
      [functions](
          const CallSignature& signature) -> Result<std::shared_ptr<const runtime::lib::Function>> {
    auto call = std::make_shared<UsersCall>(functions, signature);
    KILN_RETURN_IF_ERROR(call->Prepare());
    return std::shared_ptr<const runtime::lib::Function>(std::move(call));
  };
  KILN_RETURN_IF_ERROR(client.RegisterCustomCall(target, make));
  functions->set_destroy(std::move(when_gone));
  return OkStatus();
}

}  // namespace kiln::capi
