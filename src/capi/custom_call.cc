// Custom calls: the user's functions by name, and the op that calls them.
#include "kiln/custom_call.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/op_builder.h"
#include "capi/options.h"
#include "capi/users_call.h"
#include "ir/host_call.h"
#include "tensor/layouts.h"

namespace kiln::capi {
namespace {

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

// Gives the shapes their parts of a list of layouts, if there is one.
Status TakeLayouts(std::string_view name, const int64_t* layouts, size_t count,
                   std::span<Shape* const> shapes) {
  if (count == 0) return OkStatus();
  if (!layouts) return InvalidArgument(name, " is NULL, with ", count, " numbers");
  size_t ranks = 0;
  for (const Shape* shape : shapes) ranks += static_cast<size_t>(shape->rank());
  if (count != ranks) {
    return InvalidArgument(name, " has ", count, " numbers; expected ", ranks,
                           ", the sum of the ranks");
  }
  for (Shape* shape : shapes) {
    const std::span<const int64_t> order(layouts, static_cast<size_t>(shape->rank()));
    layouts += shape->rank();
    if (!IsPermutation(order, shape->rank())) {
      return InvalidArgument(name, " has no layout of ", *shape);
    }
    shape->set_minor_to_major({order.begin(), order.end()});
  }
  return OkStatus();
}

// The operands in the layouts that the options demand, and the results' shape in theirs.
Result<std::vector<kiln_value>> InCallLayouts(kiln_graph& graph,
                                              const kiln_custom_call_options& options,
                                              std::span<const kiln_value> operands, Shape& result) {
  std::vector<kiln_value> values(operands.begin(), operands.end());
  if (options.operand_layout_count == 0 && options.result_layout_count == 0) return values;
  if (options.api_version != kTypedApiVersion) {
    return InvalidArgument("layouts need kiln_custom_call_options.api_version ", kTypedApiVersion);
  }
  std::vector<ir::Instruction*> instructions;
  std::vector<Shape> shapes;
  for (kiln_value value : values) {
    KILN_ASSIGN_OR_RETURN(instructions.emplace_back(), graph.ValueOf(value));
    shapes.push_back(instructions.back()->shape());
  }
  std::vector<Shape*> of_operands, of_results;
  for (Shape& shape : shapes) of_operands.push_back(&shape);
  for (Shape& shape : result.mutable_elements()) of_results.push_back(&shape);
  if (!result.is_tuple()) of_results.push_back(&result);
  KILN_RETURN_IF_ERROR(TakeLayouts("operand_layouts", options.operand_layouts,
                                   options.operand_layout_count, of_operands));
  KILN_RETURN_IF_ERROR(TakeLayouts("result_layouts", options.result_layouts,
                                   options.result_layout_count, of_results));
  for (size_t i = 0; i < values.size(); ++i) {
    if (shapes[i] == instructions[i]->shape()) continue;
    KILN_ASSIGN_OR_RETURN(ir::Instruction * copy,
                          graph.Add({.opcode = Opcode::kCopy, .operands = {instructions[i]}}));
    copy->set_shape(shapes[i]);
    values[i] = graph.IdOf(copy);
  }
  return values;
}

Status SetApiVersion(int32_t version, OpBuilder& op) {
  if (version == 0) return OkStatus();
  const std::string_view name = ApiVersionName(version);
  if (name.empty()) {
    return InvalidArgument("kiln_custom_call_options.api_version is ", version,
                           "; expected 0 to 4");
  }
  op.Text(Attr::kApiVersion, false, name.data(), name.size());
  return OkStatus();
}

// The value with all arrays in row-major order, as values of graphs are.
Result<ir::Instruction*> InRowMajor(kiln_graph& graph, ir::Instruction* value) {
  const Shape& shape = value->shape();
  if (ir::IsRowMajor(shape)) return value;
  if (shape.is_array()) return graph.Add({.opcode = Opcode::kCopy, .operands = {value}});
  ir::InstructionSpec tuple{.opcode = Opcode::kTuple};
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    KILN_ASSIGN_OR_RETURN(ir::Instruction * element,
                          graph.Add({.opcode = Opcode::kGetTupleElement,
                                     .operands = {value},
                                     .attributes = {{Attr::kIndex, static_cast<int64_t>(i)}}}));
    KILN_ASSIGN_OR_RETURN(element, InRowMajor(graph, element));
    tuple.operands.push_back(element);
  }
  return graph.Add(std::move(tuple));
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
    kiln_call_handler handler = KILN_CALL_HANDLER_INIT;
    handler.execute = function;
    handler.user_data = user_data;
    handler.destroy = destroy;
    return RegisterCall(*Unwrap(context), name, handler);
  });
}

void kiln_call_handler_init(kiln_call_handler* handler, size_t size) { InitOptions(handler, size); }

kiln_error* kiln_context_register_call_handler(kiln_context* context, const char* target,
                                               size_t target_length,
                                               const kiln_call_handler* handler) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_context_register_call_handler",
                                 {{"context", context}, {"handler", handler}}));
    KILN_ASSIGN_OR_RETURN(std::string_view name, TextOf("target", target, target_length));
    KILN_ASSIGN_OR_RETURN(kiln_call_handler read, ReadOptions("kiln_call_handler", handler));
    if (!read.execute) return InvalidArgument("kiln_call_handler.execute is NULL");
    return RegisterCall(*Unwrap(context), name, read);
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
    auto shape = ResultShape(*graph, results, result_count);
    if (!shape.ok()) return shape.status().WithContext("custom-call");
    auto aliases = AliasesOf(*read, result_count);
    if (!aliases.ok()) return aliases.status().WithContext("custom-call");
    std::vector<kiln_value> values;
    if (operands || operand_count == 0) {
      auto in_layouts = InCallLayouts(*graph, *read, {operands, operand_count}, *shape);
      if (!in_layouts.ok()) return in_layouts.status().WithContext("custom-call");
      values = *std::move(in_layouts);
      operands = values.data();
    }
    op.Operands("operands", operands, operand_count);
    op.Text(Attr::kCustomCallTarget, false, target, target_length);
    op.Text(Attr::kBackendConfig, true, read->backend_config, read->backend_config_length);
    op.Bool(Attr::kCustomCallHasSideEffect, true, read->has_side_effect);
    op.Aliases(Attr::kOutputToOperandAliasing, *std::move(aliases));
    Status set = SetApiVersion(read->api_version, op);
    if (!set.ok()) return set.WithContext("custom-call");
    op.Declared(*std::move(shape));
    KILN_ASSIGN_OR_RETURN(ir::Instruction * call, op.Finish());
    return InRowMajor(*graph, call);
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
