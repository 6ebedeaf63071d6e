// What ops of a graph are marked with: devices, compilation, names, control dependencies.
#include <algorithm>

#include "base/strings.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/options.h"
#include "client/device_name.h"

namespace kiln::capi {
namespace {

using ir::Instruction;

// f(Scopes&) -> Status changes the graph's scopes. Like those of builder functions, errors become
// the graph's, so that no op is silently made in another scope than was meant.
template <typename F>
kiln_error* ChangeScopes(const char* function, kiln_graph* graph, F&& f) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull(function, {{"graph", graph}}));
    KILN_RETURN_IF_ERROR(graph->status());
    Status status;
    try {
      status = f(graph->scopes());
    } catch (...) {
      status = StatusOfException();
    }
    if (!status.ok()) graph->Fail(status.WithContext(function));
    return graph->status();
  });
}

// f(Instruction&) -> Status changes a value.
template <typename F>
kiln_error* Change(const char* function, kiln_graph* graph, kiln_value value, F&& f) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull(function, {{"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(Instruction * instruction, graph->ValueOf(value));
    Status status = f(*instruction);
    return status.ok() ? status : status.WithContext(function);
  });
}

Status SetDevice(kiln_graph& graph, Instruction& value, std::string_view name) {
  if (name.empty()) {
    graph.SetAttribute(value, ir::kDeviceAttribute, std::nullopt);
    return OkStatus();
  }
  KILN_RETURN_IF_ERROR(client::ParseDeviceName(name).status());
  graph.SetAttribute(value, ir::kDeviceAttribute, name);
  return OkStatus();
}

Status SetJit(kiln_graph& graph, Instruction& value, kiln_jit mode) {
  switch (mode) {
    case KILN_JIT_DEFAULT:
      graph.SetAttribute(value, ir::kCompileAttribute, std::nullopt);
      graph.SetAttribute(value, ir::kScopeAttribute, std::nullopt);
      return OkStatus();
    case KILN_JIT_ON:
    case KILN_JIT_OFF:
      graph.SetAttribute(value, ir::kCompileAttribute, mode == KILN_JIT_ON ? "true" : "false");
      return OkStatus();
    default:
      return InvalidArgument("mode is ", mode, "; expected one of kiln_jit");
  }
}

Status SetMustCompile(kiln_graph& graph, Instruction& value, int32_t must_compile) {
  KILN_RETURN_IF_ERROR(kiln::capi::CheckSwitch("must_compile", must_compile));
  if (value.opcode() != Opcode::kCall) {
    return InvalidArgument("'", value.name(), "' is a ", OpcodeName(value.opcode()),
                           "; expected a call");
  }
  graph.SetAttribute(value, ir::kMustCompileAttribute,
                     must_compile != 0 ? std::optional<std::string_view>("true") : std::nullopt);
  return OkStatus();
}

const Instruction* Find(const kiln_graph* graph, kiln_value value) {
  if (!graph) return nullptr;
  const std::optional<size_t> index = graph->IndexOf(value);
  return index ? graph->values()[*index] : nullptr;
}

const char* TextAndLength(const std::string* text, size_t* length) {
  if (length) *length = text ? text->size() : 0;
  return text ? text->c_str() : nullptr;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT

kiln_error* kiln_graph_push_device(kiln_graph* graph, const char* name, size_t name_length) {
  return ChangeScopes("kiln_graph_push_device", graph, [&](Scopes& scopes) -> Status {
    KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("name", name, name_length));
    return scopes.PushDevice(text);
  });
}

kiln_error* kiln_graph_pop_device(kiln_graph* graph) {
  return ChangeScopes("kiln_graph_pop_device", graph,
                      [](Scopes& scopes) { return scopes.PopDevice(); });
}

kiln_error* kiln_graph_push_jit_scope(kiln_graph* graph, int32_t compile) {
  return ChangeScopes("kiln_graph_push_jit_scope", graph,
                      [&](Scopes& scopes) { return scopes.PushJit(compile); });
}

kiln_error* kiln_graph_pop_jit_scope(kiln_graph* graph) {
  return ChangeScopes("kiln_graph_pop_jit_scope", graph,
                      [](Scopes& scopes) { return scopes.PopJit(); });
}

