#include "kiln/gradient.h"

#include <vector>

#include "base/strings.h"
#include "capi/call_gradient.h"
#include "capi/deep.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/handle.h"
#include "capi/op_builder.h"
#include "capi/options.h"
#include "grad/custom.h"
#include "grad/derivative.h"
#include "grad/gradient.h"

namespace kiln::capi {
namespace {

using ir::Instruction;
using Values = std::vector<Instruction*>;

Result<grad::Options> ReadGradientOptions(const kiln_gradient_options* options) {
  KILN_ASSIGN_OR_RETURN(kiln_gradient_options read, ReadOptions("kiln_gradient_options", options));
  KILN_RETURN_IF_ERROR(CheckSwitch("kiln_gradient_options.recompute_loops", read.recompute_loops));
  if (read.reserved != 0) return InvalidArgument("kiln_gradient_options.reserved is not 0");
  return grad::Options{.recompute_loops = read.recompute_loops != 0};
}

// The graph's values in a list of the user's.
Result<Values> ValuesOf(const kiln_graph& graph, std::string_view name, const kiln_value* values,
                        size_t count) {
  if (!values && count > 0) {
    return InvalidArgument(name, " is NULL, with a count of ", count);
  }
  Values found;
  for (size_t i = 0; i < count; ++i) {
    auto value = graph.ValueOf(values[i]);
    if (!value.ok()) return value.status().WithContext(Cat(name, "[", i, "]"));
    found.push_back(*value);
  }
  return found;
}

// differentiate(Options) -> Result<Values> adds to the graph; its values go to `results`.
template <typename Differentiate>
kiln_error* AddDerivatives(const char* function, kiln_graph* graph,
                           const kiln_gradient_options* options, size_t result_count,
                           kiln_value* out, Differentiate&& differentiate) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull(function, {{"graph", graph}}));
    KILN_RETURN_IF_ERROR(graph->status());
    if (!out && result_count > 0) return InvalidArgument(function, ": the results are NULL");
    KILN_ASSIGN_OR_RETURN(grad::Options read, ReadGradientOptions(options));
    read.replaced = [&](const Instruction* op, Instruction* now) { graph->Rebind(op, now); };
    read.backward_of = [&](const Instruction& call) { return BackwardOf(graph->client(), call); };
    Result<Values> derivatives = differentiate(read);
    if (!derivatives.ok()) return derivatives.status().WithContext(function);
    graph->RegisterNew();
    for (size_t i = 0; i < derivatives->size(); ++i) out[i] = graph->IdOf((*derivatives)[i]);
    return OkStatus();
  });
}

