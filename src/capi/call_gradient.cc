#include "capi/call_gradient.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/stack.h"
#include "base/strings.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/users_call.h"
#include "grad/custom.h"
#include "grad/leaves.h"

namespace kiln::capi {
namespace {

using ir::Instruction;

Result<kiln_value> AddParameter(kiln_graph& graph, const Shape& shape) {
  const int64_t number = std::ssize(graph.entry().parameters());
  KILN_ASSIGN_OR_RETURN(Instruction * added,
                        graph.Add({.opcode = Opcode::kParameter,
                                   .attributes = {{Attr::kParameterNumber, number}},
                                   .shape = shape}));
  return graph.IdOf(added);
}

// The user's function for the calls of a target.
class UsersGradient : public client::CallGradient {
 public:
  UsersGradient(client::Client& client, BuildGradient build, void* user_data)
      : client_(client), build_(build), user_data_(user_data) {}
  ~UsersGradient() override {
    if (destroy_) client_.CallOrDefer(std::move(destroy_));
  }

  Result<ir::Computation*> Build(const Instruction& call) const override;
  void set_destroy(std::unique_ptr<client::Deferred> destroy) { destroy_ = std::move(destroy); }

 private:
  client::Client& client_;  // outlives what is registered with it
  const BuildGradient build_;
  void* const user_data_;
  std::unique_ptr<client::Deferred> destroy_;
};

// The backward graph of a call, with the form of it for the user.
class Backward {
 public:
  Backward(client::Client& client, const Instruction& call)
      : call_(call),
        graph_(MakeRef<kiln_graph>(client, std::make_unique<ir::Module>("gradient"))) {}

  Status AddParameters();
  Status CallUser(BuildGradient build, void* user_data);
  // The cotangents that the user has set, for the operands that have derivatives.
  Status SetResults();
  const kiln_graph& graph() const { return *graph_; }

 private:
  const Instruction& call_;
  const Ref<kiln_graph> graph_;
  std::vector<Shape> operand_shapes_;
  std::vector<kiln_value> operands_, results_, cotangents_, gradients_;
};

Status Backward::AddParameters() {
  for (const Instruction* operand : call_.operands()) {
    for (const Shape& shape : grad::LeafShapes(operand->shape())) {
      operand_shapes_.push_back(shape);
      KILN_ASSIGN_OR_RETURN(operands_.emplace_back(), AddParameter(*graph_, shape));
    }
  }
  const std::vector<Shape> results = grad::LeafShapes(call_.shape());
  for (const Shape& shape : results) {
    KILN_ASSIGN_OR_RETURN(results_.emplace_back(), AddParameter(*graph_, shape));
  }
  for (const Shape& shape : results) {
    kiln_value& cotangent = cotangents_.emplace_back(0);
    if (!grad::IsDifferentiable(shape)) continue;
    KILN_ASSIGN_OR_RETURN(cotangent, AddParameter(*graph_, shape));
  }
  gradients_.resize(operands_.size());
  return OkStatus();
}

Status Backward::CallUser(BuildGradient build, void* user_data) {
  const std::string target = call_.attributes().Text(Attr::kCustomCallTarget);
  const std::string config = call_.attributes().Text(Attr::kBackendConfig);
  const kiln_gradient_call call = {sizeof(call),       target.data(),    target.size(),
                                   config.c_str(),     config.size(),    operands_.data(),
                                   operands_.size(),   results_.data(),  results_.size(),
                                   cotangents_.data(), gradients_.data()};
  kiln_error* error = nullptr;
  OnCallersStack([&] { error = build(user_data, graph_.get(), &call); });
  KILN_RETURN_IF_ERROR(TakeError(error));
  return graph_->status();
}

Status Backward::SetResults() {
  std::vector<Instruction*> results;
  for (size_t k = 0; k < gradients_.size(); ++k) {
    const Shape& shape = operand_shapes_[k];
    if (!grad::IsDifferentiable(shape)) continue;
    if (gradients_[k] == 0) {
      grad::Builder b(&graph_->entry());
      results.push_back(b.Zeros(shape));
      KILN_RETURN_IF_ERROR(b.status());
      continue;
    }
    auto value = graph_->ValueOf(gradients_[k]);
    if (!value.ok()) return value.status().WithContext(Cat("gradients[", k, "]"));
    results.push_back(*value);
  }
  if (results.size() == 1) {
    graph_->SetRoot(results[0]);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(Instruction * all,
                        graph_->Add({.opcode = Opcode::kTuple, .operands = std::move(results)}));
  graph_->SetRoot(all);
  return OkStatus();
}

Result<ir::Computation*> UsersGradient::Build(const Instruction& call) const {
  Backward backward(client_, call);
  KILN_RETURN_IF_ERROR(backward.AddParameters());
  KILN_RETURN_IF_ERROR(backward.CallUser(build_, user_data_));
  KILN_RETURN_IF_ERROR(backward.SetResults());
  std::vector<Shape> operands;
  for (const Instruction* operand : call.operands()) operands.push_back(operand->shape());
  const ir::Computation& entry = backward.graph().entry();
  KILN_RETURN_IF_ERROR(grad::CheckRule(operands, call.shape(), entry.program_shape()));
  return call.parent()->parent()->CloneComputation(
      entry, Cat(call.attributes().Text(Attr::kCustomCallTarget), ".backward"));
}

}  // namespace

Status RegisterGradient(client::Client& client, std::string_view target, BuildGradient build,
                        void* user_data, void (*destroy)(void*)) {
  auto gradient = std::make_shared<UsersGradient>(client, build, user_data);
  std::unique_ptr<client::Deferred> when_gone;
  if (destroy) when_gone = std::make_unique<client::DeleterCall>(destroy, user_data);
  KILN_RETURN_IF_ERROR(client.RegisterGradient(target, gradient));
  gradient->set_destroy(std::move(when_gone));
  return OkStatus();
}

Result<ir::Computation*> BackwardOf(const client::Client& client, const Instruction& call) {
  const std::string& target = call.attributes().Text(Attr::kCustomCallTarget);
  const std::shared_ptr<const client::CallGradient> gradient = client.FindGradient(target);
  if (!gradient) return nullptr;
  Result<ir::Computation*> built = gradient->Build(call);
  if (built.ok()) return built;
  return built.status().WithContext(
      Cat("the derivative of '", call.name(), "', a call of ", target));
}

}  // namespace kiln::capi