kiln_error* kiln_graph_push_name_scope(kiln_graph* graph, const char* name, size_t name_length) {
  return ChangeScopes("kiln_graph_push_name_scope", graph, [&](Scopes& scopes) -> Status {
    KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("name", name, name_length));
    // Before the first name is given out, those of a graph that was read count as given out.
    if (!scopes.gives_names()) {
      for (const ir::Instruction* value : graph->values()) scopes.NoteName(value->op_name());
    }
    return scopes.PushName(text);
  });
}

kiln_error* kiln_graph_pop_name_scope(kiln_graph* graph) {
  return ChangeScopes("kiln_graph_pop_name_scope", graph,
                      [](Scopes& scopes) { return scopes.PopName(); });
}

kiln_error* kiln_graph_push_control_dependencies(kiln_graph* graph, const kiln_value* values,
                                                 size_t value_count) {
  return ChangeScopes("kiln_graph_push_control_dependencies", graph, [&](Scopes& scopes) -> Status {
    if (!values && value_count > 0) {
      return InvalidArgument("values is NULL, with ", value_count, " values");
    }
    std::vector<ir::Instruction*> first;
    for (size_t i = 0; i < value_count; ++i) {
      auto value = graph->ValueOf(values[i]);
      if (!value.ok()) return value.status().WithContext(Cat("values[", i, "]"));
      first.push_back(*value);
    }
    scopes.PushControl(std::move(first), graph->values().size());
    return OkStatus();
  });
}

kiln_error* kiln_graph_pop_control_dependencies(kiln_graph* graph) {
  return ChangeScopes("kiln_graph_pop_control_dependencies", graph,
                      [&](Scopes& scopes) { return scopes.PopControl(graph->values().size()); });
}

kiln_error* kiln_graph_set_device(kiln_graph* graph, kiln_value value, const char* name,
                                  size_t name_length) {
  return Change("kiln_graph_set_device", graph, value, [&](ir::Instruction& op) -> Status {
    KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("name", name, name_length));
    return SetDevice(*graph, op, text);
  });
}

kiln_error* kiln_graph_set_jit(kiln_graph* graph, kiln_value value, kiln_jit mode) {
  return Change("kiln_graph_set_jit", graph, value,
                [&](ir::Instruction& op) { return SetJit(*graph, op, mode); });
}

kiln_error* kiln_graph_set_must_compile(kiln_graph* graph, kiln_value value, int32_t must_compile) {
  return Change("kiln_graph_set_must_compile", graph, value,
                [&](ir::Instruction& op) { return SetMustCompile(*graph, op, must_compile); });
}

kiln_error* kiln_graph_add_control_dependency(kiln_graph* graph, kiln_value before,
                                              kiln_value after) {
  return Change("kiln_graph_add_control_dependency", graph, after,
                [&](ir::Instruction& waiting) -> Status {
                  KILN_ASSIGN_OR_RETURN(ir::Instruction * first, graph->ValueOf(before));
                  return graph->AddControlDependency(first, &waiting);
                });
}

kiln_error* kiln_graph_set_frontend_attribute(kiln_graph* graph, kiln_value value, const char* key,
                                              size_t key_length, const char* text,
                                              size_t text_length) {
  return Change(
      "kiln_graph_set_frontend_attribute", graph, value, [&](ir::Instruction& op) -> Status {
        KILN_ASSIGN_OR_RETURN(std::string_view name, TextOf("key", key, key_length));
        KILN_ASSIGN_OR_RETURN(std::string_view content, TextOf("text", text, text_length));
        if (name.empty()) return InvalidArgument("the key is empty");
        if (name == ir::kDeviceAttribute) return SetDevice(*graph, op, content);
        graph->SetAttribute(op, name,
                            text ? std::optional<std::string_view>(content) : std::nullopt);
        return OkStatus();
      });
}

const char* kiln_graph_value_frontend_attribute(kiln_graph* graph, kiln_value value,
                                                const char* key, size_t key_length,
                                                size_t* length) {
  const ir::Instruction* op = Find(graph, value);
  const std::string* text =
      op && key ? op->FindFrontendAttribute(std::string_view(key, key_length)) : nullptr;
  return TextAndLength(text, length);
}

const char* kiln_graph_value_device(kiln_graph* graph, kiln_value value, size_t* length) {
  const ir::Instruction* op = Find(graph, value);
  return TextAndLength(op ? op->FindFrontendAttribute(ir::kDeviceAttribute) : nullptr, length);
}

const char* kiln_graph_value_op_name(kiln_graph* graph, kiln_value value, size_t* length) {
  const ir::Instruction* op = Find(graph, value);
  return TextAndLength(op ? &op->op_name() : nullptr, length);
}