Status CheckBackward(const kiln_graph& function, const kiln_graph& backward) {
  KILN_RETURN_IF_ERROR(function.CheckComplete());
  KILN_RETURN_IF_ERROR(backward.CheckComplete());
  const ProgramShape shape = function.entry().program_shape();
  return grad::CheckRule(shape.parameters, shape.result, backward.entry().program_shape());
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT

void kiln_gradient_options_init(kiln_gradient_options* options, size_t size) {
  InitOptions(options, size);
}

kiln_error* kiln_graph_gradient(kiln_graph* graph, kiln_value value,
                                const kiln_value* with_respect_to, size_t count,
                                const kiln_gradient_options* options, kiln_value* gradients) {
  return AddDerivatives(
      "kiln_graph_gradient", graph, options, count, gradients,
      [&](const grad::Options& read) -> Result<Values> {
        KILN_ASSIGN_OR_RETURN(Values values, ValuesOf(*graph, "value", &value, 1));
        KILN_ASSIGN_OR_RETURN(Values by,
                              ValuesOf(*graph, "with_respect_to", with_respect_to, count));
        return grad::VectorJacobianProduct(graph->entry(), values, {}, by, read);
      });
}

kiln_error* kiln_graph_vjp(kiln_graph* graph, const kiln_value* values,
                           const kiln_value* cotangents, size_t value_count,
                           const kiln_value* with_respect_to, size_t count,
                           const kiln_gradient_options* options, kiln_value* gradients) {
  return AddDerivatives(
      "kiln_graph_vjp", graph, options, count, gradients,
      [&](const grad::Options& read) -> Result<Values> {
        KILN_ASSIGN_OR_RETURN(Values of, ValuesOf(*graph, "values", values, value_count));
        KILN_ASSIGN_OR_RETURN(Values given,
                              ValuesOf(*graph, "cotangents", cotangents, value_count));
        KILN_ASSIGN_OR_RETURN(Values by,
                              ValuesOf(*graph, "with_respect_to", with_respect_to, count));
        return grad::VectorJacobianProduct(graph->entry(), of, given, by, read);
      });
}

kiln_error* kiln_graph_jvp(kiln_graph* graph, const kiln_value* values, size_t value_count,
                           const kiln_value* with_respect_to, const kiln_value* tangents,
                           size_t count, const kiln_gradient_options* options,
                           kiln_value* derivatives) {
  return AddDerivatives(
      "kiln_graph_jvp", graph, options, value_count, derivatives,
      [&](const grad::Options& read) -> Result<Values> {
        KILN_ASSIGN_OR_RETURN(Values of, ValuesOf(*graph, "values", values, value_count));
        KILN_ASSIGN_OR_RETURN(Values by,
                              ValuesOf(*graph, "with_respect_to", with_respect_to, count));
        KILN_ASSIGN_OR_RETURN(Values given, ValuesOf(*graph, "tangents", tangents, count));
        return grad::JacobianVectorProduct(graph->entry(), of, by, given, read);
      });
}

kiln_error* kiln_graph_set_checkpoint(kiln_graph* graph, kiln_value call, int32_t checkpoint) {
  return Guard([&]() -> Status {
    constexpr const char* kName = "kiln_graph_set_checkpoint";
    KILN_RETURN_IF_ERROR(NotNull(kName, {{"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(ir::Instruction * op, graph->ValueOf(call));
    KILN_RETURN_IF_ERROR(CheckSwitch("checkpoint", checkpoint));
    if (op->opcode() != Opcode::kCall) {
      return InvalidArgument(kName, ": '", op->name(), "' is a ", OpcodeName(op->opcode()),
                             "; expected a call");
    }
    graph->SetAttribute(*op, grad::kGradientAttribute,
                        checkpoint != 0 ? std::optional(grad::kCheckpoint) : std::nullopt);
    return OkStatus();
  });
}

kiln_error* kiln_graph_set_gradient(kiln_graph* function, const kiln_graph* backward) {
  return GuardDeep([&]() -> Status {
    constexpr const char* kName = "kiln_graph_set_gradient";
    KILN_RETURN_IF_ERROR(NotNull(kName, {{"function", function}}));
    if (!backward) {
      function->SetGradient(nullptr);
      return OkStatus();
    }
    const Status fits = CheckBackward(*function, *backward);
    if (!fits.ok()) return fits.WithContext(kName);
    function->SetGradient(backward->module().Clone());
    return OkStatus();
  });
}

kiln_error* kiln_context_register_gradient(
    kiln_context* context, const char* target, size_t target_length,
    kiln_error* (*build)(void* user_data, kiln_graph* backward, const kiln_gradient_call* call),
    void* user_data, void (*destroy)(void* user_data)) {
  return Guard([&]() -> Status {
    constexpr const char* kName = "kiln_context_register_gradient";
    KILN_RETURN_IF_ERROR(
        NotNull(kName, {{"context", context}, {"build", reinterpret_cast<const void*>(build)}}));
    KILN_ASSIGN_OR_RETURN(std::string_view name, TextOf("target", target, target_length));
    const Status registered = RegisterGradient(*Unwrap(context), name, build, user_data, destroy);
    return registered.ok() ? registered : registered.WithContext(kName);
  });
}

kiln_value kiln_op_stop_gradient(kiln_graph* graph, kiln_value operand) {
  return Built(graph, [&]() -> Result<ir::Instruction*> {
    auto value = graph->ValueOf(operand);
    if (!value.ok()) return value.status().WithContext("stop_gradient");
    KILN_ASSIGN_OR_RETURN(ir::Instruction * copy,
                          graph->Add({.opcode = Opcode::kCopy, .operands = {*value}}));
    graph->SetAttribute(*copy, grad::kGradientAttribute, grad::kStopped);
    return copy;
  });
}
