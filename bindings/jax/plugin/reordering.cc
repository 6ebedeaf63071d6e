#include "plugin/reordering.h"

#include "kiln/builder.h"
#include "kiln/ops.h"
#include "plugin/error.h"

namespace kiln_jax {
namespace {

bool IsNamed(std::string_view mode) { return mode.starts_with('{'); }

size_t ResultCount(const kiln_shape& shape) { return shape.dtype == KILN_TUPLE ? shape.rank : 1; }

std::string_view ModeOf(AttributeGetter get, const kiln_graph* graph, size_t index) {
  return AttributeOf(get, graph, index, "mhlo.layout_mode");
}

/** Reads the shape of a value, and the order that the program asks for it. */
PJRT_Error* Read(kiln_graph* graph, kiln_value value, std::string_view mode, kiln_shape* shape,
                 std::vector<int64_t>* dims, Layout* layout) {
  *shape = KILN_SHAPE_INIT;
  if (kiln_error* error = kiln_graph_value_shape(graph, value, shape)) return TakeError(error);
  dims->assign(shape->dims, shape->dims + shape->rank);
  return ParseLayout(mode, *dims, layout);
}

}  // namespace

std::string_view AttributeOf(AttributeGetter get, const kiln_graph* graph, size_t index,
                             std::string_view name) {
  size_t length = 0;
  const char* text = get(graph, index, name.data(), name.size(), &length);
  return text == nullptr ? std::string_view() : std::string_view(text, length);
}

bool Reordering::IsNeeded() const {
  for (size_t i = 0; i < kiln_graph_parameter_count(graph_); ++i) {
    if (IsNamed(ModeOf(kiln_graph_argument_attribute, graph_, i))) return true;
  }
  kiln_shape shape = KILN_SHAPE_INIT;
  kiln_error* error = kiln_graph_value_shape(graph_, kiln_graph_result(graph_), &shape);
  kiln_error_release(error);
  for (size_t i = 0; error == nullptr && i < ResultCount(shape); ++i) {
    if (IsNamed(ModeOf(kiln_graph_result_attribute, graph_, i))) return true;
  }
  return false;
}

PJRT_Error* Reordering::Make() {
  kiln_graph* made = nullptr;
  if (kiln_error* error = kiln_graph_create(context_, "main", 4, &made)) return TakeError(error);
  outer_.reset(made);
  std::vector<kiln_value> arguments, results;
  for (size_t i = 0; i < kiln_graph_parameter_count(graph_); ++i) {
    if (PJRT_Error* error = AddArgument(i, &arguments)) return error;
  }
  const kiln_value call = kiln_op_call(outer_.get(), arguments.data(), arguments.size(), graph_);
  kiln_shape shape = KILN_SHAPE_INIT;
  if (kiln_error* error = kiln_graph_value_shape(outer_.get(), call, &shape)) {
    return TakeError(error);
  }
  for (size_t i = 0; i < ResultCount(shape); ++i) {
    const bool is_tuple = shape.dtype == KILN_TUPLE;
    const kiln_value result =
        is_tuple ? kiln_op_get_tuple_element(outer_.get(), call, static_cast<int64_t>(i)) : call;
    if (PJRT_Error* error = AddResult(i, result, &results)) return error;
  }
  return TakeError(kiln_graph_set_results(outer_.get(), results.data(), results.size()));
}

PJRT_Error* Reordering::AddArgument(size_t index, std::vector<kiln_value>* values) {
  std::vector<int64_t> dims;
  Layout layout;
  kiln_shape& shape = arguments_.emplace_back();
  const kiln_value given = kiln_graph_parameter(graph_, index);
  if (PJRT_Error* error = Read(graph_, given, ModeOf(kiln_graph_argument_attribute, graph_, index),
                               &shape, &dims, &layout)) {
    return error;
  }
  size_t length = 0;
  const char* name = kiln_graph_value_name(graph_, given, &length);
  const bool is_donor =
      !AttributeOf(kiln_graph_argument_attribute, graph_, index, "tf.aliasing_output").empty() ||
      AttributeOf(kiln_graph_argument_attribute, graph_, index, "jax.buffer_donor") == "true";
  if (is_donor) donors_.push_back(index);
  if (layout.empty()) {
    values->push_back(kiln_op_parameter_like(outer_.get(), graph_, given, name, length));
    return nullptr;
  }
  const std::vector<int64_t> in_memory = InMemoryOrder(dims, layout);
  const kiln_value parameter = kiln_op_parameter(outer_.get(), shape.dtype, in_memory.data(),
                                                 in_memory.size(), name, length);
  // Dimension d of the program is in the place of memory that lists it.
  std::vector<int64_t> places(dims.size());
  for (size_t i = 0; i < layout.size(); ++i) {
    places[static_cast<size_t>(layout[i])] = static_cast<int64_t>(layout.size() - 1 - i);
  }
  values->push_back(kiln_op_transpose(outer_.get(), parameter, places.data(), places.size()));
  return nullptr;
}

PJRT_Error* Reordering::AddResult(size_t index, kiln_value value, std::vector<kiln_value>* values) {
  std::vector<int64_t> dims;
  Layout layout;
  kiln_shape& shape = results_.emplace_back();
  if (PJRT_Error* error =
          Read(outer_.get(), value, ModeOf(kiln_graph_result_attribute, graph_, index), &shape,
               &dims, &layout)) {
    return error;
  }
  if (!layout.empty()) {
    const std::vector<int64_t> order(layout.rbegin(), layout.rend());
    value = kiln_op_transpose(outer_.get(), value, order.data(), order.size());
  }
  values->push_back(value);
  return nullptr;
}

}  // namespace kiln_jax
